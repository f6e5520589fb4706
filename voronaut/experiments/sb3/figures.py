"""sb3.png, drawn from the result files and nothing else."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from voronaut.experiments.common import drawing, sweep
from voronaut.experiments.common.results import Result
from voronaut.experiments.common.sweep import Plan
from voronaut.experiments.sb3.run import CELL, FIGURES, PLAN, beside
from voronaut.plotting import COLORS, figure


def draw(plan: Plan = PLAN, figures: Path = FIGURES, say: sweep.Say = print) -> list[Path]:
    """sb3.png: every seed of Stable-Baselines3 as a line over the interval of our own."""
    runs, ours, path = sweep.used(plan, say), beside(plan), figures / "sb3.png"
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
