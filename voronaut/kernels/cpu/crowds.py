"""Usage, margin and splits of `voronaut/views.py`, state by state: what the walks through all kinds of views share.

Usage is kept as u_i / (1 − b/k)^t within a stretch of states, so that a state changes the winner's alone; the least
used cluster is looked for again only after its own usage has changed.
"""

from typing import NamedTuple

import numpy as np

from voronaut.kernels.compiled import compiled, inlined
from voronaut.kernels.cpu.distances import Floats
from voronaut.views import CLIP, FADE, RATE

STRETCH = 8192  # states: (1 − b/k)^−t is at most e^41 after so many, with two clusters


class Pace(NamedTuple):
    """What is the same for all views: α, and for each state of a stretch how the margin follows and usage has faded."""

    step_size: float
    rate: Floats  # (n,) max(RATE, 1/T) with T states seen
    won: Floats  # (n,) b (1 − b/k)^−t: what a win adds to usage as it is kept
    faded: float  # (1 − b/k)^n


def pace(step_size: float, seen: int, states: int, clusters: int) -> Pace:
    """Of the states that come after `seen` others."""
    t, keep = np.arange(1.0, states + 1), 1 - FADE / clusters
    return Pace(float(step_size), np.maximum(RATE, 1 / (seen + t)), FADE * keep**-t, keep**states)


@inlined
def share(best: float, margin: float) -> float:
    """How much a state counts as usage: min(1, ‖s − μ_i‖ / margin), 0 on the center itself."""
    if margin > 0:
        return min(best, margin) / margin
    return 1.0 if best > 0 else 0.0


@inlined
def followed(margin: float, ahead: float, rate: float) -> float:
    """m ← m + rate (min(second best − best, 10 m) − m), from the first one that is not 0."""
    return margin + rate * (min(ahead, CLIP * margin) - margin) if margin > 0 else ahead


@compiled
def least_used(usage: Floats) -> int:
    """argmin_i u_i, the lowest index on a tie."""
    least = 0
    for i in range(usage.shape[0]):
        least = i if usage[i] < usage[least] else least
    return least
