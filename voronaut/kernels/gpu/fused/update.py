"""One pass of online k-means (Eqs. 4 to 6), exactly the sequence, from one launch: a window of states at a time.

All programs are on the device at once and walk over the windows together. Winners are guessed from the clusters as
they were before the window. Then, again and again: each cluster's versions are worked out, what it becomes with each of
the states that chose it so far; and each state's winner is found among the versions that it would really meet. When no
winner changes the guess is what one state after the other would have done: the first state is right from the start, and
each round makes at least one more right.

A round has two halves: clusters are shared out among the programs, then blocks of states. Between halves all programs
wait for each other (`wait_for_all`); what one writes in a half, others read in the next ones only. So nothing depends
on which program is faster, and every run gives the same bits. Distances come from differences, as in the reference.
"""
# mypy: disable-error-code="no-untyped-def,no-untyped-call,untyped-decorator"

import math
from typing import NamedTuple

import torch
import triton
import triton.language as tl
from torch import Tensor

from voronaut.kernels.gpu.fused.shared import lowest
from voronaut.kernels.gpu.prepared import lay_out, pad, weights
from voronaut.kernels.gpu.tiles import Walk, update_walk
from voronaut.kernels.rules import Rules

ROW_TILE = 8192  # numbers of the table that a program transposes at once
# TABLE holds centers: first the clusters before the window, then row WIDTH + q, what state q makes of its cluster.
# LATEST says for each block of states which row each cluster is when the block begins, FIRST the first of the block's
# states that changes it (B: none), UNTIL for each state the next one that chooses as it did.
# Columns of a block: its k clusters, the versions that its B states make, and padding.


class Ledger(NamedTuple):
    """What the programs tell each other about a window, int32."""

    latest: Tensor  # (blocks, width)
    first: Tensor  # (blocks, width)
    until: Tensor  # (window,)
    last: Tensor  # (width,): the row of the last version
    added: Tensor  # (width,): how many states chose it
    win: Tensor  # (window,)
    lists: Tensor  # (programs, window): the states of one cluster
    columns: Tensor  # (programs, d, width) float32: the clusters as one block meets them
    dirty: Tensor  # (width,)
    changed: Tensor  # (4,)
    arrived: Tensor  # (1,): how often programs have begun to wait for all


def open_ledger(centers: Tensor, width: int, programs: int, w: Walk) -> Ledger:
    """One in which nothing has happened."""
    whole, window = torch.empty(0, dtype=torch.int32, device=centers.device), w.blocks * w.states
    last = torch.arange(width, dtype=torch.int32, device=centers.device)
    return Ledger(
        last.repeat(w.blocks, 1), whole.new_full((w.blocks, width), w.states), whole.new_empty(window), last,
        whole.new_zeros(width), whole.new_empty(window), whole.new_empty(programs, window),
        centers.new_empty(programs, centers.shape[1], width), whole.new_full((width,), -1),
        whole.new_full((4,), window), whole.new_zeros(1),
    )  # fmt: skip


def programs_on(states: Tensor, per_processor: int) -> int:
    """As many programs as run at once; the interpreter runs one after the other, so 1."""
    if not states.is_cuda:
        return 1
    return per_processor * torch.cuda.get_device_properties(states.device).multi_processor_count


def update(
    centers: Tensor, counts: Tensor, states: Tensor, good: Tensor, rules: Rules, walk: Walk | None = None
) -> tuple[Tensor, Tensor]:
    """Assign, move and count (Eqs. 4 to 6) the first `good` of (n, d) states, one after the other."""
    (k, d), w = centers.shape, walk or update_walk(centers.shape[0], centers.shape[1], len(states))
    width, many = -(-(k + w.states) // w.clusters) * w.clusters, programs_on(states, w.programs)
    rows, deep = width + w.blocks * w.states, max(16, 1 << (d - 1).bit_length())
    table, numbers = lay_out(centers, rows, deep), pad(counts, width, 0)
    weight = pad(weights(counts, rules.balance, centers.dtype), rows, math.inf)
    scalars = torch.stack([torch.full((), v, dtype=torch.float64, device=centers.device) for v in rules[:2]])
    # A cooperative launch runs all programs at once or fails: they never wait for one that has not begun.
    update_kernel[(many,)](
        states.contiguous(), good, table, weight, numbers, counts.min(), scalars,
        *open_ledger(centers, width, many, w), k, d, WIDTH=width, D=deep, BLOCKS=w.blocks, B=w.states,
        BK=w.clusters, G=w.group, R=max(16, min(w.clusters, ROW_TILE // deep)), U=w.unroll, num_warps=w.warps,
        num_stages=1, launch_cooperative_grid=True,
    )  # fmt: skip
    return table[:k, :d].contiguous(), numbers[:k]


@triton.jit
def update_kernel(
    X, GOOD, TABLE, WEIGHT, COUNTS, BASE, SCALAR, LATEST, FIRST, UNTIL, LAST, ADDED, WIN, LIST, COLUMNS,
    DIRTY, CHANGED, ARRIVED, k, d,
    WIDTH: tl.constexpr, D: tl.constexpr, BLOCKS: tl.constexpr, B: tl.constexpr, BK: tl.constexpr, G: tl.constexpr,
    R: tl.constexpr, U: tl.constexpr,
):  # fmt: skip
    """Assign, move and count (Eqs. 4 to 6), state after state. OUT: TABLE (WIDTH + BLOCKS · B, D), COUNTS (WIDTH,).

    SCALAR: step size α, balance, float64. CHANGED (4,), the first state whose winner changed in a round; a slot is
    cleared two rounds ahead, when nobody reads it any more. DIRTY (WIDTH,) holds the round in which a cluster's states
    changed.
    """
    alpha, balance = tl.load(SCALAR), tl.load(SCALAR + 1)
    base, good = tl.load(BASE), tl.load(GOOD)
    me, programs = tl.program_id(0), tl.num_programs(0)
    LIST += me * BLOCKS * B
    COLUMNS += me.to(tl.int64) * d * WIDTH
    epoch = tl.full((), 0, tl.int32)
    waits = tl.full((), 0, tl.int32)
    for start in tl.range(0, good, BLOCKS * B, num_stages=1):
        for i in tl.range(me, k, programs, num_stages=1):
            begin(i, TABLE, WEIGHT, COUNTS, LAST, ADDED, LATEST, FIRST, d, WIDTH, D, BLOCKS, B)
        for b in tl.range(me, BLOCKS, programs, num_stages=1):
            tl.store(WIN + b * B + tl.arange(0, B), tl.full((B,), -1, tl.int32))
        waits = wait_for_all(ARRIVED, waits)
        first = tl.full((), 0, tl.int32)
        while first < BLOCKS * B:
            if me == 0:
                tl.store(CHANGED + (epoch + 2) % 4, BLOCKS * B)
            for b in tl.range(me, BLOCKS, programs, num_stages=1):
                if b * B + B > first:  # states before the first that changed are settled
                    choose(
                        b, k, X, start, good, WIN, TABLE, WEIGHT, LATEST, FIRST, UNTIL, COLUMNS, DIRTY, CHANGED, epoch,
                        d, WIDTH, D, B, BK, R, U,
                    )  # fmt: skip
            waits = wait_for_all(ARRIVED, waits)
            first = tl.load(CHANGED + epoch % 4, volatile=True)
            if first < BLOCKS * B:
                for i in tl.range(me, k, programs, num_stages=1):
                    if tl.load(DIRTY + i) == epoch:
                        number = collect(i, WIN, LIST, LATEST, FIRST, LAST, ADDED, WIDTH, BLOCKS, B)
                        versions(
                            i, number, X, start, TABLE, WEIGHT, COUNTS, LIST, UNTIL, alpha, balance, base, d,
                            WIDTH, D, G,
                        )  # fmt: skip
                        tl.debug_barrier()  # the list is used again
                waits = wait_for_all(ARRIVED, waits)
            epoch += 1
    for i in tl.range(me, k, programs, num_stages=1):
        begin(i, TABLE, WEIGHT, COUNTS, LAST, ADDED, LATEST, FIRST, d, WIDTH, D, BLOCKS, B)


@triton.jit
def wait_for_all(ARRIVED, waits):
    """Wait until all programs are here; what they wrote before is seen after. `waits` counts, from 0. OUT: ARRIVED."""
    tl.debug_barrier()
    # One thread of a program asks, and tells the others: had each its own look, they could see different things.
    tl.atomic_add(ARRIVED, 1, sem="acq_rel")
    wanted = (waits + 1) * tl.num_programs(0)
    while tl.atomic_add(ARRIVED, 0, sem="acquire") < wanted:
        pass
    tl.debug_barrier()
    return waits + 1


@triton.jit
def begin(
    i, TABLE, WEIGHT, COUNTS, LAST, ADDED, LATEST, FIRST, d,
    WIDTH: tl.constexpr, D: tl.constexpr, BLOCKS: tl.constexpr, B: tl.constexpr,
):  # fmt: skip
    """A cluster is what its last version was, and no state of the new window has chosen it. OUT: all but d."""
    p, b = tl.arange(0, D), tl.arange(0, BLOCKS)
    row, added = tl.load(LAST + i), tl.load(ADDED + i)
    center, weight, count = tl.load(TABLE + row * D + p), tl.load(WEIGHT + row), tl.load(COUNTS + i)
    tl.debug_barrier()  # all warps have read what is now overwritten
    tl.store(TABLE + i * D + p, center)
    tl.store(WEIGHT + i, weight)
    tl.store(COUNTS + i, count + added)
    tl.store(LAST + i, i)
    tl.store(ADDED + i, 0)
    tl.store(LATEST + b * WIDTH + i, tl.zeros((BLOCKS,), tl.int32) + i)
    tl.store(FIRST + b * WIDTH + i, tl.full((BLOCKS,), B, tl.int32))
    tl.debug_barrier()


@triton.jit
def collect(
    i, WIN, LIST, LATEST, FIRST, LAST, ADDED, WIDTH: tl.constexpr, BLOCKS: tl.constexpr, B: tl.constexpr
):  # fmt: skip
    """How many states chose cluster i, and which, in order. OUT: LIST (BLOCKS · B,), LATEST, FIRST, LAST, ADDED."""
    b, j = tl.arange(0, BLOCKS), tl.arange(0, B)
    q = b[:, None] * B + j[None, :]
    mine = (tl.load(WIN + q) == i).to(tl.int32)
    here = tl.sum(mine, 1)
    before = tl.cumsum(here, 0) - here
    tl.store(LIST + before[:, None] + tl.cumsum(mine, 1) - 1, q, mask=mine > 0)
    tl.debug_barrier()
    number = tl.sum(here, 0)
    latest = WIDTH + tl.load(LIST + before - 1, mask=before > 0, other=0)
    tl.store(LATEST + b * WIDTH + i, tl.where(before > 0, latest, i))
    tl.store(FIRST + b * WIDTH + i, tl.load(LIST + before, mask=here > 0, other=0) - b * B, mask=here > 0)
    tl.store(FIRST + b * WIDTH + i, tl.full((BLOCKS,), B, tl.int32), mask=here == 0)
    tl.store(LAST + i, tl.where(number > 0, WIDTH + tl.load(LIST + tl.maximum(number - 1, 0)), i))
    tl.store(ADDED + i, number)
    return number


@triton.jit
def versions(
    i, number, X, start, TABLE, WEIGHT, COUNTS, LIST, UNTIL, alpha, balance, base, d,
    WIDTH: tl.constexpr, D: tl.constexpr, G: tl.constexpr,
):  # fmt: skip
    """α s + (1 − α) μ_i for each state of LIST in turn (Eq. 5), rounded once each. OUT: TABLE, WEIGHT, UNTIL."""
    p, g = tl.arange(0, D), tl.arange(0, G)
    count, center = tl.load(COUNTS + i) - base, tl.load(TABLE + i * D + p)
    for done in tl.range(0, number, G, num_stages=1):
        inside = done + g < number
        q = tl.load(LIST + done + g, mask=inside, other=0)
        tl.store(UNTIL + q, tl.load(LIST + done + g + 1, mask=done + g + 1 < number, other=2147483647), mask=inside)
        weight = balance * (count + done + 1 + g).to(tl.float64)
        tl.store(WEIGHT + WIDTH + q, weight.to(tl.float32), mask=inside)
        states = ()  # all of them are on their way before the first is used
        for t in tl.static_range(G):
            r = tl.load(LIST + tl.minimum(done + t, number - 1))
            x = tl.load(X + (start + r).to(tl.int64) * d + p, mask=p < d, other=0.0)
            states = states + (x,)  # type: ignore[assignment]  # noqa: RUF005
        for t in tl.static_range(G):
            center = (alpha * states[t].to(tl.float64) + (1.0 - alpha) * center.to(tl.float64)).to(tl.float32)
            r = tl.load(LIST + tl.minimum(done + t, number - 1))
            tl.store(TABLE + (WIDTH + r) * D + p, center, mask=tl.full((D,), t, tl.int32) < number - done)


@triton.jit
def choose(
    b, k, X, start, good, WIN, TABLE, WEIGHT, LATEST, FIRST, UNTIL, COLUMNS, DIRTY, CHANGED, epoch, d,
    WIDTH: tl.constexpr, D: tl.constexpr, B: tl.constexpr, BK: tl.constexpr, R: tl.constexpr, U: tl.constexpr,
):  # fmt: skip
    """New winners of a block of states. OUT: WIN, DIRTY (clusters to be collected), CHANGED."""
    r = tl.arange(0, B)
    q = start + b * B + r
    ok, off = q < good, q.to(tl.int64) * d
    lay_columns(b, k, TABLE, LATEST, COLUMNS, d, WIDTH, D, B, R)
    chosen = nearest(b, k, X, off, ok, COLUMNS, WEIGHT, WIN, LATEST, FIRST, UNTIL, d, WIDTH, B, BK, U)
    chosen = tl.where(ok, tl.minimum(chosen, k - 1), -1)  # a NaN has no nearest, and must not write elsewhere
    old = tl.load(WIN + b * B + r)
    tl.debug_barrier()  # all warps have read the old winners
    tl.store(WIN + b * B + r, chosen)
    other = chosen != old
    tl.store(DIRTY + old, epoch, mask=other & (old >= 0))
    tl.store(DIRTY + chosen, epoch, mask=other)
    change = tl.min(tl.where(other, b * B + r, 2147483647), 0)
    if change < 2147483647:
        tl.atomic_min(CHANGED + epoch % 4, change)


@triton.jit
def lay_columns(
    b, k, TABLE, LATEST, COLUMNS, d, WIDTH: tl.constexpr, D: tl.constexpr, B: tl.constexpr, R: tl.constexpr
):
    """The columns of a block, each dimension in one piece. OUT: COLUMNS (d, WIDTH)."""
    p = tl.arange(0, D)
    for start in tl.range(0, WIDTH, R, num_stages=1):
        cols = start + tl.arange(0, R)
        place = rows_of(cols, b, k, LATEST, WIDTH, B)[:, None] * D + p[None, :]
        rows = tl.load(TABLE + place, mask=(p < d)[None, :], other=0.0)
        tl.store(COLUMNS + p[None, :] * WIDTH + cols[:, None], rows, mask=(p < d)[None, :])
    tl.debug_barrier()


@triton.jit
def rows_of(cols, b, k, LATEST, WIDTH: tl.constexpr, B: tl.constexpr):
    """Where in the table the columns of a block are."""
    made = (cols >= k) & (cols < k + B)
    return tl.where(made, WIDTH + b * B + (cols - k), tl.load(LATEST + b * WIDTH + cols))


@triton.jit
def seen(cols, b, k, WIN, FIRST, UNTIL, WIDTH: tl.constexpr, B: tl.constexpr):
    """Whose columns these are, and which states of the block meet them: those after `low` and up to `high`.

    A cluster as the block begins is met until one of its states changes it; a version after the state that made it,
    until the next.
    """
    made, v = (cols >= k) & (cols < k + B), cols - k
    win = tl.load(WIN + b * B + v, mask=made, other=-1)
    high = tl.load(UNTIL + b * B + v, mask=made & (win >= 0), other=0) - b * B
    high = tl.where(made, tl.where(win >= 0, high, -1), -1)
    first = tl.load(FIRST + b * WIDTH + cols, mask=cols < k, other=-1)
    return tl.where(made, win, cols), tl.where(made, v, -1), tl.where(cols < k, first, high)


@triton.jit
def nearest(
    b, k, X, off, ok, COLUMNS, WEIGHT, WIN, LATEST, FIRST, UNTIL, d,
    WIDTH: tl.constexpr, B: tl.constexpr, BK: tl.constexpr, U: tl.constexpr,
):  # fmt: skip
    """Eq. 4 among what each state of a block meets, the lowest index on a tie."""
    r = tl.arange(0, B)[:, None]
    best = tl.full((B, BK), float("inf"), tl.float32)
    where = tl.full((B, BK), 2147483647, tl.int32)
    for start in tl.range(0, WIDTH, BK, num_stages=1):
        cols = start + tl.arange(0, BK)
        square = squares(X, off, ok, COLUMNS, cols, d, WIDTH, B, BK, U)
        name, low, high = seen(cols, b, k, WIN, FIRST, UNTIL, WIDTH, B)
        weight = tl.load(WEIGHT + rows_of(cols, b, k, LATEST, WIDTH, B))
        met = (r > low[None, :]) & (r <= high[None, :])
        value = tl.where(met, tl.sqrt(square) + weight[None, :], float("inf"))
        where = tl.where((value < best) | ((value == best) & (name[None, :] < where)), name[None, :], where)
        best = tl.minimum(best, value)
    _least, chosen = lowest(best, where)
    return chosen


@triton.jit
def squares(X, off, ok, COLUMNS, cols, d, WIDTH: tl.constexpr, B: tl.constexpr, BK: tl.constexpr, U: tl.constexpr):
    """‖s − x_j‖² of a tile, from differences."""
    total = tl.zeros((B, BK), tl.float32)
    for p in tl.range(0, d, loop_unroll_factor=U):
        s = tl.load(X + off + p, mask=ok, other=0.0)
        difference = s[:, None] - tl.load(COLUMNS + p * WIDTH + cols)[None, :]
        total += difference * difference
    return total
