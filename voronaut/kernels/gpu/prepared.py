"""Frozen clusters made ready for any number of states: gaps, and short lists of what a moving center can change.

Say cluster i wins and moves by m. Its own gap is decided among the neighbours that were less than 2m farther than the
best. The gap of another cluster j shrinks only if ‖μ_i − μ_j‖ − m is below it. And clusters whose nearest was i may
always change. So one list per cluster, sorted by how far beyond mattering they are, serves every state; the value after
the list's end says when it was too short. All in float64, O(k² d), without waiting for the device.
"""

import math
from typing import NamedTuple

import torch
from torch import Tensor

from voronaut.kernels.rules import LOG, LOG_FLOOR, Rules

LENGTH = 15  # of the lists; with the key after it a power of two
EDGE = 3  # dimensions that are cheaper without tensor cores, which take 16 at once
NEAREST, FOLLOWS = -2.0, -1.0  # keys of what always matters, the nearest first
EXPONENT, LEAST_UNIT = 0x7F800000, 2.0**-100  # the bits of a float32's exponent


class Lists(NamedTuple):
    """What the move of each cluster can change, in order; the last column is the first that is not listed."""

    others: Tensor  # (k, T + 1) int32: 2j, and 1 more where j's nearest is i
    keys: (
        Tensor  # (k, T + 1) how much farther than i's nearest, or than where their gaps shrink; negative: always matter
    )


class Prepared(NamedTuple):
    """Frozen clusters as `rewards` wants them; arrays over clusters are padded to `width`."""

    centers: Tensor  # (k, d) as given
    middle: Tensor  # (d,) subtracted from states and centers before products
    rows: Tensor  # (width, D) centers, zeros in the padding
    columns: Tensor  # (d, width) the same, transposed
    high: Tensor  # (width, D) float16: (centers less the middle) / unit = high + low, 11 bits in each
    low: Tensor
    edges: Tensor  # (3, width) the same, whole: what products leave out, the dimensions from `product` on
    norms: Tensor  # (width,) their squared lengths in units
    pairs: Tensor  # (k, width) ‖μ_i − μ_j‖², +inf for j = i and in the padding
    weight: Tensor  # (width,) κ (n − min n), +inf in the padding
    gap: Tensor  # (width,)
    second: Tensor  # (width,) the gap were the nearest cluster not there
    nearest: Tensor  # (width,) int32, −1 in the padding
    before: Tensor  # (width,) f(gap)
    facts: Tensor  # (width, 4) the first of the dimensions that products leave out, weight, gap, second
    lists: Lists
    scalars: Tensor  # see `fused.shared`
    log: bool

    @property
    def gaps(self) -> Tensor:
        """min_{j≠i} ‖μ_i − μ_j‖ + κ (n_j − n_i), raw (k,)."""
        return self.gap[: len(self.centers)]


class Survey(NamedTuple):
    """What frozen clusters are to each other, float64."""

    distance: Tensor  # (k, k), +inf on the diagonal
    weight: Tensor  # (k,)
    gap: Tensor
    second: Tensor
    nearest: Tensor


def limit_of(dtype: torch.dtype, dim: int) -> float:
    """States beyond this are bad: their squared length would overflow."""
    return math.sqrt(torch.finfo(dtype).max / (64 * dim))


def concave(gap: Tensor, floor: Tensor, log: bool) -> Tensor:
    """f(gap): √max(gap, 0), or log max(gap, floor)."""
    return torch.log(torch.maximum(gap, floor)) if log else torch.sqrt(gap.clamp(min=0))


def weights(counts: Tensor, balance: float, dtype: torch.dtype) -> Tensor:
    """κ (n_i − min n), from whole numbers."""
    return (counts - counts.min()).to(dtype) * balance


def between(points: Tensor) -> Tensor:
    """‖x_i − x_j‖ from differences, (k, k), in blocks of dimensions that bound the memory."""
    total = points.new_zeros(len(points), len(points))
    size = max(1, 1_500_000 // len(points) ** 2)
    for part in torch.split(points, size, dim=1):
        total += (part[:, None] - part).square_().sum(dim=2)
    return total.sqrt_()


def survey(centers: Tensor, counts: Tensor, balance: float) -> Survey:
    """All gaps from scratch, O(k² d)."""
    weight = weights(counts, balance, torch.float64)
    distance = between(centers.double()).fill_diagonal_(math.inf)
    two = (distance + (weight - weight[:, None])).topk(2, dim=1, largest=False)
    second = two.values[:, 1] if len(centers) > 2 else torch.full_like(weight, math.inf)
    return Survey(distance, weight, two.values[:, 0], second, two.indices[:, 0])


def make_lists(s: Survey, balance: float, clamp: Tensor, dtype: torch.dtype, length: int) -> Lists:
    """What the move of each cluster can change. Gaps up to `clamp` are worth the same."""
    index = torch.arange(len(s.weight), device=s.weight.device)
    ahead = (s.weight[:, None] < s.weight) | ((s.weight[:, None] == s.weight) & (index[:, None] < index))
    shadow = (s.distance == 0) & ahead  # i stands where j does and is never worse: j need not be listed beside it
    near = s.distance + s.weight - (s.gap + s.weight)[:, None]
    near = torch.where(shadow.sum(dim=0) > shadow, math.inf, near.clamp(min=0))
    entry = s.distance - (s.gap + s.weight) + (s.weight[:, None] + balance)
    entry = torch.where(s.gap > clamp, entry.clamp(min=0), math.inf)
    follows = s.nearest == index[:, None]
    entry = torch.where(follows, torch.where(torch.maximum(s.gap, s.second) > clamp, FOLLOWS, math.inf), entry)
    keys = torch.minimum(near, entry).scatter(1, s.nearest[:, None], NEAREST)
    found = keys.topk(min(length + 1, len(index)), dim=1, largest=False)
    others = 2 * found.indices + follows.gather(1, found.indices)
    return Lists(pad(others.int(), length + 1, 0), pad(found.values.to(dtype), length + 1, math.inf))


def pad(values: Tensor, width: int, fill: float) -> Tensor:
    """`values` with its last axis filled up to `width`."""
    return torch.nn.functional.pad(values, (0, width - values.shape[-1]), value=fill)


def floor_of(gap: Tensor) -> Tensor:
    """Where LOG is cut off: a share of the mean gap, 1 if there is none."""
    mean = gap.double().clamp(min=0).mean()
    return torch.where(mean > 0, LOG_FLOOR * mean, 1.0)


def number(value: float, like: Tensor) -> Tensor:
    """A 0-d tensor, filled on the device."""
    return torch.full((), value, dtype=like.dtype, device=like.device)


def unit_of(centred: Tensor) -> Tensor:
    """The power of two above every coordinate: in its units they have room in float16."""
    most = centred.abs().max().float()
    return ((most.view(torch.int32) & EXPONENT).view(torch.float32) * 2).clamp(min=LEAST_UNIT).to(centred.dtype)


def split(rows: Tensor) -> tuple[Tensor, Tensor]:
    """rows ≈ high + low to 22 bits, 11 in each, as tensor cores take them."""
    high = rows.half()
    return high, (rows - high).half()


def lay_out(centers: Tensor, width: int, deep: int) -> Tensor:
    """(width, deep), zeros in the padding."""
    rows = centers.new_zeros(width, deep)
    rows[: len(centers), : centers.shape[1]] = centers
    return rows


def prepare(
    centers: Tensor, counts: Tensor, rules: Rules, *, floor: Tensor | None = None, width: int, deep: int,
    product: int, length: int = LENGTH,
) -> Prepared:  # fmt: skip
    """Clusters (k, d) made ready; `width` ≥ k and `deep` ≥ d are what the programs' tiles divide."""
    log, dtype = rules.objective == LOG, centers.dtype
    s = survey(centers, counts, rules.balance)
    floor = number(rules.floor, s.gap) if floor is None else floor.double()
    middle = centers.mean(dim=0)
    rows, centred = lay_out(centers, width, deep), lay_out(centers - middle, width, deep)
    unit = unit_of(centred)
    scaled = centred / unit
    norms = scaled.double().square().sum(dim=1)
    edges = pad(scaled[:, product : product + EDGE], EDGE, 0.0).t().contiguous()
    lists = make_lists(s, rules.balance, floor if log else torch.zeros_like(floor), dtype, length)
    fixed = [number(v, s.gap) for v in (rules.step_size, rules.balance)]
    most = [number(limit_of(dtype, centers.shape[1]), s.gap), norms.max().sqrt() * unit, s.weight.max()]
    weight = pad(s.weight.to(dtype), width, math.inf)
    gap, second = (pad(a.to(dtype), width, 0.0) for a in (s.gap, s.second))
    beyond = rows[:, product] if product < deep else torch.zeros_like(weight)
    return Prepared(
        centers, middle, rows, rows[:, : centers.shape[1]].t().contiguous(), *split(scaled), edges, norms.to(dtype),
        pad(s.distance.square().to(dtype), width, math.inf),
        weight, gap, second, pad(s.nearest.int(), width, -1), pad(concave(s.gap, floor, log).to(dtype), width, 0.0),
        torch.stack([beyond, weight, gap, second], dim=1), lists,
        torch.stack([*fixed, floor, *most, unit.double(), 1 / unit.double()]).to(dtype), log,
    )  # fmt: skip
