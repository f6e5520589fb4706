"""`torch_gpu.update` for float32 clusters on a GPU: the exact sequence, from one launch."""

import math
from typing import NamedTuple

import torch
from torch import Tensor

from voronaut.kernels.gpu.prepared import lay_out, pad, weights
from voronaut.kernels.gpu.tiles import Walk, update_walk
from voronaut.kernels.rules import Rules

ROW_TILE = 8192  # numbers of the table that a program transposes at once


class Ledger(NamedTuple):
    """What the programs tell each other about a window, int32; see torch_triton_update."""

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
    bell: Tensor  # (1,): how often programs have arrived at a meeting


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
    from voronaut.kernels.gpu.fused import update_programs as triton_update

    (k, d), w = centers.shape, walk or update_walk(centers.shape[0], centers.shape[1], len(states))
    width, many = -(-(k + w.states) // w.clusters) * w.clusters, programs_on(states, w.programs)
    rows, deep = width + w.blocks * w.states, max(16, 1 << (d - 1).bit_length())
    table, numbers = lay_out(centers, rows, deep), pad(counts, width, 0)
    weight = pad(weights(counts, rules.balance, centers.dtype), rows, math.inf)
    scalars = torch.stack([torch.full((), v, dtype=torch.float64, device=centers.device) for v in rules[:2]])
    # A cooperative launch runs all programs at once or fails: they never wait for one that has not begun.
    triton_update.update_kernel[(many,)](
        states.contiguous(), good, table, weight, numbers, counts.min(), scalars,
        *open_ledger(centers, width, many, w), k, d, WIDTH=width, D=deep, BLOCKS=w.blocks, B=w.states,
        BK=w.clusters, G=w.group, R=max(16, min(w.clusters, ROW_TILE // deep)), U=w.unroll, num_warps=w.warps,
        num_stages=1, launch_cooperative_grid=True,
    )  # fmt: skip
    return table[:k, :d].contiguous(), numbers[:k]
