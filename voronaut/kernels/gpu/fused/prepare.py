"""`torch_prepared.prepare` for float32 clusters on a GPU: the same from five launches, in buffers that may be kept."""

import math

import torch
from torch import Tensor

from voronaut.kernels.gpu.prepared import EDGE, Lists, Prepared, limit_of
from voronaut.kernels.rules import LOG, Rules


def allocate(centers: Tensor, *, width: int, deep: int, length: int, log: bool) -> Prepared:
    """Room for clusters made ready, with nothing in it."""
    (k, d), new = centers.shape, centers.new_empty
    whole, long = centers.new_empty(0, dtype=torch.int32).new_empty, length + 1
    half = centers.new_empty(0, dtype=torch.float16).new_empty
    lists = Lists(whole(k, long), new(k, long))
    return Prepared(
        centers, new(d), new(width, deep), new(d, width), half(width, deep), half(width, deep), new(EDGE, width),
        new(width), new(k, width), new(width), new(width), new(width), whole(width), new(width), new(width, 4),
        lists, new(8), log,
    )  # fmt: skip


def halves(value: float) -> tuple[float, float]:
    """A number as the sum of two that float32 holds."""
    high = float(torch.tensor(value, dtype=torch.float32))
    return high, float(torch.tensor(value - high, dtype=torch.float32))


def fill(
    room: Prepared, centers: Tensor, counts: Tensor, rules: Rules, floor: Tensor | None = None, *, product: int
) -> Prepared:
    """Clusters (k, d) made ready in `room`. OUT: room."""
    from voronaut.kernels.gpu.fused import prepare_programs as programs

    (k, d), (width, deep), lists = centers.shape, room.rows.shape, room.lists
    wide = 1 << (width - 1).bit_length()
    balance, minimum = halves(rules.balance), counts.min()
    floor = torch.full((), rules.floor, dtype=torch.float64, device=centers.device) if floor is None else floor
    shadows = lists.others.new_empty(k)
    torch.mean(centers, dim=0, out=room.middle)
    most = torch.linalg.vector_norm(centers - room.middle, ord=math.inf)
    programs.layout_kernel[(width,)](
        centers.contiguous(), counts, minimum, room.middle, most, room.rows, room.columns, room.high, room.low,
        room.edges, room.norms, room.weight, room.facts, k, d, *balance, deep, product, WIDTH=width,
        D=1 << (deep - 1).bit_length(), num_warps=1,
    )  # fmt: skip
    warps = 4 if wide <= 1024 else 8
    programs.survey_kernel[(width,)](
        room.columns, counts, minimum, room.pairs, room.gap, room.second, room.nearest, room.facts, shadows, k, d,
        *balance, WIDTH=width, W=wide, num_warps=warps,
    )  # fmt: skip
    programs.lists_kernel[(width,)](
        counts, minimum, floor, most, room.pairs, room.norms, room.weight, room.gap, room.second, room.nearest, shadows,
        room.before, lists.others, lists.keys, room.scalars, k, *balance, rules.step_size, limit_of(torch.float32, d),
        WIDTH=width, W=wide, T=lists.keys.shape[1] - 1, LOG=rules.objective == LOG, num_warps=warps,
    )  # fmt: skip
    return room._replace(centers=centers)
