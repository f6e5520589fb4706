"""Figures of the error in nats."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from voronaut.experiments.common.drawing import GREY, not_run
from voronaut.experiments.common.jobs import Results
from voronaut.experiments.entropy.errors import run
from voronaut.experiments.entropy.errors.rivals import RIVALS
from voronaut.helpers.plotting import figure

METHODS = {
    "mixture": ("#2a9d62", "KMeansEntropy"),
    "moments": ("#88c9a1", 'method="moments"'),
    "knn": ("#3b6fb6", "kNN"),
    "kde": ("#7b5ea7", "KDE"),
    "gmm": ("#e08a1e", "GMM"),
    "gaussian": (GREY, "one Gaussian"),
}


def draw(found: Results, figures: Path) -> list[Path]:
    """data.png; and by law accuracy.png, at the most points a method could take, and memory.png, at equal memory."""
    by_law = {"accuracy.png": "error", "memory.png": "error_kept"}
    return [_data(found, figures / "data.png"), *(_by_law(found, figures / name, key) for name, key in by_law.items())]


def _data(found: Results, path: Path) -> Path:
    """Median absolute error over the ten laws, everybody at the same points."""
    with figure(path, columns=len(run.DIMS), size=(14, 3.6)) as grid:
        for axes, dim in zip(grid, run.DIMS, strict=True):
            for method, (color, label) in METHODS.items():
                curve = medians(found, dim, method)
                if curve:
                    axes.plot(list(curve), list(curve.values()), "-o", color=color, markersize=4, label=label)
            if not axes.lines:
                not_run(axes)
                continue
            _target(axes.axhline, dim)
            axes.set(xscale="log", yscale="log", ylim=(5e-4, 50), title=f"d = {dim}", xlabel="points, of everybody")
        grid[0].set_ylabel("median |error| of ten laws, nats")
        _legend(grid)
    return path


def medians(found: Results, dim: int, method: str) -> dict[int, float]:
    """Median over laws of the mean absolute error over seeds, at the sizes at which every law was done."""
    told = {points: list(run.sizes(found, dim, method, points).values()) for points in run.CHECKPOINTS}
    return {points: float(np.median(sizes)) for points, sizes in told.items() if len(sizes) == len(run.NAMES)}


def _by_law(found: Results, path: Path, key: str) -> Path:
    """Absolute error in nats by law and dimension."""
    with figure(path, columns=len(run.DIMS), size=(14, 5.4)) as grid:
        for axes, dim in zip(grid, run.DIMS, strict=True):
            for shift, (method, (color, label)) in enumerate(METHODS.items()):
                _dots(axes, _at_most(found, dim, method, key), (shift - 2.5) * 0.12, color, label)
            _finish(axes, dim)
        _legend(grid)
    return path


def _at_most(found: Results, dim: int, method: str, key: str) -> dict[str, list[float]]:
    if method not in RIVALS:
        return run.errors(found, dim, method)
    rivals = {law: run.rival(found, law, dim, method) for law in run.NAMES}
    return {law: [told[key]] for law, told in rivals.items() if told and told[key] is not None}


def _dots(axes: Any, table: Mapping[str, list[float]], shift: float, color: str, label: str) -> None:
    for law, values in table.items():
        y = run.NAMES.index(law) + shift
        axes.plot(
            np.maximum(np.abs(values), 1e-4), np.full(len(values), y), "o", color=color, markersize=3.5, alpha=0.75
        )
    if table:
        axes.plot([], [], "o", color=color, label=label)


def _finish(axes: Any, dim: int) -> None:
    if not axes.lines:
        return not_run(axes)
    _target(axes.axvline, dim)
    axes.set_yticks(range(len(run.NAMES)), run.NAMES if dim == run.DIMS[0] else [])
    axes.set(xscale="log", xlim=(8e-5, 200), title=f"d = {dim}", xlabel="|error| in nats", ylim=(len(run.NAMES), -1))
    axes.grid(axis="y", color="#eeeeee", zorder=0)


def _target(line: Any, dim: int) -> None:
    line(run.TARGETS[dim], color=GREY, linestyle=":", linewidth=1, label="aim of the median over laws")


def _legend(grid: Any) -> None:
    handles: Any = next((a.get_legend_handles_labels() for a in grid if a.lines), ([], []))
    grid[-1].legend(*handles, loc="center left", bbox_to_anchor=(1, 0.5), fontsize=9)
