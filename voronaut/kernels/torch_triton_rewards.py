"""The Triton programs behind `torch_gpu.rewards` that pay states whose winner is known: no n×k matrix is ever written.

1. `short_kernel` visits only the clusters whose gap the moved winner can change; frozen clusters have short lists of
   them, sorted, so that a bound says when to stop.
2. `product_kernel` pays, over all clusters, the states whose lists are too short, as most are in many dimensions:
   ‖μ̃ − μ_j‖² = ‖μ_i − μ_j‖² + α²‖v‖² − 2α v·(μ_j − μ_i), v = s − μ_i, with v·μ_j from tensor cores; α makes their
   error small.
3. `hard_kernel` does the rest again from differences: winners in doubt, and moved centers that come close to another.
"""
# mypy: disable-error-code="no-untyped-def,no-untyped-call,untyped-decorator"

import triton
import triton.language as tl

from voronaut.kernels.torch_triton import assign_direct, edge, product, put_off, state_column, states_tile


@triton.jit
def moved_squares(
    X, off, ok, SHIFT, CT, chosen, cols, alpha, d, WIDTH: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr
):
    """‖α (s − μ_i) + μ_i − μ_j‖² of a tile, from differences."""
    total = tl.zeros((BN, BK), CT.dtype.element_ty)
    for p in range(d):
        s = state_column(X, off, ok, SHIFT, p, d, CT)
        own = tl.load(CT + p * WIDTH + chosen)
        step = alpha * (s - own)
        difference = step[:, None] + (own[:, None] - tl.load(CT + p * WIDTH + cols)[None, :])
        total += difference * difference
    return total


@triton.jit
def concave(gap, floor, LOG: tl.constexpr):
    """f(gap): √max(gap, 0), or log max(gap, floor)."""
    if LOG:  # noqa: SIM108  # a compile-time branch
        worth = tl.log(tl.maximum(gap, floor))
    else:
        worth = tl.sqrt(tl.maximum(gap, 0.0))
    return worth


@triton.jit
def moved_rows(
    own, step, own0, own1, own2, step0, step1, step2, X, off, ok, SHIFT, C, i, j, alpha, d,
    D: tl.constexpr, DC: tl.constexpr, DP: tl.constexpr, E: tl.constexpr,
):  # fmt: skip
    """‖μ̃_i − μ_j‖ of each state with one j of its own, from differences.

    `own` and `step` are μ_i and its move in the first DC dimensions; with numbers, in the last E.
    """
    p = tl.arange(0, DC)[None, :]
    difference = step + (own - tl.load(C + j[:, None] * D + p))
    total = tl.sum(difference * difference, 1)
    for q in tl.range(DC, DP, DC, num_stages=1):
        part = states_tile(X, off, ok, SHIFT, q, d, DC, C)
        rest = tl.load(C + i[:, None] * D + q + p)
        difference = alpha * (part - rest) + (rest - tl.load(C + j[:, None] * D + q + p))
        total += tl.sum(difference * difference, 1)
    if E > 0:
        last = step0 + (own0 - tl.load(C + j * D + DP))
        total += last * last
    if E > 1:
        last = step1 + (own1 - tl.load(C + j * D + DP + 1))
        total += last * last
    if E > 2:
        last = step2 + (own2 - tl.load(C + j * D + DP + 2))
        total += last * last
    return tl.sqrt(total)


@triton.jit
def edge_own(C, i, e: tl.constexpr, D: tl.constexpr, DP: tl.constexpr, E: tl.constexpr):
    """μ_i in one of the last E dimensions."""
    if e < E:  # noqa: SIM108 (only one branch is compiled)
        own = tl.load(C + i * D + DP + e)
    else:
        own = tl.zeros(i.shape, C.dtype.element_ty)
    return own


@triton.jit
def step_length(
    v, v0, v1, v2, X, off, ok, SHIFT, C, i, d, D: tl.constexpr, DC: tl.constexpr, DP: tl.constexpr
):  # fmt: skip
    """‖s − μ_i‖, of which `v` is the first part, and numbers the last."""
    p = tl.arange(0, DC)[None, :]
    total = tl.sum(v * v, 1) + (v0 * v0 + v1 * v1 + v2 * v2)
    for q in tl.range(DC, DP, DC, num_stages=1):
        v = states_tile(X, off, ok, SHIFT, q, d, DC, C) - tl.load(C + i[:, None] * D + q + p)
        total += tl.sum(v * v, 1)
    return tl.sqrt(total)


@triton.jit
def edge_step(X, off, ok, SHIFT, C, i, e, d, D: tl.constexpr, DP: tl.constexpr):
    """s − μ_i in one of the dimensions that products leave out, zero beyond the last."""
    p = tl.minimum(DP + e, d - 1)
    v = state_column(X, off, ok, SHIFT, p, d, C) - tl.load(C + i * D + p)
    return tl.where(ok & (DP + e < d), v, 0.0)


@triton.jit
def short_kernel(
    X, OUT, WIN, LIST, NUMBER, SHIFT, C, WEIGHT, GAP, SECOND, BEFORE, NEAR, NEAR_KEY, OPEN, OPEN_KEY, FOLLOWERS, FIRST,
    SCALAR, n, stride, d, D: tl.constexpr, DC: tl.constexpr, DP: tl.constexpr, E: tl.constexpr, BN: tl.constexpr,
    T: tl.constexpr, F: tl.constexpr, LOG: tl.constexpr,
):  # fmt: skip
    """Σ f(gaps after) − Σ f(gaps before) (Eq. 2) over the few gaps that can change. OUT: OUT, WIN, LIST, NUMBER."""
    rows = tl.program_id(0) * BN + tl.arange(0, BN)
    off, inside = rows.to(tl.int64) * stride, rows < n
    alpha, balance, floor = tl.load(SCALAR), tl.load(SCALAR + 1), tl.load(SCALAR + 2)
    win = tl.load(WIN + rows, mask=inside, other=-2)
    if tl.max(win, 0) < 0:  # bad ones earn 0, and others are paid elsewhere
        tl.store(OUT + rows, tl.zeros((BN,), OUT.dtype.element_ty), mask=inside)
        return
    ok = win >= 0
    i = tl.where(ok, win, 0)
    own = tl.load(C + i[:, None] * D + tl.arange(0, DC)[None, :])
    own0, own1, own2 = edge_own(C, i, 0, D, DP, E), edge_own(C, i, 1, D, DP, E), edge_own(C, i, 2, D, DP, E)
    v = states_tile(X, off, ok, SHIFT, 0, d, DC, C) - own
    v0 = edge_step(X, off, ok, SHIFT, C, i, 0, d, D, DP)
    v1 = edge_step(X, off, ok, SHIFT, C, i, 1, d, D, DP)
    v2 = edge_step(X, off, ok, SHIFT, C, i, 2, d, D, DP)
    step, step0, step1, step2 = alpha * v, alpha * v0, alpha * v1, alpha * v2
    m = alpha * step_length(v, v0, v1, v2, X, off, ok, SHIFT, C, i, d, D, DC, DP)  # how far the center moves
    after = tl.load(WEIGHT + i) + balance
    first = tl.load(FIRST + i, mask=ok, other=0)
    followers = tl.load(FIRST + i + 1, mask=ok, other=0) - first
    line, t_all = i * (T + 1), tl.arange(0, T)[None, :]
    # The own gap: neighbours by ‖μ_i − μ_j‖ + w_j; one that is m farther than the best found cannot be it.
    j = tl.load(NEAR + line)
    least = moved_rows(
        own, step, own0, own1, own2, step0, step1, step2, X, off, ok, SHIFT, C, i, j, alpha, d, D, DC, DP, E
    ) + tl.load(WEIGHT + j)
    keys = tl.load(NEAR_KEY + line[:, None] + t_all)
    many = tl.sum((ok[:, None] & (keys - m[:, None] < least[:, None])).to(tl.int32), 1)
    for t in range(1, tl.max(many, 0)):
        active = t < many
        j = tl.load(NEAR + line + t, mask=active, other=0)
        value = moved_rows(
            own, step, own0, own1, own2, step0, step1, step2, X, off, ok, SHIFT, C, i, j, alpha, d, D, DC, DP, E
        ) + tl.load(WEIGHT + j)
        least = tl.where(active, tl.minimum(least, value), least)
    hard = ok & (tl.load(NEAR_KEY + line + T) - m < least)
    total = concave(least - after, floor, LOG) - tl.load(BEFORE + i)
    # Gaps that the moved center may enter.
    keys = tl.load(OPEN_KEY + line[:, None] + t_all)
    many = tl.sum((ok[:, None] & (keys < m[:, None])).to(tl.int32), 1)
    for t in range(0, tl.max(many, 0)):
        active = t < many
        j = tl.load(OPEN + line + t, mask=active, other=0)
        moved = moved_rows(
            own, step, own0, own1, own2, step0, step1, step2, X, off, ok, SHIFT, C, i, j, alpha, d, D, DC, DP, E
        )
        gap = tl.load(GAP + j)
        gained = tl.minimum(gap, moved + (after - tl.load(WEIGHT + j)))
        change = concave(gained, floor, LOG) - tl.load(BEFORE + j)
        total += tl.where(active & (gained != gap), change, 0.0)
    hard = hard | (ok & (tl.load(OPEN_KEY + line + T) < m)) | (followers > F)
    # Gaps that the winner bounded before it moved: such a cluster may fall back on its second.
    for t in range(0, tl.max(tl.where(hard, 0, followers), 0)):
        active = (t < followers) & (hard == 0)
        j = tl.load(FOLLOWERS + first + t, mask=active, other=0)
        moved = moved_rows(
            own, step, own0, own1, own2, step0, step1, step2, X, off, ok, SHIFT, C, i, j, alpha, d, D, DC, DP, E
        )
        gained = tl.minimum(tl.load(SECOND + j), moved + (after - tl.load(WEIGHT + j)))
        change = concave(gained, floor, LOG) - tl.load(BEFORE + j)
        total += tl.where(active & (gained != tl.load(GAP + j)), change, 0.0)
    put_off(LIST, NUMBER, rows, hard)
    tl.store(WIN + rows, -3 - i, mask=hard)
    tl.store(OUT + rows, tl.where(ok & (hard == 0), total, 0.0), mask=inside)


@triton.jit
def step_tile(X, off, ok, SHIFT, C, i, start, d, D: tl.constexpr, DC: tl.constexpr):
    """`DC` dimensions of s − μ_i."""
    p = start + tl.arange(0, DC)[None, :]
    return tl.where(ok[:, None], states_tile(X, off, ok, SHIFT, start, d, DC, C) - tl.load(C + i[:, None] * D + p), 0.0)


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
def product_kernel(
    X, OUT, WIN, LIST, AGAIN, NUMBER, SHIFT, MIDDLE, C, CT, HIGH, LOW, PAIRS, WEIGHT, GAP, SECOND, NEAREST, BEFORE,
    SCALAR, rounding, stride, d, WIDTH: tl.constexpr, D: tl.constexpr, DC: tl.constexpr, DT: tl.constexpr,
    DP: tl.constexpr, E: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, LOG: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """The rewards of the states in LIST over all clusters, from products. OUT: OUT (n,), AGAIN (n,), NUMBER (2,).

    `rounding` bounds the error of a product of unit vectors.
    """
    alpha, balance, floor, radius = tl.load(SCALAR), tl.load(SCALAR + 1), tl.load(SCALAR + 2), tl.load(SCALAR + 4)
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
        m = alpha * tl.sqrt(square)
        fixed = m * m + 2.0 * alpha * own
        # What a squared distance must be for its error to be below 2⁻¹⁵ of it.
        least_square = 32768.0 * (4.0 * rounding * radius) * m
        least = tl.full((BN, BK), float("inf"), tl.float32)
        total = tl.zeros((BN, BK), tl.float32)
        close = tl.zeros((BN, BK), tl.int32)
        for start in range(0, WIDTH, BK):
            cols = start + tl.arange(0, BK)
            place = cols[:, None] * D
            zero = tl.zeros((BN, BK), tl.float32)
            cross = product(v, HIGH, LOW, place + tl.arange(0, DC)[None, :], zero, PRECISION)
            if D <= 160:
                for q in tl.static_range(DC, DP, DT):
                    part = step_tile(X, off, ok, SHIFT, C, i, q, d, D, DT)
                    cross = product(part, HIGH, LOW, place + (q + tl.arange(0, DT))[None, :], cross, PRECISION)
            else:
                for u in tl.range(DC, DP, DT, num_stages=1):
                    more = step_tile(X, off, ok, SHIFT, C, i, u, d, D, DT)
                    cross = product(more, HIGH, LOW, place + (u + tl.arange(0, DT))[None, :], cross, PRECISION)
            cross = edge(cross, e0, e1, e2, CT, MIDDLE, cols, d, DP, E, WIDTH)
            pairs = tl.load(PAIRS + i[:, None] * WIDTH + cols[None, :])  # +inf at i itself and in the padding
            moved_square = pairs + (fixed[:, None] - 2.0 * alpha * cross)
            close = tl.where(moved_square < tl.maximum(least_square[:, None], pairs * 0.015625), 1, close)
            moved = tl.sqrt(tl.maximum(moved_square, 0.0))
            weight = tl.load(WEIGHT + cols)
            lead = tl.where(weight < float("inf"), weight, 0.0)[None, :]
            least = tl.minimum(least, moved + lead)
            gap, second = tl.load(GAP + cols)[None, :], tl.load(SECOND + cols)[None, :]
            follows = tl.load(NEAREST + cols)[None, :] == i[:, None]
            gained = tl.minimum(tl.where(follows, second, gap), moved + (after[:, None] - lead))
            change = concave(gained, floor, LOG) - tl.load(BEFORE + cols)[None, :]
            total += tl.where(gained != gap, change, 0.0)
        paid = concave(tl.min(least, 1) - after, floor, LOG) - tl.load(BEFORE + i) + tl.sum(total, 1)
        tl.store(OUT + rows, paid, mask=ok)
        put_off(AGAIN, NUMBER + 1, rows, ok & (tl.max(close, 1) > 0))


@triton.jit
def hard_kernel(
    X, OUT, AGAIN, NUMBER, SHIFT, CT, WEIGHT, GAP, SECOND, NEAREST, BEFORE, SCALAR, stride, d,
    WIDTH: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, LOG: tl.constexpr,
):  # fmt: skip
    """The rewards of the states in AGAIN over all clusters, from differences. OUT: OUT (n,)."""
    alpha, balance, floor = tl.load(SCALAR), tl.load(SCALAR + 1), tl.load(SCALAR + 2)
    number = tl.load(NUMBER + 1)
    for begin in range(tl.program_id(0) * BN, number, tl.num_programs(0) * BN):
        ok = begin + tl.arange(0, BN) < number
        rows = tl.load(AGAIN + begin + tl.arange(0, BN), mask=ok, other=0)
        off = rows.to(tl.int64) * stride
        _best, chosen = assign_direct(X, off, ok, SHIFT, CT, WEIGHT, d, WIDTH, BN, BK)
        after = tl.load(WEIGHT + chosen) + balance
        least = tl.full((BN, BK), float("inf"), CT.dtype.element_ty)
        total = tl.zeros((BN, BK), CT.dtype.element_ty)
        for start in range(0, WIDTH, BK):
            cols = start + tl.arange(0, BK)
            weight = tl.load(WEIGHT + cols)
            other = (cols[None, :] != chosen[:, None]) & (weight < float("inf"))[None, :]
            square = moved_squares(X, off, ok, SHIFT, CT, chosen, cols, alpha, d, WIDTH, BN, BK)
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
