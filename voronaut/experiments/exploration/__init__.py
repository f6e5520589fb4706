"""The exploration experiment: six sparse tasks, PPO alone and with KME, RND and RE3, five seeds, five million steps."""

import argparse

from voronaut.experiments.common import sweep
from voronaut.experiments.exploration.figures import draw
from voronaut.experiments.exploration.run import FIGURES, PLAN
from voronaut.experiments.exploration.tables import computed

__all__ = ["PLAN", "computed", "draw", "reproduce"]


def reproduce(options: argparse.Namespace) -> int:
    """`voronaut reproduce exploration`."""
    return sweep.reproduce(options, PLAN, draw, FIGURES)
