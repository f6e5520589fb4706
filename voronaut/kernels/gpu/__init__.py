"""The kernel of a GPU, on torch tensors that stay on their device: `prepare`, `rewards`, `update`.

With Triton the programs in `fused` do it, without it plain torch.
"""

from voronaut.kernels.gpu.dispatch import (
    Prepared,
    Tiles,
    floor_of,
    has_triton,
    limit_of,
    prepare,
    prepare_again,
    rewards,
    update,
    wholly_fused,
)

__all__ = [
    "Prepared",
    "Tiles",
    "floor_of",
    "has_triton",
    "limit_of",
    "prepare",
    "prepare_again",
    "rewards",
    "update",
    "wholly_fused",
]
