"""argmin_j ‖s − μ_j‖ + κ n_j (Eq. 4), from lower bounds that cost less than distances, for two states at a time.

‖s − μ‖² = ‖s‖² − 2 s·μ + ‖μ‖² needs one operation per number where the sum of squared differences needs two, but is
off by up to (d + 8) ε (‖s‖² + ‖μ‖²). Less that much it is a lower bound. The clusters whose bound stays below the exact
value of the best one, mostly that one alone, are then measured from differences: the result does not depend on bounds.

Hot loops take plain arrays and row numbers: a view or a field of a tuple inside them would count references, which
costs a third of an assignment (measured).
"""

from typing import Any, NamedTuple

import numpy as np

from voronaut.kernels.compiled import compiled, inlined, reordered
from voronaut.kernels.loops import Floats, Ints, aligned, padded, set_weights


class Layout(NamedTuple):
    """Clusters laid out twice: transposed and padded for the bounds, as rows for the distances."""

    centers: Floats  # (d, width)
    rows: Floats  # (k, d)
    norms: Floats  # (width,) (1 − c) ‖μ_j‖²
    weight: Floats  # (width,) κ (n_j − min n), +inf in the padding


class Pair(NamedTuple):
    """Room for two states at a time, `width` numbers each; `*bits` are the same bytes read as integers."""

    product: Floats
    value: Floats
    bits: Ints
    next_product: Floats
    next_value: Floats
    next_bits: Ints
    order: Ints  # 0, 1, 2, ...


def lay_out(rows: Floats) -> Floats:
    """(k, d) -> (d, width), zeros in the padding."""
    laid = aligned((rows.shape[1], padded(len(rows))), rows.dtype)
    laid[:, : len(rows)], laid[:, len(rows) :] = rows.T, 0
    return laid


def layout(centers: Floats, counts: Ints, balance: float) -> Layout:
    """Clusters (k, d) made ready for `bounds_pair`. Copies."""
    laid = lay_out(centers)
    norms, weight = (aligned((laid.shape[1],), laid.dtype) for _ in range(2))
    set_weights(counts, balance, counts.min(), weight)
    rows = np.array(centers, order="C")
    norms[: len(rows)], norms[len(rows) :] = norms_of(rows), 0
    return Layout(laid, rows, norms, weight)


def pair(width: int, dtype: np.dtype[Any]) -> Pair:
    """Fresh room for one thread."""
    product, value, next_product, next_value = (aligned((width,), dtype) for _ in range(4))
    bits = np.dtype(f"i{dtype.itemsize}")
    order = aligned((width,), bits)
    order[:] = np.arange(width)
    return Pair(product, value, value.view(bits), next_product, next_value, next_value.view(bits), order)


@inlined
def slack(rows: Floats) -> float:
    """c = (d + 8) ε, what bounds give away to be bounds."""
    epsilon = 1.1920929e-07 if rows.itemsize == 4 else 2.220446049250313e-16
    return float((rows.shape[1] + 8) * epsilon)


@inlined
def norm(rows: Floats, i: int) -> float:
    """(1 − c) ‖μ_i‖²."""
    total = rows.dtype.type(0)
    for p in range(rows.shape[1]):
        total += rows[i, p] * rows[i, p]
    return (1 - slack(rows)) * total  # type: ignore[return-value]


@reordered
def norms_of(rows: Floats) -> Floats:
    """(1 − c) ‖x_r‖² of all rows."""
    out = np.empty(rows.shape[0], rows.dtype)
    for r in range(rows.shape[0]):
        out[r] = norm(rows, r)
    return out


@inlined
def square(a: Floats, r: int, b: Floats, i: int) -> float:
    """‖a_r − b_i‖²."""
    total = a.dtype.type(0)
    for p in range(a.shape[1]):
        total += (a[r, p] - b[i, p]) * (a[r, p] - b[i, p])
    return total  # type: ignore[return-value]


@compiled
def start(x: Floats, r: int, s: int, centers: Floats, norms: Floats, out: Floats, ahead: Floats) -> None:
    """(1 − c)‖μ_j‖² − 2 x·μ_j over the first d mod 4 dimensions. OUT: out, ahead (width,)."""
    left, two = centers.shape[0] % 4, norms.dtype.type(-2)
    if left == 0:
        for j in range(norms.shape[0]):
            out[j], ahead[j] = norms[j], norms[j]
    elif left == 1:
        a, d = two * x[r, 0], two * x[s, 0]
        for j in range(norms.shape[0]):
            out[j] = norms[j] + a * centers[0, j]
            ahead[j] = norms[j] + d * centers[0, j]
    elif left == 2:
        a, b, d, e = two * x[r, 0], two * x[r, 1], two * x[s, 0], two * x[s, 1]
        for j in range(norms.shape[0]):
            out[j] = norms[j] + a * centers[0, j] + b * centers[1, j]
            ahead[j] = norms[j] + d * centers[0, j] + e * centers[1, j]
    else:
        a, b, c = two * x[r, 0], two * x[r, 1], two * x[r, 2]
        d, e, f = two * x[s, 0], two * x[s, 1], two * x[s, 2]
        for j in range(norms.shape[0]):
            out[j] = norms[j] + a * centers[0, j] + b * centers[1, j] + c * centers[2, j]
            ahead[j] = norms[j] + d * centers[0, j] + e * centers[1, j] + f * centers[2, j]


@compiled
def products(x: Floats, r: int, s: int, centers: Floats, norms: Floats, out: Floats, ahead: Floats) -> None:
    """(1 − c)‖μ_j‖² − 2 x·μ_j for two states at once: each center is loaded once for both. OUT: out, ahead (width,)."""
    two = norms.dtype.type(-2)
    start(x, r, s, centers, norms, out, ahead)
    for p in range(centers.shape[0] % 4, centers.shape[0], 4):
        a, b, c, d = two * x[r, p], two * x[r, p + 1], two * x[r, p + 2], two * x[r, p + 3]
        e, f, g, h = two * x[s, p], two * x[s, p + 1], two * x[s, p + 2], two * x[s, p + 3]
        for j in range(norms.shape[0]):
            t, u, v, w = centers[p, j], centers[p + 1, j], centers[p + 2, j], centers[p + 3, j]
            out[j] = out[j] + a * t + b * u + c * v + d * w
            ahead[j] = ahead[j] + e * t + f * u + g * v + h * w


@compiled
def bounds_pair(
    product: Floats, next_product: Floats, lift: float, next_lift: float, weight: Floats, out: Floats, ahead: Floats
) -> None:
    """√((1 − c)‖s‖² + product_j) + κ n_j ≤ ‖s − μ_j‖ + κ n_j, for two states. OUT: out, ahead (width,)."""
    of = weight.dtype.type
    zero, more, next_more = of(0), of(lift), of(next_lift)
    for j in range(weight.shape[0]):
        out[j] = np.sqrt(max(product[j] + more, zero)) + weight[j]
        ahead[j] = np.sqrt(max(next_product[j] + next_more, zero)) + weight[j]


@compiled
def lowest_pair(bits: Ints, ahead: Ints, order: Ints) -> tuple[int, bool, int, bool]:
    """Where the smallest of non-negative floats given as bits stands, to 2⁻¹¹, and if no other comes within 2⁻¹² of it.

    No arithmetic on the elements: it would widen them to 64 bits and halve the lanes.
    """
    least, next_least = bits[0], ahead[0]
    for j in range(bits.shape[0]):
        least = bits[j] if bits[j] < least else least
        next_least = ahead[j] if ahead[j] < next_least else next_least
    window = 1 << (12 if bits.itemsize == 4 else 41)
    near, next_near = bits.dtype.type(least + window), bits.dtype.type(next_least + window)
    low, high = order[0], order[order.shape[0] - 1]
    first, last, next_first, next_last = high, low, high, low
    for j in range(bits.shape[0]):
        place, end = (order[j], order[j]) if bits[j] <= near else (high, low)
        first, last = place if place < first else first, end if end > last else last
        place, end = (order[j], order[j]) if ahead[j] <= next_near else (high, low)
        next_first, next_last = place if place < next_first else next_first, end if end > next_last else next_last
    return first, first == last, next_first, next_first == next_last


@inlined
def settle(x: Floats, r: int, rows: Floats, weight: Floats, value: Floats, i: int, alone: bool) -> tuple[int, float]:
    """argmin_j ‖s − μ_j‖ + κ n_j, the lowest index on a tie, and ‖s − μ_i‖², from all bounds and `lowest_pair`."""
    squared = square(x, r, rows, i)
    best = np.sqrt(squared) + weight[i]
    limit = best * (1 + slack(rows))
    if alone and limit <= value[i] * (1 + 2**-12):
        return i, squared
    for j in range(rows.shape[0]):
        if value[j] <= limit:
            rival = square(x, r, rows, j)
            total = np.sqrt(rival) + weight[j]
            if total < best or (total == best and j < i):
                i, squared, best = j, rival, total
    return i, squared
