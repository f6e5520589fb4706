"""Entropy from the cells of balanced k-means over a stream: masses and second moments, or the gaps of Theorem 2.

Clusters learn all the time; cells are measured with a frozen copy of them, which is renewed when twice as many points
have been seen, so that a measurement is of one partition. H = H(I) + Σ p_i h_i, cells taken for balls after whitening:
h_i = −ln |W| + (d/2) ln s_i² + ln V_d + (d/2) ln(d + 2), W from the pooled within-cell covariance (`entropy.cells`).
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from voronaut.entropy.cells import bound, discrete_entropy, log_ball
from voronaut.entropy.clustering import Clusters, start
from voronaut.entropy.mixture.meter import FEED, SPARE
from voronaut.entropy.mixture.paths import Straight, regular

Floats = NDArray[np.float64]


class Cells(NamedTuple):
    """A frozen partition and what was measured in it (the arrays are added to)."""

    clusters: Clusters
    whiten: Floats  # W, (d, d)
    masses: NDArray[np.int64]
    sums: Floats  # Σ W(x − μ), (k, d)
    squares: Floats  # Σ ‖W(x − μ)‖², (k,)
    scatter: Floats  # Σ W(x − μ)(x − μ)ᵀWᵀ, (d, d)

    def measure(self, points: Floats) -> None:
        """Add points (n, d)."""
        cell = self.clusters.assign(points)
        inside = (points - self.clusters.centers[cell]) @ self.whiten.T
        k = len(self.masses)
        self.masses[:] += np.bincount(cell, minlength=k)
        for j, column in enumerate(inside.T):
            self.sums[:, j] += np.bincount(cell, weights=column, minlength=k)
        self.squares[:] += np.bincount(cell, weights=(inside**2).sum(axis=1), minlength=k)
        self.scatter[:] += inside.T @ inside

    def inside(self) -> Floats:
        """h_i of every cell; a cell of one point or none takes the mean radius."""
        d = self.whiten.shape[0]
        n = np.maximum(self.masses, 1)
        squares = np.maximum(self.squares - (self.sums**2).sum(axis=1) / n, 0) / d
        own = self.masses > 1
        pooled = squares.sum() / max(int((self.masses - 1)[own].sum()), 1)
        radius = np.where(own & (squares > 0), squares / np.maximum(self.masses - 1, 1), max(pooled, 1e-300))
        log_det = np.linalg.slogdet(self.whiten)[1]
        return np.asarray(d / 2 * np.log(radius) + log_ball(d) + d / 2 * math.log(d + 2) - log_det)


def frozen(clusters: Clusters, residuals: Floats) -> Cells:
    """An empty measurement; W makes the covariance of the residuals round."""
    k, d = clusters.centers.shape
    whiten = np.linalg.inv(np.linalg.cholesky(regular(residuals)))
    return Cells(clusters, whiten, np.zeros(k, np.int64), np.zeros((k, d)), np.zeros(k), np.zeros((d, d)))


class CellMeter:
    """`moments`: cell masses and second moments of standardised points (n, d)."""

    def __init__(self, first: Floats, clusters: int, seed: int) -> None:
        self._path, self._seed, self._updates = Straight(first), seed, 0
        y = self._flat(first)
        fed = len(first) // (SPARE * (first.shape[1] + 2))
        self._clusters = start(y, clusters if len(first) >= FEED * clusters else max(1, min(clusters, fed)), seed)
        residuals = y - self._clusters.centers[self._clusters.assign(y)]
        self._cells = self._ready = frozen(self._clusters, residuals.T @ residuals / len(y))
        self._cells.measure(y)

    def _flat(self, points: Floats) -> Floats:
        return np.asarray(self._path.columns(points, np.float64)[0].T)

    def absorb(self, points: Floats) -> None:
        """Measure, then learn."""
        y = self._flat(points)
        self._cells.measure(y)
        self._updates += 1
        order = np.random.default_rng([self._seed, self._updates]).permutation(len(y))
        self._clusters = self._clusters.update(y, order)
        now, before = self._cells.masses.sum(), self._ready.masses.sum()
        if self._cells is self._ready or now >= 2 * before:
            self._ready = self._cells
            back = np.linalg.inv(self._ready.whiten)
            self._cells = frozen(self._clusters, back @ (self._ready.scatter / now) @ back.T)

    def _measured(self) -> Cells:
        """The later measurement, once it is half as large as the one before."""
        enough = 2 * self._cells.masses.sum() >= self._ready.masses.sum()
        return self._cells if enough else self._ready

    def read(self) -> tuple[float, float]:
        """Entropy and its sampling error, of the standardised points."""
        cells = self._measured()
        share = cells.masses / cells.masses.sum()
        own = cells.inside()
        surprise = own - np.log(np.maximum(share, 1e-300))
        mean = float(share @ surprise)
        error = math.sqrt(max(float(share @ (surprise - mean) ** 2), 0) / cells.masses.sum())
        return discrete_entropy(cells.masses) + float(share @ own) - self._path.log_det, error

    def log_density(self, points: Floats) -> Floats:
        """ln(p_i / volume of cell i); a cell that was empty counts as half a point."""
        cells = self._measured()
        mass = np.maximum(cells.masses, 0.5)
        level = np.log(mass / mass.sum()) - cells.inside() + self._path.log_det
        return np.asarray(level[cells.clusters.assign(self._flat(points))])

    @property
    def expert(self) -> str:
        return f"{len(self._cells.masses)} cells"


class BoundMeter(CellMeter):
    """`bound`: (d/k) Σ ln gap_i + ln V_d − d ln 2 (Theorem 2); −inf as soon as one gap is not positive."""

    def read(self) -> tuple[float, float]:
        """The bound, and the error of its mean over the clusters."""
        gaps, d = self._clusters.gaps(), self._clusters.centers.shape[1]
        if gaps.min() <= 0 or len(gaps) < 2:
            return -math.inf, math.nan
        error = d * float(np.log(gaps).std()) / math.sqrt(len(gaps))
        return bound(gaps, d) - self._path.log_det, error

    def log_density(self, points: Floats) -> Floats:
        """−ln(k V_d (gap_i / 2)^d): each cell taken for the ball that fits into it (Theorem 1)."""
        clusters = self._clusters
        k, d = clusters.centers.shape
        gaps = np.maximum(clusters.gaps(), np.finfo(np.float64).tiny)
        level = -math.log(k) - log_ball(d) - d * np.log(gaps / 2) + self._path.log_det
        return np.asarray(level[clusters.assign(self._flat(points))])
