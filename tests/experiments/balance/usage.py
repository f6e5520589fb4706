"""argmin_i ‖s − μ_i‖ + c m u_i: online k-means balanced by usage that fades, in plain NumPy. For streams that move.

u_i is the share of recent states that cluster i has won, 1 on average; m is a running margin, the distance by which
decisions are won. Both forget, so a place that was left weighs nothing for long, and c m u_i is made of distances
between centers that exist: m ≤ max ‖μ_i − μ_j‖ and u_i ≤ 4 (`absorb` sees to it). No number here has a unit.

`Clusters` are as in `clusters.py`, and so are the functions; counts n_i have become usage. Usage fades for all
clusters at every state. Code that must be fast keeps u_i / (1 − b/k)^t instead: then only the winner's changes, the
factor goes into c m, and the least used cluster stays the least used until it wins.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from voronaut.clusters import Array, Concave, between, sqrt
from voronaut.views import CLIP, RATE

SPLIT = 10  # a split puts the new center 1/10 of the way to the state, with an age of 10


class Rule(NamedTuple):
    """The constants, none of which has a unit. docs/balance.md shows what becomes of other values."""

    strength: float = 3.0  # c: the handicap, in margins, of a cluster that wins its fair share
    fade: float = 0.01  # b: one win adds b to a usage; usage is forgotten over k/b states
    floor: float = 0.02  # the least α
    crowded: float = 4.0  # a cluster used this many times as much as the least used one is split with it


DEFAULT = Rule()


class Clusters(NamedTuple):
    """Centers μ (k, d), usage u (k,), states absorbed since each was placed n (k,), margin m, and states seen."""

    centers: Array
    usage: Array
    ages: NDArray[np.int64]
    margin: float
    seen: int


class Win(NamedTuple):
    """Who won a state, how much of it counts as usage, and by what distance."""

    cluster: int
    counts: float  # min(1, ‖s − μ_i‖ / m)
    margin: float  # | ‖s − μ_i‖ − ‖s − μ_j‖ |, j the runner-up


def start(centers: Array) -> Clusters:
    """Clusters at the given centers (k, d), which should be states: equal usage, age 1, no margin yet."""
    k = len(centers)
    return Clusters(np.array(centers, np.float64), np.ones(k), np.ones(k, np.int64), 0.0, 0)


def handicaps(clusters: Clusters, rule: Rule = DEFAULT) -> Array:
    """c m u_i: what a cluster in use adds to every distance. At least 0, at most 4 c times the widest gap."""
    return np.asarray(rule.strength * clusters.margin * clusters.usage)


def decide(clusters: Clusters, state: Array, rule: Rule = DEFAULT) -> Win:
    """i = argmin_j ‖s − μ_j‖ + c m u_j, and what follows from it. The lowest index wins a tie.

    A state counts as usage by its distance to the center, up to the margin. Where one state comes again and again (a
    body at rest, the corner of a maze) a second cluster could only sit on the first: such a place is not crowded.
    """
    distances = np.sqrt(((clusters.centers - state) ** 2).sum(axis=1))
    order = np.argsort(distances + handicaps(clusters, rule), kind="stable")
    best, second = distances[order[0]], distances[order[min(1, len(order) - 1)]]
    counts = best / clusters.margin if best < clusters.margin else float(best > 0)
    return Win(int(order[0]), float(counts), float(abs(second - best)))


def assign(clusters: Clusters, state: Array, rule: Rule = DEFAULT) -> int:
    """argmin_i ‖s − μ_i‖ + c m u_i, the lowest index on a tie."""
    return decide(clusters, state, rule).cluster


def step_size(clusters: Clusters, index: int, rule: Rule = DEFAULT) -> float:
    """α_i = max(floor, 1/(n_i + 1)): the mean of a cluster's first states, then a slow average."""
    return float(max(rule.floor, 1 / (clusters.ages[index] + 1)))


def move(clusters: Clusters, state: Array, rule: Rule = DEFAULT) -> Clusters:
    """μ_i ← α s + (1 − α) μ_i, n_i ← n_i + 1: what the state itself does, and all that it is paid for."""
    winner = assign(clusters, state, rule)
    alpha, centers, ages = step_size(clusters, winner, rule), clusters.centers.copy(), clusters.ages.copy()
    centers[winner] = alpha * state + (1 - alpha) * centers[winner]
    ages[winner] += 1
    return clusters._replace(centers=centers, ages=ages)


def absorb(clusters: Clusters, state: Array, rule: Rule = DEFAULT) -> Clusters:
    """The winner moves, usage fades, u ← (1 − b/k) u, and the winner's grows by b · counts; a crowded cluster splits.

    m ← m + max(RATE, 1/T) (min(margin, CLIP m) − m); the first margin that is not 0 is taken as it is.
    """
    win = decide(clusters, state, rule)
    usage = (1 - rule.fade / len(clusters.usage)) * clusters.usage
    usage[win.cluster] += rule.fade * win.counts
    seen = clusters.seen + 1
    margin = clusters.margin or win.margin
    margin += max(RATE, 1 / seen) * (min(win.margin, CLIP * margin) - margin)
    after = move(clusters, state, rule)._replace(usage=usage, margin=margin, seen=seen)
    return split(after, win.cluster, state, rule)


def split(clusters: Clusters, host: int, state: Array, rule: Rule = DEFAULT) -> Clusters:
    """Where u_i > 4 min u the least used cluster j joins i: μ_j = μ_i + (s − μ_i)/10, and both share their usage.

    Centers that only slide cannot cross empty space: to draw a cluster over 25 deviations a handicap would have to
    grow as large. The distance does not matter here, so handicaps may stay small.
    """
    least = int(np.argmin(clusters.usage))
    if clusters.usage[host] <= rule.crowded * clusters.usage[least]:
        return clusters
    centers, usage, ages = clusters.centers.copy(), clusters.usage.copy(), clusters.ages.copy()
    centers[least] = centers[host] + (state - centers[host]) / SPLIT
    usage[[host, least]] = (usage[host] + usage[least]) / 2
    ages[least] = SPLIT
    return clusters._replace(centers=centers, usage=usage, ages=ages)


def gaps(clusters: Clusters, rule: Rule = DEFAULT) -> Array:
    """min_{j≠i} ‖μ_i − μ_j‖ + c m (u_j − u_i). Negative: the cell of cluster i is empty."""
    return between(clusters.centers, handicaps(clusters, rule))


def objective(clusters: Clusters, rule: Rule = DEFAULT, concave: Concave = sqrt) -> float:
    """L_f = Σ_i f(gap_i) (Eq. 3)."""
    return float(concave(gaps(clusters, rule)).sum())


def reward(clusters: Clusters, state: Array, rule: Rule = DEFAULT, concave: Concave = sqrt) -> float:
    """L_f after the winning center has moved, less L_f before (Eq. 2).

    Usage, its fading, the margin and splits change L_f too and are not paid. A win's handicap, c m b, is as large as a
    center's movement and says nothing about where the state is: paid along, it took the drive out of an explorer.
    """
    after = move(clusters, state, rule)
    return float((concave(gaps(after, rule)) - concave(gaps(clusters, rule))).sum())
