"""The figures of docs/hard.md, drawn from the result files and nothing else."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from voronaut.experiments.common import drawing, stats, sweep
from voronaut.experiments.exploration.run import PLAN as PPO_PLAN
from voronaut.experiments.hard import results
from voronaut.experiments.hard.results import Result
from voronaut.experiments.hard.settings import (
    ABLATED,
    ABLATIONS,
    CELLS,
    COMPARED,
    DENSE,
    EVERY,
    FOLDER,
    LONG,
    MAIN,
    METHODS,
    NEW,
    NEW_RIVALS,
    RIVALS,
    TWICE,
    Cell,
)
from voronaut.helpers.plotting import COLORS, figure

FIGURES = Path("docs/figures/hard")
ALONE = {"humanoid": "humanoid-0.2", "hopper": "hopper-far"}  # cells with a figure of their own; README shows the first
SHADES = {**COLORS, "kme-whole": "#8cc9a4", "zero": drawing.GREY, TWICE: "#7b4ea3"}
Runs = Mapping[str, Sequence[Result]]  # by method
Data = Mapping[str, Runs]  # by cell


def load(folder: Path = FOLDER) -> Data:
    """Every sound result by cell and method."""
    runs = results.find(folder).runs
    return {cell: {method: list(seeds.values()) for method, seeds in each.items()} for cell, each in runs.items()}


def ppo() -> dict[str, float]:
    """Mean final return of PPO with KME after five million steps, by cell, where it was run."""
    there, _ = sweep.collect(PPO_PLAN)
    found = {name: there.get(cell.ppo, {}).get("kme", []) for name, cell in CELLS.items()}
    return {name: float(np.mean(drawing.scores(some, drawing.final))) for name, some in found.items() if some}


def draw(folder: Path = FOLDER, figures: Path = FIGURES) -> list[Path]:
    """All figures."""
    data = load(folder)
    compared = {cell: {m: data[cell].get(m, []) for m in ("kme", *RIVALS, "none")} for cell in COMPARED}
    ablated = {ABLATED: {m: data[ABLATED].get(m, []) for m in ("kme", *ABLATIONS)}}
    names = ("curves", "further", "discovery", "rivals", "ablations", "dense", *ALONE)
    paths = {name: figures / f"{name}.png" for name in names}
    curves(paths["curves"], data, CELLS, MAIN, ppo(), "PPO + KME after 5M steps")
    published = {name: cell.aim for name, cell in DENSE.items()}
    curves(paths["dense"], data, DENSE, ("none", TWICE), published, "SAC as published")
    for name, cell in ALONE.items():
        methods = (*MAIN, *NEW_RIVALS) if cell in NEW else MAIN
        seeds(paths[name], EVERY[cell], {method: data[cell].get(method, []) for method in methods})
    further(paths["further"], data)
    discovery(paths["discovery"], data)
    scores(paths["rivals"], compared, 2)
    scores(paths["ablations"], ablated, 1)
    return list(paths.values())


def curves(
    path: Path, data: Data, cells: Mapping[str, Cell], methods: Sequence[str], levels: Mapping[str, float], told: str
) -> None:
    """The acting exploiter's return, four panels in a row; scores at the end, and the level of others as a line."""
    with figure(path, columns=4, rows=len(cells) // 4, size=(13, 3 * (len(cells) // 4))) as grid:
        for axes, cell in zip(np.ravel(grid), cells.values(), strict=True):
            _panel(axes, cell, {method: data[cell.name].get(method, []) for method in methods})
            if cell.name in levels:
                axes.axhline(levels[cell.name], color=drawing.GREY, linestyle="--", linewidth=1.2, label=told)
        _legend(np.ravel(grid))


def seeds(path: Path, cell: Cell, runs: Runs) -> None:
    """One cell, every seed a line of its own; more methods than two have a panel each."""
    apart = len(runs) > 2
    with figure(path, columns=len(runs) if apart else 1, size=(13, 3) if apart else (4.8, 3.6)) as grid:
        panels = np.resize(np.array(grid, object), len(runs))  # the same for all, or one for each
        for axes, (method, some) in zip(panels, runs.items(), strict=True):
            axes.set_title(METHODS[method].text if apart else cell.title, fontsize=10)
            for number, result in enumerate(some):
                steps, returns = result.curve["env_steps"] / 1e6, stats.carried(result.curve["exploiter_return"])
                label = {} if number else {"label": f"{METHODS[method].text}, every seed"}
                axes.plot(steps, returns, color=SHADES[method], linewidth=1.3, **label)
            axes.set(xlabel="million steps", xlim=(0, cell.steps / 1e6))
        if not apart:
            panels[0].legend(loc="best") if any(runs.values()) else drawing.not_run(panels[0])
        top = max(axes.get_ylim()[1] for axes in panels)
        for axes in panels:
            axes.set_ylim(-0.02 * top, top)
        panels[0].set_ylabel("return")


def further(path: Path, data: Data) -> None:
    """Every seed of the pair that went on to five million steps, and behind it those that had two."""
    with figure(path, columns=len(LONG), size=(13, 3)) as panels:
        for axes, cell in zip(panels, LONG.values(), strict=True):
            axes.set_title(cell.title, fontsize=10)
            shorter, longer = (data[name].get("kme", []) for name in (cell.name.removesuffix("-5M"), cell.name))
            for some, millions, alpha in ((shorter, 2, 0.3), (longer, 5, 1.0)):
                for number, result in enumerate(some):
                    label = {} if number else {"label": f"pair + KME, {millions} million steps, every seed"}
                    returns = drawing.smooth(np.nan_to_num(stats.carried(result.curve["exploiter_return"])))
                    axes.plot(result.curve["env_steps"] / 1e6, returns, color=SHADES["kme"], alpha=alpha, **label)
            if not longer:
                axes.text(0.97, 0.9, f"5 million: {drawing.NOT_RUN}", transform=axes.transAxes, ha="right",
                          color=drawing.GREY, style="italic", fontsize=9)  # fmt: skip
            axes.set(xlabel="million steps", xlim=(0, cell.steps / 1e6))
            axes.set_ylim(bottom=0)
        panels[0].set_ylabel("return")
        _legend(panels)


def _panel(axes: Any, cell: Cell, runs: Runs) -> None:
    axes.set_title(cell.title, fontsize=10)
    if not any(runs.values()):
        return drawing.not_run(axes)
    for place, (method, some) in enumerate(runs.items()):
        if some:
            _band(axes, some, method, 1.01 + 0.02 * place)
    axes.set(xlabel="million steps", xlim=(0, 1.05 * cell.steps / 1e6))
    axes.set_ylim(0, max(axes.get_ylim()[1], 1.0))
    axes.set_ylabel("return" if cell.name in ("cheetah-0.25", "acrobot", "cheetah-dense") else "")


def _band(axes: Any, some: Sequence[Result], method: str, end: float) -> None:
    steps = some[0].curve["env_steps"] / 1e6
    lines = [drawing.smooth(np.nan_to_num(stats.carried(result.curve["exploiter_return"]))) for result in some]
    mean = stats.mean_interval(lines)
    axes.plot(steps, mean.value, color=SHADES[method], linewidth=1.8, label=METHODS[method].text)
    if len(some) > 1:
        axes.fill_between(steps, mean.low, mean.high, color=SHADES[method], alpha=0.15, linewidth=0)
    ends = [results.score(result) for result in some]
    style = {"color": SHADES[method], "markersize": 4, "alpha": 0.7, "clip_on": False}
    axes.plot(np.full(len(ends), end * steps[-1]), ends, "o", **style)


def _legend(panels: Any) -> None:
    named = {label: handle for axes in panels for handle, label in zip(*axes.get_legend_handles_labels(), strict=True)}
    if named:
        canvas = panels[0].figure
        canvas.legend(list(named.values()), list(named), loc="outside lower center", ncols=min(len(named), 6))


def discovery(path: Path, data: Data) -> None:
    """How long it took to find reward, and how long from there to half of the final return; a dot for every run."""
    columns = {
        "first rewarded step (million)": results.first,
        "hundredth rewarded step (million)": lambda result: results.first(result, 100),
        "from the first to half of the final return (million)": lambda result: (
            results.half(result) - results.first(result)
        ),
    }
    with figure(path, columns=len(columns), size=(13, 5.2)) as panels:
        for index, (axes, (text, measure)) in enumerate(zip(panels, columns.items(), strict=True)):
            for row, cell in enumerate(CELLS.values()):
                _dots(axes, -row, data[cell.name], measure)
            axes.set_xscale("log")
            axes.set_xlim(0.008, 5)
            axes.set_xticks([0.01, 0.1, 1, 4], ["0.01", "0.1", "1", "never"])
            axes.set_xlabel(text)
            axes.set_yticks([-row for row in range(len(CELLS))], list(CELLS) if index == 0 else [""] * len(CELLS))
            axes.set_ylim(0.5 - len(CELLS), 0.5)
        _legend(panels)


def _dots(axes: Any, y: float, runs: Runs, measure: Any) -> None:
    shown = [method for method in ("kme", *RIVALS, "none") if runs.get(method)]
    for place, method in enumerate(shown):
        taken = np.nan_to_num([measure(result) / 1e6 for result in runs[method]], nan=np.inf, posinf=np.inf)
        offset = 0.32 - 0.64 * (place + 0.5) / len(shown)
        at = np.where(np.isfinite(taken), np.clip(taken, 0.01, None), 4.0)
        style = {"color": SHADES[method], "markersize": 4.5, "alpha": 0.7, "markeredgewidth": 0}
        axes.plot(at, np.full(len(at), y + offset), "o", label=METHODS[method].text, **style)
    if not shown:
        axes.text(0.02, y, drawing.NOT_RUN, transform=axes.get_yaxis_transform(), va="center", color=drawing.GREY,
                  style="italic", fontsize=9)  # fmt: skip
    axes.axhline(y - 0.5, color="#e6e6e6", linewidth=0.8, zorder=0)


def scores(path: Path, data: Data, columns: int) -> None:
    """Score of every method with its interval, every seed as a mark; a panel for every cell."""
    rows, longest = -(-len(data) // columns), max(map(len, data.values()))
    with figure(path, columns=columns, rows=rows, size=(2 + 5.5 * columns, (0.8 + 0.33 * longest) * rows)) as grid:
        for axes, (cell, runs) in zip(np.ravel(grid), data.items(), strict=True):
            axes.set_title(CELLS[cell].title, fontsize=10)
            if not any(runs.values()):
                drawing.not_run(axes)
                continue
            for row, (method, some) in enumerate(runs.items()):
                _score(axes, -row, some, SHADES.get(method, SHADES["kme"]))
            axes.set_yticks([-row for row in range(len(runs))], [METHODS[method].text for method in runs])
            axes.set(ylim=(0.5 - len(runs), 0.5), xlabel="score")
            axes.set_xlim(left=min(0, axes.get_xlim()[0]), right=max(1, axes.get_xlim()[1]))


def _score(axes: Any, y: float, some: Sequence[Result], color: str) -> None:
    if not some:
        axes.text(0.02, y, drawing.NOT_RUN, transform=axes.get_yaxis_transform(), va="center", color=drawing.GREY,
                  style="italic", fontsize=9)  # fmt: skip
        return
    seeds = [results.score(result) for result in some]
    drawing.interval(axes, y, stats.bootstrap([seeds], stats.mean), color)
    axes.plot(seeds, np.full(len(seeds), y), "|", color=color, markersize=9, alpha=0.8)
