"""parameters.png, drawn from the result files and nothing else."""

from pathlib import Path
from typing import Any

import numpy as np

from voronaut.experiments.common import drawing, sweep
from voronaut.experiments.common.results import Result
from voronaut.experiments.common.sweep import Plan
from voronaut.experiments.parameters.run import FIGURES, ORDER, PLAN, SYMBOLS, points
from voronaut.plotting import COLORS
from voronaut.training import ways


def last(name: str) -> drawing.Score:
    """A metric of KME at the end."""

    def score(result: Result) -> float:
        return float(result.about["last_metrics"].get(f"kme/{name}", np.nan))

    return score


ROWS: dict[str, drawing.Score] = {
    "mean return over training": drawing.area,
    "top dense reward": drawing.top,
    "state entropy (nats)": drawing.entropy,
    "spread of counts": last("count_cv"),  # standard deviation / mean: 0 is a balanced diagram
    "spread of cell masses": last("cell_mass_cv"),  # of a fair sample of all states
}


def draw(plan: Plan = PLAN, figures: Path = FIGURES, say: sweep.Say = print) -> list[Path]:
    """parameters.png: return, top reward, entropy and balance against each parameter."""
    by_parameter, path = points(plan, say), figures / "parameters.png"

    def panel(axes: Any, name: str, score: drawing.Score) -> None:
        runs = by_parameter[name]
        if not any(runs.values()):
            return drawing.not_run(axes)
        labels = [value.replace("-", "\n") if value in ways.WAYS else value for value in runs]
        groups = [drawing.scores(results, score) for results in runs.values()]
        drawing.dots(axes, labels, groups, COLORS["kme"], "none" if set(runs) & set(ORDER) else "-")
        axes.tick_params(axis="x", labelsize=8)

    drawing.grid(path, {name: f"{name} {SYMBOLS[name]}" for name in by_parameter}, ROWS, panel, (15, 10.5))
    return [path]
