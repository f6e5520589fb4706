"""Is it the weight? The scale of each bonus over three decades on Cheetah, three seeds, two million steps each."""

import argparse
from pathlib import Path
from typing import Any

import numpy as np

from voronaut import presets
from voronaut.experiments.common import drawing, sweep
from voronaut.experiments.common.sweep import Cell, Plan
from voronaut.experiments.exploration.run import FIGURES, beside
from voronaut.helpers.markdown import table
from voronaut.helpers.plotting import COLORS

__all__ = ["PLAN", "computed", "draw", "reproduce"]

# Four values each, so that every method has the same budget. The paper's: kme 1e-2, rnd 1e-5, re3 1e-4.
SCALES = {
    "kme": ("1e-4", "1e-3", "1e-2", "1e-1"),
    "rnd": ("1e-5", "1e-4", "1e-3", "1e-2"),
    "re3": ("1e-5", "1e-4", "1e-3", "1e-2"),
}
PLAN = Plan(
    cells=tuple(
        Cell(kind, "cheetah-run", {"bonuses": (kind,), "sweep": {f"{kind}.scale": values}})
        for kind, values in SCALES.items()
    ),
    seeds=3,
    steps=2_000_000,
    folder=Path("results/scale"),
    work=Path("runs/scale"),
)


def papers(kind: str) -> str:
    """The paper's weight as it stands in `SCALES`."""
    wanted = presets.paper().scale[kind]
    return next(text for text in SCALES[kind] if float(text) == wanted)


def reproduce(options: argparse.Namespace) -> int:
    """`voronaut reproduce scale`."""
    return sweep.reproduce(options, PLAN, draw, FIGURES)


ROWS: dict[str, drawing.Score] = {
    "mean return over training": drawing.area,
    "top dense reward": drawing.top,
    "state entropy (nats)": drawing.entropy,
}


def draw(plan: Plan = PLAN, figures: Path = FIGURES, say: sweep.Say = print) -> list[Path]:
    """scale.png: return, top reward and entropy against the weight, one column per method."""
    runs, others = sweep.used(plan, say), beside(plan, seeds=plan.seeds)

    def panel(axes: Any, kind: str, score: drawing.Score) -> None:
        if not any(runs[kind].values()):
            return drawing.not_run(axes)
        drawing.dots(axes, SCALES[kind], [drawing.scores(some, score) for some in runs[kind].values()], COLORS[kind])
        _others(axes, kind, score, others)
        if score is drawing.area:
            axes.legend(loc="best", fontsize=8)
        if score is drawing.entropy:
            axes.set_xlabel("scale β")

    path = figures / "scale.png"
    drawing.grid(path, {cell.name: drawing.NAMES[cell.name] for cell in plan.cells}, ROWS, panel, (10, 7.5))
    return [path]


def _others(axes: Any, kind: str, score: drawing.Score, others: drawing.Runs) -> None:
    """PPO alone, and the paper's weight as it was run before."""
    if others["none"]:
        mean = float(drawing.scores(others["none"], score).mean())
        axes.axhline(mean, color=COLORS["none"], linewidth=1.2, label="PPO alone")
    chosen = SCALES[kind].index(papers(kind))
    again = drawing.scores(others[kind], score)
    axes.plot(np.full(len(again), chosen + 0.12), again, "x", color="black", markersize=5, label="the same, run before")
    axes.axvline(chosen, color=drawing.GREY, linestyle=":", linewidth=1.2, zorder=0, label="the paper's β")


FORMS: dict[drawing.Score, str] = {
    drawing.area: ".1f",
    drawing.final: ".1f",
    drawing.top: ".2f",
    drawing.entropy: ".1f",
}


def computed(plan: Plan = PLAN) -> dict[str, str]:
    """One row per method and weight, means over seeds with t-intervals."""
    runs, others = sweep.collect(plan)[0], beside(plan, seeds=plan.seeds)
    rows = [["PPO alone", "0", *drawing.means(others["none"], FORMS)]]
    for cell in plan.cells:
        name, usual = drawing.NAMES[cell.name], papers(cell.name)
        rows.append([name, f"{usual} (run before, with exploration)", *drawing.means(others[cell.name], FORMS)])
        for scale, results in zip(SCALES[cell.name], runs[cell.name].values(), strict=True):
            rows.append([name, scale + " (the paper's)" * (scale == usual), *drawing.means(results, FORMS)])
    head = ["method", "β", "seeds", "mean return over training", "final return", "top dense reward", "state entropy"]
    return {"scale": table(head, rows)}
