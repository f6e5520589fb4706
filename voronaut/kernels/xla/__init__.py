"""The kernel for XLA, NumPy in and NumPy out: `prepare`, `assign`, `rewards`, `update`, and `*_runs` for many at once.

`kmeans` and `stream` have the pure functions behind it, to be jitted, scanned and vmapped (`voronaut.jax`).
"""

from voronaut.kernels.xla.host import Prepared, assign, chunk, prepare, rewards, rewards_runs, update, update_runs

__all__ = ["Prepared", "assign", "chunk", "prepare", "rewards", "rewards_runs", "update", "update_runs"]
