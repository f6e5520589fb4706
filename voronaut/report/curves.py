"""Curves of a task: seeds on common steps, thinned to what a screen can show, with the mean and its 95 % interval."""

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import stats as scipy_stats

from voronaut.experiments.common import stats
from voronaut.report.records import Run

Floats = NDArray[np.float64]
POINTS = 300  # per curve
FEW = 3  # seeds that are shown themselves: an interval of so few would squash their curves
HIGHEST = ("max_step_reward",)  # of several rollouts the highest, not the mean


class Spread(NamedTuple):
    """Over seeds, at each point: mean, 95 % t-interval (NaN for one seed), and how many seeds have come that far."""

    mean: Floats
    low: Floats
    high: Floats
    seeds: NDArray[np.int64]


def curve(runs: Sequence[Run], name: str) -> dict[str, Any] | None:
    """One method's curve as plain JSON values; None if no run knows anything of it."""
    known = [run for run in runs if name in run.columns and np.isfinite(run.columns[name]).any()]
    if not known:
        return None
    grid = edges([run.steps[np.isfinite(run.columns[name])] for run in known])
    values = np.stack([binned(run.steps, run.columns[name], grid, name in HIGHEST) for run in known])
    middle = spread(values)
    plain = {"x": grid.astype(int).tolist(), "mean": rounded(middle.mean)}
    if len(known) > FEW:
        plain |= {"low": rounded(middle.low), "high": rounded(middle.high)}
    if len(known) > 1:
        plain["n"] = middle.seeds.tolist()
        plain["seeds"] = {str(run.seed): rounded(row) for run, row in zip(known, values, strict=True)}
    return plain


def edges(steps: Sequence[Floats]) -> Floats:
    """Points at which the curve is drawn: the longest run's rollouts, or the ends of equal groups of them."""
    longest = max(steps, key=lambda own: (own[-1], len(own)))
    size = -(-len(longest) // POINTS)
    return longest[::-1][::size][::-1]


def binned(steps: Floats, values: Floats, grid: Floats, highest: bool) -> Floats:
    """Mean (or highest) of the values since the point before, the last known where there is none; NaN after the end."""
    known = np.isfinite(values)
    place = np.searchsorted(grid, steps[known])
    inside = place < len(grid)
    place, values = place[inside], values[known][inside]
    if highest:
        drawn = np.full(len(grid), -math.inf)
        np.maximum.at(drawn, place, values)
        drawn[np.isneginf(drawn)] = math.nan
    else:
        count = np.bincount(place, minlength=len(grid))
        sums = np.bincount(place, weights=values, minlength=len(grid))
        drawn = np.divide(sums, count, out=np.full(len(grid), math.nan), where=count > 0)
    ended = np.searchsorted(grid, steps[-1]) + 1
    drawn = stats.carried(drawn)
    drawn[ended:] = math.nan
    return drawn


def spread(values: Floats) -> Spread:
    """Mean ± t(n−1) · s/√n over the seeds (first axis) that are known at each point."""
    known = np.isfinite(values)
    count = known.sum(axis=0)
    mean = np.where(known, values, 0).sum(axis=0) / np.maximum(count, 1)
    squares = np.where(known, values - mean, 0) ** 2
    error = np.sqrt(squares.sum(axis=0) / np.maximum(count - 1, 1) / np.maximum(count, 1))
    half = scipy_stats.t.ppf(0.5 + stats.LEVEL / 2, np.maximum(count - 1, 1)) * error
    half[count < 2] = math.nan
    mean[count == 0] = math.nan
    return Spread(mean, mean - half, mean + half, count)


def rounded(values: Any) -> list[float | None]:
    """Five digits, which is more than a curve shows; None for what is not known."""
    return [float(f"{v:.5g}") if math.isfinite(v) else None for v in np.asarray(values, float).tolist()]


def number(runs: Sequence[Run], name: str, score: Callable[[Floats, Floats], float]) -> stats.Interval:
    """A score of every seed, as mean with its 95 % t-interval, or of few with the lowest and the highest; or NaN."""
    known = [run for run in runs if name in run.columns]
    scores = np.array([score(run.steps, run.columns[name]) for run in known])
    scores = scores[np.isfinite(scores)]
    if 1 < len(scores) <= FEW:
        return stats.Interval(float(scores.mean()), float(scores.min()), float(scores.max()))
    return stats.mean_interval(scores) if len(scores) else stats.Interval(math.nan, math.nan, math.nan)
