"""What is run: one run after another of Stable-Baselines3's PPO."""

import dataclasses
import time
from pathlib import Path

from voronaut import machine
from voronaut.experiments.common import drawing, results, sweep
from voronaut.experiments.common.sweep import Cell, Plan
from voronaut.experiments.exploration import run as exploration
from voronaut.experiments.exploration.run import FIGURES
from voronaut.training.config import Config
from voronaut.training.progress import display

__all__ = ["CELL", "FIGURES", "PLAN", "beside", "missing", "run"]
CELL, METHODS = exploration.CHEETAH, ("none", "kme")
PLAN = Plan(
    cells=(Cell(CELL, "cheetah-run", {"bonuses": METHODS, "backend": "dm_control"}),),
    seeds=2,
    steps=1_000_000,
    folder=Path("results/sb3"),
    work=Path("runs/sb3"),
    speed={"cheetah-run": 1_600},
)


def beside(plan: Plan) -> drawing.Runs:
    """Our own trainer's runs of the same methods up to the same step."""
    return exploration.beside(plan, methods=METHODS)


def run(plan: Plan, *, budget: float | None = None, say: sweep.Say = print, quiet: bool = False) -> bool:
    """Run what is missing, one run after another, until all is done (True) or the budget in seconds is spent (False).

    A run that is cut off begins anew: Stable-Baselines3 cannot go on in the middle of an episode.
    """
    deadline = None if budget is None else time.monotonic() + budget
    for cell in plan.cells:
        for one in missing(plan, cell):
            if deadline is not None and time.monotonic() > deadline:
                say("the budget is spent; the same command goes on from here")
                return False
            say(f"{cell.name}: {one.folders()[0]}, {plan.steps:,} steps with Stable-Baselines3")
            _run(one, plan.folder / cell.name, quiet)
    return True


def missing(plan: Plan, cell: Cell) -> list[Config]:
    """Every run that is not done, as an experiment of its own: all methods with one seed before the next seed."""
    whole, done = sweep.config(plan, cell), sweep.find(plan, cell).runs
    runs = sorted(whole.runs, key=lambda run: run[1])
    todo = [(method, seed) for method, seed in runs if seed not in done[method.label]]
    return [dataclasses.replace(whole, methods=(method,), seeds=(seed,)) for method, seed in todo]


def _run(config: Config, folder: Path, quiet: bool) -> None:
    from voronaut.experiments.sb3 import training

    with display(config, quiet=quiet) as report:
        rows = training.train(config, report)
    (method, seed), name = config.runs[0], config.folders()[0]
    about = {"steps": config.steps, "backend": config.backend, "machine": machine.describe(), "runs_side_by_side": 1,
             "trainer": "stable-baselines3", "notes": []}  # fmt: skip
    folder.mkdir(parents=True, exist_ok=True)
    results.write(folder / f"{name}.json.gz", results.identity(config, method, seed) | about | results.measured(rows))
