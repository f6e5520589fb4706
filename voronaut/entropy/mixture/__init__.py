"""Entropy by coding with mixtures of Gaussians: the default estimator, and the compiled loops that it alone uses."""
