"""The rule of `usage.py` compiled, with switches for all that was tried beside it.

Usage is kept as u_i / (1 − b/k)^t, so that a state changes the winner's alone, and the least used cluster is looked for
again only after its own usage has changed: O(k) numbers per state beyond the distances, as with counts.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from voronaut.kernels.compiled import compiled

Floats = NDArray[np.float64]


class Options(NamedTuple):
    """`usage.Rule`, its constants, and the rules it is compared with."""

    strength: float = 3.0
    fade: float = 0.01
    floor: float = 0.02
    crowded: float = 4.0  # inf: no cluster is split
    clip: float = 10.0  # inf: every margin counts in full
    near: float = 1.0  # margins within which a state counts less; 0: all states count
    split: float = 10.0  # 1: a split puts the new center on the state
    eta: float = 0.0  # handicap per lifetime count, in margins (entropy/scale_free)
    kappa: float = 0.0  # handicap per lifetime count, in the states' unit (the paper's balance)
    young: float = 1.0  # α = max(floor, young/n); 0: α = floor


class Memory(NamedTuple):
    """What is remembered of clusters; arrays change in place."""

    centers: Floats  # (d, k)
    usage: Floats
    ages: Floats
    counts: Floats
    scalars: Floats  # margin, states seen, splits


def start(centers: Floats) -> Memory:
    """Clusters at the given centers (k, d)."""
    k = len(centers)
    return Memory(np.ascontiguousarray(centers.T), np.ones(k), np.ones(k), np.ones(k), np.zeros(3))


def handicaps(now: Memory, options: Options) -> Floats:
    """What each cluster adds to a distance, (k,)."""
    per_count = options.kappa + options.eta * now.scalars[0]
    return np.asarray(options.strength * now.scalars[0] * now.usage + per_count * (now.counts - now.counts.min()))


@compiled
def distances(centers: Floats, state: Floats, out: Floats) -> None:
    """‖s − μ_j‖ for all j. OUT: out."""
    out[:] = 0.0
    for p in range(centers.shape[0]):
        x = state[p]
        for j in range(out.shape[0]):
            e = centers[p, j] - x
            out[j] += e * e
    for j in range(out.shape[0]):
        out[j] = np.sqrt(out[j])


@compiled
def best_two(dist: Floats, usage: Floats, kappa: float, counts: Floats, per_count: float) -> tuple[int, int]:
    """The two least of dist + κ u + κ' n, the lower index first on a tie."""
    i, o, best, second = 0, 0, np.inf, np.inf
    for j in range(dist.shape[0]):
        value = dist[j] + kappa * usage[j] + per_count * counts[j]
        if value < best:
            o, second, i, best = i, best, j, value
        elif value < second:
            o, second = j, value
    return i, o


@compiled
def weight(distance: float, reach: float) -> float:
    """min(1, distance / reach), 0 on the center itself."""
    if reach > distance:
        return distance / reach
    return 1.0 if distance > 0 else 0.0


@compiled
def absorb(now: Any, states: Floats, order: NDArray[np.int64], options: Any) -> None:
    """State by state in the given order. OUT: now."""
    centers, usage, ages, counts, scalars = now
    d, k = centers.shape
    dist, margin, seen = np.empty(k), scalars[0], scalars[1]
    keep, grown, least = 1 - options.fade / k, 1.0, np.argmin(usage)  # grown: (1 − b/k)^−t
    for r in order:
        s = states[r]
        distances(centers, s, dist)
        per_count = options.kappa + options.eta * margin
        i, o = best_two(dist, usage, options.strength * margin / grown, counts, per_count)
        share = weight(dist[i], options.near * margin) if options.near > 0 else 1.0
        seen += 1
        ahead = abs(dist[o] - dist[i])
        if margin > 0:
            margin += max(1e-3, 1 / seen) * (min(ahead, options.clip * margin) - margin)
        else:
            margin = ahead
        ages[i] += 1
        counts[i] += 1
        alpha = max(options.floor, options.young / ages[i])
        for p in range(d):
            centers[p, i] = alpha * s[p] + (1 - alpha) * centers[p, i]
        grown /= keep
        usage[i] += options.fade * share * grown
        if i == least:
            least = np.argmin(usage)
        if usage[i] > options.crowded * usage[least]:
            for p in range(d):
                centers[p, least] = centers[p, i] + (s[p] - centers[p, i]) / options.split
            usage[i] = usage[least] = (usage[i] + usage[least]) / 2
            ages[least] = options.split
            scalars[2] += 1
            least = np.argmin(usage)
    usage /= grown
    scalars[0], scalars[1] = margin, seen


@compiled
def survey(between: Floats, handicap: Floats) -> tuple[Floats, Floats, NDArray[np.int64]]:
    """Per cluster its gap, its gap were the nearest cluster not there, and the nearest cluster."""
    k = handicap.shape[0]
    gap, second, nearest = np.full(k, np.inf), np.full(k, np.inf), np.zeros(k, np.int64)
    for i in range(k):
        for j in range(k):
            value = between[i, j] + handicap[j] - handicap[i]
            if j != i and value < gap[i]:
                second[i], gap[i], nearest[i] = gap[i], value, j
            elif j != i and value < second[i]:
                second[i] = value
    return gap, second, nearest


@compiled
def root(gap: float) -> float:
    """f(x) = √x, 0 below 0."""
    return np.sqrt(gap) if gap > 0 else 0.0


@compiled
def frozen(now: Any, handicap: Floats, between: Floats, states: Floats, options: Any) -> Floats:
    """Exact rewards (n,) with frozen clusters: one row of distances and O(k) more per state (Stewart's identity)."""
    centers, usage, ages, _, scalars = now
    k, margin = usage.shape[0], scalars[0]
    gap, second, nearest = survey(between, handicap)
    dist, none, paid = np.empty(k), np.zeros(k), np.zeros(states.shape[0])
    for r in range(states.shape[0]):
        distances(centers, states[r], dist)
        i, _ = best_two(dist, handicap, 1.0, none, 0.0)
        a = max(options.floor, options.young / (ages[i] + 1))
        lift = handicap[i] + options.kappa + options.eta * margin  # counts are paid for, usage is not
        total, own = 0.0, np.inf
        for j in range(k):
            if j != i:
                square = a * dist[j] ** 2 + (1 - a) * between[i, j] ** 2 - a * (1 - a) * dist[i] ** 2
                moved = np.sqrt(max(square, 0.0))
                own = min(own, moved + handicap[j] - lift)
                rest = second[j] if nearest[j] == i else gap[j]
                total += root(min(rest, moved + lift - handicap[j])) - root(gap[j])
        paid[r] = total + root(own) - root(gap[i])
    return paid
