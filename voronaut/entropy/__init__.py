"""Entropy and density in nats, from a sample or a stream."""

from voronaut.entropy.density import cell_density

__all__ = ["cell_density"]
