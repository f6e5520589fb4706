"""Many small k-means on a GPU: rewards of blocks of states in groups of views, and one walk over the states per view.

1. `line_kernel`: views of one coordinate. The winner is the number of middles below a state, found by halving, and
   three gaps change.
2. `clouds.cloud_kernel`: views of a few coordinates. The winner is sought among all, and a list has what changes.
3. `walk_kernel`: `views.absorb` of one state after the other; a program holds all clusters of a view in registers.
"""
# mypy: disable-error-code="no-untyped-def,no-untyped-call,untyped-decorator"

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from voronaut import views as judge
from voronaut.kernels.gpu.clouds import Cloud
from voronaut.kernels.gpu.fused import clouds
from voronaut.kernels.gpu.fused.shared import coordinate, worth
from voronaut.kernels.gpu.views import Frame, Line, Prepared, Views, power_above

FADE, RATE, CLIP = tl.constexpr(judge.FADE), tl.constexpr(judge.RATE), tl.constexpr(judge.CLIP)
CROWDED, BESIDE = tl.constexpr(judge.CROWDED), tl.constexpr(judge.BESIDE)
STATES, PROGRAMS = 128, 1056  # views of one coordinate; more programs are sought for others, which wait more
HELD = 1024  # numbers of a view that a warp holds: with more it would have to put some aside


def pay(
    prepared: Prepared, weights: Tensor, states: Tensor, good: Tensor, step_size: float, frame: Frame | None
) -> Tensor:
    """Σ_v w_v r_v, (n,)."""
    count, (block, programs) = len(prepared.columns), shared_out(prepared)
    groups = min(count, -(-programs // -(-len(states) // block)))
    return launch(prepared, weights, states, good, step_size, frame, groups=groups).sum(dim=0)


def pay_each(prepared: Prepared, states: Tensor, good: Tensor, step_size: float, frame: Frame | None) -> Tensor:
    """r_v, (V, n)."""
    count = len(prepared.columns)
    ones = torch.ones(count, dtype=torch.float32, device=states.device)
    return launch(prepared, ones, states, good, step_size, frame, groups=count)


def shared_out(prepared: Prepared) -> tuple[int, int]:
    """States of a program, and how many programs there should be at least."""
    return (STATES, PROGRAMS) if isinstance(prepared.clusters, Line) else (clouds.STATES, clouds.PROGRAMS)


def launch(
    prepared: Prepared, weights: Tensor, states: Tensor, good: Tensor, step_size: float, frame: Frame | None,
    *, groups: int,
) -> Tensor:  # fmt: skip
    """Σ w_v r_v over each group of views, (groups, n)."""
    (count, m), n, clusters = prepared.columns.shape, len(states), prepared.clusters
    out = torch.empty(groups, n, dtype=torch.float32, device=states.device)
    mean, scale, clip = frame or (None, None, 0.0)
    (block, _), x = shared_out(prepared), states.contiguous()
    grid = (-(-n // block), groups)
    given = (x, good, mean, scale, prepared.columns, weights.float().contiguous(), out)
    sizes: dict[str, Any] = {"n": n, "d": x.shape[1], "count": count, "per": -(-count // groups), "BN": block}
    sizes |= {"clip": clip, "alpha": step_size, "k": prepared.number}
    if isinstance(clusters, Line):
        wide = clusters.middles.shape[1]
        line_kernel[grid](*given, *contiguous(clusters), **sizes, W=wide, LOG=wide.bit_length() - 1, num_warps=4)
    else:
        assert isinstance(clusters, Cloud)
        _, entries, _, wide = clusters.lists.shape
        sizes |= {"m": m, "WIDTH": wide, "T": entries - 1, "UNROLL": max(1, clouds.AT_ONCE // power_above(m))}
        clouds.cloud_kernel[grid](*given, *contiguous(clusters), **sizes, num_warps=clouds.WARPS)
    return out


def contiguous(tensors: Any) -> list[Tensor]:
    """As a program reads them."""
    return [each.contiguous() for each in tensors]


@triton.jit
def line_kernel(
    X, GOOD, MEAN, SCALE, COLUMNS, WEIGHTS, OUT, CENTERS, MIDDLES, SPACING, n, d, count, per, clip, alpha,
    k: tl.constexpr, W: tl.constexpr, LOG: tl.constexpr, BN: tl.constexpr,
):  # fmt: skip
    """Rewards of BN states in some views of one coordinate. OUT: OUT (groups, n)."""
    rows, group = tl.program_id(0) * BN + tl.arange(0, BN), tl.program_id(1)
    inside = rows < n
    off = rows.to(tl.int64) * d
    total = tl.zeros((BN,), tl.float32)
    for v in range(group * per, tl.minimum(group * per + per, count)):
        x = coordinate(X, off, inside, MEAN, SCALE, tl.load(COLUMNS + v), clip)
        i = tl.zeros((BN,), tl.int32)
        for b in tl.static_range(LOG):
            half = W >> (b + 1)
            i += tl.where(tl.load(MIDDLES + v * W + i + (half - 1)) < x, half, 0)
        SPACES = SPACING + v * (k + 3) + i
        left2, left, right, right2 = tl.load(SPACES), tl.load(SPACES + 1), tl.load(SPACES + 2), tl.load(SPACES + 3)
        moved = alpha * (x - tl.load(CENTERS + v * k + i))
        left_after, right_after = left + moved, right - moved
        own = worth(tl.minimum(left_after, right_after), tl.minimum(left, right))
        below = tl.where(i > 0, worth(tl.minimum(left2, left_after), tl.minimum(left2, left)), 0.0)
        above = tl.where(i < k - 1, worth(tl.minimum(right2, right_after), tl.minimum(right2, right)), 0.0)
        total += tl.load(WEIGHTS + v) * (own + below + above)
    good = tl.load(GOOD + rows, mask=inside, other=0) != 0
    tl.store(OUT + group.to(tl.int64) * n + rows, tl.where(good, total, 0.0), mask=inside)


def update(views: Views, states: Tensor, total: Tensor, step_size: float) -> Views:
    """`views.absorb` of the first `total` of (n, d) states in all views, one state after the other."""
    (count, k, m), x = views.centers.shape, states.to(torch.float32).contiguous()
    wide, deep = power_above(k), power_above(m)
    after = [torch.empty_like(a, memory_format=torch.contiguous_format) for a in views[1:4]]
    alpha = torch.full((), step_size, dtype=torch.float64, device=x.device)
    walk_kernel[(count,)](
        x, total, views.seen, alpha, *contiguous(views[:4]), *after, x.shape[1], k=k, m=m, K=wide, M=deep,
        LOG=wide.bit_length() - 1, num_warps=min(16, max(1, wide * deep // HELD)),
    )  # fmt: skip
    centers, usage, margin = after
    return Views(views.columns, centers, usage, margin, views.seen + total)


@triton.jit
def walk_kernel(
    X, TOTAL, SEEN, ALPHA, COLUMNS, CENTERS, USAGE, MARGIN, NEW_CENTERS, NEW_USAGE, NEW_MARGIN, d,
    k: tl.constexpr, m: tl.constexpr, K: tl.constexpr, M: tl.constexpr, LOG: tl.constexpr,
):  # fmt: skip
    """The winner moves, usage fades and the winner's grows, the margin follows, a crowd is split. OUT: NEW_*.

    Ties go to the lowest rank: of one coordinate the place when sorted, which is kept while the clusters stay where
    they are in the registers; of more the index.
    """
    v, p, c = tl.program_id(0), tl.arange(0, M), tl.arange(0, K)
    here, inside, rank = p < m, c < k, c
    column = tl.load(COLUMNS + v * m + p, mask=here, other=0)
    all_here = here[:, None] & inside[None, :]
    centers = tl.load(CENTERS + (v * k + c)[None, :] * m + p[:, None], mask=all_here, other=0.0)
    usage = tl.load(USAGE + v * k + c, mask=inside, other=float("inf"))
    margin, alpha = tl.load(MARGIN + v).to(tl.float64), tl.load(ALPHA)
    total, seen = tl.load(TOTAL), tl.load(SEEN)
    x = tl.load(X + column, mask=here, other=0.0)
    for t in range(0, total):
        coming = tl.load(X + tl.minimum(t + 1, total - 1) * d + column, mask=here, other=0.0)  # already on its way
        apart = centers - x[:, None]
        far = tl.abs(tl.sum(apart, 0)) if M == 1 else tl.sqrt(tl.sum(apart * apart, 0))
        far = tl.where(inside, far, float("inf"))
        key = (far.to(tl.int32, bitcast=True).to(tl.int64) << (2 * LOG)) | (rank << LOG | c).to(tl.int64)
        first = tl.min(key, 0)  # distance, rank and index at once
        winner = (first & (K - 1)).to(tl.int32)
        mine = c == winner
        best = (first >> (2 * LOG)).to(tl.int32).to(tl.float32, bitcast=True)
        ahead = (tl.min(tl.where(mine, float("inf"), far), 0) - best).to(tl.float64)

        counts = best.to(tl.float64) / tl.where(margin > 0, margin, 1.0)
        counts = tl.where(best.to(tl.float64) < margin, counts, (best > 0).to(tl.float64))
        usage = usage * (1.0 - FADE / k)
        usage += tl.where(mine, (counts * FADE).to(usage.dtype), 0.0)
        margin = tl.where(margin == 0, ahead, margin)
        rate = tl.maximum(1.0 / (seen + t + 1).to(tl.float64), RATE)
        margin += rate * (tl.minimum(ahead, margin * CLIP) - margin)

        old = tl.sum(tl.where(mine[None, :], centers, 0.0), 1).to(tl.float64)
        center = (old + alpha * (x.to(tl.float64) - old)).to(tl.float32)
        centers = tl.where(mine[None, :], center[:, None], centers)
        if m == 1:  # noqa: SIM102  # a compile-time branch
            if ahead == 0:  # it has moved past no center but one that stands where it did
                rank = insert(rank, tl.sum(centers, 0), winner, inside, c)
        most, fewest = tl.sum(tl.where(mine, usage, 0.0), 0), tl.min(usage, 0)
        if most > fewest * CROWDED:
            least = (tl.min(tl.where(usage == fewest, rank << LOG | c, 2147483647), 0) & (K - 1)).to(tl.int32)
            wide = center.to(tl.float64)
            beside = (wide + (x.to(tl.float64) - wide) * BESIDE).to(tl.float32)
            centers = tl.where((c == least)[None, :], beside[:, None], centers)
            usage = tl.where(mine | (c == least), (most + fewest) / 2, usage)
            if m == 1:
                rank = insert(rank, tl.sum(centers, 0), least, inside, c)
        x = coming
    tl.store(NEW_CENTERS + (v * k + rank)[None, :] * m + p[:, None], centers, mask=all_here)
    tl.store(NEW_USAGE + v * k + rank, usage, mask=inside)
    tl.store(NEW_MARGIN + v, margin.to(NEW_MARGIN.dtype.element_ty))


@triton.jit
def insert(rank, values, i, inside, c):
    """Ranks after cluster i alone has another value: behind all that are less, and equal ones that it was behind."""
    own = tl.sum(tl.where(c == i, rank, 0), 0)
    value = tl.sum(tl.where(c == i, values, 0.0), 0)
    before = inside & (c != i) & ((values < value) | ((values == value) & (rank < own)))
    place = tl.sum(before.to(tl.int32), 0)
    others = rank - (rank > own).to(tl.int32)
    return tl.where(c == i, place, others + ((others >= place) & inside).to(tl.int32))
