"""How the Triton programs cut their work: the fastest of those tried on one H200."""

import math
from typing import NamedTuple

import torch

from voronaut.kernels.gpu.prepared import EDGE, LENGTH


class Tiles(NamedTuple):
    """How the programs of `rewards` cut their work."""

    states: int  # of an assignment
    clusters: int
    warps: int
    precision: str  # "split" into halves for tensor cores, or "direct"
    stages: int = 2  # loads in flight
    short_states: int = 4  # of the short lists: a tile visits as many clusters as its neediest state
    short_groups: int = 8  # tiles of a program, a power of two
    short_warps: int = 1
    short_dims: int = 32  # at once, four to a thread
    length: int = LENGTH  # of the lists, one less than a power of two
    long_states: int = 64  # of what is paid over all clusters
    long_clusters: int = 32
    long_warps: int = 4
    long_stages: int = 2
    long_peel: bool = True  # the first block apart, which keeps the states' halves in registers
    registers: int | None = None  # of a thread that assigns, at most: fewer let more programs run at once


class Walk(NamedTuple):
    """How the program of `update` cuts its work."""

    programs: int  # on each processor
    warps: int
    states: int  # of a block
    blocks: int  # of a window
    clusters: int  # of an assignment, at a time
    group: int = 4  # of states that are loaded at once
    unroll: int = 4


FLOAT64 = Tiles(64, 32, 4, "direct")
SMALL = Tiles(  # up to 32 dimensions
    64, 16, 2, "split", 3, 8, short_dims=16, long_states=32, long_clusters=16, long_warps=1, registers=112
)
MIDDLE = SMALL._replace(  # up to 128
    stages=4, short_states=16, short_groups=4, short_dims=32, long_states=64, long_warps=2, registers=None
)
LARGE = Tiles(128, 64, 8, "split", 1, long_states=128, long_clusters=32, long_warps=8, long_stages=1)
WALK = Walk(2, 4, 8, 256, 128)
DEEP_WALK = Walk(2, 4, 4, 128, 128, unroll=8)
WIDE_WALK = Walk(2, 4, 16, 256, 128)


def reward_tiles(dim: int, dtype: torch.dtype) -> Tiles:
    """For `rewards`; tensor cores have no float64."""
    if dtype == torch.float64:
        return FLOAT64
    return SMALL if dim <= 32 else MIDDLE if dim <= 128 else LARGE


def update_walk(clusters: int, dim: int, states: int) -> Walk:
    """For `update`: no more of a window than there are states.

    In many dimensions few clusters win most states, one state hangs on the other, and small blocks are done sooner.
    """
    walk = WALK if dim <= 32 else DEEP_WALK if clusters <= 1024 else WIDE_WALK
    blocks = 1 << (math.ceil(states / walk.states) - 1).bit_length()
    return walk._replace(blocks=min(walk.blocks, max(2, blocks)))


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
