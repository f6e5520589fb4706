"""The one running mean and variance, kept in float64 whatever the data."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray


class Running(NamedTuple):
    """Mean and (population) variance of `seen` rows seen so far."""

    seen: int
    mean: NDArray[np.float64]
    variance: NDArray[np.float64]

    @property
    def deviation(self) -> NDArray[np.float64]:
        """Standard deviation; 0 before the second row."""
        return np.sqrt(self.variance)


def start(shape: tuple[int, ...] = ()) -> Running:
    """Nothing seen yet: 0 rows, mean 0, variance 0."""
    return Running(0, np.zeros(shape), np.zeros(shape))


def absorb(running: Running, rows: ArrayLike) -> Running:
    """M = M_a + M_b + δ² n_a n_b / n: Chan's formula joins a batch (n, ...) to what was seen, in one step.

    No rows change nothing. Numbers too large to square are refused.
    """
    batch = np.asarray(rows, np.float64)
    new = len(batch)
    if new == 0:
        return running
    count = running.seen + new
    with np.errstate(over="ignore", invalid="ignore"):
        center = batch.mean(axis=0)
        delta = center - running.mean
        spread = running.variance * (running.seen / count) + np.square(batch - center).mean(axis=0) * (new / count)
        joined = Running(
            count,
            np.asarray(running.mean + delta * (new / count)),
            np.asarray(spread + np.square(delta) * (running.seen / count) * (new / count)),
        )
    if not np.isfinite(joined.variance).all():
        raise ValueError(
            f"numbers up to {np.abs(batch).max():.1g} overflow a running variance. Rescale them; nothing was learned."
        )
    return joined


def to_arrays(running: Running, name: str) -> dict[str, NDArray[np.float64] | NDArray[np.int64]]:
    """The three parts as arrays for a state dict."""
    return {
        f"{name}.seen": np.asarray(running.seen, np.int64),
        f"{name}.mean": running.mean.copy(),
        f"{name}.variance": running.variance.copy(),
    }


def from_arrays(state: Mapping[str, NDArray[Any]], name: str) -> Running:
    """What `to_arrays` gave."""
    mean, variance = (np.array(state[f"{name}.{part}"], np.float64) for part in ("mean", "variance"))
    return Running(int(state[f"{name}.seen"]), mean, variance)
