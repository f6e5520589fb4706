"""argmin_i ‖s − μ_i‖ + c m u_i, usage that fades, crowds that split: the rule of docs/balance.md, and what was tried.

u_i is the share of recent states that cluster i has won, m the running margin of decisions.
`tests/experiments/balance/usage.py` has the rule alone, in plain NumPy, and is its judge.
Usage is kept as u_i / (1 − b/k)^t, so that a state changes the winner's alone, and the least used cluster is looked for
again only after its own usage has changed: O(k) numbers per state beyond the distances, as with counts.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from voronaut.kernels.compiled import compiled

Floats = NDArray[np.float64]


class Options(NamedTuple):
    """The rule's constants, none of which has a unit, and switches to the rules it is compared with."""

    strength: float = 3.0  # c: the handicap, in margins, of a cluster that wins its fair share
    fade: float = 0.01  # b: one win adds b to a usage; usage is forgotten over k/b states
    floor: float = 0.02  # the least α
    crowded: float = 4.0  # times as much used as the least used cluster: split with it; inf: none is
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
