"""The Triton programs behind `torch_gpu.rewards` that pay states whose winner is known: no n×k matrix is ever written.

1. `short_kernel` visits only the clusters that matter to the moved winner; frozen clusters have short lists of them,
   sorted, so that a bound says when to stop.
2. `product_kernel` pays, over all clusters, the states whose lists are too short, as most are in many dimensions:
   ‖μ̃ − μ_j‖² = ‖μ_i − μ_j‖² + α²‖v‖² − 2α v·(μ_j − μ_i), v = s − μ_i, with v·μ_j from tensor cores; α makes their
   error small.
3. `hard_kernel` does the rest again from differences: winners in doubt, and moved centers that come close to another.
"""
# mypy: disable-error-code="no-untyped-def,no-untyped-call,untyped-decorator"

import triton
import triton.language as tl

from voronaut.kernels.gpu.fused.assign import (
    assign_direct,
    edge,
    product,
    put_off,
    some_columns,
    some_rows,
    state_column,
    states_tile,
)


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


@triton.jit
def concave(gap, floor, LOG: tl.constexpr):
    """f(gap): √max(gap, 0), or log max(gap, floor)."""
    if LOG:  # noqa: SIM108  # a compile-time branch
        worth = tl.log(tl.maximum(gap, floor))
    else:
        worth = tl.sqrt(tl.maximum(gap, 0.0))
    return worth


@triton.jit
def two_facts(FACTS, j, which: tl.constexpr):
    """Two numbers of each cluster that stand side by side: by one load where they are float32."""
    if FACTS.dtype.element_ty == tl.int64:
        both = tl.load(FACTS + 2 * j + which)
        one = both.to(tl.int32).to(tl.float32, bitcast=True)
        other = (both >> 32).to(tl.int32).to(tl.float32, bitcast=True)
    else:
        one, other = tl.load(FACTS + 4 * j + 2 * which), tl.load(FACTS + 4 * j + 2 * which + 1)
    return one, other


@triton.jit
def moved_rows(
    own, step, own_end, step_end, X, off, ok, SHIFT, C, i, j, end, alpha, d,
    D: tl.constexpr, DC: tl.constexpr, DH: tl.constexpr, DP: tl.constexpr, E: tl.constexpr,
):  # fmt: skip
    """‖μ̃_i − μ_j‖ of each state with one j of its own, from differences.

    `own` and `step` are μ_i and its move in the first DH dimensions, in parts of DC; `own_end` and `step_end` in the
    last E; `end` is μ_j in the first of these.
    """
    p, total = tl.arange(0, DC)[None, :], tl.zeros(j.shape, C.dtype.element_ty)
    for q in tl.static_range(0, DH, DC):
        difference = step[q // DC] + (own[q // DC] - tl.load(C + j[:, None] * D + q + p))
        total += tl.sum(difference * difference, 1)
    for u in tl.range(DH, DP, DC, num_stages=1):
        part = states_tile(X, off, ok, SHIFT, None, u, d, DC, C)
        rest = tl.load(C + i[:, None] * D + u + p)
        difference = alpha * (part - rest) + (rest - tl.load(C + j[:, None] * D + u + p))
        total += tl.sum(difference * difference, 1)
    for e in tl.static_range(E):
        if e > 0:
            end = tl.load(C + j * D + DP + e)
        last = step_end[e] + (own_end[e] - end)
        total += last * last
    return tl.sqrt(total)


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
def held(
    X, off, ok, SHIFT, C, i, alpha, d,
    D: tl.constexpr, DC: tl.constexpr, DH: tl.constexpr, DP: tl.constexpr, E: tl.constexpr, BN: tl.constexpr,
):  # fmt: skip
    """What `moved_rows` wants of the winners, and how far they move."""
    own, step, own_end, step_end = (), (), (), ()
    square = tl.zeros((BN,), C.dtype.element_ty)
    for q in tl.static_range(0, DH, DC):
        mine = tl.load(C + i[:, None] * D + q + tl.arange(0, DC)[None, :])
        v = states_tile(X, off, ok, SHIFT, None, q, d, DC, C) - mine
        own, step = own + (mine,), step + (alpha * v,)  # type: ignore[assignment]  # noqa: RUF005
        square += tl.sum(v * v, 1)
    for u in tl.range(DH, DP, DC, num_stages=1):
        rest = step_tile(X, off, ok, SHIFT, C, i, u, d, D, DC)
        square += tl.sum(rest * rest, 1)
    for e in tl.static_range(E):
        end = tl.load(C + i * D + DP + e)
        last = edge_step(X, off, ok, SHIFT, C, i, e, d, D, DP)
        own_end, step_end = own_end + (end,), step_end + (alpha * last,)  # type: ignore[assignment]  # noqa: RUF005
        square += last * last
    return own, step, own_end, step_end, alpha * tl.sqrt(square)


@triton.jit
def pay_entry(
    other, own, step, own_end, step_end, X, off, ok, SHIFT, C, FACTS, i, after, alpha, floor, d,
    D: tl.constexpr, DC: tl.constexpr, DH: tl.constexpr, DP: tl.constexpr, E: tl.constexpr, LOG: tl.constexpr,
):  # fmt: skip
    """One entry of each state's list: how near it is to the moved center, with its weight, and what its gap gains."""
    j = other >> 1
    end, weight = two_facts(FACTS, j, 0)
    gap, second = two_facts(FACTS, j, 1)
    moved = moved_rows(own, step, own_end, step_end, X, off, ok, SHIFT, C, i, j, end, alpha, d, D, DC, DH, DP, E)
    gained = tl.minimum(tl.where((other & 1) > 0, second, gap), moved + (after - weight))
    # f(gap) by the same instructions: what did not change is worth exactly nothing.
    return moved + weight, concave(gained, floor, LOG) - concave(gap, floor, LOG)


@triton.jit
def short_kernel(
    X, OUT, WIN, LIST, NUMBER, SHIFT, C, FACTS, BEFORE, OTHERS, KEYS, SCALAR, n,
    stride: tl.constexpr, d: tl.constexpr, D: tl.constexpr, DC: tl.constexpr, DH: tl.constexpr, DP: tl.constexpr,
    E: tl.constexpr, BN: tl.constexpr, G: tl.constexpr, T: tl.constexpr, FULL: tl.constexpr, LOG: tl.constexpr,
):  # fmt: skip
    """Σ f(gaps after) − Σ f(gaps before) (Eq. 2) over the few gaps that can change. OUT: OUT, WIN, LIST, NUMBER.

    G tiles of BN states, each visiting as many clusters as its neediest state. With parts of four dimensions a thread
    has a state to itself: sums need no other thread. What is loaded for each state from a place of its own costs most,
    so facts come in pairs and no key is loaded twice.
    """
    X, first, _off, _inside, mine = some_rows(X, n, stride, G * BN, FULL)
    if tl.max(tl.load(WIN + first + tl.arange(0, G * BN), mask=mine, other=-2), 0) < 0:
        return
    begin = tl.program_id(0) * (G * BN)
    alpha, balance, floor = tl.load(SCALAR), tl.load(SCALAR + 1), tl.load(SCALAR + 2)
    for group in range(G):
        lane = group * BN + tl.arange(0, BN)
        rows, off, there = first + lane, lane * stride, lane >= 0
        if FULL:
            win = tl.where(rows >= begin, tl.load(WIN + rows), -2)
        else:
            there = rows < n
            win = tl.load(WIN + rows, mask=there, other=-2)
        ok = win >= 0
        i = tl.where(ok, win, 0)
        own, step, own_end, step_end, m = held(X, off, there, SHIFT, C, i, alpha, d, D, DC, DH, DP, E, BN)
        _end, weight = two_facts(FACTS, i, 0)
        gap, _second = two_facts(FACTS, i, 1)
        after, line = weight + balance, i * (T + 1)
        # The nearest comes first. Whoever is to be nearer to the moved center was less than `reach` farther before.
        least, total = pay_entry(
            tl.load(OTHERS + line), own, step, own_end, step_end, X, off, there, SHIFT, C, FACTS, i, after, alpha,
            floor, d, D, DC, DH, DP, E, LOG,
        )  # fmt: skip
        reach = tl.maximum(m, least + m - (gap + weight))
        keys = tl.load(KEYS + line[:, None] + tl.arange(0, T + 1)[None, :])
        many = tl.sum((ok[:, None] & (keys < reach[:, None])).to(tl.int32), 1)
        hard = many > T
        many = tl.where(hard, 0, many)
        for t in range(1, tl.max(many, 0)):
            active = t < many
            near, gain = pay_entry(
                tl.load(OTHERS + line + t, mask=active, other=0), own, step, own_end, step_end, X, off, there, SHIFT, C,
                FACTS, i, after, alpha, floor, d, D, DC, DH, DP, E, LOG,
            )  # fmt: skip
            least = tl.where(active, tl.minimum(least, near), least)
            total += tl.where(active, gain, 0.0)
        total += concave(least - after, floor, LOG) - tl.load(BEFORE + i)
        put_off(LIST, NUMBER, rows, hard)
        tl.store(WIN + rows, -3 - i, mask=hard)
        tl.store(OUT + rows, total, mask=ok & (hard == 0))


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
