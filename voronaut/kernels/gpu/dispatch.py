"""Balanced online k-means on torch tensors that stay on their device: frozen rewards and updates.

Nothing here waits for the device or copies from it. With Triton no n×k matrix is ever written; without it plain torch
does the same in blocks of states that fit a given memory. Counts, centers and every number that an update changes are
tensors, so that all of it can be captured in a CUDA graph.
"""

import importlib.util
import math
from typing import Any, NamedTuple

import torch
from torch import Tensor

from voronaut.kernels.gpu import plain
from voronaut.kernels.gpu import prepared as ready
from voronaut.kernels.gpu.fused import prepare as fast
from voronaut.kernels.gpu.fused import update as absorb
from voronaut.kernels.gpu.prepared import EDGE, Prepared, floor_of, limit_of
from voronaut.kernels.gpu.tiles import Tiles, reward_tiles
from voronaut.kernels.rules import LOG, Rules

__all__ = [
    "Prepared",
    "Tiles",
    "floor_of",
    "limit_of",
    "prepare",
    "prepare_again",
    "rewards",
    "update",
    "wholly_fused",
]

LONG_PROGRAMS = 1056  # that share what was put off, however much it is: the host does not know
HARD_PROGRAMS = 528
HELD = 32  # dimensions of a state that the lists keep in registers
HARD_DIMS = 4  # that are loaded at once where differences are taken
LONGEST_ROW = 2**23  # numbers from one state to the next: within a tile 32 bits count them


class Depth(NamedTuple):
    """Dimensions as products take them: `first`, then parts of `tail` up to `product`; `edge` more in float32."""

    first: int
    tail: int
    product: int
    edge: int
    whole: int  # of rows in memory

    @property
    def sums(self) -> int:
        """Dimensions as the bounds on rounding count them: three more sums are what eight in products have."""
        return self.product + (8 if self.edge else 0)


def depth(dim: int) -> Depth:
    """Powers of two that waste little: 17 = 16 + 1, 67 = 64 + 3, 40 = 32 + 16; beyond 128 parts of 64."""
    if dim > 128:
        whole = 64 * math.ceil(dim / 64)
        return Depth(64, 64, whole, 0, whole)
    first = max(16, 2 ** int(math.log2(dim)))
    edge = max(0, dim - first)
    if edge <= EDGE:
        whole = first if edge == 0 else first + 16
        return Depth(first, 16, first, edge, whole)
    tail = max(16, 2 ** math.ceil(math.log2(edge)))
    if tail < first:
        return Depth(first, tail, first + tail, 0, first + tail)
    return Depth(2 * first, 16, 2 * first, 0, 2 * first)


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
    width, deep = -(-k // tiles.clusters) * tiles.clusters, depth(d).whole
    if wholly_fused(centers):
        room = fast.allocate(centers, width=width, deep=deep, length=tiles.length, log=rules.objective == LOG)
        return fast.fill(room, centers, counts, rules, floor, product=depth(d).product)
    size = {"width": width, "deep": deep, "product": depth(d).product, "length": tiles.length}
    return ready.prepare(centers, counts, rules, floor=floor, **size)


def prepare_again(old: Prepared, centers: Tensor, counts: Tensor, rules: Rules, floor: Tensor) -> None:
    """The same in the buffers of an earlier one. OUT: old."""
    if wholly_fused(centers):
        fast.fill(old, centers, counts, rules, floor, product=depth(centers.shape[1]).product)
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


def rounding(deep: int) -> float:
    """Bound on the error of ‖s‖² + ‖μ‖² − 2 s·μ in units of (‖s‖ + ‖μ‖)².

    Sums begin with −½‖μ‖², so that they are at most half of the unit; norms and the last sums round like float32.
    """
    return product_rounding(deep) + 5 * 2.0**-23


def product_rounding(deep: int) -> float:
    """Bound on the error of s·μ in units of ‖s‖‖μ‖.

    Three products of 11-bit halves leave out 3·2⁻²²; each of their 3D/8 partial sums may be truncated by 2⁻²³; and
    what float16 cannot tell from zero is at most 2⁻²⁵ units in each dimension, of norms of at least a half.
    """
    return 2.0**-23 * (3 * deep / 8 + 6 + math.sqrt(deep))


class Desk(NamedTuple):
    """States on their way through the four programs."""

    states: Tensor  # (n, d)
    shift: Tensor  # (d,) what is subtracted from states
    paid: Tensor  # (n,)
    winners: Tensor  # (n,) int32
    hard: Tensor  # (n,) int32: states to be paid over all clusters
    again: Tensor  # (n,) int32: states to be done again from differences
    many: Tensor  # (2,) int32: how many of each


def fused_rewards(prepared: Prepared, states: Tensor, shift: Tensor, tiles: Tiles | None = None) -> Tensor:
    """`rewards` as four Triton programs: winners, short lists, all clusters by products, by differences."""
    tiles = tiles or reward_tiles(states.shape[1], prepared.centers.dtype)
    desk = lay_desk(prepared, states, shift)
    find_winners(prepared, desk, tiles)
    pay_short(prepared, desk, tiles)
    pay_long(prepared, desk, tiles)
    pay_hard(prepared, desk)
    return desk.paid


def lay_desk(p: Prepared, states: Tensor, shift: Tensor) -> Desk:
    """Room for what the programs tell each other: 16 bytes per state, 20 in float64."""
    if states.stride(1) != 1 or states.stride(0) > LONGEST_ROW:
        states = states.contiguous()
    winners, hard, again = torch.empty(3, len(states), dtype=torch.int32, device=states.device).unbind()
    paid, many = torch.empty_like(winners, dtype=p.gap.dtype), winners.new_zeros(2)
    # Tensor cores have no float64: what is hard then goes straight to the list of what is done from differences.
    hard = hard if p.gap.dtype == torch.float32 else again
    return Desk(states, shift.to(p.middle.dtype), paid, winners, hard, again, many)


def first_number(desk: Desk) -> Tensor:
    """Where the length of `desk.hard` stands."""
    return desk.many[1:] if desk.hard is desk.again else desk.many


def find_winners(p: Prepared, desk: Desk, t: Tiles) -> None:
    """Each state's cluster. OUT: winners, hard, again, many; paid where the state is bad."""
    from voronaut.kernels.gpu.fused import assign as programs

    (n, d), (width, whole), lists = desk.states.shape, p.rows.shape, p.lists
    deep = depth(d)
    programs.assign_kernel[(-(-n // t.states),)](
        desk.states, desk.paid, desk.winners, desk.hard, desk.again, first_number(desk), desk.shift, p.middle, p.high,
        p.low, p.edges, p.columns, p.norms, p.weight, lists.keys, p.scalars, rounding(deep.sums), n,
        stride=desk.states.stride(0), d=d, WIDTH=width, D=whole, DC=deep.first, DT=deep.tail, DP=deep.product,
        E=deep.edge, BN=t.states, BK=t.clusters, CODE=code(width // t.clusters), T=lists.keys.shape[1] - 1,
        FULL=n >= t.states, PRECISION=t.precision, num_warps=t.warps, num_stages=t.stages, **register_limit(t),
    )  # fmt: skip


def register_limit(t: Tiles) -> dict[str, int]:
    """What only NVIDIA's compiler understands."""
    return {} if t.registers is None or torch.version.hip else {"maxnreg": t.registers}


def code(blocks: int) -> int:
    """A power of two that gives each block a name."""
    return 1 << max(1, (blocks - 1).bit_length())


def pay_short(p: Prepared, desk: Desk, t: Tiles) -> None:
    """Rewards from short lists; states for which these are too short are put off. OUT: paid, winners, hard, many."""
    from voronaut.kernels.gpu.fused import rewards as programs

    (n, d), whole, lists = desk.states.shape, p.rows.shape[1], p.lists
    deep = depth(d)
    held = deep.product if deep.product <= HELD else min(deep.product & -deep.product, HELD)
    lanes = min(t.short_dims, held)
    facts = p.facts.view(torch.int64) if p.facts.dtype == torch.float32 else p.facts
    programs.short_kernel[(-(-n // (t.short_groups * t.short_states)),)](
        desk.states, desk.paid, desk.winners, desk.hard, first_number(desk), desk.shift, p.rows, facts, p.before,
        lists.others, lists.keys, p.scalars, n, stride=desk.states.stride(0), d=d, D=whole, DC=lanes, DH=held,
        DP=deep.product, E=deep.edge, BN=t.short_states, G=t.short_groups, T=lists.keys.shape[1] - 1,
        FULL=n >= t.short_groups * t.short_states, LOG=p.log, num_warps=t.short_warps,
    )  # fmt: skip


def pay_long(p: Prepared, desk: Desk, t: Tiles) -> None:
    """Rewards of the states in `hard`, over all clusters by products. OUT: paid, again, many."""
    from voronaut.kernels.gpu.fused import rewards as programs

    if desk.hard is desk.again:
        return
    (n, d), width, deep = desk.states.shape, len(p.rows), depth(desk.states.shape[1])
    programs.product_kernel[(min(LONG_PROGRAMS, -(-n // t.long_states)),)](
        desk.states, desk.paid, desk.winners, desk.hard, desk.again, desk.many, desk.shift, p.middle, p.rows,
        p.high, p.low, p.edges, p.pairs, p.weight, p.gap, p.second, p.nearest, p.before, p.scalars,
        product_rounding(deep.sums), stride=desk.states.stride(0), d=d, WIDTH=width, D=deep.whole, DC=deep.first,
        DT=deep.tail, DP=deep.product, E=deep.edge, BN=t.long_states, BK=math.gcd(width, t.long_clusters), LOG=p.log,
        PEEL=t.long_peel, num_warps=t.long_warps, num_stages=t.long_stages,
    )  # fmt: skip


def pay_hard(p: Prepared, desk: Desk) -> None:
    """Rewards of the states in `again`, over all clusters from differences. OUT: paid."""
    from voronaut.kernels.gpu.fused import rewards as programs

    (n, d), width = desk.states.shape, len(p.rows)
    programs.hard_kernel[(min(HARD_PROGRAMS, -(-n // 16)),)](
        desk.states, desk.paid, desk.again, desk.many, desk.shift, p.columns, p.weight, p.gap, p.second, p.nearest,
        p.before, p.scalars, stride=desk.states.stride(0), d=d, WIDTH=width, BN=16, BK=128, U=HARD_DIMS, LOG=p.log,
        num_warps=4,
    )  # fmt: skip


def update(
    centers: Tensor, counts: Tensor, states: Tensor, good: Tensor, rules: Rules, *, chunk: int = 1
) -> tuple[Tensor, Tensor]:
    """Assign, move and count (Eqs. 4 to 6) the first `good` of (n, d) states.

    Fused the result is the sequence's. In plain torch the states of a chunk are assigned to the clusters as they were
    before it and then absorbed in order; a chunk of 1 is the sequence.
    `good` is a 0-d tensor: the host need not know it. Returns new centers and counts.
    """
    if wholly_fused(centers) and len(states):
        return absorb.update(centers, counts, states, good, rules)
    # Deviation: here an assignment does not see the moves and counts of up to chunk − 1 states before it.
    return plain.update(centers, counts, states, good, rules, chunk)
