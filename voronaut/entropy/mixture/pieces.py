"""Piecewise linear maps, one per column, and how many points fell into each of their pieces.

A guide finds the piece: the line is squeezed into (0, 1) by ½ + ½ x/(1 + |x|) and cut into equal cells, each of which
knows the piece at its left end; the rest is a step or two.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from voronaut.kernels.compiled import compiled

Floats = NDArray[np.floating[Any]]
Doubles = NDArray[np.float64]
Ints = NDArray[np.int64]

CELLS = 2048


@compiled
def piece(edges: Doubles, guide: Ints, x: float) -> int:
    """Index i with edges[i] ≤ x < edges[i + 1], the outermost piece beyond the ends."""
    i = guide[int((0.5 + 0.5 * x / (1 + abs(x))) * (CELLS - 1))]
    while i < edges.shape[0] - 2 and edges[i + 1] <= x:
        i += 1
    return i  # type: ignore[no-any-return]


def guides(edges: Doubles) -> Ints:
    """The piece at the left end of every cell, one less to forgive rounding; (d, CELLS) for edges (d, pieces + 1)."""
    y = 2 * np.arange(CELLS) / (CELLS - 1) - 1
    with np.errstate(divide="ignore"):
        left = np.where(np.abs(y) < 1, y / (1 - np.abs(y)), np.sign(y) * np.inf)
    found = np.stack([np.searchsorted(row, left, side="right") - 2 for row in edges])
    return np.clip(found, 0, edges.shape[1] - 2)


@compiled
def warp(
    points: Doubles, edges: Doubles, guide: Ints, values: Doubles, slopes: Doubles, logs: Doubles,
    out: Floats, jacobian: Doubles, counts: Ints, one: int,
) -> None:  # fmt: skip
    """g = T_j(z) of points (n, d) by tables (d, pieces + 1) and (d, pieces). OUT: out (d, n), jacobian (n,) Σ ln T′.

    Each point adds `one` to the piece it fell into. OUT: counts (d, pieces).
    """
    n, dim = points.shape
    jacobian[:] = 0
    for j in range(dim):
        edge, cells, value, slope, log, tally = edges[j], guide[j], values[j], slopes[j], logs[j], counts[j]
        for r in range(n):
            x = points[r, j]
            i = piece(edge, cells, x)
            out[j, r] = value[i] + slope[i] * (x - edge[i])
            jacobian[r] += log[i]
            tally[i] += one
