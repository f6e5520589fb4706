"""Does another trainer show the same? Cheetah with Stable-Baselines3's own PPO, alone and with KME by `voronaut.sb3`.

Two seeds, a million steps, the paper's settings, beside the first million steps of the exploration experiment.
"""

import argparse
import dataclasses
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from voronaut.experiments.common import drawing, results, sweep
from voronaut.experiments.common.results import Result
from voronaut.experiments.common.sweep import Cell, Plan
from voronaut.experiments.exploration import run as exploration
from voronaut.experiments.exploration.run import FIGURES
from voronaut.helpers import machine
from voronaut.helpers.markdown import table
from voronaut.helpers.plotting import COLORS, figure
from voronaut.training.config import Config
from voronaut.training.watching.progress import display

__all__ = ["PLAN", "computed", "draw", "reproduce"]

CELL, METHODS = exploration.CHEETAH, ("none", "kme")
PLAN = Plan(
    cells=(Cell(CELL, "cheetah-run", {"bonuses": METHODS, "backend": "dm_control"}),),
    seeds=2,
    steps=1_000_000,
    folder=Path("results/sb3"),
    work=Path("runs/sb3"),
    speed={"cheetah-run": 1_600},
)


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


def reproduce(options: argparse.Namespace) -> int:
    """`voronaut reproduce sb3`."""
    return sweep.reproduce(options, PLAN, draw, FIGURES, run)


def draw(plan: Plan = PLAN, figures: Path = FIGURES, say: sweep.Say = print) -> list[Path]:
    """sb3.png: every seed of Stable-Baselines3 as a line over the interval of our own."""
    runs, ours = sweep.used(plan, say), exploration.beside(plan, methods=METHODS)
    path = figures / "sb3.png"
    with figure(path, columns=len(drawing.CURVES), size=(13, 3.9)) as panels:
        for axes, (key, text) in zip(panels, drawing.CURVES.items(), strict=True):
            for method, some in drawing.in_order(ours):
                drawing.band(axes, some, key, method)
            for method, some in runs[CELL].items():
                _lines(axes, some, key, method)
            axes.set(xlabel="million steps", ylabel=text, xlim=(0, plan.steps / 1e6))
            if key != "state_entropy":
                axes.set_ylim(bottom=0)
        _legend(panels[0])
    return [path]


def _lines(axes: Any, some: Sequence[Result], key: str, method: str) -> None:
    for index, result in enumerate(some):
        steps, (curve,) = drawing.stacked([result], key)
        label = f"{drawing.NAMES[method]}, SB3, each seed" if index == 0 else None
        style = {"color": COLORS[method], "linewidth": 1.4, "linestyle": "--"}
        axes.plot(steps / 1e6, drawing.smooth(curve), label=label, **style)


def _legend(axes: Any) -> None:
    handles, labels = axes.get_legend_handles_labels()
    if handles:
        named = [label if "SB3" in label else f"{label}, ours, mean of 5 seeds" for label in labels]
        axes.figure.legend(handles, named, loc="outside lower center", ncols=len(named))


SCORES: dict[str, tuple[drawing.Score, str]] = {
    "mean return over training": (drawing.area, ".2f"),
    "final return": (drawing.final, ".1f"),
    "top dense reward": (drawing.top, ".2f"),
    "state entropy (nats)": (drawing.entropy, ".1f"),
    "first return above 1, million steps": (lambda result: drawing.first_above_one(result) / 1e6, ".2f"),
}


def computed(plan: Plan = PLAN) -> dict[str, str]:
    """Both trainers beside each other, every seed."""
    runs, ours, rows = sweep.collect(plan)[0][CELL], exploration.beside(plan, methods=METHODS), []
    for method in METHODS:
        for trainer, some in (("Stable-Baselines3", runs[method]), ("ours", ours[method])):
            texts = [_cell(some, *score) for score in SCORES.values()] if some else [drawing.NOT_RUN, "", "", "", ""]
            rows.append([trainer, drawing.NAMES[method], len(some), *texts])
    return {"sb3": table(["trainer", "method", "seeds", *SCORES], rows)}


def _cell(some: Sequence[Result], score: drawing.Score, form: str) -> str:
    """Every seed, lowest first; never where a seed met no reward."""
    values = sorted(float(value) for value in drawing.scores(some, score))
    return ", ".join("never" if value == float("inf") else f"{value:{form}}" for value in values)
