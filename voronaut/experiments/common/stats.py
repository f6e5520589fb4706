"""Numbers over seeds and tasks: means with intervals, areas, interquartile means, the chance of being better.

A stratum is the scores of one method on one task, one number per seed. NaN says that nothing is known: it goes through
to the result and is never left out of an average.
"""

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import stats as scipy_stats

Floats = NDArray[np.float64]
Statistic = Callable[[Sequence[Floats]], Floats]  # strata (draws, seeds) -> (draws,)
LEVEL = 0.95
FINAL_SHARE = 0.1
DRAWS = 2000
EXACT = 20_000  # ways to part ranks in two groups that are gone through: eight seeds against eight


class Interval(NamedTuple):
    """A number, or one per point of a curve, with its 95 % interval (NaN where one seed alone gives none)."""

    value: Any
    low: Any
    high: Any


def pretty(measured: Interval, form: str = ".1f") -> str:
    """12.3 [10.1, 14.5], or the number alone where there is no interval."""
    if not np.isfinite(measured.value):
        return "–"
    if not np.isfinite(measured.low):
        return f"{measured.value:{form}}"
    return f"{measured.value:{form}} [{measured.low:{form}}, {measured.high:{form}}]"


def mean_interval(values: Any) -> Interval:
    """Mean over the first axis (seeds) ± t(n−1) · s/√n: the t-interval, as around the paper's curves."""
    values = np.asarray(values, float)
    mean, count = values.mean(axis=0), len(values)
    if count < 2:
        nothing = np.full_like(mean, np.nan)
        return Interval(mean, nothing, nothing)
    half = scipy_stats.t.ppf(0.5 + LEVEL / 2, count - 1) * values.std(axis=0, ddof=1) / np.sqrt(count)
    return Interval(mean, mean - half, mean + half)


def carried(curve: Any) -> Floats:
    """The curve with each gap (no episode ended in that rollout) filled with the last value known before it."""
    curve = np.asarray(curve, float)
    last = np.maximum.accumulate(np.where(np.isnan(curve), -1, np.arange(len(curve))))
    return np.where(last < 0, np.nan, curve[np.maximum(last, 0)])


def area(steps: Any, curve: Any) -> float:
    """Area under the curve divided by the steps it spans: the mean over training, in the curve's own unit.

    Each value counts for the steps since the one before; what lies before the first known value is left out.
    """
    return _weighted(carried(curve), np.diff(np.asarray(steps, float), prepend=0.0))


def final(steps: Any, curve: Any, share: float = FINAL_SHARE) -> float:
    """Mean over the last 10 % of the steps."""
    steps = np.asarray(steps, float)
    late = steps > steps[-1] * (1 - share)
    return _weighted(carried(curve)[late], np.diff(steps, prepend=0.0)[late])


def _weighted(values: Floats, weights: Floats) -> float:
    known = ~np.isnan(values)
    return float(np.average(values[known], weights=weights[known])) if known.any() else float("nan")


def bootstrap(strata: Sequence[Any], statistic: Statistic) -> Interval:
    """A statistic with its percentile interval when seeds are drawn again, with replacement, within each stratum.

    With five seeds such an interval is somewhat too narrow, and it has no width where all resamples agree.
    """
    arrays = [np.asarray(stratum, float) for stratum in strata]
    if not arrays or any(len(a) == 0 or np.isnan(a).any() for a in arrays):
        return Interval(float("nan"), float("nan"), float("nan"))
    value = float(statistic([a[None] for a in arrays])[0])
    if min(len(a) for a in arrays) < 2:
        return Interval(value, float("nan"), float("nan"))
    rng = np.random.default_rng(0)
    drawn = [a[rng.integers(len(a), size=(DRAWS, len(a)))] for a in arrays]
    low, high = np.quantile(statistic(drawn), [0.5 - LEVEL / 2, 0.5 + LEVEL / 2])
    return Interval(value, float(low), float(high))


def mean(strata: Sequence[Floats]) -> Floats:
    """Mean of all scores of all strata."""
    return np.asarray(np.concatenate(strata, axis=1).mean(axis=1))


def iqm(strata: Sequence[Floats]) -> Floats:
    """Interquartile mean: of all scores of all tasks together, without the lowest and the highest quarter."""
    return np.asarray(scipy_stats.trim_mean(np.concatenate(strata, axis=1), 0.25, axis=1))


def better(strata: Sequence[Floats]) -> Floats:
    """P(X > Y) for strata X₁, Y₁, X₂, Y₂, …: the share of pairs of seeds that X wins, ties ½, averaged over tasks."""
    pairs = zip(strata[::2], strata[1::2], strict=True)
    return np.asarray(np.mean([_wins(x[:, :, None], y[:, None, :]) for x, y in pairs], axis=0))


def _wins(x: Floats, y: Floats) -> Floats:
    return np.asarray(((x > y) + 0.5 * (x == y)).mean(axis=(1, 2)))


def rank_test(x: Any, y: Any) -> float:
    """Two-sided p of the Mann–Whitney test, exact for few seeds, ties or not; NaN where a score is unknown.

    The share of all ways to part the ranks in two such groups whose sums are as far from the middle or farther.
    """
    both = np.concatenate([np.asarray(x, float), np.asarray(y, float)])
    if np.isnan(both).any() or not len(x) or not len(y):
        return float("nan")
    if math.comb(len(both), len(x)) > EXACT:
        return float(scipy_stats.mannwhitneyu(x, y, alternative="two-sided").pvalue)
    doubled = (2 * scipy_stats.rankdata(both)).astype(int)  # whole numbers: ties have half ranks
    sums = np.array([sum(ranks) for ranks in itertools.combinations(doubled.tolist(), len(x))])
    far = abs(sums * len(both) - len(x) * doubled.sum())
    return float((far >= far[0]).mean())  # the first combination is x itself


def normalise(strata: Sequence[Any]) -> list[Floats]:
    """Scores of all methods on one task, divided by the best run's: 0 stays 0, the best is 1.

    Where no run scored 1 they stay as they are: a task that nobody has learned must not decide anything.
    """
    arrays = [np.asarray(stratum, float) for stratum in strata]
    best = max([1.0, *(float(np.max(a)) for a in arrays if len(a))])
    return [a / best for a in arrays]
