"""The figures of the exploration experiment, drawn from the result files and nothing else."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from voronaut.experiments.common import drawing, stats, sweep
from voronaut.experiments.common.drawing import CURVES
from voronaut.experiments.common.results import Result
from voronaut.experiments.common.sweep import Cell, Plan
from voronaut.experiments.exploration.run import FIGURES, PLAN
from voronaut.helpers.plotting import COLORS, figure
from voronaut.tasks.table import TASKS

Data = Mapping[str, drawing.Runs]  # by cell
SCORES: dict[str, drawing.Score] = {"area": drawing.area, "final": drawing.final}
SCORE_NAMES = {"area": "mean return over training (area under the curve)", "final": "final return (last 10 % of steps)"}
HIGHEST = {"max_step_reward": 1.03, "extrinsic_return": 1000.0}  # what a task can give
LOWEST_TOP = {"max_step_reward": 0.0, "extrinsic_return": 1.0}  # of an axis: next to nothing shall look so
METHODS = ("kme", "re3", "rnd", "none")  # from top to bottom
RIVALS = METHODS[1:]


def draw(plan: Plan = PLAN, figures: Path = FIGURES, say: sweep.Say = print) -> list[Path]:
    """All figures; files that are not used are named."""
    data = sweep.used(plan, say)
    drawers = {"returns": returns, "scores": scores, "iqm": iqm, "improvement": improvement,
               "discovery": discovery, "cost": cost}  # fmt: skip
    for name, drawer in drawers.items():
        drawer(figures / f"{name}.png", plan, data)
    return [figures / f"{name}.png" for name in drawers]


def returns(path: Path, plan: Plan, data: Data) -> None:
    """Mean return with 95 % t-interval, one panel per cell, as in the paper."""
    columns = 4
    rows = -(-len(plan.cells) // columns)
    with figure(path, columns=columns, rows=rows, size=(13, 3.1 * rows + 0.4)) as grid:
        panels = np.ravel(grid)
        for axes, cell in zip(panels, plan.cells, strict=False):
            _curves(axes, data[cell.name], "extrinsic_return", plan)
            axes.set_title(drawing.title(cell), fontsize=10)
        for axes in panels[len(plan.cells) :]:
            axes.set_axis_off()
        _legend(panels[0].figure, panels)


def _curves(axes: Any, runs: drawing.Runs, key: str, plan: Plan, spread: bool = True) -> None:
    if not any(runs.values()):
        return drawing.not_run(axes)
    for method, results in drawing.in_order(runs):
        drawing.band(axes, results, key, method, spread)
    axes.set_xlim(0, plan.steps / 1e6)
    axes.set_xlabel("million steps")
    if key in HIGHEST:
        axes.set_ylim(0, min(max(axes.get_ylim()[1], LOWEST_TOP[key]), HIGHEST[key]))
    axes.set_ylabel(CURVES[key])


def _legend(canvas: Any, panels: Any) -> None:
    """One legend below all panels."""
    handles = {
        label: handle for axes in panels for handle, label in zip(*axes.get_legend_handles_labels(), strict=True)
    }
    wanted = [drawing.NAMES[method] for method in METHODS if drawing.NAMES[method] in handles]
    if wanted:
        canvas.legend([handles[name] for name in wanted], wanted, loc="outside lower center", ncols=len(wanted))


def scores(path: Path, plan: Plan, data: Data) -> None:
    """Area under the curve and final return of every cell that has data, with bootstrap intervals."""
    cells = with_data(plan, data)
    with figure(path, columns=2, rows=len(cells), size=(12, 1.15 * len(cells) + 0.8)) as grid:
        panels = np.reshape(grid, (len(cells), 2))
        for row, cell in zip(panels, cells, strict=True):
            for axes, score in zip(row, SCORES.values(), strict=True):
                _score_row(axes, 0, data[cell.name], score)
                _rows(axes, [cell.name])
                left, right = axes.get_xlim()
                axes.set_xlim(min(left, -0.02), max(1, right))
            row[1].set_yticklabels([])
        for axes, key in zip(panels[-1], SCORES, strict=True):
            axes.set_xlabel(SCORE_NAMES[key])
        _legend(panels[0, 0].figure, panels.ravel())


def with_data(plan: Plan, data: Data) -> list[Cell]:
    """Cells of which some method was run; the first one where there are none, to have something to draw."""
    return [cell for cell in plan.cells if any(data[cell.name].values())] or list(plan.cells[:1])


def _score_row(axes: Any, y: float, runs: drawing.Runs, score: drawing.Score) -> None:
    if not any(runs.values()):
        return _waiting(axes, y)
    for method, offset in zip(METHODS, (0.27, 0.09, -0.09, -0.27), strict=True):
        if runs.get(method):
            seeds = drawing.scores(runs[method], score)
            measured = stats.bootstrap([seeds], stats.mean)
            drawing.interval(axes, y + offset, measured, COLORS[method], drawing.NAMES[method])
            axes.plot(seeds, np.full(len(seeds), y + offset), "|", color=COLORS[method], markersize=7, alpha=0.8)


def _waiting(axes: Any, y: float) -> None:
    axes.text(0.02, y, "not run yet", transform=axes.get_yaxis_transform(), va="center", color=drawing.GREY,
              style="italic", fontsize=9)  # fmt: skip


def _rows(axes: Any, names: Sequence[str]) -> None:
    """One named row per cell, thin lines between them."""
    axes.set_yticks([-row for row in range(len(names))], names)
    axes.set_ylim(-len(names) + 0.5, 0.5)
    axes.tick_params(axis="y", length=0)
    for row in range(1, len(names)):
        axes.axhline(0.5 - row, color="#e6e6e6", linewidth=0.8, zorder=0)


def complete(plan: Plan, data: Data) -> list[Cell]:
    """Cells where every method has every seed: only these are put together."""
    return [cell for cell in plan.cells if all(len(data[cell.name].get(m, ())) == plan.seeds for m in METHODS)]


def normalised(plan: Plan, data: Data, score: drawing.Score) -> dict[str, list[Any]]:
    """By method, scores on every complete cell divided by the best run's of that cell."""
    per_cell = [stats.normalise([drawing.scores(data[cell.name][m], score) for m in METHODS])
                for cell in complete(plan, data)]  # fmt: skip
    return {method: [strata[index] for strata in per_cell] for index, method in enumerate(METHODS)}


def iqm(path: Path, plan: Plan, data: Data) -> None:
    """Interquartile mean over all complete cells of the normalised scores, with stratified bootstrap intervals."""
    cells = complete(plan, data)
    with figure(path, columns=2, size=(11, 2.9)) as grid:
        for axes, (key, score) in zip(grid, SCORES.items(), strict=True):
            axes.set_title(SCORE_NAMES[key], fontsize=10)
            if not cells:
                drawing.not_run(axes, "no cell is complete yet")
                continue
            for row, (method, strata) in enumerate(normalised(plan, data, score).items()):
                drawing.interval(axes, -row, stats.bootstrap(strata, stats.iqm), COLORS[method])
            _rows(axes, [drawing.NAMES[method] for method in METHODS])
            axes.set_xlim(0, 1)
            axes.set_xlabel(f"IQM over {len(cells)} of {len(plan.cells)} cells (best run of a cell = 1)")


def chance(plan: Plan, data: Data, cells: Sequence[Cell], rival: str, score: drawing.Score) -> stats.Interval:
    """P(KME > rival) on some cells, with its stratified bootstrap interval."""
    strata = [drawing.scores(data[cell.name].get(m, ()), score) for cell in cells for m in ("kme", rival)]
    return stats.bootstrap(strata, stats.better)


def improvement(path: Path, plan: Plan, data: Data) -> None:
    """The chance that a run with KME beats one with another method, per cell and over all complete cells."""
    groups = {cell.name: [cell] for cell in plan.cells} | {"all complete cells": complete(plan, data)}
    with figure(path, columns=2, size=(12, 0.6 * len(groups) + 1.4)) as grid:
        for axes, (key, score) in zip(grid, SCORES.items(), strict=True):
            for row, cells in enumerate(groups.values()):
                _chance_row(axes, -row, {rival: chance(plan, data, cells, rival, score) for rival in RIVALS})
            _rows(axes, list(groups))
            axes.axvline(0.5, color=drawing.GREY, linewidth=1, linestyle="--", zorder=0)
            axes.set(xlim=(-0.02, 1.02), xlabel=f"P(KME is better), {SCORE_NAMES[key]}")
        grid[1].set_yticklabels([])
        _legend(grid[0].figure, grid)


def _chance_row(axes: Any, y: float, chances: Mapping[str, stats.Interval]) -> None:
    known = {rival: measured for rival, measured in chances.items() if np.isfinite(measured.value)}
    if not known:
        return _waiting(axes, y)
    for rival, offset in zip(RIVALS, (0.22, 0.0, -0.22), strict=True):
        if rival in known:
            drawing.interval(axes, y + offset, known[rival], COLORS[rival], drawing.NAMES[rival])


def discovery(path: Path, plan: Plan, data: Data) -> None:
    """State entropy and below it the top dense reward, for cells that have data, four side by side."""
    cells, wide = with_data(plan, data), 4
    bands = -(-len(cells) // wide)
    columns = min(wide, len(cells))
    with figure(path, columns=columns, rows=2 * bands, size=(3.3 * columns, 5.2 * bands + 0.4)) as grid:
        panels = np.reshape(grid, (2 * bands, columns))
        for axes in panels.ravel():
            axes.set_axis_off()
        for index, cell in enumerate(cells):
            band, column = divmod(index, wide)
            _discovered(panels[2 * band : 2 * band + 2, column], cell, data, plan)
        _legend(panels[0, 0].figure, panels.ravel())


def _discovered(pair: Any, cell: Cell, data: Data, plan: Plan) -> None:
    least = TASKS[cell.task].threshold(cell.choices["threshold"])
    for axes, key in zip(pair, ("state_entropy", "max_step_reward"), strict=True):
        axes.set_axis_on()
        _curves(axes, data[cell.name], key, plan, spread=least > 0 or key != "max_step_reward")
        axes.set_ylabel({"state_entropy": "entropy (nats)", "max_step_reward": "top dense reward"}[key])
    pair[0].set(title=drawing.title(cell), xlabel="")
    _explain_top(pair[1], least)


def _explain_top(axes: Any, least: float) -> None:
    """A dotted line where reward begins; a reward of 0 or 1 only is the share of seeds that met it."""
    if not axes.lines:
        return
    if not least:
        axes.set_ylabel("share of seeds with reward")
        return
    axes.axhline(least, color=drawing.GREY, linestyle=":", linewidth=1.2, zorder=0)
    axes.set_ylim(top=max(axes.get_ylim()[1], 1.05 * least))


def bonus_seconds(results: Sequence[Result]) -> float:
    """Seconds that the bonus took for all seeds of its method together in the median rollout."""
    return float(results[0].about["median_seconds"]["method_bonus_seconds"])


def cost(path: Path, plan: Plan, data: Data) -> None:
    """Seconds that each bonus took per rollout, and the ratio to KME."""
    cells = [cell for cell in plan.cells if data[cell.name].get("kme")] or list(plan.cells[:1])
    columns = min(4, len(cells))
    rows = -(-len(cells) // columns)
    with figure(path, rows=rows, columns=columns, size=(1.4 + 2.9 * columns, 3.4 * rows)) as grid:
        for axes in np.ravel(grid)[len(cells) :]:
            axes.set_axis_off()
        for axes, cell in zip(np.ravel(grid), cells, strict=False):
            axes.set_title(drawing.title(cell), fontsize=10)
            runs = {m: rs for m, rs in data[cell.name].items() if rs}
            if "kme" not in runs:
                drawing.not_run(axes)
                continue
            _bars(axes, {m: bonus_seconds(runs[m]) for m in METHODS if m in runs and m != "none"})
        for axes in np.reshape(grid, (rows, columns))[:, 0]:
            axes.set_ylabel("seconds per rollout, all seeds")


def _bars(axes: Any, seconds: Mapping[str, float]) -> None:
    axes.bar(list(seconds), list(seconds.values()), color=[COLORS[m] for m in seconds], width=0.6)
    for x, value in enumerate(seconds.values()):
        axes.text(x, value, f"{value:.3f} s\n{value / seconds['kme']:.1f}×", ha="center", va="bottom", fontsize=9)
    axes.set_xticks(range(len(seconds)), [method.upper() for method in seconds])
    axes.set_ylim(0, 1.3 * max(seconds.values()))
    axes.set_xlim(-0.6, len(RIVALS) - 0.4)  # bars of one width, also where a method was not run
