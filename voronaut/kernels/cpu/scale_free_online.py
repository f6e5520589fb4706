"""Algorithm 1 with κ and α that follow the data, on the CPU: reward and absorb state by state.

κ changes with every state, and with it every gap: they are formed anew from a matrix of distances, O(k²) per state
and O(kd) to keep the matrix. A reward compares both sides of one state under the κ that decided its cluster. Rewards
therefore add up to the change of the objective only where κ is fixed.
"""

from typing import NamedTuple

import numpy as np

from voronaut.kernels.compiled import compiled
from voronaut.kernels.cpu.distances import Floats, Ints, squared_distances
from voronaut.kernels.cpu.scale_free import RATE, Counts, Pace, Room, absorb, lay_out, least_bits, nearest_two, room_for
from voronaut.kernels.rules import SQRT, Rules


class Walked(NamedTuple):
    """What a walk over states leaves behind."""

    rewards: Floats  # (n,)
    centers: Floats  # (k, d)
    counts: Counts  # (k,)
    margin: float


@compiled
def worth(gap: float, rules: Rules) -> float:
    """f(gap): √max(gap, 0), or log max(gap, floor)."""
    if rules.objective == SQRT:
        return np.sqrt(max(gap, 0.0))  # type: ignore[no-any-return]
    return np.log(max(gap, rules.floor))  # type: ignore[no-any-return]


@compiled
def measure_row(centers: Floats, i: int, point: Floats, room: Room, distance: Floats) -> None:
    """‖μ_i − μ_j‖ for all j, into row and column i. OUT: distance (k, width), point (d,), room.squared."""
    point[:] = centers[:, i]
    squared_distances(centers, point, room.squared)
    for j in range(distance.shape[1]):
        distance[i, j] = np.sqrt(room.squared[j])
    for j in range(distance.shape[0]):
        distance[j, i] = distance[i, j]
    distance[i, i] = np.inf


@compiled
def survey(distance: Floats, lead: Floats, balance: float, room: Room, gap: Floats) -> None:
    """min_{j≠i} ‖μ_i − μ_j‖ + κ (n_j − n_i) for all i. OUT: gap (k,), room.value."""
    kappa = lead.dtype.type(balance)
    for i in range(gap.shape[0]):
        for j in range(lead.shape[0]):
            room.value[j] = distance[i, j] + kappa * lead[j]
        room.bits[0] = least_bits(room.bits)  # room.value[0] is the same number as a float
        gap[i] = room.value[0] - kappa * lead[i]


@compiled
def step_rows(
    states: Floats, rules: Rules, pace: Pace, margin: float, room: Room,
    centers: Floats, counts: Ints, lead: Floats, distance: Floats, out: Floats,
) -> float:  # fmt: skip
    """The walk. OUT: centers, counts, lead, distance, out. The margin after it."""
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
                total += worth(after[j], rules) - worth(before[j], rules)
        seen += 1
        margin += max(RATE, 1 / seen) * (ahead - margin)
        out[r] = total
    return margin


def step(centers: Floats, counts: Counts, margin: float, states: Floats, pace: Pace, rules: Rules) -> Walked:
    """Reward and absorb state by state, in the given order. Of the rules only f and its floor are used."""
    laid, counts = lay_out(centers), counts.copy()
    width, dtype = laid.shape[1], laid.dtype
    lead, distance = np.zeros(width, dtype), np.empty((len(counts), width), dtype)
    out = np.empty(len(states), dtype)
    margin = step_rows(states, rules, pace, float(margin), room_for(width, dtype), laid, counts, lead, distance, out)
    return Walked(out, np.ascontiguousarray(laid[:, : len(counts)].T), counts, margin)
