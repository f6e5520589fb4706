"""Entropy in nats from a partition: H(X) = H(I) + Σ p_i h(X | cell i), exact for any partition.

Only the in-cell term needs a model. Cells are taken for balls, after whitening, with the second moment that was seen:
H = H(I) + ½ ln det S + Σ p_i (d/2) ln s_i² + ln V_d + (d/2) ln(d + 2), where S is the pooled within-cell covariance and
s_i² the mean squared Mahalanobis radius of cell i, divided by d.
"""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray


def log_ball(dim: int) -> float:
    """ln V_d = ln(π^{d/2} / Γ(d/2 + 1)), the volume of the unit ball."""
    return dim / 2 * math.log(math.pi) - math.lgamma(dim / 2 + 1)


def bound(gaps: NDArray[Any], dim: int) -> float:
    """(d/k) Σ ln gap_i + ln V_d − d ln 2 (Theorem 2 in nats). −inf if some gap is not positive.

    Deviation: the paper prints −d for the last term; its own proof halves every gap, and ln ½ per dimension is −d ln 2
    in nats (−d would be right in bits). The ln k that the proof drops is dropped here too. At finite k this is no
    true bound: the density is averaged over each cell.
    """
    if np.min(gaps) <= 0:
        return -math.inf
    return float(dim * np.mean(np.log(gaps))) + log_ball(dim) - dim * math.log(2)


def discrete_entropy(masses: NDArray[np.int64]) -> float:
    """H(I) = −Σ p ln p + (occupied − 1) / 2n (Miller–Madow)."""
    occupied = masses[masses > 0]
    total = occupied.sum()
    share = occupied / total
    return float(-(share * np.log(share)).sum() + (len(occupied) - 1) / (2 * total))


def log_det_bias(dim: int, freedom: int) -> float:
    """By how much ln det of a covariance from `freedom` Gaussian residuals falls short: Σ ln(ν/2) − ψ((ν − i) / 2).

    ψ(x) ≈ ln x − 1/2x − 1/12x², good to 1e-5 for x above 5.
    """
    half = np.maximum(freedom - np.arange(dim), 1) / 2
    return float((math.log(freedom / 2) - np.log(half) + 1 / (2 * half) + 1 / (12 * half**2)).sum())


def cell_entropy(states: NDArray[Any], cell: NDArray[np.int64], cells: int, *, resolution: float = 0.0) -> float:
    """Entropy of the states (n, d) given the cell of each (n,). −inf where they fill no volume; NaN for too few states.

    `resolution` blurs the states by a Gaussian of that standard deviation, so that constant coordinates and atoms have
    a finite entropy and values stay comparable.
    """
    masses = np.bincount(cell, minlength=cells)
    freedom = len(states) - int((masses > 0).sum())
    if freedom < states.shape[1]:
        return math.nan
    points = states.astype(np.float64) - states.mean(axis=0, dtype=np.float64)
    sums = np.stack([np.bincount(cell, weights=column, minlength=cells) for column in points.T], axis=1)
    residuals = points - (sums / np.maximum(masses, 1)[:, None])[cell]
    spread, axes = np.linalg.eigh(residuals.T @ residuals / freedom)
    narrow = np.finfo(np.float64).eps * len(spread) * max(float(spread[-1]), 0.0)
    spread = np.where(spread > narrow, spread, 0.0) + resolution**2
    if spread[0] <= 0:
        return -math.inf
    radii = _radii((residuals @ axes) ** 2 / spread, cell, masses, np.sum(resolution**2 / spread))
    if radii.min() <= 0:
        return -math.inf
    dim = int(points.shape[1])
    inside = dim / 2 * float(masses[masses > 0] @ np.log(radii)) / len(states)
    constant = log_ball(dim) + dim / 2 * math.log(dim + 2)
    volume = 0.5 * (float(np.log(spread).sum()) + log_det_bias(dim, freedom))
    return discrete_entropy(masses) + volume + inside + constant


def _radii(
    whitened: NDArray[np.float64], cell: NDArray[np.int64], masses: NDArray[np.int64], blur: float
) -> NDArray[np.float64]:
    """s_i² of the occupied cells; a cell of one state has no spread of its own and takes the pooled one."""
    sums = np.bincount(cell, weights=whitened.sum(axis=1), minlength=len(masses))[masses > 0]
    free = masses[masses > 0] - 1
    own = (sums / np.maximum(free, 1) + blur) / whitened.shape[1]
    return np.where(free > 0, own, 1.0)
