"""Many small k-means (`voronaut.views`) on torch tensors that stay on their device: `prepare`, `rewards`, `update`.

Plain torch does all of it, on any device and in any precision. For float32 on a GPU with Triton `fused/views.py` does,
and a single view of several coordinates is paid by the programs that the paper's clusters have.
Nothing here waits for the device. States that are not finite earn 0; an update must not be given any.
"""

import math
from typing import NamedTuple

import torch
from torch import Tensor

from voronaut.kernels.gpu import dispatch, plain
from voronaut.kernels.gpu import prepared as ready
from voronaut.kernels.gpu.clouds import Cloud, cloud
from voronaut.kernels.rules import Rules
from voronaut.views import BESIDE, CLIP, CROWDED, FADE, RATE, STEP

BLOCK = 2**22  # distances of states to the centers of one view that plain torch works out at once
HELD = 2**16  # numbers that a program can hold of a view, at most: all its centers, filled up to powers of two
MOST = 2**15  # clusters: rank and index share a word


class Views(NamedTuple):
    """V views of k clusters each; see `views.View`. Those of one coordinate are sorted."""

    columns: Tensor  # (V, m) int64: the coordinates of each
    centers: Tensor  # (V, k, m) float32 or float64
    usage: Tensor  # (V, k)
    margin: Tensor  # (V,)
    seen: Tensor  # () int64


class Frame(NamedTuple):
    """s ↦ (s − mean) · scale per coordinate, cut off at ±clip: where states are not in the centers' coordinates yet."""

    mean: Tensor  # (d,) float64
    scale: Tensor  # (d,) float64: 0 for a coordinate that counts for nothing
    clip: float


class Line(NamedTuple):
    """Clusters of one coordinate each: only the neighbours of a center feel it move."""

    centers: Tensor  # (V, k)
    middles: Tensor  # (V, W) between neighbours, +inf from k − 1 on; W is a power of two
    spacing: Tensor  # (V, k + 3) between neighbours j − 2 and j − 1, +inf where one is missing


class Prepared(NamedTuple):
    """Frozen views as `rewards` wants them."""

    columns: Tensor
    clusters: Line | Cloud | ready.Prepared  # the last: one view of several coordinates, by the paper's programs
    number: int  # k


def fused(centers: Tensor) -> bool:
    """Whether Triton does it."""
    return dispatch.wholly_fused(centers)


def fused_update(centers: Tensor) -> bool:
    """Whether Triton updates, too: a view has to fit into a program."""
    _, k, m = centers.shape
    return fused(centers) and k <= MOST and power_above(k) * power_above(m) <= HELD


def power_above(number: int) -> int:
    """The least power of two that is not below."""
    return 1 << (number - 1).bit_length()


# Making ready


def prepare(views: Views) -> Prepared:
    """Views made ready for any number of states; to be made anew after they changed."""
    count, k, m = views.centers.shape
    if m == 1:
        return Prepared(views.columns, line(views.centers[:, :, 0]), k)
    if count == 1 and fused(views.centers):
        numbers = torch.ones(k, dtype=torch.int64, device=views.centers.device)
        return Prepared(views.columns, dispatch.prepare(views.centers[0], numbers, Rules(STEP, 0.0)), k)
    return Prepared(views.columns, cloud(views.centers), k)


def prepare_again(old: Prepared, views: Views) -> None:
    """The same in the buffers of an earlier one. OUT: old."""
    dispatch.take_over(old, prepare(views))


def line(centers: Tensor) -> Line:
    """Sorted centers (V, k) with what lies between them."""
    wide, (_, k) = centers.double(), centers.shape
    middles = ready.pad((wide[:, 1:] + wide[:, :-1]) / 2, power_above(k), math.inf)
    spacing = torch.nn.functional.pad(wide.diff(dim=1), (2, 2), value=math.inf)
    return Line(centers, middles.to(centers.dtype), spacing.to(centers.dtype))


# Rewards


def rewards(
    prepared: Prepared, weights: Tensor, states: Tensor, step_size: float = STEP, frame: Frame | None = None
) -> Tensor:
    """Σ_v w_v r_v of each of (n, d) states: L after the winning center of a view has moved, less L before (Eq. 2)."""
    if isinstance(prepared.clusters, ready.Prepared):
        return weights[0].to(states.device) * whole(prepared, states, step_size, frame)
    if fused(prepared.clusters.centers) and len(states):
        from voronaut.kernels.gpu.fused import views as programs

        return programs.pay(prepared, weights, states, good_of(prepared, states, frame), step_size, frame)
    kind = prepared.clusters.centers.dtype
    parts = [weights.double() @ some for some in plain_each(prepared, states, step_size, frame)]
    return torch.cat(parts).to(kind) if parts else states.new_zeros(0, dtype=kind)


def each(prepared: Prepared, states: Tensor, step_size: float = STEP, frame: Frame | None = None) -> Tensor:
    """r_v of each of (n, d) states, (V, n)."""
    if isinstance(prepared.clusters, ready.Prepared):
        return whole(prepared, states, step_size, frame)[None]
    if fused(prepared.clusters.centers) and len(states):
        from voronaut.kernels.gpu.fused import views as programs

        return programs.pay_each(prepared, states, good_of(prepared, states, frame), step_size, frame)
    kind, parts = prepared.clusters.centers.dtype, list(plain_each(prepared, states, step_size, frame))
    return torch.cat(parts, dim=1).to(kind) if parts else states.new_zeros(len(prepared.columns), 0, dtype=kind)


def good_of(prepared: Prepared, states: Tensor, frame: Frame | None) -> Tensor:
    """Which states are finite, and not so large that their squared length overflows, (n,)."""
    kind = prepared.clusters.centers.dtype if frame is None else torch.float64
    limit = min(ready.limit_of(kind, states.shape[1]), torch.finfo(states.dtype).max)
    largest: Tensor = torch.linalg.vector_norm(states, ord=math.inf, dim=1)
    return largest <= limit


def standard(states: Tensor, good: Tensor, frame: Frame | None) -> Tensor:
    """States in the centers' coordinates, float64; 0 where they are bad."""
    wide = torch.where(good[:, None], states.double(), 0)
    if frame is None:
        return wide
    return ((wide - frame.mean) * frame.scale).clamp(-frame.clip, frame.clip)


def whole(prepared: Prepared, states: Tensor, step_size: float, frame: Frame | None) -> Tensor:
    """The only view, paid as the paper's clusters are: with balance 0 those are the same, (n,)."""
    view, good = prepared.clusters, good_of(prepared, states, frame)
    assert isinstance(view, ready.Prepared)
    rows = standard(states, good, frame)[:, prepared.columns[0]].to(view.centers.dtype)
    scalars = torch.cat([ready.number(step_size, view.scalars)[None], view.scalars[1:]])
    paid = dispatch.rewards(view._replace(scalars=scalars), rows, rows.new_zeros(rows.shape[1]))
    return torch.where(good, paid, 0)


def plain_each(prepared: Prepared, states: Tensor, step_size: float, frame: Frame | None) -> list[Tensor]:
    """`each` in plain torch and float64, some states at a time."""
    found, clusters = [], prepared.clusters
    for block in torch.split(states, max(1, BLOCK // prepared.number)) if len(states) else ():
        good = good_of(prepared, block, frame)
        rows = standard(block, good, frame).to(clusters.centers.dtype).double()
        own = rows.t()[prepared.columns].transpose(1, 2)  # (V, n, m)
        assert not isinstance(clusters, ready.Prepared)
        pay = line_rewards if isinstance(clusters, Line) else cloud_rewards
        found.append(torch.where(good, pay(clusters, own, step_size), 0))  # type: ignore[arg-type]
    return found


def line_rewards(view: Line, states: Tensor, step_size: float) -> Tensor:
    """Rewards (V, n) of (V, n, 1) states: three gaps change."""
    values, last = states[:, :, 0].contiguous(), view.centers.shape[1] - 1
    i = torch.searchsorted(view.middles.double(), values)
    left2, left, right, right2 = (view.spacing.double().gather(1, i + at) for at in range(4))
    moved = step_size * (values - view.centers.double().gather(1, i))
    left_after, right_after = left + moved, right - moved
    own = change(torch.minimum(left_after, right_after), torch.minimum(left, right))
    below = change(torch.minimum(left2, left_after), torch.minimum(left2, left))
    above = change(torch.minimum(right2, right_after), torch.minimum(right2, right))
    return own + torch.where(i > 0, below, 0) + torch.where(i < last, above, 0)


def cloud_rewards(view: Cloud, states: Tensor, step_size: float) -> Tensor:
    """Rewards (V, n) of (V, n, m) states, over all clusters of one view after the other."""
    paid = []
    for centers, gap, second, nearest, own in zip(*view[:4], states, strict=True):
        places, padding = centers.double().t(), nearest < 0
        chosen = plain.first_min(plain.distances(own, places, torch.float64).masked_fill(padding, math.inf))
        center = places[chosen]
        moved = plain.distances(center + step_size * (own - center), places, torch.float64)
        moved = moved.masked_fill(padding, math.inf).scatter_(1, chosen[:, None], math.inf)
        reach = torch.where(nearest == chosen[:, None], second, gap).double()
        changed = change(torch.minimum(reach, moved), gap.double())
        changed.scatter_(1, chosen[:, None], change(moved.amin(dim=1), gap.double()[chosen])[:, None])
        paid.append(changed.sum(dim=1))
    return torch.stack(paid)


def change(after: Tensor, before: Tensor) -> Tensor:
    """√after − √before; what did not change is worth exactly nothing."""
    return torch.where(after == before, 0, after.clamp(min=0).sqrt() - before.sqrt())


# Updates


def update(views: Views, states: Tensor, total: Tensor, step_size: float = STEP) -> Views:
    """`views.absorb` of the first `total` (a tensor) of (n, d) states in all views, one state after the other."""
    total = total.clamp(max=len(states))
    if fused_update(views.centers) and len(states):
        from voronaut.kernels.gpu.fused import views as programs

        return programs.update(views, states, total, step_size)
    return plain_update(views, states, total, step_size)


def plain_update(views: Views, states: Tensor, total: Tensor, step_size: float = STEP) -> Views:
    """`update`, state by state in plain torch; winners and moves in float64, rounded once."""
    real = torch.arange(len(states), device=states.device) < total
    for place, state in enumerate(torch.where(real[:, None], states.to(views.centers.dtype), 0)):
        after = absorb(views, state[views.columns].double(), step_size)
        views = Views(*(torch.where(real[place], new, old) for new, old in zip(after, views, strict=True)))
    return views


def absorb(views: Views, own: Tensor, step_size: float) -> Views:
    """`views.absorb` of one state, (V, m), in all views."""
    centers, k, seen = views.centers.double(), views.usage.shape[1], views.seen + 1
    far = (centers - own[:, None]).square().sum(dim=2).sqrt()
    winner = plain.first_min(far)[:, None]
    best = far.gather(1, winner)[:, 0]
    ahead = far.scatter(1, winner, math.inf).amin(dim=1) - best
    counts = torch.where(best < views.margin, best / views.margin, (best > 0).double())
    usage = (1 - FADE / k) * views.usage
    usage = usage.scatter_add(1, winner, (FADE * counts).to(usage.dtype)[:, None])
    margin = torch.where(views.margin == 0, ahead, views.margin.double())
    margin = margin + (1 / seen.double()).clamp(min=RATE) * (torch.minimum(ahead, CLIP * margin) - margin)
    here = (torch.arange(k, device=own.device) == winner)[:, :, None]
    moved = torch.where(here, centers + step_size * (own[:, None] - centers), centers).to(views.centers.dtype)
    return ordered(split(Views(views.columns, moved, usage, margin.to(views.margin.dtype), seen), winner, own))


def split(views: Views, host: Tensor, own: Tensor) -> Views:
    """`views.split`: where u_i > 4 min u the least used cluster of a view joins i, (V, 1)."""
    least = plain.first_min(views.usage)[:, None]
    most, fewest = (views.usage.gather(1, which) for which in (host, least))
    crowded, index = most > CROWDED * fewest, torch.arange(views.usage.shape[1], device=own.device)
    center = views.centers.double().take_along_dim(host[:, :, None], 1)
    beside = (center + BESIDE * (own[:, None] - center)).to(views.centers.dtype)
    centers = torch.where((crowded & (index == least))[:, :, None], beside, views.centers)
    usage = torch.where(crowded & ((index == least) | (index == host)), (most + fewest) / 2, views.usage)
    return views._replace(centers=centers, usage=usage)


def ordered(views: Views) -> Views:
    """`views.ordered`: those of one coordinate sorted by it, equal ones as they were."""
    if views.centers.shape[2] > 1:
        return views
    values, order = views.centers[:, :, 0].sort(dim=1, stable=True)
    return views._replace(centers=values[:, :, None], usage=views.usage.gather(1, order))
