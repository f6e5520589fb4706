"""Is it the weight? The scale of each bonus over three decades on Cheetah, three seeds, two million steps each."""

import argparse

from voronaut.experiments.common import sweep
from voronaut.experiments.scale.figures import draw
from voronaut.experiments.scale.run import FIGURES, PLAN
from voronaut.experiments.scale.tables import computed

__all__ = ["PLAN", "computed", "draw", "reproduce"]


def reproduce(options: argparse.Namespace) -> int:
    """`voronaut reproduce scale`."""
    return sweep.reproduce(options, PLAN, draw, FIGURES)
