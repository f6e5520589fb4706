"""What the Triton programs share: states and centers as they load them, products on tensor cores, f, lists of states.

Scalars come in an array (step size, balance, floor of the logarithm, largest good number, largest norm of a center,
largest weight, the unit of products and its inverse), so that they keep their precision and may change on the device.
"""
# mypy: disable-error-code="no-untyped-def,no-untyped-call,untyped-decorator"

import triton
import triton.language as tl


@triton.jit
def state_column(X, off, ok, SHIFT, MIDDLE, p, CT):
    """One dimension of states: (s − reference point) − middle, if any; in another order an offset would round it."""
    s = tl.load(X + off + p, mask=ok, other=0.0).to(CT.dtype.element_ty) - tl.load(SHIFT + p)
    if MIDDLE is not None:
        s -= tl.load(MIDDLE + p)
    return s


@triton.jit
def coordinate(X, off, inside, MEAN, SCALE, column, clip):
    """One coordinate of some states, float32, in the frame if there is one."""
    x = tl.load(X + off + column, mask=inside, other=0.0)
    if MEAN is not None:  # in float64, so that neither offset nor unit costs precision
        x = (x.to(tl.float64) - tl.load(MEAN + column)) * tl.load(SCALE + column)
        x = tl.minimum(tl.maximum(x.to(tl.float32), -clip), clip)
    return x.to(tl.float32)


@triton.jit
def some_rows(X, n, stride: tl.constexpr, BN: tl.constexpr, FULL: tl.constexpr):
    """This program's BN states: their place, the first row, offsets, which are there, and which are its own.

    FULL (n ≥ BN): the last program begins earlier, so that all its states are there, and no load needs a mask.
    """
    begin, lane = tl.program_id(0) * BN, tl.arange(0, BN)
    if FULL:
        first = tl.minimum(begin, n - BN)
        inside = lane >= 0
        mine = first + lane >= begin
    else:
        first = begin
        inside = first + lane < n
        mine = inside
    return X + first.to(tl.int64) * stride, first, lane * stride, inside, mine


@triton.jit
def states_tile(X, off, ok, SHIFT, MIDDLE, start, d, DC: tl.constexpr, CT):
    """`DC` dimensions of the states, less the reference point and the middle, if any; zeros where there is nothing."""
    p = start + tl.arange(0, DC)
    inside = ok[:, None] & (p < d)[None, :]
    s = tl.load(X + off[:, None] + p[None, :], mask=inside, other=0.0).to(CT.dtype.element_ty)
    s -= tl.load(SHIFT + p, mask=p < d, other=0.0)[None, :]
    if MIDDLE is not None:
        s -= tl.load(MIDDLE + p, mask=p < d, other=0.0)[None, :]
    return tl.where(inside, s, 0.0)


@triton.jit
def some_columns(X, off, ok, SHIFT, CT, p, cols, d, WIDTH: tl.constexpr, U: tl.constexpr):
    """U dimensions of states and of clusters, all asked for before any is used; the last again beyond it."""
    states, centers = (), ()
    for u in tl.static_range(U):
        q = tl.minimum(p + u, d - 1)
        states = states + (state_column(X, off, ok, SHIFT, None, q, CT),)  # type: ignore[assignment]  # noqa: RUF005
        centers = centers + (tl.load(CT + q * WIDTH + cols),)  # type: ignore[assignment]  # noqa: RUF005
    return states, centers


@triton.jit
def lowest(best, where):
    """The least value of each row and the lowest index that has it."""
    least = tl.min(best, 1)
    return least, tl.min(tl.where(best == least[:, None], where, 2147483647), 1)


@triton.jit
def split(x):
    """x ≈ high + low to 22 bits, 11 in each, as tensor cores take them."""
    high = x.to(tl.float16)
    return high, (x - high.to(tl.float32)).to(tl.float16)


@triton.jit
def product(x, HIGH, LOW, place, cross):
    """`cross` + x·μ_j, but for low·low."""
    high, low = split(x)
    c_high, c_low = tl.trans(tl.load(HIGH + place)), tl.trans(tl.load(LOW + place))
    cross = tl.dot(low, c_high, cross)
    cross = tl.dot(high, c_low, cross)
    return tl.dot(high, c_high, cross)


@triton.jit
def edge(cross, e0, e1, e2, EDGES, cols, E: tl.constexpr, WIDTH: tl.constexpr):
    """`cross` + the products of the last E dimensions, in float32: tensor cores would take 16 for them."""
    if E > 0:
        cross += e0[:, None] * tl.load(EDGES + cols)[None, :]
    if E > 1:
        cross += e1[:, None] * tl.load(EDGES + WIDTH + cols)[None, :]
    if E > 2:
        cross += e2[:, None] * tl.load(EDGES + 2 * WIDTH + cols)[None, :]
    return cross


@triton.jit
def concave(gap, floor, LOG: tl.constexpr):
    """f(gap): √max(gap, 0), or log max(gap, floor)."""
    if LOG:  # noqa: SIM108  # a compile-time branch
        worth = tl.log(tl.maximum(gap, floor))
    else:
        worth = tl.sqrt(tl.maximum(gap, 0.0))
    return worth


@triton.jit
def worth(after, before):
    """√after − √before; what did not change is worth exactly nothing."""
    return tl.where(after == before, 0.0, concave(after, 0.0, False) - concave(before, 0.0, False))


@triton.jit
def edge_step(X, off, ok, SHIFT, C, i, e, d, D: tl.constexpr, DP: tl.constexpr):
    """s − μ_i in one of the dimensions that products leave out, zero beyond the last."""
    p = tl.minimum(DP + e, d - 1)
    v = state_column(X, off, ok, SHIFT, None, p, C) - tl.load(C + i * D + p)
    return tl.where(ok & (DP + e < d), v, 0.0)


@triton.jit
def step_tile(X, off, ok, SHIFT, C, i, start, d, D: tl.constexpr, DC: tl.constexpr):
    """`DC` dimensions of s − μ_i."""
    p = start + tl.arange(0, DC)[None, :]
    v = states_tile(X, off, ok, SHIFT, None, start, d, DC, C) - tl.load(C + i[:, None] * D + p)
    return tl.where(ok[:, None], v, 0.0)


@triton.jit
def put_off(LIST, NUMBER, rows, hard):
    """Append the rows that are `hard` to a list on the device. OUT: LIST (n,), NUMBER (1,)."""
    count = hard.to(tl.int32)
    many = tl.sum(count, 0)
    if many > 0:
        first = tl.atomic_add(NUMBER, many, sem="relaxed")  # read by later programs only
        tl.store(LIST + first + tl.cumsum(count, 0) - 1, rows, mask=hard)
