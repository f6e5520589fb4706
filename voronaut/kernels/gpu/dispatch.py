"""Balanced online k-means on torch tensors that stay on their device: by Triton's programs, or by plain torch.

Nothing here waits for the device or copies from it. With Triton no n×k matrix is ever written; without it plain torch
does the same in blocks of states that fit a given memory. Counts, centers and every number that an update changes are
tensors, so that all of it can be captured in a CUDA graph.
"""

import importlib.util
from typing import Any

import torch
from torch import Tensor

from voronaut.kernels.gpu import plain
from voronaut.kernels.gpu import prepared as ready
from voronaut.kernels.gpu.prepared import Prepared
from voronaut.kernels.gpu.tiles import Tiles, depth, reward_tiles
from voronaut.kernels.rules import LOG, Rules


def has_triton() -> bool:
    """Whether fused programs can be used at all."""
    return importlib.util.find_spec("triton") is not None


def fused(states: Tensor) -> bool:
    """Whether Triton does it."""
    return states.is_cuda and has_triton()


def wholly_fused(centers: Tensor) -> bool:
    """Whether Triton makes clusters ready and updates them, too; else plain torch does, state by state."""
    return fused(centers) and centers.dtype == torch.float32


def prepare(
    centers: Tensor, counts: Tensor, rules: Rules, floor: Tensor | None = None, tiles: Tiles | None = None
) -> Prepared:
    """Clusters (k, d) made ready for any number of states; to be made anew after they changed."""
    tiles, (k, d) = tiles or reward_tiles(centers.shape[1], centers.dtype), centers.shape
    size = {"width": -(-k // tiles.clusters) * tiles.clusters, "deep": depth(d).whole, "length": tiles.length}
    if wholly_fused(centers):
        from voronaut.kernels.gpu.fused.prepare import allocate, fill

        room = allocate(centers, **size, log=rules.objective == LOG)
        return fill(room, centers, counts, rules, floor, product=depth(d).product)
    return ready.prepare(centers, counts, rules, floor=floor, product=depth(d).product, **size)


def prepare_again(old: Prepared, centers: Tensor, counts: Tensor, rules: Rules, floor: Tensor) -> None:
    """The same in the buffers of an earlier one. OUT: old."""
    if wholly_fused(centers):
        from voronaut.kernels.gpu.fused.prepare import fill

        fill(old, centers, counts, rules, floor, product=depth(centers.shape[1]).product)
    else:
        take_over(old, prepare(centers, counts, rules, floor))


def take_over(old: Any, new: Any) -> None:
    """Copy every tensor of a nest of tuples into the same place of another."""
    for mine, other in zip(old, new, strict=True):
        if isinstance(mine, tuple):
            take_over(mine, other)
        elif isinstance(mine, Tensor) and mine.data_ptr() != other.data_ptr():
            mine.copy_(other)


def rewards(prepared: Prepared, states: Tensor, shift: Tensor) -> Tensor:
    """What each of (n, d) states, less `shift`, would earn against the clusters as they are (Eq. 2); bad ones 0."""
    if fused(states) and len(states):
        return fused_rewards(prepared, states, shift)
    return plain.rewards(prepared, states, shift)


def fused_rewards(prepared: Prepared, states: Tensor, shift: Tensor, tiles: Tiles | None = None) -> Tensor:
    """`rewards` as four Triton programs: winners, short lists, all clusters by products, by differences."""
    from voronaut.kernels.gpu.fused import all_clusters, short_lists, winners

    tiles = tiles or reward_tiles(states.shape[1], prepared.centers.dtype)
    batch = winners.batch_of(prepared, states, shift)
    winners.find_winners(prepared, batch, tiles)
    short_lists.pay_short(prepared, batch, tiles)
    all_clusters.pay_long(prepared, batch, tiles)
    all_clusters.pay_hard(prepared, batch)
    return batch.paid


def update(centers: Tensor, counts: Tensor, states: Tensor, good: Tensor, rules: Rules) -> tuple[Tensor, Tensor]:
    """Assign, move and count (Eqs. 4 to 6) the first `good` of (n, d) states, one after the other.

    `good` is a 0-d tensor: the host need not know it. Returns new centers and counts.
    """
    if wholly_fused(centers) and len(states):
        from voronaut.kernels.gpu.fused import update as absorb

        return absorb.update(centers, counts, states, good, rules)
    return plain.update(centers, counts, states, good, rules)
