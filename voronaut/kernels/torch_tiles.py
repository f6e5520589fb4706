"""How the Triton programs cut their work: the fastest of those tried on one H200."""

import math
from typing import NamedTuple

import torch

from voronaut.kernels.torch_prepared import LENGTH


class Tiles(NamedTuple):
    """How the programs of `rewards` cut their work."""

    states: int  # of an assignment
    clusters: int
    warps: int
    precision: str  # "direct", or how tensor cores round: "split" or "tf32x3"
    stages: int = 2  # loads in flight
    short_states: int = 32  # of the short lists
    short_warps: int = 1
    length: int = LENGTH  # of the lists
    long_states: int = 64  # of what is paid over all clusters
    long_clusters: int = 32
    long_warps: int = 4
    long_stages: int = 2


class Walk(NamedTuple):
    """How the programs of `update` cut their work."""

    programs: int  # all of them on the device at once; they share a chunk's states
    clusters: int  # of an assignment, at a time
    warps: int
    unroll: int = 8
    block: int = 32  # of states that are summed at once


FLOAT64 = Tiles(64, 32, 4, "direct")
NARROW = Tiles(64, 32, 4, "split", 3)  # up to 48 dimensions
MIDDLE = Tiles(64, 32, 4, "split", 3)  # up to 128
LARGE = Tiles(128, 64, 8, "split", 1, long_states=128, long_clusters=32, long_warps=8, long_stages=1)
WALK = Walk(32, 512, 8)
COPIES = 1 << 24  # numbers that all programs' copies of the clusters may have: 64 MiB


def reward_tiles(dim: int, dtype: torch.dtype) -> Tiles:
    """For `rewards`; tensor cores have no float64."""
    if dtype == torch.float64:
        return FLOAT64
    return NARROW if dim <= 48 else MIDDLE if dim <= 128 else LARGE


def update_walk(clusters: int, dim: int, chunk: int) -> Walk:
    """For `update`: fewer programs where their copies of the clusters would be large, and for small chunks."""
    most = min(WALK.programs, chunk // 2, max(1, COPIES // (clusters * dim)))
    block = min(WALK.clusters, max(128, 1 << (clusters - 1).bit_length()))
    return WALK._replace(programs=2 ** int(math.log2(most)), clusters=block)
