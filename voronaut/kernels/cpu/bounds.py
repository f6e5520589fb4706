"""argmin_j ‖s − μ_j‖ + κ n_j (Eq. 4), from lower bounds that cost less than distances: matrix products of some states.

‖s − μ‖² = ‖s‖² − 2 s·μ + ‖μ‖² needs one operation per number where the sum of squared differences needs two, but
rounding takes more from it. Less c (‖s‖² + ‖μ‖²) it is a lower bound, over all dimensions or over some of them
(`dimensions`). The cluster of the least bound is measured from differences, and after it those whose bound is no more
than its value, mostly none: the result does not depend on bounds.

Why c = 3 (d + 4) ε is enough, in units of ε/2 · (‖s‖² + ‖μ‖²) and in whatever order sums are taken: norms are off by
d + 2; d + 2 numbers of at most 2 (‖s‖² + ‖μ‖²) in all add up with an error of 2 (d + 2); what is measured is no more
than 2 (‖s‖² + ‖μ‖²) and off by 2 (d + 2). That is 5 d + 10, and c is 6 d + 24. So the squared bound is no more than the
squared distance as measured, and as roots and sums round in order, a bound is no more than the value it is held to.

Hot loops take plain arrays and row numbers: a view or a field of a tuple inside them would count references, which
costs a third of an assignment (measured). So does a function around the four lines that follow a bound everywhere.
"""

from typing import Any, NamedTuple

import numpy as np
from numba import config, types
from numba.extending import intrinsic

from voronaut.kernels.compiled import compiled, inlined, reordered
from voronaut.kernels.cpu.distances import Floats, Ints, aligned, lay_out, set_weights

STATES, FEWEST = 32, 4  # whose products are made at once
ALONE = 2**18  # multiply-adds that OpenBLAS does in one thread: who wants several has shared out the states already
LARGE = 2**18  # numbers in all centers together


class Layout(NamedTuple):
    """Clusters laid out twice: transposed and padded for vector loops over clusters, as rows for single distances."""

    centers: Floats  # (d, width)
    rows: Floats  # (k, d)
    weight: Floats  # (width,) κ (n_j − min n), +inf in the padding


class Room(NamedTuple):
    """Room for one thread's work, `width` numbers each."""

    inner: Floats  # (STATES, width) s·μ_j of some states
    product: Floats
    value: Floats
    bits: Ints  # the bytes of `value` read as integers
    order: Ints  # 0, 1, 2, ..., up to a power of two


def layout(centers: Floats, counts: Ints, balance: float) -> Layout:
    """Clusters (k, d) made ready for loops over them. Copies."""
    laid = lay_out(centers)
    weight = aligned((laid.shape[1],), laid.dtype)
    set_weights(counts, balance, counts.min(), weight)
    return Layout(laid, np.array(centers, order="C"), weight)


def room_for(width: int, dtype: np.dtype[Any]) -> Room:
    """Fresh room."""
    inner, product, value = (aligned(shape, dtype) for shape in ((STATES, width), (width,), (width,)))
    bits = np.dtype(f"i{dtype.itemsize}")
    order = aligned((1 << (width - 1).bit_length(),), bits)
    order[:] = np.arange(len(order))
    return Room(inner, product, value, value.view(bits), order)


@inlined
def slack(rows: Floats) -> float:
    """c = 3 (d + 4) ε, what bounds give away to be bounds."""
    epsilon = 1.1920929e-07 if rows.itemsize == 4 else 2.220446049250313e-16
    return float(3 * (rows.shape[1] + 4) * epsilon)


@reordered
def norms_of(x: Floats, whole: Floats) -> Floats:
    """(1 − c) ‖x_r‖² of all rows of x, which holds some dimensions of `whole`; c counts all of them."""
    out = np.empty(x.shape[0], x.dtype)
    for r in range(x.shape[0]):
        total = x.dtype.type(0)
        for p in range(x.shape[1]):
            total += x[r, p] * x[r, p]
        out[r] = (1 - slack(whole)) * total
    return out


@inlined
def square(a: Floats, r: int, b: Floats, i: int) -> float:
    """‖a_r − b_i‖²."""
    total = a.dtype.type(0)
    for p in range(a.shape[1]):
        total += (a[r, p] - b[i, p]) * (a[r, p] - b[i, p])
    return total  # type: ignore[return-value]


def _bits_of(_context: Any, number: Any) -> Any:
    """The bytes of a float read as an integer."""
    kind = types.int32 if number == types.float32 else types.int64

    def generate(context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        return builder.bitcast(arguments[0], context.get_value_type(kind))

    return kind(number), generate


def _plain_bits_of(number: Any) -> Any:
    """The same without a compiler (NUMBA_DISABLE_JIT=1, to walk through the kernels with a debugger)."""
    return number.view(np.int32 if number.itemsize == 4 else np.int64)


bits_of: Any = _plain_bits_of if config.DISABLE_JIT else intrinsic(_bits_of)


@inlined
def at_once(centers: Floats, inner: Floats) -> int:
    """For how many states products are made at once."""
    return int(2 if centers.size > LARGE else min(inner.shape[0], max(FEWEST, ALONE // centers.size)))


@compiled
def products(x: Floats, r: int, stop: int, centers: Floats, inner: Floats) -> None:
    """s·μ_j of the states r to `stop` and all clusters. OUT: inner (states, width).

    Centers beyond LARGE have a loop of their own, for two states at a time: BLAS took 2.7 to 14 times as long for
    up to four states (measured on two busy cores, 3000 clusters of 376 numbers).
    """
    if centers.size <= LARGE:
        np.dot(x[r:stop], centers, inner[: stop - r])
        return
    inner[:2], s, dim = 0, stop - 1, centers.shape[0]  # the last state may be both
    for p in range(dim % 4):
        for j in range(inner.shape[1]):
            inner[0, j] += x[r, p] * centers[p, j]
            inner[1, j] += x[s, p] * centers[p, j]
    for p in range(dim % 4, dim, 4):
        a, b, c, d = x[r, p], x[r, p + 1], x[r, p + 2], x[r, p + 3]
        e, f, g, h = x[s, p], x[s, p + 1], x[s, p + 2], x[s, p + 3]
        for j in range(inner.shape[1]):
            t, u, v, w = centers[p, j], centers[p + 1, j], centers[p + 2, j], centers[p + 3, j]
            inner[0, j] = inner[0, j] + a * t + b * u + c * v + d * w
            inner[1, j] = inner[1, j] + e * t + f * u + g * v + h * w


@compiled
def weighed(
    inner: Floats, q: int, lift: float, norms: Floats, weight: Floats, order: Ints, product: Floats, value: Floats
) -> tuple[int, Any]:
    """√((1 − c)‖s‖² + (1 − c)‖μ_j‖² − 2 s·μ_j) + κ n_j ≤ ‖s − μ_j‖ + κ n_j; about where it is least.

    The last bits of each bound give way to its place, so that a minimum finds both. There is one for each half of the
    clusters: the bits of the other half's, which are no more than any bound there, save a look at these. `lift` is
    (1 − c)‖s‖², row q of `inner` s·μ_j. OUT: product, what the root is drawn of, and value (width,).
    """
    of, whole, half = weight.dtype.type, order.dtype.type, weight.shape[0] // 2
    two, zero, more, mask = of(2), of(0), of(lift), order.dtype.type(-order.shape[0])
    low = high = whole(0x7FFFFFFF if weight.itemsize == 4 else 0x7FFFFFFFFFFFFFFF)
    for j in range(half):
        k = j + half
        a, b = norms[j] - two * inner[q, j] + more, norms[k] - two * inner[q, k] + more
        product[j], product[k] = a, b
        a, b = np.sqrt(max(a, zero)) + weight[j], np.sqrt(max(b, zero)) + weight[k]
        value[j], value[k] = a, b
        one, other = whole((bits_of(a) & mask) | order[j]), whole((bits_of(b) & mask) | order[k])
        low, high = one if one < low else low, other if other < high else high
    return min(low, high) & (order.shape[0] - 1), max(low, high) & mask


@compiled
def squared(
    inner: Floats, q: int, lift: float, norms: Floats, weight: Floats, order: Ints, value: Floats
) -> tuple[int, Any]:
    """`weighed` where no cluster weighs anything: no root is needed.

    OUT: value (width,), (1 − c)‖s‖² + (1 − c)‖μ_j‖² − 2 s·μ_j or 0, +inf in the padding.
    """
    of, whole, half = weight.dtype.type, order.dtype.type, weight.shape[0] // 2
    two, zero, more, mask = of(2), of(0), of(lift), order.dtype.type(-order.shape[0])
    low = high = whole(0x7FFFFFFF if weight.itemsize == 4 else 0x7FFFFFFFFFFFFFFF)
    for j in range(half):
        k = j + half
        a = max(norms[j] - two * inner[q, j] + more, zero) + weight[j]
        b = max(norms[k] - two * inner[q, k] + more, zero) + weight[k]
        value[j], value[k] = a, b
        one, other = whole((bits_of(a) & mask) | order[j]), whole((bits_of(b) & mask) | order[k])
        low, high = one if one < low else low, other if other < high else high
    return min(low, high) & (order.shape[0] - 1), max(low, high) & mask


@inlined
def least_else(bits: Ints, i: int, other: Any) -> Any:
    """The least of the bounds in the half of i, or of `other`, as bits."""
    half = bits.shape[0] // 2
    start = half if i >= half else 0
    for j in range(half):
        other = bits[start + j] if bits[start + j] < other else other
    return other


@reordered
def products_again(x: Floats, r: int, stop: int, i: int, center: Floats, q: int, inner: Floats) -> None:
    """s·μ_i of states r to `stop` once cluster i has moved to `center`. OUT: column i of `inner`, from row q on."""
    for s in range(r, stop):
        total = center.dtype.type(0)
        for p in range(center.shape[0]):
            total += x[s, p] * center[p]
        inner[q + s - r, i] = total


@reordered
def measure(
    x: Floats, r: int, rows: Floats, weight: Floats, i: int, squared: float, limit: Any, value: Floats
) -> tuple[int, float]:
    """Cluster i, or another whose bound is within the limit and that is nearer (the lower index on a tie); ‖s − μ‖²."""
    best = np.sqrt(squared) + weight[i]
    for j in range(rows.shape[0]):
        if value[j] <= limit:
            rival = square(x, r, rows, j)
            total = np.sqrt(rival) + weight[j]
            if total < best or (total == best and j < i):
                i, squared, best = j, rival, total
    return i, squared
