"""Balanced online k-means that knows no units, on the CPU (numba): κ follows the data's scale, α the cluster's age.

For each state, with m the running margin (0 before the first state) and T the states absorbed so far:
    κ = η m                                            what a count weighs now
    i = argmin_j ‖s − μ_j‖ + κ (n_j − min n)           the weights of all clusters follow κ: w_j = −κ (n_j − min n)
    m ← m + max(RATE, 1/(T + 1)) (second best − best − m)
    n_i ← n_i + 1,   μ_i ← α s + (1 − α) μ_i           with α = max(floor, 1/n_i)
Distances, margins and weights share one unit, so that scaling all states changes no decision; nor does a shift.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from voronaut.kernels.compiled import compiled
from voronaut.kernels.cpu.distances import Floats, Ints, padded, squared_distances

Counts = NDArray[np.int64]
RATE = 1e-3  # of the running margin: about the last thousand states


class Pace(NamedTuple):
    """κ = balance + eta m and α = max(floor, share/n)."""

    eta: float
    floor: float
    balance: float = 0.0
    share: float = 1.0


class Room(NamedTuple):
    """Room for one pass, `width` numbers each; `bits` are the bytes of `value` read as integers.

    Non-negative floats sort like the integers with the same bits, and the minimum of integers is a vector loop.
    """

    squared: Floats
    value: Floats
    bits: Ints
    order: Ints  # 0, 1, 2, ...


def room_for(width: int, dtype: np.dtype[Any]) -> Room:
    """Fresh room."""
    value, whole = np.empty(width, dtype), np.dtype(f"i{dtype.itemsize}")
    return Room(np.empty(width, dtype), value, value.view(whole), np.arange(width, dtype=whole))


@compiled
def least_bits(bits: Ints) -> int:
    """The smallest of non-negative floats given as bits, as bits."""
    least = bits[0]
    for j in range(bits.shape[0]):
        least = bits[j] if bits[j] < least else least
    return least  # type: ignore[no-any-return]


@compiled
def place_of(bits: Ints, wanted: int, order: Ints) -> int:
    """The first place where the bits stand."""
    last = order[order.shape[0] - 1]
    first = last
    for j in range(bits.shape[0]):
        place = order[j] if bits[j] == wanted else last
        first = place if place < first else first
    return first  # type: ignore[no-any-return]


@compiled
def nearest_two(centers: Floats, state: Floats, lead: Floats, balance: float, room: Room) -> tuple[int, float]:
    """argmin_j ‖s − μ_j‖ + κ (n_j − min n), and by how much the second best is worse. OUT: room.squared, room.value."""
    squared_distances(centers, state, room.squared)
    kappa = lead.dtype.type(balance)  # of the arrays' own precision: a float64 here would halve float32's speed
    for j in range(lead.shape[0]):
        room.value[j] = np.sqrt(room.squared[j]) + kappa * lead[j]
    winner = place_of(room.bits, least_bits(room.bits), room.order)
    best = room.value[winner]
    room.value[winner] = np.inf
    second = room.value[place_of(room.bits, least_bits(room.bits), room.order)]
    return winner, second - best


@compiled
def absorb(state: Floats, i: int, pace: Pace, base: int, centers: Floats, counts: Ints, lead: Floats) -> None:
    """n_i ← n_i + 1, μ_i ← α s + (1 − α) μ_i with α = max(floor, share/n_i). OUT: centers, counts, lead."""
    counts[i] += 1
    lead[i] = counts[i] - base
    alpha = max(pace.floor, pace.share / counts[i])
    for p in range(centers.shape[0]):
        centers[p, i] = alpha * state[p] + (1 - alpha) * centers[p, i]


@compiled
def update_rows(
    states: Floats, order: Ints, pace: Pace, margin: float, room: Room, centers: Floats, counts: Ints, lead: Floats
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


def lay_out(centers: Floats) -> Floats:
    """(k, d) -> (d, width), infinitely far away in the padding: nothing is assigned there whatever the weights."""
    laid = np.full((centers.shape[1], padded(len(centers))), np.inf, centers.dtype)
    laid[:, : len(centers)] = centers.T
    return laid


def update(
    centers: Floats, counts: Counts, margin: float, states: Floats, order: Ints, *,
    eta: float, floor: float, balance: float = 0.0, share: float = 1.0,
) -> tuple[Floats, Counts, float]:  # fmt: skip
    """One pass over the states in the given order: centers (k, d), counts (k,) and margin after it.

    Counts start at 1 (a center that is a state has absorbed that one), the margin at 0. States and centers have one
    dtype. `eta` (η) and `floor` (of α) say how κ and α follow the data; to hold one of them fixed instead:
    eta=0, balance=κ, and share=0, floor=α.
    """
    laid, counts = lay_out(centers), counts.copy()
    lead = np.zeros(laid.shape[1], laid.dtype)
    room = room_for(laid.shape[1], laid.dtype)
    pace = Pace(float(eta), float(floor), float(balance), float(share))
    margin = update_rows(states, order, pace, float(margin), room, laid, counts, lead)
    return np.ascontiguousarray(laid[:, : len(counts)].T), counts, margin
