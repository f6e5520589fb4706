"""Σ f(gaps after) − Σ f(gaps before) (Eq. 2) from short lists: a Triton program and its launcher.

It visits only the clusters that matter to the moved winner; frozen clusters have short lists of them, sorted, so that a
bound says when to stop. No n×k matrix is ever written.
"""
# mypy: disable-error-code="no-untyped-def,no-untyped-call,untyped-decorator"

import torch
import triton
import triton.language as tl

from voronaut.kernels.gpu.fused.shared import concave, edge_step, put_off, some_rows, states_tile, step_tile
from voronaut.kernels.gpu.fused.winners import Batch, first_number
from voronaut.kernels.gpu.prepared import Prepared
from voronaut.kernels.gpu.tiles import Tiles, depth

HELD = 32  # dimensions of a state that the lists keep in registers


def pay_short(p: Prepared, batch: Batch, t: Tiles) -> None:
    """Rewards from short lists; states for which these are too short are put off. OUT: paid, winners, hard, many."""
    (n, d), whole, lists = batch.states.shape, p.rows.shape[1], p.lists
    deep = depth(d)
    held = deep.product if deep.product <= HELD else min(deep.product & -deep.product, HELD)
    lanes = min(t.short_dims, held)
    facts = p.facts.view(torch.int64) if p.facts.dtype == torch.float32 else p.facts
    short_kernel[(-(-n // (t.short_groups * t.short_states)),)](
        batch.states, batch.paid, batch.winners, batch.hard, first_number(batch), batch.shift, p.rows, facts, p.before,
        lists.others, lists.keys, p.scalars, n, stride=batch.states.stride(0), d=d, D=whole, DC=lanes, DH=held,
        DP=deep.product, E=deep.edge, BN=t.short_states, G=t.short_groups, T=lists.keys.shape[1] - 1,
        FULL=n >= t.short_groups * t.short_states, LOG=p.log, num_warps=t.short_warps,
    )  # fmt: skip


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
def two_facts(FACTS, j, which: tl.constexpr):
    """Two numbers of each cluster that stand side by side: by one load where they are float32."""
    if FACTS.dtype.element_ty == tl.int64:
        both = tl.load(FACTS + 2 * j + which)
        one = both.to(tl.int32).to(tl.float32, bitcast=True)
        other = (both >> 32).to(tl.int32).to(tl.float32, bitcast=True)
    else:
        one, other = tl.load(FACTS + 4 * j + 2 * which), tl.load(FACTS + 4 * j + 2 * which + 1)
    return one, other
