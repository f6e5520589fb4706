"""The kernel of a CPU (numba): `prepare`, `assign`, `rewards`, `update`; `keep` and `step` for Algorithm 1.

Many small clusterings at once are in `views`, with all of these. Nothing here knows environments, files or options.
"""

from voronaut.kernels.cpu import views
from voronaut.kernels.cpu.assignment import Prepared, assign, prepare, update
from voronaut.kernels.cpu.frozen_rewards import rewards
from voronaut.kernels.cpu.online import Gaps, Stepped, keep, step

__all__ = ["Gaps", "Prepared", "Stepped", "assign", "keep", "prepare", "rewards", "step", "update", "views"]
