"""The kernel for XLA, NumPy in and NumPy out: `prepare`, `assign`, `rewards`, `update`.

`kmeans`, `views` and `stream` have the pure functions, to be jitted, scanned and vmapped (`voronaut.jax`).
"""

from voronaut.kernels.xla.host import Prepared, assign, prepare, rewards, update

__all__ = ["Prepared", "assign", "prepare", "rewards", "update"]
