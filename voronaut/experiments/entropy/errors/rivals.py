"""Other ways to the entropy of a sample: nearest neighbours, a kernel density, a mixture, one Gaussian."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from voronaut.entropy.cells import log_ball
from voronaut.kernels.compiled import compiled

Floats = NDArray[np.float64]
NEIGHBOURS = 3
TREE_UP_TO = 10  # dimensions; beyond, a tree looks at every point and a plain loop over all is faster
COMPONENTS = (6, 24)


def neighbours(points: Floats, seed: int = 0) -> float:
    """ψ(n) − ψ(k) + ln V_d + d · mean ln ρ_k (Kozachenko and Leonenko), ρ_k the distance to the 3rd neighbour."""
    from scipy.special import digamma

    n, dim = points.shape
    distances = by_tree(points) if dim <= TREE_UP_TO else np.sqrt(by_loop(np.ascontiguousarray(points.T)))
    mean = float(np.log(np.maximum(distances, np.finfo(np.float64).tiny)).mean())
    return float(digamma(n) - digamma(NEIGHBOURS) + log_ball(dim) + dim * mean)


def by_tree(points: Floats) -> Floats:
    from scipy.spatial import cKDTree

    return np.asarray(cKDTree(points).query(points, k=[NEIGHBOURS + 1])[0][:, 0])


@compiled
def by_loop(columns: Floats) -> Floats:
    """Squared distance of each point to its 3rd neighbour, points as columns (d, n): every pair is looked at."""
    dim, n = columns.shape
    found, squares, least = np.empty(n), np.empty(n), np.empty(NEIGHBOURS + 1)
    for i in range(n):
        squares[:] = 0
        for p in range(dim):
            x = columns[p, i]
            for j in range(n):
                squares[j] += (columns[p, j] - x) * (columns[p, j] - x)
        least[:] = np.inf
        for j in range(n):
            if squares[j] < least[NEIGHBOURS]:
                place = NEIGHBOURS
                while place > 0 and least[place - 1] > squares[j]:
                    least[place] = least[place - 1]
                    place -= 1
                least[place] = squares[j]
        found[i] = least[NEIGHBOURS]  # the point itself is the nearest, at 0
    return found


def kernel(points: Floats, seed: int = 0, judges: int = 2_000) -> float:
    """−mean ln p̂ over points kept apart; Gaussian kernels after whitening, Scott's width n^(−1/(d+4))."""
    judged, points = points[:judges], points[judges:]
    n, dim = points.shape
    root = np.linalg.cholesky(np.atleast_2d(np.cov(points, rowvar=False)))
    width = n ** (-1 / (dim + 4))
    scaled, asked = (np.linalg.solve(root, part.T).T / width for part in (points, judged))
    squares, logs = (scaled**2).sum(axis=1), []
    for row in np.array_split(asked, max(len(asked) * n // 20_000_000, 1)):
        table = row @ scaled.T - 0.5 * squares - 0.5 * (row**2).sum(axis=1)[:, None]
        most = table.max(axis=1)
        logs.append(most + np.log(np.exp(table - most[:, None]).sum(axis=1)))
    volume = float(np.log(np.diag(root)).sum()) + dim * math.log(width * math.sqrt(2 * math.pi)) + math.log(n)
    return float(volume - np.concatenate(logs).mean())


def mixture(points: Floats, seed: int = 0) -> float:
    """−mean ln p̂ over a fifth kept apart; Gaussians of full covariance, the better of 6 and 24 of them."""
    from sklearn.mixture import GaussianMixture

    cut = len(points) // 5
    scores = []
    for components in COMPONENTS:
        model = GaussianMixture(components, random_state=seed, max_iter=50, reg_covar=1e-6 * float(points.var()))
        scores.append(-float(model.fit(points[cut:]).score(points[:cut])))
    return min(scores)


def gaussian(points: Floats, seed: int = 0) -> float:
    """½ ln det(2πe Σ)."""
    dim = points.shape[1]
    covariance = np.atleast_2d(np.cov(points, rowvar=False))
    return float(0.5 * (dim * math.log(2 * math.pi * math.e) + np.linalg.slogdet(covariance)[1]))


RIVALS: dict[str, Callable[..., Any]] = {"knn": neighbours, "kde": kernel, "gmm": mixture, "gaussian": gaussian}
