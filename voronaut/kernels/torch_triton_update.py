"""The Triton program behind `torch_gpu.update`: the exact sequence of an update, a chunk of states at a time.

A few programs, all on the device at once, walk over the chunks together, each with its share of a chunk's states.
They guess winners from the clusters as they were before the chunk. Then, again and again: work out what each cluster
becomes with each state by that guess (its versions), find every state's winner among the versions that it would meet,
and tell each other. When no winner changes the guess is what one state after the other would have done: the first
state is right from the start, and each round makes at least one more right. Two rounds are usual.

Winners are all that programs tell each other, each in one word with the number of the exchange, so that reading the
words is also the waiting. Everything else each program has for itself, worked out alike by all.
"""
# mypy: disable-error-code="no-untyped-def,no-untyped-call,untyped-decorator"

import triton
import triton.language as tl

from voronaut.kernels.torch_triton import lowest


@triton.jit
def exchange(WORD, r, win, epoch, CHUNK: tl.constexpr):
    """Tell the winners of states r, and wait for those of all: (CHUNK,). OUT: WORD (2, CHUNK).

    One side is written while slower programs may still read the other; a side is written again only after all
    programs have written, and so are done with reading, the one between.
    """
    side = WORD + (epoch & 1) * CHUNK
    tl.store(side + r, (epoch.to(tl.int64) << 32) + (win + 1).to(tl.int64))
    tl.debug_barrier()
    word = tl.load(side + tl.arange(0, CHUNK), volatile=True)
    while tl.min(word >> 32, 0) < epoch:
        word = tl.load(side + tl.arange(0, CHUNK), volatile=True)
    return (word & 4294967295).to(tl.int32) - 1


@triton.jit
def squares(X, off, ok, POINTS, cols, d, WIDTH: tl.constexpr, BS: tl.constexpr, BK: tl.constexpr, U: tl.constexpr):
    """‖s − x_j‖² of a tile, from differences, with points (d, WIDTH)."""
    total = tl.zeros((BS, BK), tl.float32)
    for p in tl.range(0, d, loop_unroll_factor=U):
        s = tl.load(X + off + p, mask=ok, other=0.0)
        difference = s[:, None] - tl.load(POINTS + p * WIDTH + cols)[None, :]
        total += difference * difference
    return total


@triton.jit
def guess(
    X, off, ok, r, CT, WEIGHT, VALUE, d, WIDTH: tl.constexpr, BS: tl.constexpr, BK: tl.constexpr, U: tl.constexpr
):
    """argmin_j ‖s − μ_j‖ + κ n_j, the lowest index on a tie (Eq. 4). OUT: VALUE (CHUNK, WIDTH), what is compared."""
    best = tl.full((BS, BK), float("inf"), tl.float32)
    where = tl.zeros((BS, BK), tl.int32)
    for start in range(0, WIDTH, BK):
        cols = start + tl.arange(0, BK)
        square = squares(X, off, ok, CT, cols, d, WIDTH, BS, BK, U)
        value = tl.sqrt(square) + tl.load(WEIGHT + cols)[None, :]
        tl.store(VALUE + r[:, None] * WIDTH + cols[None, :], value)
        where = tl.where(value < best, cols[None, :], where)
        best = tl.minimum(best, value)
    _least, chosen = lowest(best, where)
    return tl.where(ok, chosen, -1)


@triton.jit
def places(win, NOTES, CHUNK: tl.constexpr, B: tl.constexpr):
    """How many states up to q chose as q did, and the next one that does (CHUNK: none). OUT: NOTES (2, CHUNK)."""
    q = tl.arange(0, CHUNK)
    tl.store(NOTES + q, win)
    tl.debug_barrier()
    m, until = tl.zeros((CHUNK,), tl.int32), tl.full((CHUNK,), CHUNK, tl.int32)
    for start in tl.range(0, CHUNK, B, num_stages=1):
        other = start + tl.arange(0, B)
        same = (win[:, None] == tl.load(NOTES + other)[None, :]) & (win >= 0)[:, None]
        m += tl.sum((same & (other[None, :] <= q[:, None])).to(tl.int32), 1)
        until = tl.minimum(until, tl.min(tl.where(same & (other[None, :] > q[:, None]), other[None, :], CHUNK), 1))
    tl.store(NOTES + CHUNK + q, m)
    tl.debug_barrier()
    return m, until


@triton.jit
def versions(
    X, first_row, good, win, i, m, CT, POWER, NOTES, VERSION, FIRST, alpha, decay, d,
    WIDTH: tl.constexpr, D: tl.constexpr, CHUNK: tl.constexpr, B: tl.constexpr, MIX: tl.constexpr,
):  # fmt: skip
    """What cluster i = win(q) becomes with state q: (1−α)^m μ_i + Σ α (1−α)^(later) s over the m that chose it so far.

    OUT: VERSION (d, CHUNK); FIRST (WIDTH,), the first state that chooses a cluster.
    """
    p, q = tl.arange(0, D), tl.arange(0, CHUNK)
    here = (win >= 0)[:, None] & (p < d)[None, :]
    new = tl.load(CT + p[None, :] * WIDTH + i[:, None], mask=here, other=0.0) * tl.load(POWER + m)[:, None]
    for start in tl.range(0, CHUNK, B, num_stages=1):
        other = start + tl.arange(0, B)
        same = (win[:, None] == tl.load(NOTES + other)[None, :]) & (other[None, :] <= q[:, None])
        behind = (m[:, None] - tl.load(NOTES + CHUNK + other)[None, :]).to(tl.float32)
        share = tl.where(same, alpha * tl.exp2(behind * decay), 0.0)
        row = (first_row + other).to(tl.int64)
        x = tl.load(X + row[:, None] * d + p[None, :], mask=(row < good)[:, None] & (p < d)[None, :], other=0.0)
        new = tl.dot(share, x, new, input_precision=MIX)
    tl.store(VERSION + p[None, :] * CHUNK + q[:, None], new, mask=here)
    tl.store(FIRST + i, q, mask=(win >= 0) & (m == 1))
    tl.debug_barrier()


@triton.jit
def winners(
    X, off, ok, r, win, until, later, VALUE, VERSION, FIRST, d,
    WIDTH: tl.constexpr, CHUNK: tl.constexpr, BS: tl.constexpr, BK: tl.constexpr, U: tl.constexpr,
):  # fmt: skip
    """Eq. 4 among clusters that no state before r chose, and the latest versions of the others."""
    q = tl.arange(0, CHUNK)
    met = (q[None, :] < r[:, None]) & (r[:, None] <= until[None, :]) & (win >= 0)[None, :]
    square = squares(X, off, ok, VERSION, q, d, CHUNK, BS, CHUNK, U)
    value = tl.where(met, tl.sqrt(square) + later[None, :], float("inf"))
    ahead, version = lowest(value, win[None, :])
    best = tl.full((BS, BK), float("inf"), tl.float32)
    where = tl.zeros((BS, BK), tl.int32)
    for start in range(0, WIDTH, BK):
        cols = start + tl.arange(0, BK)
        untouched = r[:, None] <= tl.load(FIRST + cols)[None, :]
        frozen = tl.where(untouched, tl.load(VALUE + r[:, None] * WIDTH + cols[None, :]), float("inf"))
        where = tl.where(frozen < best, cols[None, :], where)
        best = tl.minimum(best, frozen)
    least, chosen = lowest(best, where)
    chosen = tl.where((ahead < least) | ((ahead == least) & (version < chosen)), version, chosen)
    return tl.where(ok, chosen, -1)


@triton.jit
def keep(
    CT, WEIGHT, COUNTS, VERSION, i, last, later, total, d, WIDTH: tl.constexpr, D: tl.constexpr, CHUNK: tl.constexpr
):
    """The last version of each cluster is what it is after the chunk. OUT: CT, WEIGHT, COUNTS."""
    p, q = tl.arange(0, D), tl.arange(0, CHUNK)
    here = last[:, None] & (p < d)[None, :]
    new = tl.load(VERSION + p[None, :] * CHUNK + q[:, None], mask=here, other=0.0)
    tl.store(CT + p[None, :] * WIDTH + i[:, None], new, mask=here)
    tl.store(WEIGHT + i, later, mask=last)
    tl.store(COUNTS + i, total, mask=last)


@triton.jit
def update_kernel(
    X, GOOD, CT, WEIGHT, COUNTS, BASE, POWER, SCALAR, VALUE, VERSION, FIRST, NOTES, WORD, d,
    WIDTH: tl.constexpr, D: tl.constexpr, CHUNK: tl.constexpr, BS: tl.constexpr, BK: tl.constexpr, B: tl.constexpr,
    U: tl.constexpr, MIX: tl.constexpr,
):  # fmt: skip
    """Assign, move and count (Eqs. 4 to 6), state after state.

    OUT: CT (P, d, WIDTH), WEIGHT, COUNTS (P, WIDTH).
    SCALAR: step size α, balance, log₂(1 − α). FIRST (P, WIDTH) is CHUNK everywhere between rounds.
    """
    alpha, balance, decay = tl.load(SCALAR), tl.load(SCALAR + 1), tl.load(SCALAR + 2)
    base, good, me = tl.load(BASE), tl.load(GOOD), tl.program_id(0)
    CT += me * d * WIDTH
    WEIGHT += me * WIDTH
    COUNTS += me * WIDTH
    FIRST += me * WIDTH
    VERSION += me * d * CHUNK
    NOTES += me * 2 * CHUNK
    r = me * BS + tl.arange(0, BS)  # the states of a chunk that this program looks after
    epoch = tl.full((), 0, tl.int32)
    for start in range(0, good, CHUNK):
        ok = start + r < good
        off = (start + r).to(tl.int64) * d
        chosen = guess(X, off, ok, r, CT, WEIGHT, VALUE, d, WIDTH, BS, BK, U)
        epoch += 1
        win = exchange(WORD, r, chosen, epoch, CHUNK)
        changed = 1
        while changed > 0:
            i = tl.where(win >= 0, win, 0)
            m, until = places(win, NOTES, CHUNK, B)
            versions(
                X, start, good, win, i, m, CT, POWER, NOTES, VERSION, FIRST, alpha, decay, d, WIDTH, D, CHUNK, B, MIX
            )
            total = tl.load(COUNTS + i) + m
            later = balance * (total - base).to(tl.float32)
            chosen = winners(X, off, ok, r, win, until, later, VALUE, VERSION, FIRST, d, WIDTH, CHUNK, BS, BK, U)
            epoch += 1
            fresh = exchange(WORD, r, chosen, epoch, CHUNK)
            tl.store(FIRST + i, CHUNK, mask=win >= 0)
            changed = tl.sum((fresh != win).to(tl.int32), 0)
            if changed == 0:
                keep(CT, WEIGHT, COUNTS, VERSION, i, (win >= 0) & (until == CHUNK), later, total, d, WIDTH, D, CHUNK)
                tl.debug_barrier()  # the next guess reads what other warps have just kept
            win = fresh
            tl.debug_barrier()
