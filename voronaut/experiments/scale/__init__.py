"""Is it the weight? The scale of each bonus over three decades on Cheetah, three seeds, two million steps each."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from voronaut import presets
from voronaut.experiments import exploration
from voronaut.experiments.common import drawing, stats, sweep
from voronaut.experiments.common.results import Result
from voronaut.experiments.common.sweep import Cell, Plan
from voronaut.plotting import COLORS, figure

FIGURES = exploration.FIGURES
# Four values each, so that every method has the same budget. The paper's: kme 1e-2, rnd 1e-5, re3 1e-4.
SCALES = {
    "kme": ("1e-4", "1e-3", "1e-2", "1e-1"),
    "rnd": ("1e-5", "1e-4", "1e-3", "1e-2"),
    "re3": ("1e-5", "1e-4", "1e-3", "1e-2"),
}
SWEEP = tuple(
    Cell(kind, "cheetah-run", {"bonuses": (kind,), "sweep": {f"{kind}.scale": values}})
    for kind, values in SCALES.items()
)
PLAN = Plan(cells=SWEEP, seeds=3, steps=2_000_000, folder=Path("results/scale"), work=Path("runs/scale"))
ROWS: dict[str, drawing.Score] = {
    "mean return over training": drawing.area,
    "top dense reward": drawing.top,
    "state entropy (nats)": drawing.entropy,
}


def beside(plan: Plan) -> drawing.Runs:
    """The same seeds of the exploration experiment up to the same step: no bonus, and the paper's weights once more."""
    cells = tuple(cell for cell in exploration.SWEEP if cell.name == "cheetah-run-release")
    there = plan.folder.parent / exploration.PLAN.folder.name
    return sweep.collect(plan._replace(cells=cells, folder=there))[0][cells[0].name]


def draw(plan: Plan = PLAN, figures: Path = FIGURES, say: Callable[[str], None] = print) -> list[Path]:
    """scale.png: return, top reward and entropy against the weight, one column per method."""
    runs, troubles = sweep.collect(plan)
    for trouble in troubles:
        say(f"not used: {trouble}")
    path, others = figures / "scale.png", beside(plan)
    with figure(path, columns=len(plan.cells), rows=len(ROWS), size=(10, 7.5)) as grid:
        for column, cell in enumerate(plan.cells):
            for axes, (name, score) in zip(grid[:, column], ROWS.items(), strict=True):
                _panel(axes, cell.name, runs[cell.name], score, others)
                axes.set_ylabel(name if column == 0 else "")
            grid[0, column].set_title(drawing.NAMES[cell.name])
            grid[-1, column].set_xlabel("scale β")
        drawing.share_y(grid)
    return [path]


def _panel(axes: Any, kind: str, runs: drawing.Runs, score: drawing.Score, others: drawing.Runs) -> None:
    if not any(runs.values()):
        return drawing.not_run(axes)
    groups = [drawing.scores(results, score) for results in runs.values()]
    drawing.dots(axes, SCALES[kind], groups, COLORS[kind])
    if others["none"]:
        mean = float(drawing.scores(others["none"], score).mean())
        axes.axhline(mean, color=COLORS["none"], linewidth=1.2, label="PPO alone")
    chosen = SCALES[kind].index(papers(kind))
    again = drawing.scores(others[kind], score)
    axes.plot(np.full(len(again), chosen + 0.12), again, "x", color="black", markersize=5, label="the same, run before")
    axes.axvline(chosen, color=drawing.GREY, linestyle=":", linewidth=1.2, zorder=0, label="the paper's β")
    if score is drawing.area:
        axes.legend(loc="best", fontsize=8)


def papers(kind: str) -> str:
    """The paper's weight as it stands in `SCALES`."""
    wanted = presets.paper().scale[kind]
    return next(text for text in SCALES[kind] if float(text) == wanted)


def table(plan: Plan = PLAN) -> str:
    """Markdown: one row per method and weight, means over seeds with t-intervals."""
    runs = sweep.collect(plan)[0]
    lines = ["| method | β | seeds | mean return over training | final return | top dense reward | state entropy |",
             "|---|---|---|---|---|---|---|"]  # fmt: skip
    others = beside(plan)
    lines += _row("PPO alone", "0", others["none"])
    for cell in plan.cells:
        lines += _row(
            drawing.NAMES[cell.name], f"{papers(cell.name)} (run before, with exploration)", others[cell.name]
        )
        for scale, (_, results) in zip(SCALES[cell.name], runs[cell.name].items(), strict=True):
            mark = " (the paper's)" if scale == papers(cell.name) else ""
            lines += _row(drawing.NAMES[cell.name], scale + mark, results)
    return "\n".join(lines)


def _row(name: str, scale: str, results: Sequence[Result]) -> list[str]:
    if not results:
        return [f"| {name} | {scale} | 0 | not run yet | | | |"]
    columns: Mapping[drawing.Score, str] = {
        drawing.area: ".1f", drawing.final: ".1f", drawing.top: ".2f", drawing.entropy: ".1f",
    }  # fmt: skip
    cells = [_cell(stats.mean_interval(drawing.scores(results, score)), form) for score, form in columns.items()]
    return [f"| {name} | {scale} | {len(results)} | " + " | ".join(cells) + " |"]


def _cell(measured: stats.Interval, form: str) -> str:
    return f"{measured.value:{form}} [{measured.low:{form}}, {measured.high:{form}}]"
