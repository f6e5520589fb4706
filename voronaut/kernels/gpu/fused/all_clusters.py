"""The rewards of states whose short lists are too short, over all clusters: two Triton programs and their launchers.

1. `product_kernel`, for most of them in many dimensions:
   ‖μ̃ − μ_j‖² = ‖μ_i − μ_j‖² + α²‖v‖² − 2α v·(μ_j − μ_i), v = s − μ_i, with v·μ_j from tensor cores; α makes their
   error small.
2. `hard_kernel` does the rest again from differences: winners in doubt, and moved centers that come close to another.
"""
# mypy: disable-error-code="no-untyped-def,no-untyped-call,untyped-decorator"

import math

import triton
import triton.language as tl

from voronaut.kernels.gpu.fused.shared import concave, edge, edge_step, product, put_off, some_columns, step_tile
from voronaut.kernels.gpu.fused.winners import Batch, assign_direct, product_rounding
from voronaut.kernels.gpu.prepared import Prepared
from voronaut.kernels.gpu.tiles import Tiles, depth

LONG_PROGRAMS = 1056  # that share what was put off, however much it is: the host does not know
HARD_PROGRAMS = 528
HARD_DIMS = 4  # that are loaded at once where differences are taken


def pay_long(p: Prepared, batch: Batch, t: Tiles) -> None:
    """Rewards of the states in `hard`, over all clusters by products. OUT: paid, again, many."""
    if batch.hard is batch.again:
        return
    (n, d), width, deep = batch.states.shape, len(p.rows), depth(batch.states.shape[1])
    product_kernel[(min(LONG_PROGRAMS, -(-n // t.long_states)),)](
        batch.states, batch.paid, batch.winners, batch.hard, batch.again, batch.many, batch.shift, p.middle, p.rows,
        p.high, p.low, p.edges, p.pairs, p.weight, p.gap, p.second, p.nearest, p.before, p.scalars,
        product_rounding(deep.sums), stride=batch.states.stride(0), d=d, WIDTH=width, D=deep.whole, DC=deep.first,
        DT=deep.tail, DP=deep.product, E=deep.edge, BN=t.long_states, BK=math.gcd(width, t.long_clusters), LOG=p.log,
        PEEL=t.long_peel, num_warps=t.long_warps, num_stages=t.long_stages,
    )  # fmt: skip


def pay_hard(p: Prepared, batch: Batch) -> None:
    """Rewards of the states in `again`, over all clusters from differences. OUT: paid."""
    (n, d), width = batch.states.shape, len(p.rows)
    hard_kernel[(min(HARD_PROGRAMS, -(-n // 16)),)](
        batch.states, batch.paid, batch.again, batch.many, batch.shift, p.columns, p.weight, p.gap, p.second, p.nearest,
        p.before, p.scalars, stride=batch.states.stride(0), d=d, WIDTH=width, BN=16, BK=128, U=HARD_DIMS, LOG=p.log,
        num_warps=4,
    )  # fmt: skip


@triton.jit
def product_kernel(
    X, OUT, WIN, LIST, AGAIN, NUMBER, SHIFT, MIDDLE, C, HIGH, LOW, EDGES, PAIRS, WEIGHT, GAP, SECOND, NEAREST,
    BEFORE, SCALAR, rounding, stride: tl.constexpr, d: tl.constexpr,
    WIDTH: tl.constexpr, D: tl.constexpr, DC: tl.constexpr, DT: tl.constexpr, DP: tl.constexpr, E: tl.constexpr,
    BN: tl.constexpr, BK: tl.constexpr, LOG: tl.constexpr, PEEL: tl.constexpr,
):  # fmt: skip
    """The rewards of the states in LIST over all clusters, from products. OUT: OUT (n,), AGAIN (n,), NUMBER (2,).

    `rounding` bounds the error of a product of unit vectors.
    """
    alpha, balance, floor, radius = tl.load(SCALAR), tl.load(SCALAR + 1), tl.load(SCALAR + 2), tl.load(SCALAR + 4)
    unit = tl.load(SCALAR + 6)
    number = tl.load(NUMBER)
    for begin in range(tl.program_id(0) * BN, number, tl.num_programs(0) * BN):
        ok = begin + tl.arange(0, BN) < number
        rows = tl.load(LIST + begin + tl.arange(0, BN), mask=ok, other=0)
        off = rows.to(tl.int64) * stride
        i = tl.where(ok, -3 - tl.load(WIN + rows, mask=ok, other=-3), 0)
        after = tl.load(WEIGHT + i) + balance
        v = step_tile(X, off, ok, SHIFT, C, i, 0, d, D, DC)
        square, own = tl.sum(v * v, 1), own_product(v, C, MIDDLE, i, 0, d, D, DC)
        for p in tl.range(DC, DP, DT, num_stages=1):
            rest = step_tile(X, off, ok, SHIFT, C, i, p, d, D, DT)
            square += tl.sum(rest * rest, 1)
            own += own_product(rest, C, MIDDLE, i, p, d, D, DT)
        e0 = edge_step(X, off, ok, SHIFT, C, i, 0, d, D, DP)
        e1 = edge_step(X, off, ok, SHIFT, C, i, 1, d, D, DP)
        e2 = edge_step(X, off, ok, SHIFT, C, i, 2, d, D, DP)
        square += e0 * e0 + e1 * e1 + e2 * e2
        own = own_edge(own, e0, e1, e2, C, MIDDLE, i, D, DP, E)
        size, shrink = power_below(tl.sqrt(square))
        v, e0, e1, e2 = v * shrink[:, None], e0 * shrink, e1 * shrink, e2 * shrink
        m = alpha * tl.sqrt(square)
        fixed, steep = m * m + 2.0 * alpha * own, -2.0 * alpha * size * unit
        total = tl.zeros((BN, BK), tl.float32)
        least = tl.full((BN, BK), float("inf"), tl.float32)
        close = least
        if PEEL:  # as for winners
            close, least, total = pay_block(
                v, X, off, ok, SHIFT, C, HIGH, LOW, EDGES, PAIRS, WEIGHT, GAP, SECOND, NEAREST, i, e0, e1, e2,
                shrink, after, fixed, steep, floor, 0, d, WIDTH, D, DC, DT, DP, E, BN, BK, LOG,
            )  # fmt: skip
        for start in range(BK if PEEL else 0, WIDTH, BK):
            squares, near, gains = pay_block(
                v, X, off, ok, SHIFT, C, HIGH, LOW, EDGES, PAIRS, WEIGHT, GAP, SECOND, NEAREST, i, e0, e1, e2,
                shrink, after, fixed, steep, floor, start, d, WIDTH, D, DC, DT, DP, E, BN, BK, LOG,
            )  # fmt: skip
            close, least, total = tl.minimum(close, squares), tl.minimum(least, near), total + gains
        paid = concave(tl.min(least, 1) - after, floor, LOG) - tl.load(BEFORE + i) + tl.sum(total, 1)
        tl.store(OUT + rows, paid, mask=ok)
        # Squares must be large beside their error, 2¹⁵ times, and the move must not have come from much farther.
        needed = tl.maximum(32768.0 * (4.0 * rounding * radius) * m, m * m / 48.0)
        put_off(AGAIN, NUMBER + 1, rows, ok & (tl.min(close, 1) < needed))


@triton.jit
def pay_block(
    v, X, off, ok, SHIFT, C, HIGH, LOW, EDGES, PAIRS, WEIGHT, GAP, SECOND, NEAREST, i, e0, e1, e2, shrink,
    after, fixed, steep, floor, start, d,
    WIDTH: tl.constexpr, D: tl.constexpr, DC: tl.constexpr, DT: tl.constexpr, DP: tl.constexpr, E: tl.constexpr,
    BN: tl.constexpr, BK: tl.constexpr, LOG: tl.constexpr,
):  # fmt: skip
    """Of a block of clusters: squared distances to the moved center, distances with weights, and what gaps gain."""
    cols = start + tl.arange(0, BK)
    cross = edge(tl.zeros((BN, BK), tl.float32), e0, e1, e2, EDGES, cols, E, WIDTH)
    cross = step_products(v, X, off, ok, SHIFT, C, HIGH, LOW, i, shrink, cols, cross, d, D, DC, DT, DP)
    pairs = tl.load(PAIRS + i[:, None] * WIDTH + cols[None, :])  # +inf at i itself and in the padding
    square = pairs + (fixed[:, None] + steep[:, None] * cross)
    moved = tl.sqrt(tl.abs(square))  # where it is negative it is too close, and done again
    weight = tl.load(WEIGHT + cols)
    lead = tl.where(weight < float("inf"), weight, 0.0)[None, :]
    gap, second = tl.load(GAP + cols), tl.load(SECOND + cols)
    follows = tl.load(NEAREST + cols)[None, :] == i[:, None]
    gained = tl.minimum(tl.where(follows, second[None, :], gap[None, :]), moved + (after[:, None] - lead))
    # f(gap) by the same instructions: what did not change is worth exactly nothing.
    return square, moved + lead, concave(gained, floor, LOG) - concave(gap, floor, LOG)[None, :]


@triton.jit
def step_products(
    v, X, off, ok, SHIFT, C, HIGH, LOW, i, shrink, cols, cross, d,
    D: tl.constexpr, DC: tl.constexpr, DT: tl.constexpr, DP: tl.constexpr,
):  # fmt: skip
    """`cross` + v·μ_j over the first DP dimensions, of which `v` holds DC; each v has its own unit, 1 / `shrink`."""
    place = cols[:, None] * D
    cross = product(v, HIGH, LOW, place + tl.arange(0, DC)[None, :], cross)
    if D <= 160:
        for q in tl.static_range(DC, DP, DT):
            part = step_tile(X, off, ok, SHIFT, C, i, q, d, D, DT) * shrink[:, None]
            cross = product(part, HIGH, LOW, place + (q + tl.arange(0, DT))[None, :], cross)
    else:
        for u in tl.range(DC, DP, DT, num_stages=1):
            more = step_tile(X, off, ok, SHIFT, C, i, u, d, D, DT) * shrink[:, None]
            cross = product(more, HIGH, LOW, place + (u + tl.arange(0, DT))[None, :], cross)
    return cross


@triton.jit
def own_product(v, C, MIDDLE, i, start, d, D: tl.constexpr, DC: tl.constexpr):
    """This part of v·(μ_i − middle)."""
    p = start + tl.arange(0, DC)
    own = tl.load(C + i[:, None] * D + p[None, :]) - tl.load(MIDDLE + p, mask=p < d, other=0.0)[None, :]
    return tl.sum(v * own, 1)


@triton.jit
def own_edge(own, e0, e1, e2, C, MIDDLE, i, D: tl.constexpr, DP: tl.constexpr, E: tl.constexpr):
    """v·(μ_i − middle) with these dimensions."""
    if E > 0:
        own += e0 * (tl.load(C + i * D + DP) - tl.load(MIDDLE + DP))
    if E > 1:
        own += e1 * (tl.load(C + i * D + DP + 1) - tl.load(MIDDLE + DP + 1))
    if E > 2:
        own += e2 * (tl.load(C + i * D + DP + 2) - tl.load(MIDDLE + DP + 2))
    return own


@triton.jit
def power_below(x):
    """The power of two below x ≥ 0 (at least 2⁻¹⁰⁰), and its inverse."""
    bits = tl.maximum(x, 7.888609052210118e-31).to(tl.int32, bitcast=True) & 0x7F800000
    return bits.to(tl.float32, bitcast=True), (0x7F000000 - bits).to(tl.float32, bitcast=True)


@triton.jit
def hard_kernel(
    X, OUT, AGAIN, NUMBER, SHIFT, CT, WEIGHT, GAP, SECOND, NEAREST, BEFORE, SCALAR, stride: tl.constexpr,
    d: tl.constexpr, WIDTH: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, U: tl.constexpr, LOG: tl.constexpr,
):  # fmt: skip
    """The rewards of the states in AGAIN over all clusters, from differences. OUT: OUT (n,)."""
    alpha, balance, floor = tl.load(SCALAR), tl.load(SCALAR + 1), tl.load(SCALAR + 2)
    number = tl.load(NUMBER + 1)
    for begin in range(tl.program_id(0) * BN, number, tl.num_programs(0) * BN):
        ok = begin + tl.arange(0, BN) < number
        rows = tl.load(AGAIN + begin + tl.arange(0, BN), mask=ok, other=0)
        off = rows.to(tl.int64) * stride
        _best, chosen = assign_direct(X, off, ok, SHIFT, CT, WEIGHT, d, WIDTH, BN, BK, U)
        after = tl.load(WEIGHT + chosen) + balance
        least = tl.full((BN, BK), float("inf"), CT.dtype.element_ty)
        total = tl.zeros((BN, BK), CT.dtype.element_ty)
        for start in range(0, WIDTH, BK):
            place = start + tl.arange(0, BK)
            cols = tl.minimum(place, WIDTH - 1)
            weight = tl.load(WEIGHT + cols)
            other = (cols[None, :] != chosen[:, None]) & ((weight < float("inf")) & (place < WIDTH))[None, :]
            square = moved_squares(X, off, ok, SHIFT, CT, chosen, cols, alpha, d, WIDTH, BN, BK, U)
            moved = tl.where(other, tl.sqrt(square), float("inf"))
            lead = tl.where(weight < float("inf"), weight, 0.0)[None, :]
            least = tl.minimum(least, moved + lead)
            gap, second = tl.load(GAP + cols)[None, :], tl.load(SECOND + cols)[None, :]
            follows = tl.load(NEAREST + cols)[None, :] == chosen[:, None]
            gained = tl.minimum(tl.where(follows, second, gap), moved + (after[:, None] - lead))
            # Only what changed: the rounding of f for 300 unchanged gaps is not a reward.
            change = concave(gained, floor, LOG) - tl.load(BEFORE + cols)[None, :]
            total += tl.where(other & (gained != gap), change, 0.0)
        own = concave(tl.min(least, 1) - after, floor, LOG) - tl.load(BEFORE + chosen)
        tl.store(OUT + rows, tl.sum(total, 1) + own, mask=ok)


@triton.jit
def moved_squares(
    X, off, ok, SHIFT, CT, chosen, cols, alpha, d,
    WIDTH: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, U: tl.constexpr,
):  # fmt: skip
    """‖α (s − μ_i) + μ_i − μ_j‖² of a tile, from differences."""
    total = tl.zeros((BN, BK), CT.dtype.element_ty)
    for p in range(0, d, U):
        states, centers = some_columns(X, off, ok, SHIFT, CT, p, cols, d, WIDTH, U)
        mine = ()
        for u in tl.static_range(U):
            q = tl.minimum(p + u, d - 1)
            mine = mine + (tl.load(CT + q * WIDTH + chosen),)  # type: ignore[assignment]  # noqa: RUF005
        for u in tl.static_range(U):
            step = alpha * (states[u] - mine[u])
            difference = tl.where(p + u < d, step[:, None] + (mine[u][:, None] - centers[u][None, :]), 0.0)
            total += difference * difference
    return total
