"""Balanced online k-means that does not depend on units: κ follows the data's scale, α the cluster's age.

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
    lay_out,
    least_two,
    move,
    scratch,
    squared_distances,
)

RATE = 1e-3  # of the running margin: about the last thousand states


class Pace(NamedTuple):
    """κ = eta m and α = max(floor, 1/n)."""

    eta: float
    floor: float


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
    """n_i ← n_i + 1, μ_i ← α s + (1 − α) μ_i with α = max(floor, 1/n_i). OUT: centers, counts, lead."""
    counts[i] += 1
    lead[i] = counts[i] - base
    move(state, i, max(pace.floor, 1 / counts[i]), centers)


@compiled
def update_rows(
    states: Floats, order: Ints, pace: Pace, margin: float, room: Scratch, centers: Floats, counts: Ints, lead: Floats
) -> float:
    """The rule above, state by state in the given order. OUT: centers, counts, lead. The margin after it."""
    base, seen = counts.min(), max(counts.sum() - counts.shape[0], 0)
    for i in range(counts.shape[0]):
        lead[i] = counts[i] - base
    for r in order:
        i, ahead = nearest_two(centers, states[r], lead, pace.eta * margin, room)
        seen += 1
        margin += max(RATE, 1 / seen) * (ahead - margin)
        absorb(states[r], i, pace, base, centers, counts, lead)
    return margin


def update(
    centers: Floats, counts: Counts, margin: float, states: Floats, order: Ints, *,
    eta: float, floor: float,
) -> tuple[Floats, Counts, float]:  # fmt: skip
    """One pass over the states in the given order: centers (k, d), counts (k,) and margin after it.

    Counts start at 1 (a center that is a state has absorbed that one), the margin at 0. States and centers have one
    dtype. `eta` (η) and `floor` (of α) say how κ and α follow the data.
    """
    laid, counts = lay_out(centers, np.inf), counts.copy()
    lead = np.zeros(laid.shape[1], laid.dtype)
    room = scratch(laid.shape[1], laid.dtype)
    margin = update_rows(states, order, Pace(float(eta), float(floor)), float(margin), room, laid, counts, lead)
    return np.ascontiguousarray(laid[:, : len(counts)].T), counts, margin
