"""‖x − μ_j‖² for all j, and the other loops over clusters that all CPU kernels share.

Every array over clusters is `width` long, a multiple of LANES, so that no loop has a scalar tail and equal centers get
equal sums wherever they stand. Arguments that a loop writes are marked OUT; all others are only read.

Minima are taken over the bits of the floats: non-negative floats sort like the integers with the same bits, and
compilers vectorise the minimum of integers but not that of floats (measured: five times faster at 300 clusters).
"""

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from voronaut.kernels.compiled import compiled, inlined
from voronaut.kernels.rules import SQRT, Rules

Floats = NDArray[np.floating[Any]]
Ints = NDArray[np.integer[Any]]
Counts = NDArray[np.int64]

LANES = 16


class Scratch(NamedTuple):
    """Room for one thread's work, `width` numbers each; `*_bits` are the same bytes read as integers."""

    squared: Floats
    value: Floats
    value_bits: Ints
    excess: Floats
    excess_bits: Ints
    moved: Floats
    order: Ints  # 0, 1, 2, ...


def padded(clusters: int) -> int:
    """The width of arrays over clusters."""
    return -(-clusters // LANES) * LANES


def aligned(shape: tuple[int, ...], dtype: np.dtype[Any]) -> NDArray[Any]:
    """An empty array that starts at a cache line: vectors that straddle two cost a fifth of the speed (measured)."""
    size = math.prod(shape) * dtype.itemsize
    memory = np.empty(size + 64, np.uint8)
    first = -memory.__array_interface__["data"][0] % 64  # `.ctypes.data` is the same and takes a few microseconds
    return memory[first : first + size].view(dtype).reshape(shape)


def lay_out(rows: Floats, fill: float = 0.0) -> Floats:
    """(k, d) -> (d, width), `fill` in the padding."""
    laid = aligned((rows.shape[1], padded(len(rows))), rows.dtype)
    laid[:, : len(rows)], laid[:, len(rows) :] = rows.T, fill
    return laid


def scratch(width: int, dtype: np.dtype[Any]) -> Scratch:
    """Fresh room for one thread."""
    squared, value, excess, moved = (aligned((width,), dtype) for _ in range(4))
    bits = np.dtype(f"i{dtype.itemsize}")
    order = aligned((width,), bits)
    order[:] = np.arange(width)
    return Scratch(squared, value, value.view(bits), excess, excess.view(bits), moved, order)


@compiled
def squared_distances(centers: Floats, point: Floats, out: Floats) -> None:
    """‖x − μ_j‖² for all j. OUT: out (width,). Four dimensions at a time: one pass over `out` for four over centers."""
    dim, width = centers.shape
    out[:] = 0
    whole = dim - dim % 4
    for p in range(0, whole, 4):
        a, b, c, d = point[p], point[p + 1], point[p + 2], point[p + 3]
        for j in range(width):
            u, v, w, x = centers[p, j] - a, centers[p + 1, j] - b, centers[p + 2, j] - c, centers[p + 3, j] - d
            out[j] = out[j] + u * u + v * v + w * w + x * x
    for p in range(whole, dim):
        a = point[p]
        for j in range(width):
            u = centers[p, j] - a
            out[j] += u * u


@compiled
def least_bits(bits: Ints) -> Any:
    """The smallest of non-negative floats given as bits, as bits."""
    least = bits[0]
    for j in range(bits.shape[0]):
        least = bits[j] if bits[j] < least else least
    return least


@compiled
def lowest(bits: Ints, order: Ints) -> int:
    """Index of the smallest of non-negative floats given as bits, the lowest index on a tie."""
    least, last = least_bits(bits), order[order.shape[0] - 1]
    first = last
    for j in range(bits.shape[0]):
        place = order[j] if bits[j] == least else last
        first = place if place < first else first
    return np.int64(first)  # type: ignore[return-value]  # one kind of index: nobody is compiled twice


@compiled
def highest(bits: Ints) -> Any:
    """The largest of floats given as bits, as bits; some negative one if none is positive."""
    most = bits[0]
    for j in range(bits.shape[0]):
        most = bits[j] if bits[j] > most else most
    return most


@compiled
def add_weights(squared: Floats, weight: Floats, out: Floats) -> None:
    """√squared + κ n, distances as the assignment sees them. OUT: out (width,)."""
    for j in range(squared.shape[0]):
        out[j] = np.sqrt(squared[j]) + weight[j]


@compiled
def winner(centers: Floats, state: Floats, weight: Floats, room: Scratch) -> int:
    """argmin_j ‖s − μ_j‖ + κ n_j, the lowest index on a tie (Eq. 4). OUT: room.squared, room.value."""
    squared_distances(centers, state, room.squared)
    add_weights(room.squared, weight, room.value)
    return lowest(room.value_bits, room.order)


@compiled
def concave(gap: float, rules: Rules) -> float:
    """f(gap): √max(gap, 0), or log max(gap, floor)."""
    if rules.objective == SQRT:
        return np.sqrt(max(gap, 0.0))  # type: ignore[no-any-return]
    return np.log(max(gap, rules.floor))  # type: ignore[no-any-return]


@compiled
def set_weights(counts: Ints, balance: float, base: int, weight: Floats) -> None:
    """κ (n_i − base), from whole numbers: no increment is lost however large n grows. OUT: weight (width,)."""
    for i in range(counts.shape[0]):
        weight[i] = balance * (counts[i] - base)
    weight[counts.shape[0] :] = np.inf


@compiled
def move(state: Floats, i: int, step_size: float, centers: Floats) -> None:
    """μ_i ← α s + (1 − α) μ_i (Eq. 5). OUT: centers."""
    for p in range(centers.shape[0]):
        centers[p, i] = step_size * state[p] + (1 - step_size) * centers[p, i]


@inlined
def least_two(room: Scratch) -> tuple[int, float, float]:
    """Where room.value is least, the least and the next: both ≥ 0. OUT: room.value, +inf where it was least."""
    place = lowest(room.value_bits, room.order)
    least = room.value[place]
    room.value[place] = np.inf
    return place, least, room.value[lowest(room.value_bits, room.order)]


@compiled
def survey_row(
    centers: Floats, weight: Floats, i: int, point: Floats, squared: Floats, room: Scratch
) -> tuple[int, float, float]:
    """The cluster nearest to i, its gap, and the gap were that one not there. OUT: point (d,), squared, room.value."""
    for p in range(point.shape[0]):  # a copy of slices would compile its messages too, two seconds of them
        point[p] = centers[p, i]
    squared_distances(centers, point, squared)
    squared[i] = np.inf
    add_weights(squared, weight, room.value)
    nearest, first, second = least_two(room)
    return nearest, first - weight[i], second - weight[i]
