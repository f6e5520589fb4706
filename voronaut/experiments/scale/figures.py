"""scale.png, drawn from the result files and nothing else."""

from pathlib import Path
from typing import Any

import numpy as np

from voronaut.experiments.common import drawing, sweep
from voronaut.experiments.common.sweep import Plan
from voronaut.experiments.exploration.run import beside
from voronaut.experiments.scale.run import FIGURES, PLAN, SCALES, papers
from voronaut.plotting import COLORS

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
