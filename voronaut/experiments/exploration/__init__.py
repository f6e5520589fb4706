"""The exploration experiment: six sparse tasks, PPO alone and with KME, RND and RE3, five seeds, five million steps."""

from collections.abc import Callable
from pathlib import Path

from voronaut import presets
from voronaut.experiments.common.sweep import Cell, Plan

METHODS = ("none", "kme", "rnd", "re3")
FIGURES = Path("docs/figures/exploration")


def cell(task: str, threshold: str) -> Cell:
    """One panel of the figure: nothing is tuned per task."""
    return Cell(f"{task}-{threshold}", task, {"bonuses": METHODS, "threshold": threshold})


SWEEP = (
    cell("cheetah-run", "release"),
    cell("quadruped-run", "release"),
    cell("walker-run", "release"),
    cell("cartpole-swingup", "release"),
    cell("acrobot-swingup", "release"),
    cell("humanoid-run", "release"),
    cell("cheetah-run", "paper"),
    cell("walker-run", "paper"),
)
PLAN = Plan(
    cells=SWEEP,
    seeds=presets.paper().seeds,
    steps=presets.paper().steps,
    folder=Path("results/exploration"),
    work=Path("runs/exploration"),
)


def draw(plan: Plan = PLAN, figures: Path = FIGURES, say: Callable[[str], None] = print) -> list[Path]:
    """Redraw every figure from the result files alone."""
    from voronaut.experiments.exploration import figures as exploration_figures

    return exploration_figures.draw(plan, figures, say)
