"""Views of several coordinates made ready: gaps, and for each cluster a list of what its move can change.

Say cluster i of a view wins and moves by m toward a state. Three kinds of clusters j matter, and all others do not:

    the rivals     for the new gap of i: less than `least` + m away before, with the nearest already `least` away after;
    the followers  whose nearest was i: their gaps may grow, up to the distance of their second nearest;
    the met        whose gaps shrink, as ‖μ_i − μ_j‖ − m is below them.

So each i has one list, sorted by the m at which an entry begins to matter. It ends where no state is expected to look;
the key after its end says when it was too short. In float64, O(V k² m), without waiting for the device.
"""

import math
from typing import NamedTuple

import torch
from torch import Tensor

from voronaut.kernels.gpu.prepared import FOLLOWS, NEAREST, pad

PAIRS = 2**24  # differences between centers that are worked out at once
LENGTH = 15  # of the lists: at α = 0.05 Gaussian states look at two entries on average, five at most
FACTS = 3  # of an entry, before the coordinates


class Cloud(NamedTuple):
    """Clusters of several coordinates, padded to a multiple of 16."""

    centers: Tensor  # (V, m, width), +inf in the padding: never the nearest
    gap: Tensor  # (V, width), 0 in the padding
    second: Tensor  # (V, width): the gap were the nearest cluster not there
    nearest: Tensor  # (V, width) int32, −1 in the padding
    end: Tensor  # (V, width): the key of what is not listed any more, +inf if all is
    lists: Tensor  # (V, T + 1, 3 + m, width): key, √gap_j, √(gap_j without i), μ_i − μ_j of i's t-th j; then a key +inf


def cloud(centers: Tensor) -> Cloud:
    """Centers (V, k, m) with their gaps and lists."""
    _, k, m = centers.shape
    parts = [ready(some.double()) for some in torch.split(centers, max(1, PAIRS // (k * k * m)))]
    nearest, *others = (torch.cat(each) for each in zip(*parts, strict=True))
    width = -(-k // 16) * 16
    gap, second, end, lists = (pad(each.to(centers.dtype), width, 0.0).contiguous() for each in others)
    places = pad(centers.transpose(1, 2), width, math.inf).contiguous()
    return Cloud(places, gap, second, pad(nearest.int(), width, -1), end, lists)


def ready(centers: Tensor) -> tuple[Tensor, ...]:
    """Nearest, gap, second gap and end of each (V, k), and the lists (V, T + 1, 3 + m, k), of (V, k, m) centers."""
    apart = (centers[:, :, None] - centers[:, None]).square().sum(dim=3).sqrt()
    apart.diagonal(dim1=1, dim2=2).fill_(math.inf)
    two = apart.topk(2, dim=2, largest=False)
    gap, second = two.values.unbind(dim=2)  # of two clusters the second is itself: +inf
    nearest = two.indices[:, :, 0]
    lists = lists_of(centers, apart, gap, second, nearest)
    end = lists[:, -1, 0].clone()
    lists[:, -1, 0] = math.inf  # there everybody stops
    return nearest, gap, second, end, lists


def lists_of(centers: Tensor, apart: Tensor, gap: Tensor, second: Tensor, nearest: Tensor) -> Tensor:
    """The lists, (V, T + 1, 3 + m, k), each with the first that is not listed."""
    k, m = centers.shape[1:]
    follows = nearest[:, None] == torch.arange(k, device=centers.device)[:, None]
    keys = keys_of(apart, gap, second, follows).scatter(2, nearest[:, :, None], NEAREST)
    found = keys.topk(min(LENGTH, k - 1) + 1, dim=2, largest=False)
    their_gap, their_second = (each[:, None].expand_as(apart).gather(2, found.indices) for each in (gap, second))
    beside = torch.where(follows.gather(2, found.indices), their_second, their_gap)
    flat = found.indices.flatten(1)[:, :, None].expand(-1, -1, m)
    away = centers[:, :, None] - centers.gather(1, flat).view(*found.indices.shape, m)
    facts = torch.stack([found.values, their_gap.sqrt(), beside.sqrt()], dim=3)
    return torch.cat([facts, away], dim=3).permute(0, 2, 3, 1)


def keys_of(apart: Tensor, gap: Tensor, second: Tensor, follows: Tensor) -> Tensor:
    """How far i has to move, at least, for j to matter, [v, i, j]; +inf where it never does."""
    index = torch.arange(apart.shape[1], device=apart.device)
    covered = (apart == 0) & (index[:, None] < index)  # j need not be a rival beside an earlier one at its place
    rival = torch.where(covered.sum(dim=1, keepdim=True) > covered, math.inf, apart - gap[:, :, None])
    met = torch.where(gap[:, None] > 0, apart - gap[:, None], math.inf)
    grows = torch.where(torch.maximum(gap, second) > 0, FOLLOWS, math.inf)[:, None]
    return torch.minimum(rival, torch.where(follows, grows, met))
