"""Kernels: modules with the same few functions over (n, d) states, each tested equal to `voronaut.clusters`."""
