"""What the parameters do: one parameter of KME at a time on Cheetah, three seeds, two million steps each.

The paper says in words: more balancing (κ) and larger steps (α) cost stability, κ buys a balanced diagram and α a
representative one; more clusters (k) buy stability and accuracy; long rollouts (B), shuffled and absorbed after they
are paid, buy stability; online, a gap has to be computed anew in about 0.01 % of the steps.
"""

import argparse

from voronaut.experiments.common import sweep
from voronaut.experiments.parameters.figures import draw
from voronaut.experiments.parameters.run import FIGURES, PLAN
from voronaut.experiments.parameters.tables import computed

__all__ = ["PLAN", "computed", "draw", "reproduce"]


def reproduce(options: argparse.Namespace) -> int:
    """`voronaut reproduce parameters`."""
    return sweep.reproduce(options, PLAN, draw, FIGURES)
