"""Balanced online k-means on the CPU (numba). Nothing here knows about environments, files or options.

Centers are stored transposed and padded, (d, width), so that every loop over clusters is one straight vector loop.
Padded clusters weigh +inf and win nothing. Arguments that a kernel writes come last and are marked OUT.
"""

from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from voronaut.kernels.compiled import compiled
from voronaut.kernels.loops import (
    Floats,
    Ints,
    Scratch,
    concave,
    highest,
    lowest,
    move,
    padded,
    scratch,
    set_weights,
    survey_row,
    winner,
)
from voronaut.kernels.rules import Rules

Counts = NDArray[np.int64]
# Stewart's identity subtracts; below this share of what it subtracts from, distances are formed directly instead.
CANCELS = 0.05
# From this many followers on, all gap candidates are formed at once: one vector loop instead of that many scalar ones.
MANY = 16


class Geometry(NamedTuple):
    """What frozen clusters are to each other: distances, gaps, and who is whose nearest."""

    squared: Floats  # (k, width) ‖μ_i − μ_j‖², +inf on the diagonal
    gap: Floats  # (width,) the nearest gap, −inf in the padding
    second: Floats  # (width,) the gap were the nearest cluster not there
    nearest: Ints  # (width,) index of the nearest cluster, −1 in the padding
    followers: Ints  # (k,) clusters ordered by their nearest one ...
    starts: Ints  # (k + 1,) ... those that follow i stand at followers[starts[i]:starts[i + 1]]


@compiled
def assign_rows(states: Floats, centers: Floats, weight: Floats, room: Scratch, chosen: Ints) -> None:
    """The cluster of each state. OUT: chosen (n,)."""
    for r in range(states.shape[0]):
        chosen[r] = winner(centers, states[r], weight, room)


@compiled
def update_rows(
    states: Floats, order: Ints, rules: Rules, room: Scratch, centers: Floats, counts: Ints, weight: Floats
) -> None:
    """Assign, move and count, state by state in the given order. OUT: centers, counts, weight."""
    base = counts.min()
    set_weights(counts, rules.balance, base, weight)
    for r in order:
        i = winner(centers, states[r], weight, room)
        move(states[r], i, rules.step_size, centers)
        counts[i] += 1
        weight[i] = rules.balance * (counts[i] - base)


@compiled
def survey(
    centers: Floats, weight: Floats, room: Scratch, squared: Floats, gap: Floats, second: Floats, nearest: Ints
) -> None:
    """All gaps from scratch, O(k² d). OUT: squared (k, width), gap, second, nearest (width,)."""
    point = np.empty_like(centers[:, 0])
    for i in range(squared.shape[0]):
        nearest[i], gap[i], second[i] = survey_row(centers, weight, i, point, squared[i], room)
    for i in range(squared.shape[0], gap.shape[0]):
        nearest[i], gap[i], second[i] = -1, -np.inf, -np.inf


@compiled
def direct_distance(centers: Floats, state: Floats, i: int, j: int, alpha: float) -> float:
    """‖α s + (1 − α) μ_i − μ_j‖ without any identity."""
    total = 0.0
    for p in range(centers.shape[0]):
        difference = alpha * (state[p] - centers[p, i]) + (centers[p, i] - centers[p, j])
        total += difference * difference
    return np.sqrt(total)  # type: ignore[no-any-return]


@compiled
def moved_distance(
    centers: Floats, state: Floats, from_state: Floats, row: Floats, i: int, j: int, alpha: float
) -> float:
    """√(α‖s−μ_j‖² + (1−α)‖μ_i−μ_j‖² − α(1−α)‖s−μ_i‖²) = ‖μ̃ − μ_j‖ (Stewart), directly where that cancels."""
    whole = alpha * from_state[j] + (1 - alpha) * row[j]
    square = whole - alpha * (1 - alpha) * from_state[i]
    if square < CANCELS * whole:
        return direct_distance(centers, state, i, j, alpha)
    return np.sqrt(square)  # type: ignore[no-any-return]


@compiled
def own_gap(
    centers: Floats, state: Floats, from_state: Floats, row: Floats, weight: Floats, i: int, j: int, alpha: float
) -> float:
    """min_{l≠i} ‖μ̃ − μ_l‖ + κ n_l, given the best candidate j; all are measured directly if j's distance cancels."""
    whole = alpha * from_state[j] + (1 - alpha) * row[j]
    if whole - alpha * (1 - alpha) * from_state[i] >= CANCELS * whole:
        return moved_distance(centers, state, from_state, row, i, j, alpha) + weight[j]  # type: ignore[no-any-return]
    least: float = np.inf
    for other in range(row.shape[0]):
        if other != i and weight[other] < least:
            least = min(least, direct_distance(centers, state, i, other, alpha) + weight[other])
    return least


@compiled
def screen(row: Floats, weight: Floats, reach: Floats, i: int, alpha: float, after: float, room: Scratch) -> None:
    """Lower bounds of ‖μ̃ − μ_j‖ for all j, what they make of i's own gap, and by how much j's reach exceeds them.

    OUT: room.moved, room.value, room.excess.
    """
    of = weight.dtype.type  # numbers of the arrays' own precision: a float64 here would quarter float32's speed
    a, b, slack = of(alpha), of(1 - alpha), of(1 - 2e-6 if weight.itemsize == 4 else 1 - 4e-15)
    cut, lift, zero = a * b * room.squared[i], of(after), of(0)
    for j in range(row.shape[0]):
        room.moved[j] = np.sqrt(max((a * room.squared[j] + b * row[j]) * slack - cut, zero))
    for j in range(row.shape[0]):
        room.value[j] = room.moved[j] + weight[j]
        room.excess[j] = reach[j] - lift - room.moved[j]


@compiled
def survey_moved(row: Floats, weight: Floats, i: int, alpha: float, after: float, room: Scratch) -> None:
    """Gap candidates ‖μ̃ − μ_j‖ + κ (ñ_i − n_j) of all j at once, and by how much Stewart's identity cancels for each.

    OUT: room.moved, room.excess (positive: to be measured directly).
    """
    of = weight.dtype.type
    a, b, lift, zero, least = of(alpha), of(1 - alpha), of(after), of(0), of(CANCELS)
    cut = a * b * room.squared[i]
    for j in range(row.shape[0]):
        whole = a * room.squared[j] + b * row[j]
        room.moved[j] = np.sqrt(max(whole - cut, zero)) + (lift - weight[j])
        room.excess[j] = least * whole - (whole - cut)


@compiled
def reward_rows(
    states: Floats, centers: Floats, weight: Floats, shape: Geometry, rules: Rules, room: Scratch, out: Floats
) -> None:
    """Σ f(gaps after) − Σ f(gaps before) for each state against frozen clusters (Eq. 2). OUT: out (n,).

    Only the winner, its followers and the few clusters it comes close to can change. `reach` is how near the moved
    center must come to a cluster to be its nearest; followers are taken out of it because they are handled apart.
    """
    alpha = rules.step_size
    reach, worth = np.full_like(weight, -np.inf), np.zeros(weight.shape[0])
    for j in shape.followers:  # every cluster once
        reach[j], worth[j] = shape.gap[j] + weight[j], concave(shape.gap[j], rules)
    for r in range(states.shape[0]):
        state = states[r]
        i = winner(centers, state, weight, room)
        row, after = shape.squared[i], weight[i] + rules.balance
        followers = shape.followers[shape.starts[i] : shape.starts[i + 1]]
        for j in followers:
            reach[j] = -np.inf
        screen(row, weight, reach, i, alpha, after, room)
        nearest = lowest(room.value_bits, room.order)
        best = own_gap(centers, state, room.squared, row, weight, i, nearest, alpha)
        total = concave(best - after, rules) - worth[i]
        if highest(room.excess_bits) > 0:
            for j in range(reach.shape[0]):
                if room.excess[j] > 0:
                    gap = moved_distance(centers, state, room.squared, row, i, j, alpha) + after - weight[j]
                    if gap < shape.gap[j]:
                        total += concave(gap, rules) - worth[j]
        many = followers.shape[0] > MANY
        if many:
            survey_moved(row, weight, i, alpha, after, room)
        for j in followers:
            gap = float(room.moved[j])
            if not many or room.excess[j] > 0:
                gap = moved_distance(centers, state, room.squared, row, i, j, alpha) + after - weight[j]
            total += concave(min(gap, shape.second[j]), rules) - worth[j]
            reach[j] = shape.gap[j] + weight[j]
        out[r] = total


class Prepared(NamedTuple):
    """Clusters laid out for `rewards` and `assign`."""

    centers: Floats  # (d, width)
    weight: Floats  # (width,)
    shape: Geometry

    @property
    def gaps(self) -> Floats:
        """min_{j≠i} ‖μ_i − μ_j‖ + κ (n_j − n_i), raw (k,)."""
        return self.shape.gap[: len(self.shape.followers)]


def lay_out(centers: Floats) -> Floats:
    """(k, d) -> (d, width), zeros in the padding."""
    laid = np.zeros((centers.shape[1], padded(len(centers))), centers.dtype)
    laid[:, : len(centers)] = centers.T
    return laid


def geometry(centers: Floats, weight: Floats, clusters: int) -> Geometry:
    """Everything that frozen rewards need to know about the clusters, O(k² d)."""
    width, dtype = centers.shape[1], centers.dtype
    squared = np.empty((clusters, width), dtype)
    gap, second, nearest = np.empty(width, dtype), np.empty(width, dtype), np.empty(width, np.int64)
    survey(centers, weight, scratch(width, dtype), squared, gap, second, nearest)
    followers = np.argsort(nearest[:clusters], kind="stable")
    starts = np.searchsorted(nearest[followers], np.arange(clusters + 1))
    return Geometry(squared, gap, second, nearest, followers, starts)


def prepare(centers: Floats, counts: Ints, balance: float) -> Prepared:
    """Clusters (k, d) made ready for any number of states; to be made anew after they changed."""
    laid = lay_out(centers)
    weight = np.empty(laid.shape[1], laid.dtype)
    set_weights(counts, balance, counts.min(), weight)
    return Prepared(laid, weight, geometry(laid, weight, len(counts)))


def assign(prepared: Prepared, states: Floats) -> Ints:
    """argmin_i ‖s − μ_i‖ + κ n_i for each state (Eq. 4)."""
    chosen = np.empty(len(states), np.int64)
    room = scratch(prepared.centers.shape[1], prepared.centers.dtype)
    assign_rows(states, prepared.centers, prepared.weight, room, chosen)
    return chosen


def rewards(prepared: Prepared, states: Floats, rules: Rules, threads: int = 1) -> Floats:
    """What each state would earn against the clusters as they are (Eq. 2), the same for any number of threads."""
    out = np.empty(len(states), prepared.centers.dtype)

    def work(rows: slice) -> None:
        room = scratch(prepared.centers.shape[1], prepared.centers.dtype)
        reward_rows(states[rows], *prepared, rules, room, out[rows])

    if threads == 1:
        work(slice(None))
        return out
    cuts = np.linspace(0, len(states), threads + 1, dtype=int)
    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(work, map(slice, cuts[:-1], cuts[1:])))
    return out


def update(centers: Floats, counts: Counts, states: Floats, order: Ints, rules: Rules) -> tuple[Floats, Counts]:
    """One pass of online k-means over the states in the given order (Eqs. 4 to 6): the centers and counts after it."""
    laid, counts = lay_out(centers), counts.copy()
    weight = np.empty(laid.shape[1], laid.dtype)
    update_rows(states, order, rules, scratch(len(weight), laid.dtype), laid, counts, weight)
    return np.ascontiguousarray(laid[:, : len(counts)].T), counts
