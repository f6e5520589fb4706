"""argmin_j ‖s − μ_j‖ + κ n_j (Eq. 4), from lower bounds that cost less than distances, for two states at a time.

‖s − μ‖² = ‖s‖² − 2 s·μ + ‖μ‖² needs one operation per number where the sum of squared differences needs two, but
rounding takes more from it. Less c (‖s‖² + ‖μ‖²) it is a lower bound, over all dimensions or over some of them
(`dimensions`). The cluster of the least bound is measured from differences, and after it those whose bound is no more
than its value, mostly none: the result does not depend on bounds.

Why c = 3 (d + 4) ε is enough, in units of ε/2 · (‖s‖² + ‖μ‖²) and in whatever order sums are taken: norms are off by
d + 2; d + 2 numbers of at most 2 (‖s‖² + ‖μ‖²) in all add up with an error of 2 (d + 2); what is measured is no more
than 2 (‖s‖² + ‖μ‖²) and off by 2 (d + 2). That is 5 d + 10, and c is 6 d + 24. So the squared bound is no more than the
squared distance as measured, and as roots and sums round in order, a bound is no more than the value it is held to.

Hot loops take plain arrays and row numbers: a view or a field of a tuple inside them would count references, which
costs a third of an assignment (measured). So does a function around the four lines that follow `bounds` everywhere.
"""

from typing import Any, NamedTuple

import numpy as np
from numba import config, types
from numba.extending import intrinsic

from voronaut.kernels.compiled import compiled, inlined, reordered
from voronaut.kernels.cpu.distances import Floats, Ints, aligned, lay_out, set_weights


class Layout(NamedTuple):
    """Clusters laid out twice: transposed and padded for vector loops over clusters, as rows for single distances."""

    centers: Floats  # (d, width)
    rows: Floats  # (k, d)
    weight: Floats  # (width,) κ (n_j − min n), +inf in the padding


class Room(NamedTuple):
    """Room for one thread's work, `width` numbers each."""

    part: Floats  # (2, width) products of two states over all but the last eight dimensions
    product: Floats
    value: Floats
    bits: Ints  # the bytes of `value` read as integers
    order: Ints  # 0, 1, 2, ..., up to a power of two
    squares: Floats  # (2, width) bounds of two states, squared
    squares_bits: Ints


def layout(centers: Floats, counts: Ints, balance: float) -> Layout:
    """Clusters (k, d) made ready for loops over them. Copies."""
    laid = lay_out(centers)
    weight = aligned((laid.shape[1],), laid.dtype)
    set_weights(counts, balance, counts.min(), weight)
    return Layout(laid, np.array(centers, order="C"), weight)


def room_for(width: int, dtype: np.dtype[Any]) -> Room:
    """Fresh room."""
    part, squares, product, value = (aligned(shape, dtype) for shape in ((2, width), (2, width), (width,), (width,)))
    bits = np.dtype(f"i{dtype.itemsize}")
    order = aligned((1 << (width - 1).bit_length(),), bits)
    order[:] = np.arange(len(order))
    return Room(part, product, value, value.view(bits), order, squares, squares.view(bits))


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


@compiled
def start(x: Floats, r: int, s: int, centers: Floats, norms: Floats, out: Floats) -> None:
    """(1 − c)‖μ_j‖² − 2 x·μ_j over the first 1 to 4 dimensions: fours are left. OUT: out (2, width)."""
    first, two = (centers.shape[0] - 1) % 4 + 1, norms.dtype.type(-2)
    if first == 1:
        a, e = two * x[r, 0], two * x[s, 0]
        for j in range(norms.shape[0]):
            out[0, j] = norms[j] + a * centers[0, j]
            out[1, j] = norms[j] + e * centers[0, j]
    elif first == 2:
        a, b, e, f = two * x[r, 0], two * x[r, 1], two * x[s, 0], two * x[s, 1]
        for j in range(norms.shape[0]):
            out[0, j] = norms[j] + a * centers[0, j] + b * centers[1, j]
            out[1, j] = norms[j] + e * centers[0, j] + f * centers[1, j]
    elif first == 3:
        a, b, c = two * x[r, 0], two * x[r, 1], two * x[r, 2]
        e, f, g = two * x[s, 0], two * x[s, 1], two * x[s, 2]
        for j in range(norms.shape[0]):
            out[0, j] = norms[j] + a * centers[0, j] + b * centers[1, j] + c * centers[2, j]
            out[1, j] = norms[j] + e * centers[0, j] + f * centers[1, j] + g * centers[2, j]
    else:
        a, b, c, d = two * x[r, 0], two * x[r, 1], two * x[r, 2], two * x[r, 3]
        e, f, g, h = two * x[s, 0], two * x[s, 1], two * x[s, 2], two * x[s, 3]
        for j in range(norms.shape[0]):
            t, u, v, w = centers[0, j], centers[1, j], centers[2, j], centers[3, j]
            out[0, j] = norms[j] + a * t + b * u + c * v + d * w
            out[1, j] = norms[j] + e * t + f * u + g * v + h * w


@compiled
def products(x: Floats, r: int, s: int, centers: Floats, norms: Floats, out: Floats) -> None:
    """(1 − c)‖μ_j‖² − 2 x·μ_j over all but the last eight dimensions, for two states: each center is loaded once.

    OUT: out (2, width).
    """
    two = norms.dtype.type(-2)
    start(x, r, s, centers, norms, out)
    for p in range((centers.shape[0] - 1) % 4 + 1, centers.shape[0] - 8, 4):
        a, b, c, d = two * x[r, p], two * x[r, p + 1], two * x[r, p + 2], two * x[r, p + 3]
        e, f, g, h = two * x[s, p], two * x[s, p + 1], two * x[s, p + 2], two * x[s, p + 3]
        for j in range(norms.shape[0]):
            t, u, v, w = centers[p, j], centers[p + 1, j], centers[p + 2, j], centers[p + 3, j]
            out[0, j] = out[0, j] + a * t + b * u + c * v + d * w
            out[1, j] = out[1, j] + e * t + f * u + g * v + h * w


@reordered
def product_again(x: Floats, r: int, i: int, center: Floats, norms: Floats, out: Floats) -> None:
    """What `products` gives for the second of two states and cluster i, which has moved to `center`. OUT: out[1, i]."""
    total = center.dtype.type(0)
    for p in range(x.shape[1] - 8):
        total += x[r, p] * center[p]
    out[1, i] = norms[i] - 2 * total


@compiled
def bounds(
    x: Floats, r: int, lift: float, centers: Floats, before: Floats, weight: Floats, order: Ints,
    product: Floats, value: Floats,
) -> int:  # fmt: skip
    """√((1 − c)‖s‖² + product_j) + κ n_j ≤ ‖s − μ_j‖ + κ n_j with the last eight dimensions; about where it is least.

    The last bits of each bound give way to its place, so that one minimum finds both; the root hides behind the
    products. OUT: product, value (width,), the first with (1 − c)‖s‖² added.
    """
    of, whole = weight.dtype.type, order.dtype.type
    two, zero, more, p, row = of(-2), of(0), of(lift), centers.shape[0] - 8, r % before.shape[0]
    a, b, c, d = two * x[r, p], two * x[r, p + 1], two * x[r, p + 2], two * x[r, p + 3]
    e, f, g, h = two * x[r, p + 4], two * x[r, p + 5], two * x[r, p + 6], two * x[r, p + 7]
    places = order.shape[0]
    least = whole(0x7FFFFFFF if weight.itemsize == 4 else 0x7FFFFFFFFFFFFFFF)
    for j in range(weight.shape[0]):
        half = (
            before[row, j] + a * centers[p, j] + b * centers[p + 1, j] + c * centers[p + 2, j] + d * centers[p + 3, j]
        )
        rest = e * centers[p + 4, j] + f * centers[p + 5, j] + g * centers[p + 6, j] + h * centers[p + 7, j] + more
        product[j] = half + rest
        bound = np.sqrt(max(half + rest, zero)) + weight[j]
        value[j] = bound
        key = whole((bits_of(bound) & whole(-places)) | order[j])
        least = key if key < least else least
    return least & (places - 1)  # type: ignore[no-any-return]


@compiled
def squared_bounds(
    x: Floats, r: int, s: int, lengths: Floats, centers: Floats, before: Floats, weight: Floats, order: Ints,
    squares: Floats,
) -> tuple[int, int]:  # fmt: skip
    """`bounds` of two states at once where no cluster weighs anything: no root is needed, each center is loaded once.

    OUT: squares (2, width), (1 − c)‖s‖² + product_j or 0, +inf in the padding.
    """
    of, whole, places = weight.dtype.type, order.dtype.type, order.shape[0]
    two, zero, p, more, most, last = of(-2), of(0), centers.shape[0] - 8, lengths[r], lengths[s], before.shape[0] - 1
    a, b, c, d = two * x[r, p], two * x[r, p + 1], two * x[r, p + 2], two * x[r, p + 3]
    e, f, g, h = two * x[r, p + 4], two * x[r, p + 5], two * x[r, p + 6], two * x[r, p + 7]
    k, m, n, o = two * x[s, p], two * x[s, p + 1], two * x[s, p + 2], two * x[s, p + 3]
    q, t, u, v = two * x[s, p + 4], two * x[s, p + 5], two * x[s, p + 6], two * x[s, p + 7]
    least = then = whole(0x7FFFFFFF if weight.itemsize == 4 else 0x7FFFFFFFFFFFFFFF)
    for j in range(weight.shape[0]):
        c0, c1, c2, c3 = centers[p, j], centers[p + 1, j], centers[p + 2, j], centers[p + 3, j]
        c4, c5, c6, c7 = centers[p + 4, j], centers[p + 5, j], centers[p + 6, j], centers[p + 7, j]
        half, rest = before[0, j] + a * c0 + b * c1 + c * c2 + d * c3, e * c4 + f * c5 + g * c6 + h * c7 + more
        squares[0, j] = max(half + rest, zero) + weight[j]
        key = whole((bits_of(max(half + rest, zero) + weight[j]) & whole(-places)) | order[j])
        least = key if key < least else least
        half, rest = before[last, j] + k * c0 + m * c1 + n * c2 + o * c3, q * c4 + t * c5 + u * c6 + v * c7 + most
        squares[1, j] = max(half + rest, zero) + weight[j]
        key = whole((bits_of(max(half + rest, zero) + weight[j]) & whole(-places)) | order[j])
        then = key if key < then else then
    return least & (places - 1), then & (places - 1)


@inlined
def least_of_row(bits: Ints, row: int) -> Any:
    """The smallest of non-negative floats in a row, given as bits, as bits."""
    least = bits[row, 0]
    for j in range(bits.shape[1]):
        least = bits[row, j] if bits[row, j] < least else least
    return least


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
