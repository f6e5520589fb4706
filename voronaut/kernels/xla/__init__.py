"""The kernel for XLA: `prepare`, `assign`, `rewards`, `update`, pure functions to be jitted, scanned and vmapped.

`views` has the rewards of many small clusterings, `stream` what a stream needs besides (`voronaut.jax`).
"""

from voronaut.kernels.xla.kmeans import assign, prepare, rewards, update

__all__ = ["assign", "prepare", "rewards", "update"]
