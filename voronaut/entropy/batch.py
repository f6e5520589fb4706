"""The entropy of one batch of states: one yardstick for every exploration method."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from voronaut.entropy.cells import cell_entropy

CELLS = 64
SAMPLE = 4096
RESOLUTION = 1e-3


def batch_entropy(states: NDArray[Any]) -> float:
    """Entropy in nats of states (n, d) seen through a blur of 1e-3, from cell moments (`entropy.cells`).

    Up to 4096 evenly spaced states, cut into 64 cells by two rounds of k-means on standardised coordinates. The blur
    keeps the number finite and comparable where a coordinate is constant. Plain NumPy and no randomness: the same
    states always have the same entropy, on any machine.
    """
    flat = np.asarray(states, np.float64).reshape(-1, states.shape[-1])
    sample = flat[np.linspace(0, len(flat) - 1, min(SAMPLE, len(flat))).astype(int)]
    scaled = (sample - sample.mean(axis=0)) / np.maximum(sample.std(axis=0), RESOLUTION)
    centers = scaled[np.random.default_rng(0).permutation(len(scaled))[:CELLS]]
    cell = _nearest(scaled, centers)
    for _ in range(2):
        sums = np.stack([np.bincount(cell, weights=column, minlength=len(centers)) for column in scaled.T], axis=1)
        masses = np.bincount(cell, minlength=len(centers))[:, None]
        centers = np.where(masses > 0, sums / np.maximum(masses, 1), centers)
        cell = _nearest(scaled, centers)
    return cell_entropy(sample, cell, len(centers), resolution=RESOLUTION)


def _nearest(points: NDArray[np.float64], centers: NDArray[np.float64]) -> NDArray[np.int64]:
    """argmin_i ‖x − μ_i‖² (‖x‖² left out)."""
    return np.asarray(np.argmin((centers**2).sum(axis=1) - 2 * points @ centers.T, axis=1))
