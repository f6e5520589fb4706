"""Does another trainer show the same? Cheetah with Stable-Baselines3's own PPO, alone and with KME by `voronaut.sb3`.

Two seeds, a million steps, the paper's settings, beside the first million steps of the exploration experiment.
"""

import argparse

from voronaut.experiments.common import sweep
from voronaut.experiments.sb3 import run
from voronaut.experiments.sb3.figures import draw
from voronaut.experiments.sb3.run import FIGURES, PLAN
from voronaut.experiments.sb3.tables import computed

__all__ = ["PLAN", "computed", "draw", "reproduce"]


def reproduce(options: argparse.Namespace) -> int:
    """`voronaut reproduce sb3`."""
    return sweep.reproduce(options, PLAN, draw, FIGURES, run.run)
