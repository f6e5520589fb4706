"""Assignments, frozen rewards and updates in plain torch: where Triton is missing, and the judge of it."""

import math
from collections.abc import Iterator

import torch
from torch import Tensor

from voronaut.kernels.gpu.prepared import Prepared, concave
from voronaut.kernels.rules import Rules

BLOCK_BYTES = 1 << 28  # what a block of states may use
MATRICES = 6  # of a block's states × clusters, alive at once


def assign(prepared: Prepared, states: Tensor, shift: Tensor, block_bytes: int = BLOCK_BYTES) -> Tensor:
    """argmin_i ‖s − μ_i‖ + κ n_i for each of (n, d) states, less `shift` (Eq. 4), int64; bad ones −1."""
    out = torch.empty(len(states), dtype=torch.int64, device=states.device)
    for rows, block, good in blocks(prepared, states, shift, block_bytes):
        out[rows] = torch.where(good, nearest(prepared, block), -1)
    return out


def rewards(prepared: Prepared, states: Tensor, shift: Tensor, block_bytes: int = BLOCK_BYTES) -> Tensor:
    """What each of (n, d) states, less `shift`, would earn (Eq. 2), a block of states at a time; bad ones 0."""
    out = torch.empty(len(states), dtype=prepared.centers.dtype, device=states.device)
    for rows, block, good in blocks(prepared, states, shift, block_bytes):
        out[rows] = torch.where(good, block_rewards(prepared, block), 0)
    return out


def blocks(p: Prepared, states: Tensor, shift: Tensor, block_bytes: int) -> Iterator[tuple[slice, Tensor, Tensor]]:
    """Rows at a time that fit the memory given: the states in float64, 0 where they are bad, and which are good."""
    size = max(1, block_bytes // (8 * MATRICES * len(p.centers)))
    for start in range(0, len(states), size):
        rows = slice(start, start + size)
        block = (states[rows] - shift).to(p.centers.dtype)
        good = (block.abs() <= p.scalars[3].double()).all(dim=1)
        yield rows, torch.where(good[:, None], block, 0).double(), good


def nearest(p: Prepared, states: Tensor) -> Tensor:
    """Eq. 4 by one states × clusters matrix."""
    weight = p.weight[: len(p.centers)].double()
    return first_min(distances(states, p.centers.double(), p.centers.dtype).add_(weight))


def block_rewards(p: Prepared, states: Tensor) -> Tensor:
    """`rewards` of good states by states × clusters matrices, in float64."""
    k, (alpha, balance, floor) = len(p.centers), p.scalars[:3].double()
    weight, gap, before, second = (a[:k].double() for a in (p.weight, p.gap, p.before, p.second))
    centers, chosen = p.centers.double(), nearest(p, states)
    center, after = centers[chosen], weight[chosen] + balance
    moved = distances(center + alpha * (states - center), centers, p.centers.dtype)
    moved.scatter_(1, chosen[:, None], math.inf)
    own = (moved + weight).amin(dim=1) - after
    reach = torch.where(p.nearest[:k] == chosen[:, None], second, gap)
    gained = torch.minimum(reach, moved.sub_(weight).add_(after[:, None]), out=moved)
    change = torch.where(gained == gap, 0, concave(gained, floor, p.log) - before)
    return change.sum(dim=1) + concave(own, floor, p.log) - before[chosen]


def distances(points: Tensor, centers: Tensor, dtype: torch.dtype) -> Tensor:
    """‖x − μ_j‖ (n, k), exact in `dtype`: for float32 a float64 product is enough, float64 needs differences."""
    if dtype == torch.float64:
        return torch.cdist(points, centers, compute_mode="donot_use_mm_for_euclid_dist")
    middle = centers.mean(dim=0)
    points, centers = points - middle, centers - middle
    square = torch.addmm(centers.square().sum(dim=1), points, centers.t(), alpha=-2)
    return square.add_(points.square().sum(dim=1, keepdim=True)).clamp_(min=0).sqrt_()


def first_min(values: Tensor) -> Tensor:
    """Index of the least value of each row, the lowest on a tie (torch promises none)."""
    index = torch.arange(values.shape[1], device=values.device)
    return torch.where(values == values.amin(dim=1, keepdim=True), index, values.shape[1]).amin(dim=1)


def update(centers: Tensor, counts: Tensor, states: Tensor, good: Tensor, rules: Rules) -> tuple[Tensor, Tensor]:
    """Assign, move and count (Eqs. 4 to 6) the first `good` of (n, d) states, one after the other."""
    base, index = counts.min(), torch.arange(len(centers), device=centers.device)
    for place, state in enumerate(states):
        weight = (counts - base).double() * rules.balance
        chosen = first_min(distances(state[None].double(), centers.double(), centers.dtype) + weight)
        wins = (index == chosen) & (place < good)
        moved = (1 - rules.step_size) * centers + rules.step_size * state
        centers, counts = torch.where(wins[:, None], moved, centers), counts + wins
    return centers, counts
