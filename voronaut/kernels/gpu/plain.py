"""Frozen rewards and chunked updates in plain torch: where Triton is missing, and the judge of its programs."""

import math

import torch
from torch import Tensor

from voronaut.kernels.gpu.prepared import Prepared, concave
from voronaut.kernels.rules import Rules

BLOCK_BYTES = 1 << 28  # what a block of states may use
MATRICES = 6  # of a block's states × clusters, alive at once


def rewards(prepared: Prepared, states: Tensor, shift: Tensor, block_bytes: int = BLOCK_BYTES) -> Tensor:
    """What each of (n, d) states, less `shift`, would earn (Eq. 2), a block of states at a time; bad ones 0."""
    out = torch.empty(len(states), dtype=prepared.centers.dtype, device=states.device)
    size = max(1, block_bytes // (8 * MATRICES * len(prepared.centers)))
    for start in range(0, len(states), size):
        block = (states[start : start + size] - shift).to(out.dtype)
        out[start : start + size] = block_rewards(prepared, block)
    return out


def block_rewards(p: Prepared, states: Tensor) -> Tensor:
    """`rewards` by one states × clusters matrix, in float64."""
    k, (alpha, balance, floor, limit) = len(p.centers), p.scalars[:4].double()
    good = (states.abs() <= limit).all(dim=1)
    states = torch.where(good[:, None], states, 0).double()
    weight, gap, before, second = (a[:k].double() for a in (p.weight, p.gap, p.before, p.second))
    centers = p.centers.double()
    chosen = first_min(distances(states, centers, p.centers.dtype).add_(weight))
    center, after = centers[chosen], weight[chosen] + balance
    moved = distances(center + alpha * (states - center), centers, p.centers.dtype)
    moved.scatter_(1, chosen[:, None], math.inf)
    own = (moved + weight).amin(dim=1) - after
    reach = torch.where(p.nearest[:k] == chosen[:, None], second, gap)
    gained = torch.minimum(reach, moved.sub_(weight).add_(after[:, None]), out=moved)
    change = torch.where(gained == gap, 0, concave(gained, floor, p.log) - before)
    paid = change.sum(dim=1) + concave(own, floor, p.log) - before[chosen]
    return torch.where(good, paid, 0)


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


def powers(alpha: float, chunk: int, like: Tensor) -> Tensor:
    """(1 − α)^m for m up to `chunk`."""
    exponent = torch.arange(chunk + 1, dtype=torch.float64, device=like.device)
    return ((1 - alpha) ** exponent).to(like.dtype)


def update(
    centers: Tensor, counts: Tensor, states: Tensor, good: Tensor, rules: Rules, chunk: int
) -> tuple[Tensor, Tensor]:
    """Assign, move and count (Eqs. 4 to 6), `chunk` states at a time, over the first `good` of (n, d) states."""
    base, table = counts.min(), powers(rules.step_size, chunk, centers)
    for start in range(0, len(states), chunk):
        part = states[start : start + chunk]
        weight = (counts - base).double() * rules.balance
        chosen = first_min(distances(part.double(), centers.double(), centers.dtype) + weight)
        valid = start + torch.arange(len(part), device=part.device) < good
        part = torch.where(valid[:, None], part, 0)
        centers, counts = absorb(
            centers, counts, part, torch.where(valid, chosen, len(centers)), rules.step_size, table
        )
    return centers, counts


def absorb(
    centers: Tensor, counts: Tensor, states: Tensor, chosen: Tensor, alpha: float, table: Tensor
) -> tuple[Tensor, Tensor]:
    """μ_i ← (1−α)^m μ_i + Σ_r α (1−α)^(m−1−r) s_r over the m states of a chunk that chose i, r their rank."""
    mine = chosen == torch.arange(len(centers), device=chosen.device)[:, None]  # (k, chunk)
    later = torch.triu(chosen[:, None] == chosen, 1).sum(dim=1)  # m − 1 − r
    arrivals = mine.sum(dim=1)
    # A product with zeros, not a scatter: deterministic on a GPU.
    moved = table[arrivals][:, None] * centers + (mine * (alpha * table[later])) @ states
    return moved, counts + arrivals
