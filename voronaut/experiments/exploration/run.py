"""What is run: every method on every task, nothing tuned."""

from pathlib import Path
from typing import Any

from voronaut import presets
from voronaut.experiments.common import drawing, sweep
from voronaut.experiments.common.sweep import Cell, Plan

METHODS = ("none", "kme", "rnd", "re3")
FIGURES = Path("docs/figures/exploration")
CHEETAH = "cheetah-run-release"  # the cell that other experiments stand beside


def cell(task: str, threshold: str) -> Cell:
    """One panel of the figure."""
    return Cell(f"{task}-{threshold}", task, {"bonuses": METHODS, "threshold": threshold})


PLAN = Plan(
    cells=(
        cell("cheetah-run", "release"),
        cell("quadruped-run", "release"),
        cell("walker-run", "release"),
        cell("cartpole-swingup", "release"),
        cell("acrobot-swingup", "release"),
        cell("humanoid-run", "release"),
        cell("cheetah-run", "paper"),
        cell("walker-run", "paper"),
    ),
    seeds=presets.paper().seeds,
    steps=presets.paper().steps,
    folder=Path("results/exploration"),
    work=Path("runs/exploration"),
)


def beside(plan: Plan, **given: Any) -> drawing.Runs:
    """Runs of Cheetah up to the last step of another plan, by method; `given`: fewer seeds or methods."""
    cells = tuple(cell for cell in PLAN.cells if cell.name == CHEETAH)
    there = plan.folder.parent / PLAN.folder.name
    return sweep.collect(PLAN._replace(cells=cells, steps=plan.steps, folder=there, **given))[0][CHEETAH]
