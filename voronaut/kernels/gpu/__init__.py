"""The kernel of a GPU, on torch tensors that stay there: `prepare` (or again, in place), `assign`, `rewards`, `update`.

With Triton the programs in `fused` do it, without it plain torch; assignments alone are always plain torch. States come
with the reference point that is to be taken off them (`shift`), and those that are not finite are passed over.
"""

from voronaut.kernels.gpu.dispatch import has_triton, prepare, prepare_again, rewards, update, wholly_fused
from voronaut.kernels.gpu.plain import assign
from voronaut.kernels.gpu.prepared import Prepared, floor_of, limit_of

__all__ = [
    "Prepared",
    "assign",
    "floor_of",
    "has_triton",
    "limit_of",
    "prepare",
    "prepare_again",
    "rewards",
    "update",
    "wholly_fused",
]
