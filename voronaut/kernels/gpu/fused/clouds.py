"""Rewards in views of a few coordinates on a GPU: `cloud_kernel`, for blocks of states in groups of views.

Each thread has its own states and walks over clusters, so nothing is summed across threads. The winner is sought among
all; what its move changes is read from the winner's list (`gpu/clouds.py`), of which a state looks at a few entries.
Entries of one rank lie side by side for all clusters: threads that look up different winners read the same few lines.
States for which a list is too short go over all clusters again.
"""
# mypy: disable-error-code="no-untyped-def,no-untyped-call,untyped-decorator"

import triton
import triton.language as tl

from voronaut.kernels.gpu.clouds import FACTS
from voronaut.kernels.gpu.fused.shared import coordinate, worth

STATES, WARPS = 128, 1  # of a program: with one warp nobody waits for another's longest list
PROGRAMS = 16896  # fewer leave processors idle: then views are shared out among more
AT_ONCE = 16  # coordinates of centers that are asked for before any is used
FACT = tl.constexpr(FACTS)


@triton.jit
def cloud_kernel(
    X, GOOD, MEAN, SCALE, COLUMNS, WEIGHTS, OUT, CENTERS, GAP, SECOND, NEAREST, END, LISTS,
    n, d, count, per, clip, alpha,
    k: tl.constexpr, m: tl.constexpr, WIDTH: tl.constexpr, T: tl.constexpr, BN: tl.constexpr, UNROLL: tl.constexpr,
):  # fmt: skip
    """Rewards of BN states in some views of m coordinates. OUT: OUT (groups, n)."""
    rows, group = tl.program_id(0) * BN + tl.arange(0, BN), tl.program_id(1)
    inside = rows < n
    off = rows.to(tl.int64) * d
    total = tl.zeros((BN,), tl.float32)
    for v in range(group * per, tl.minimum(group * per + per, count)):
        places, gaps, x = CENTERS + v * m * WIDTH, v * WIDTH, ()
        for p in tl.static_range(m):
            own = coordinate(X, off, inside, MEAN, SCALE, tl.load(COLUMNS + v * m + p), clip)
            x = x + (own,)  # type: ignore[assignment]  # noqa: RUF005
        i = winners(x, places, m, WIDTH, BN, UNROLL)
        step = ()
        for p in tl.static_range(m):
            step = step + (alpha * (x[p] - tl.load(places + p * WIDTH + i)),)  # type: ignore[assignment]  # noqa: RUF005
        gained, reach = listed(step, LISTS + v * (T + 1) * (FACT + m) * WIDTH, GAP + gaps, i, m, WIDTH, BN)
        if k - 1 > T:
            short = tl.load(END + gaps + i) < reach
            if tl.max(short.to(tl.int32), 0) > 0:
                whole = over_all(step, places, GAP + gaps, SECOND + gaps, NEAREST + gaps, i, k, m, WIDTH, BN)
                gained = tl.where(short, whole, gained)
        total += tl.load(WEIGHTS + v) * gained
    good = tl.load(GOOD + rows, mask=inside, other=0) != 0
    tl.store(OUT + group.to(tl.int64) * n + rows, tl.where(good, total, 0.0), mask=inside)


@triton.jit
def winners(x, CENTERS, m: tl.constexpr, WIDTH: tl.constexpr, BN: tl.constexpr, UNROLL: tl.constexpr):
    """argmin_i ‖s − μ_i‖, the lowest index on a tie, (BN,); 0 for a NaN, which must not read elsewhere."""
    best = tl.full((BN,), float("inf"), tl.float32)
    where = tl.zeros((BN,), tl.int32)
    for start in range(0, WIDTH, UNROLL):
        for u in tl.static_range(UNROLL):
            square = tl.zeros((BN,), tl.float32)
            for p in tl.static_range(m):
                apart = x[p] - tl.load(CENTERS + p * WIDTH + start + u)
                square += apart * apart
            nearer = square < best
            where = tl.where(nearer, start + u, where)
            best = tl.where(nearer, square, best)
    return where


@triton.jit
def listed(step, LISTS, GAP, i, m: tl.constexpr, WIDTH: tl.constexpr, BN: tl.constexpr):
    """What the gaps are worth after center i has moved by `step`, less before; and up to which key it looked, (BN,)."""
    square = tl.zeros((BN,), tl.float32)
    for p in tl.static_range(m):
        square += step[p] * step[p]
    far, gap = tl.sqrt(square), tl.load(GAP + i)
    HERE = LISTS + i
    least, total = entry(step, HERE, i >= 0, m, WIDTH, BN)
    reach = tl.maximum(far, tl.sqrt(least) + far - gap)
    HERE += (FACT + m) * WIDTH
    looks = tl.load(HERE) < reach
    while tl.max(looks.to(tl.int32), 0) > 0:
        near, gain = entry(step, HERE, looks, m, WIDTH, BN)
        least, total = tl.minimum(least, near), total + gain
        HERE += (FACT + m) * WIDTH
        looks = tl.load(HERE) < reach
    return total + worth(tl.sqrt(least), gap), reach


@triton.jit
def entry(step, HERE, looks, m: tl.constexpr, WIDTH: tl.constexpr, BN: tl.constexpr):
    """One entry: its squared distance to the moved center, and what its gap gains; +inf and 0 if nobody looks."""
    square = tl.zeros((BN,), tl.float32)
    for p in tl.static_range(m):
        apart = step[p] + tl.load(HERE + (FACT + p) * WIDTH, mask=looks, other=float("inf"))
        square += apart * apart
    before = tl.load(HERE + WIDTH, mask=looks, other=0.0)
    beside = tl.load(HERE + 2 * WIDTH, mask=looks, other=0.0)
    return square, tl.minimum(beside, tl.sqrt(tl.sqrt(square))) - before


@triton.jit
def over_all(
    step, CENTERS, GAP, SECOND, NEAREST, i,
    k: tl.constexpr, m: tl.constexpr, WIDTH: tl.constexpr, BN: tl.constexpr,
):  # fmt: skip
    """`listed` from all clusters."""
    least = tl.full((BN,), float("inf"), tl.float32)
    total = tl.zeros((BN,), tl.float32)
    for j in range(k):
        square = tl.zeros((BN,), tl.float32)
        for p in tl.static_range(m):
            apart = step[p] + (tl.load(CENTERS + p * WIDTH + i) - tl.load(CENTERS + p * WIDTH + j))
            square += apart * apart
        other, gap = i != j, tl.load(GAP + j)
        moved = tl.where(other, tl.sqrt(square), float("inf"))
        least = tl.minimum(least, moved)
        reach = tl.where(tl.load(NEAREST + j) == i, tl.load(SECOND + j), gap)
        total += tl.where(other, worth(tl.minimum(reach, moved), gap), 0.0)
    return total + worth(least, tl.load(GAP + i))
