"""The kernel of a CPU (numba): `prepare`, `assign`, `rewards`, `update`; `keep` and `step` for Algorithm 1.

The rule without units is in `scale_free`, with an `update` and a `step` of its own, and many small clusterings at once
are in `views`, with all of these. Nothing here knows about environments, files or options.
"""

from voronaut.kernels.cpu import views
from voronaut.kernels.cpu.assignment import Prepared, assign, prepare, update
from voronaut.kernels.cpu.frozen_rewards import rewards
from voronaut.kernels.cpu.online import Gaps, Stepped, keep, step

__all__ = ["Gaps", "Prepared", "Stepped", "assign", "keep", "prepare", "rewards", "step", "update", "views"]
