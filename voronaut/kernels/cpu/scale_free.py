"""Balanced online k-means that knows no units: κ follows the data's scale, α the cluster's age.

For each state, with m the running margin (0 before the first state) and T the states absorbed so far:
    κ = η m                                            what a count weighs now
    i = argmin_j ‖s − μ_j‖ + κ (n_j − min n)           the weights of all clusters follow κ: w_j = −κ (n_j − min n)
    m ← m + max(RATE, 1/(T + 1)) (second best − best − m)
    n_i ← n_i + 1,   μ_i ← α s + (1 − α) μ_i           with α = max(floor, 1/n_i)
Distances, margins and weights share one unit, so that scaling all states changes no decision; nor does a shift.

Centers in the padding are infinitely far away: nothing is assigned there whatever the weights.
"""

from typing import NamedTuple

import numpy as np

from voronaut.kernels.compiled import compiled
from voronaut.kernels.cpu.distances import (
    Counts,
    Floats,
    Ints,
    Scratch,
    concave,
    lay_out,
    least_bits,
    least_two,
    move,
    scratch,
    squared_distances,
)
from voronaut.kernels.rules import Rules

RATE = 1e-3  # of the running margin: about the last thousand states


class Pace(NamedTuple):
    """κ = balance + eta m and α = max(floor, share/n)."""

    eta: float
    floor: float
    balance: float = 0.0
    share: float = 1.0


class Walked(NamedTuple):
    """What a walk over states leaves behind."""

    rewards: Floats  # (n,)
    centers: Floats  # (k, d)
    counts: Counts  # (k,)
    margin: float


@compiled
def nearest_two(centers: Floats, state: Floats, lead: Floats, balance: float, room: Scratch) -> tuple[int, float]:
    """argmin_j ‖s − μ_j‖ + κ (n_j − min n), and by how much the second best is worse. OUT: room.squared, room.value."""
    squared_distances(centers, state, room.squared)
    kappa = lead.dtype.type(balance)  # of the arrays' own precision: a float64 here would halve float32's speed
    for j in range(lead.shape[0]):
        room.value[j] = np.sqrt(room.squared[j]) + kappa * lead[j]
    winner, best, second = least_two(room)
    return winner, second - best


@compiled
def absorb(state: Floats, i: int, pace: Pace, base: int, centers: Floats, counts: Ints, lead: Floats) -> None:
    """n_i ← n_i + 1, μ_i ← α s + (1 − α) μ_i with α = max(floor, share/n_i). OUT: centers, counts, lead."""
    counts[i] += 1
    lead[i] = counts[i] - base
    move(state, i, max(pace.floor, pace.share / counts[i]), centers)


@compiled
def update_rows(
    states: Floats, order: Ints, pace: Pace, margin: float, room: Scratch, centers: Floats, counts: Ints, lead: Floats
) -> float:
    """The rule above, state by state in the given order. OUT: centers, counts, lead. The margin after it."""
    base, seen = counts.min(), max(counts.sum() - counts.shape[0], 0)
    for i in range(counts.shape[0]):
        lead[i] = counts[i] - base
    for r in order:
        i, ahead = nearest_two(centers, states[r], lead, pace.balance + pace.eta * margin, room)
        seen += 1
        margin += max(RATE, 1 / seen) * (ahead - margin)
        absorb(states[r], i, pace, base, centers, counts, lead)
    return margin


def update(
    centers: Floats, counts: Counts, margin: float, states: Floats, order: Ints, *,
    eta: float, floor: float, balance: float = 0.0, share: float = 1.0,
) -> tuple[Floats, Counts, float]:  # fmt: skip
    """One pass over the states in the given order: centers (k, d), counts (k,) and margin after it.

    Counts start at 1 (a center that is a state has absorbed that one), the margin at 0. States and centers have one
    dtype. `eta` (η) and `floor` (of α) say how κ and α follow the data; to hold one of them fixed instead:
    eta=0, balance=κ, and share=0, floor=α.
    """
    laid, counts = lay_out(centers, np.inf), counts.copy()
    lead = np.zeros(laid.shape[1], laid.dtype)
    room = scratch(laid.shape[1], laid.dtype)
    pace = Pace(float(eta), float(floor), float(balance), float(share))
    margin = update_rows(states, order, pace, float(margin), room, laid, counts, lead)
    return np.ascontiguousarray(laid[:, : len(counts)].T), counts, margin


@compiled
def measure_row(centers: Floats, i: int, point: Floats, room: Scratch, distance: Floats) -> None:
    """‖μ_i − μ_j‖ for all j, into row and column i. OUT: distance (k, width), point (d,), room.squared."""
    for p in range(point.shape[0]):
        point[p] = centers[p, i]
    squared_distances(centers, point, room.squared)
    for j in range(distance.shape[1]):
        distance[i, j] = np.sqrt(room.squared[j])
    for j in range(distance.shape[0]):
        distance[j, i] = distance[i, j]
    distance[i, i] = np.inf


@compiled
def survey(distance: Floats, lead: Floats, balance: float, room: Scratch, gap: Floats) -> None:
    """min_{j≠i} ‖μ_i − μ_j‖ + κ (n_j − n_i) for all i. OUT: gap (k,), room.value."""
    kappa = lead.dtype.type(balance)
    for i in range(gap.shape[0]):
        for j in range(lead.shape[0]):
            room.value[j] = distance[i, j] + kappa * lead[j]
        room.value_bits[0] = least_bits(room.value_bits)  # room.value[0] is the same number as a float
        gap[i] = room.value[0] - kappa * lead[i]


@compiled
def step_rows(
    states: Floats, rules: Rules, pace: Pace, margin: float, room: Scratch,
    centers: Floats, counts: Ints, lead: Floats, distance: Floats, out: Floats,
) -> float:  # fmt: skip
    """Algorithm 1 by the rule above. OUT: centers, counts, lead, distance, out. The margin after it.

    κ changes with every state, and with it every gap: they are formed anew from a matrix of distances, O(k²) per state
    and O(kd) to keep the matrix. A reward compares both sides of one state under the κ that decided its cluster.
    Rewards therefore add up to the change of the objective only where κ is fixed.
    """
    base, seen = counts.min(), max(counts.sum() - counts.shape[0], 0)
    before, after = np.empty_like(lead[: counts.shape[0]]), np.empty_like(lead[: counts.shape[0]])
    point = np.empty_like(centers[:, 0])
    for i in range(counts.shape[0]):
        lead[i] = counts[i] - base
        measure_row(centers, i, point, room, distance)
    for r in range(states.shape[0]):
        balance = pace.balance + pace.eta * margin
        survey(distance, lead, balance, room, before)
        i, ahead = nearest_two(centers, states[r], lead, balance, room)
        absorb(states[r], i, pace, base, centers, counts, lead)
        measure_row(centers, i, point, room, distance)
        survey(distance, lead, balance, room, after)
        total = 0.0
        for j in range(before.shape[0]):
            if before[j] != after[j]:
                total += concave(after[j], rules) - concave(before[j], rules)
        seen += 1
        margin += max(RATE, 1 / seen) * (ahead - margin)
        out[r] = total
    return margin


def step(centers: Floats, counts: Counts, margin: float, states: Floats, pace: Pace, rules: Rules) -> Walked:
    """Reward and absorb state by state, in the given order. Of the rules only f and its floor are used."""
    laid, counts = lay_out(centers, np.inf), counts.copy()
    width, dtype = laid.shape[1], laid.dtype
    lead, distance = np.zeros(width, dtype), np.empty((len(counts), width), dtype)
    out = np.empty(len(states), dtype)
    margin = step_rows(states, rules, pace, float(margin), scratch(width, dtype), laid, counts, lead, distance, out)
    return Walked(out, np.ascontiguousarray(laid[:, : len(counts)].T), counts, margin)
