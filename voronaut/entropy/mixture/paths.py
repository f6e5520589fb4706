"""From standardised points to what the mixture sees: a linear map, with or without Gaussianising maps before it."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from voronaut.entropy.mixture.gaussianize import Gaussianizer

Floats = NDArray[np.float64]

LIMIT = 1e12  # float32 has room for the square of this


class Straight:
    """y = W (z − m): unit covariance of the first points, so that any linear map of the states gives the same y."""

    name = "straight"

    def __init__(self, first: Floats) -> None:
        self._whiten(first)

    def _whiten(self, first: Floats) -> None:
        dim = first.shape[1]
        self._mean = first.mean(axis=0)
        covariance = np.atleast_2d(np.cov(first, rowvar=False, bias=True))
        if len(first) < 20 * dim:  # any matrix is right, but one from few points would be far from round
            lean = dim / (dim + len(first))
            covariance = (1 - lean) * covariance + lean * np.diag(np.diag(covariance))
        root = np.linalg.cholesky(regular(covariance))
        self._matrix = np.linalg.solve(root, np.eye(dim))
        self.log_det = float(np.log(np.diag(self._matrix)).sum())

    def columns(self, points: Floats, dtype: Any = np.float32) -> tuple[NDArray[Any], Any]:
        """(n, d) -> columns (d, n), and ln |dy/dz|."""
        y = self._matrix @ (points - self._mean).T
        return np.clip(y, -LIMIT, LIMIT).astype(dtype), self.log_det

    def learn(self, points: Floats, seen: int) -> tuple[NDArray[Any], Any]:
        """`columns`, and the map learns from the points; `seen` counts all points before them. This map is fixed."""
        return self.columns(points)


class Gaussianized(Straight):
    """The same after g = Φ⁻¹(F(z)), which is refitted whenever twice as many points have been seen."""

    name = "gaussianized"

    def __init__(self, first: Floats) -> None:
        self._maps = Gaussianizer(first)
        self._next, self._last = 2 * len(first), 64 * len(first)
        self._whiten(self._maps.warp(first)[0].T)

    def columns(self, points: Floats, dtype: Any = np.float32) -> tuple[NDArray[Any], Any]:
        """(n, d) -> columns (d, n), and ln |dy/dz| (n,)."""
        return self._flat(*self._maps.warp(points), dtype)

    def learn(self, points: Floats, seen: int) -> tuple[NDArray[Any], Any]:
        """`columns`, then count the points, and fit the maps again where it is due."""
        if self._next > self._last:
            return self.columns(points)
        if seen >= self._next:
            self._next *= 2
            self._maps.refit()
        return self._flat(*self._maps.warp_and_count(points), np.float32)

    def _flat(self, g: Floats, jacobian: Floats, dtype: Any) -> tuple[NDArray[Any], Any]:
        y = self._matrix @ (g - self._mean[:, None])
        return y.astype(dtype), jacobian + self.log_det


def regular(covariance: Floats) -> Floats:
    """The covariance with its smallest eigenvalues lifted to where a Cholesky factor exists."""
    values, vectors = np.linalg.eigh(covariance)
    if values[-1] <= 0:  # one point, or the same one again
        return np.eye(len(values))
    least = max(1e-14 * float(values[-1]), np.finfo(np.float64).tiny)
    return np.asarray((vectors * np.maximum(values, least)) @ vectors.T + least * np.eye(len(values)))
