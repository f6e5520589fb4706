"""Scale-free balanced k-means (`entropy.scale_free.kernel`) with the settings of the entropy estimators."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from voronaut.clusters import between
from voronaut.entropy.scale_free import kernel

Floats = NDArray[Any]

ETA = 0.03  # κ in units of the running margin: balanced cells and no dead centers on well-mixed points
FLOOR = 0.01  # least step of a center
PASSES = 3


class Clusters(NamedTuple):
    """Centers (k, d), counts (k,) and the running margin; never changed in place."""

    centers: Floats
    counts: NDArray[np.int64]
    margin: float

    def update(self, points: Floats, order: NDArray[np.int64]) -> "Clusters":
        """One pass over the points in the given order."""
        return Clusters(*kernel.update(*self, points, order, eta=ETA, floor=FLOOR))

    @property
    def weights(self) -> Floats:
        """κ (n_j − min n): what is added to the distance to each center."""
        return np.asarray(ETA * self.margin * (self.counts - self.counts.min()))

    def assign(self, points: Floats) -> NDArray[np.int64]:
        """argmin_j ‖x − μ_j‖ + κ n_j (Eq. 4)."""
        return nearest(points, self.centers, self.weights)

    def gaps(self) -> Floats:
        """min_{j≠i} ‖μ_i − μ_j‖ + κ (n_j − n_i)."""
        return between(self.centers, self.weights)


def start(points: Floats, clusters: int, seed: int) -> Clusters:
    """A few passes over all points from random ones of them."""
    rng = np.random.default_rng([seed, 2])
    chosen = rng.permutation(len(points))[np.arange(clusters) % len(points)]
    made = Clusters(points[chosen], np.ones(clusters, np.int64), 0.0)
    for _ in range(PASSES):
        made = made.update(points, rng.permutation(len(points)))
    return made


def partition(points: Floats, clusters: int, seed: int) -> NDArray[np.int64]:
    """The cell of each point (n,): the nearest center, once the clusters have settled on the points."""
    if clusters == 1:
        return np.zeros(len(points), np.int64)
    return nearest(points, start(points, clusters, seed).centers)


def nearest(points: Floats, centers: Floats, weights: Floats | float = 0.0) -> NDArray[np.int64]:
    """argmin_j ‖x − μ_j‖ + w_j of points (n, d)."""
    return np.concatenate([_nearest(points[a : a + 4096], centers, weights) for a in range(0, len(points), 4096)])


def _nearest(points: Floats, centers: Floats, weights: Any) -> NDArray[np.int64]:
    squared = (points**2).sum(axis=1)[:, None] + (centers**2).sum(axis=1) - 2 * points @ centers.T
    return np.asarray(np.argmin(np.sqrt(np.maximum(squared, 0)) + weights, axis=1))
