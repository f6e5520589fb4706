"""p(x) ≈ 1 / (k m(c_i)) for x in the balanced cell c_i (Theorem 1): density from clusters, with cells measured."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]
CHUNK = 1 << 18  # points placed at a time: memory stays flat


class Cells(NamedTuple):
    """Additively weighted cells of some clusters inside a box."""

    view: Any  # the clusters as a kernel's `assign` wants them
    volumes: Floats  # m(c_i) (k,), by Monte Carlo; a cell that no point hit counts as one hit
    low: Floats
    high: Floats

    def of(self, points: NDArray[Any]) -> NDArray[np.int64]:
        """The cell of each point, (n, d) -> (n,)."""
        from voronaut.kernels import cpu

        return np.asarray(cpu.assign(self.view, np.ascontiguousarray(points, np.float64)), np.int64)

    def density(self, points: NDArray[Any]) -> Floats:
        """1 / (k m(c_i)), (n, d) -> (n,); 0 outside the box."""
        inside = ((points >= self.low) & (points <= self.high)).all(axis=1)
        return np.where(inside, 1 / (len(self.volumes) * self.volumes[self.of(points)]), 0.0)


def measure(
    centers: ArrayLike, counts: ArrayLike, balance: float, *,
    low: ArrayLike, high: ArrayLike, samples: int = 1_000_000, seed: int = 0,
) -> Cells:  # fmt: skip
    """m(c_i) of the cells {x: ‖x − μ_i‖ + κ n_i is least} inside the box [low, high], by uniform points in it.

    The first coordinate is stratified, one point in each of `samples` slices: nearly exact in one dimension.
    """
    from voronaut.kernels import cpu

    centers, counts = np.ascontiguousarray(centers, np.float64), np.asarray(counts, np.int64)
    if centers.ndim != 2 or counts.shape != centers.shape[:1]:
        raise ValueError(f"centers must be (k, d) and counts (k,); got {centers.shape} and {counts.shape}.")
    low, high = _box(low, high, centers.shape[1])
    cells = Cells(cpu.prepare(centers, counts, balance), np.zeros(len(counts)), low, high)
    hits = np.zeros(len(counts), np.int64)
    for points in spread(low, high, samples, seed):
        hits += np.bincount(cells.of(points), minlength=len(counts))
    return cells._replace(volumes=np.maximum(hits, 1) / samples * float(np.prod(high - low)))


def spread(low: Floats, high: Floats, samples: int, seed: int) -> Iterator[Floats]:
    """Uniform points of a box in chunks, the first coordinate stratified over all of them."""
    rng = np.random.default_rng(seed)
    for start in range(0, samples, CHUNK):
        unit = rng.random((min(CHUNK, samples - start), len(low)))
        unit[:, 0] = (start + np.arange(len(unit)) + unit[:, 0]) / samples
        yield low + unit * (high - low)


def _box(low: ArrayLike, high: ArrayLike, dim: int) -> tuple[Floats, Floats]:
    """Both corners as (d,) arrays."""
    corners = np.asarray(low, np.float64), np.asarray(high, np.float64)
    if all(corner.shape in ((), (dim,)) for corner in corners):
        lower, upper = (np.broadcast_to(corner, (dim,)) for corner in corners)
        if np.isfinite(upper - lower).all() and (upper > lower).all():
            return lower, upper
    raise ValueError(
        f"low and high must bound a box of {dim} sides: numbers or ({dim},) arrays; got {low!r} and {high!r}."
    )


def cell_density(
    points: ArrayLike, centers: ArrayLike, counts: ArrayLike, balance: float, *,
    low: ArrayLike, high: ArrayLike, samples: int = 1_000_000, seed: int = 0,
) -> Floats:  # fmt: skip
    """p(x) ≈ 1 / (k m(c_i)) at points (n, d), from clusters of a density with bounded support [low, high].

    With `made = ScaleFree(d)` (`voronaut.entropy.scale_free.stream`) that has absorbed the states:
    `cell_density(x, made.centers, made.counts, made.balance, low=…, high=…)`. It is as good as the cells are balanced
    (Definition 1), as the density is even inside a cell, and as the Monte Carlo: about √(k/samples).
    """
    cells = measure(centers, counts, balance, low=low, high=high, samples=samples, seed=seed)
    return cells.density(np.asarray(points, np.float64))
