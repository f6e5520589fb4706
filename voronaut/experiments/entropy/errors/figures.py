"""Figures that hold estimates against the truth: Theorem 1's density, and the error of entropies in nats."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from voronaut.experiments.common.drawing import GREY, not_run
from voronaut.experiments.common.jobs import Values
from voronaut.experiments.entropy import density
from voronaut.experiments.entropy import errors as accuracy
from voronaut.plotting import figure

SIZES = {10: "#e0a21e", 100: "#d9692b", 1000: "#a3262a"}
KINDS = {
    ("online", "error"): ("#3b6fb6", "1/(k m), as the stream leaves the cells"),
    ("slower", "error"): ("#2a9d62", "1/(k m), cells balanced further"),
    ("slower", "error_masses"): (GREY, "P(c)/m, the same cells' true masses"),
    ("quantiles", "error"): ("#d9692b", "1/(k m), centers at quantiles (1-D only)"),
}
ROWS = (
    "density, 1-D,\ncenters at quantiles",
    "density, 1-D, cells of a\nstream, balanced further",
    "∫|p̂ − p|, 1-D",
    "∫|p̂ − p|, 2-D",
    "cell masses: std / mean",
)
METHODS = {
    "mixture": ("#2a9d62", "KMeansEntropy"),
    "moments": ("#88c9a1", 'method="moments"'),
    "knn": ("#3b6fb6", "kNN"),
    "kde": ("#7b5ea7", "KDE"),
    "gmm": ("#e08a1e", "GMM"),
    "gaussian": (GREY, "one Gaussian"),
}
OURS = ("mixture", "moments")


def draw(found: Mapping[str, Values], figures: Path) -> list[Path]:
    """Everything in this file."""
    return [one(found, figures) for one in (draw_density, draw_data, draw_accuracy, draw_memory)]


def draw_density(found: Mapping[str, Values], figures: Path) -> Path:
    """density.png: 1-D profiles, ∫|p̂ − p| over k in 1-D and 2-D, and how balanced the cells are."""
    path = figures / "density.png"
    with figure(path, columns=3, rows=5, size=(11, 14.5)) as grid:
        for column, (name, shape) in enumerate(density.SHAPES.items()):
            _profiles(grid[0, column], found, name, "quantiles")
            _profiles(grid[1, column], found, name, "slower")
            grid[0, column].set_title(f"{shape.label}: {shape.holds}", fontsize=9)
            for row, dim in ((2, 1), (3, 2)):
                _errors(grid[row, column], found, name, dim)
            _balance(grid[4, column], found, name)
        for row, label in enumerate(ROWS):
            grid[row, 0].set_ylabel(label)
        for axes, place in ((grid[0, 0], "lower center"), (grid[4, 0], "upper left")):
            if axes.lines:
                axes.legend(fontsize=7, loc=place)
        grid[3, 0].legend(*grid[2, 0].get_legend_handles_labels(), fontsize=7, loc="lower left")  # there is room below
    return path


def _profiles(axes: Any, found: Mapping[str, Values], name: str, kind: str) -> None:
    shape = density.SHAPES[name]
    axes.plot(density.GRID, shape.density(density.GRID), color="black", linewidth=2, alpha=0.4, label="p")
    for k, color in SIZES.items():
        result = found.get(f"density/{name}-1d-{k}-0")
        if result and kind in result:
            profile = result[kind]["profile"]
            axes.plot(density.GRID, profile, color=color, linewidth=0.9, label=f"k = {k}")
    axes.set(ylim=(0, 1.4 * shape.most), xlabel="x")


def _errors(axes: Any, found: Mapping[str, Values], name: str, dim: int) -> None:
    for (kind, key), (color, label) in KINDS.items():
        curve = density.curve(found, name, dim, kind, key)
        if curve:
            means = [np.mean(values) for values in curve.values()]
            dashes = "--o" if kind == "quantiles" else "-o"
            axes.plot(list(curve), means, dashes, color=color, label=label, markersize=4)
    if not axes.lines:
        return not_run(axes)
    axes.set(xscale="log", yscale="log", xlim=(8, 1250), ylim=(5e-4, 2), xlabel="clusters k")


def _balance(axes: Any, found: Mapping[str, Values], name: str) -> None:
    for dim, marker in ((1, "o"), (2, "s")):
        for kind, color in (("online", "#3b6fb6"), ("slower", "#2a9d62")):
            curve = density.curve(found, name, dim, kind, "cv")
            if curve:
                label = f"{dim}-D, {'as the stream leaves them' if kind == 'online' else 'balanced further'}"
                means = [np.mean(values) for values in curve.values()]
                axes.plot(list(curve), means, f"-{marker}", color=color, label=label, markersize=4)
    if not axes.lines:
        return not_run(axes)
    axes.set(xscale="log", xlim=(8, 1250), ylim=(0, 0.55), xlabel="clusters k")


def draw_data(found: Mapping[str, Values], figures: Path) -> Path:
    """data.png: median absolute error over the ten laws, everybody at the same points."""
    path = figures / "data.png"
    with figure(path, columns=len(accuracy.DIMS), size=(14, 3.6)) as grid:
        for axes, dim in zip(grid, accuracy.DIMS, strict=True):
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


def medians(found: Mapping[str, Values], dim: int, method: str) -> dict[int, float]:
    """Median over laws of the mean absolute error over seeds, at the sizes at which every law was done."""
    told = {points: _errors_at(found, dim, method, points) for points in accuracy.CHECKPOINTS}
    sizes = {n: [np.mean(np.abs(v)) for v in laws.values()] for n, laws in told.items()}
    return {n: float(np.median(values)) for n, values in sizes.items() if len(values) == len(accuracy.NAMES)}


def _errors_at(found: Mapping[str, Values], dim: int, method: str, points: int) -> dict[str, list[float]]:
    if method in OURS:
        return accuracy.errors(found, dim, method, points)
    told = {law: accuracy.rival(found, law, dim, method, points) for law in accuracy.NAMES}
    return {law: [t["error"]] for law, t in told.items() if t and t["error"] is not None}


def draw_accuracy(found: Mapping[str, Values], figures: Path) -> Path:
    """accuracy.png: absolute error in nats by law and dimension, each method at the most points it could take."""
    return _by_law(found, figures / "accuracy.png", "error")


def draw_memory(found: Mapping[str, Values], figures: Path) -> Path:
    """memory.png: the same where every method may keep no more numbers than the estimator does."""
    return _by_law(found, figures / "memory.png", "error_kept")


def _by_law(found: Mapping[str, Values], path: Path, key: str) -> Path:
    with figure(path, columns=len(accuracy.DIMS), size=(14, 5.4)) as grid:
        for axes, dim in zip(grid, accuracy.DIMS, strict=True):
            for shift, (method, (color, label)) in enumerate(METHODS.items()):
                _dots(axes, _at_most(found, dim, method, key), (shift - 2.5) * 0.12, color, label)
            _finish(axes, dim)
        _legend(grid)
    return path


def _at_most(found: Mapping[str, Values], dim: int, method: str, key: str) -> dict[str, list[float]]:
    if method in OURS:
        return accuracy.errors(found, dim, method)
    rivals = {law: accuracy.rival(found, law, dim, method) for law in accuracy.NAMES}
    return {law: [told[key]] for law, told in rivals.items() if told and told[key] is not None}


def _dots(axes: Any, table: Mapping[str, list[float]], shift: float, color: str, label: str) -> None:
    for law, values in table.items():
        y = accuracy.NAMES.index(law) + shift
        axes.plot(
            np.maximum(np.abs(values), 1e-4), np.full(len(values), y), "o", color=color, markersize=3.5, alpha=0.75
        )
    if table:
        axes.plot([], [], "o", color=color, label=label)


def _finish(axes: Any, dim: int) -> None:
    if not axes.lines:
        return not_run(axes)
    _target(axes.axvline, dim)
    axes.set_yticks(range(len(accuracy.NAMES)), accuracy.NAMES if dim == accuracy.DIMS[0] else [])
    axes.set(
        xscale="log", xlim=(8e-5, 200), title=f"d = {dim}", xlabel="|error| in nats", ylim=(len(accuracy.NAMES), -1)
    )
    axes.grid(axis="y", color="#eeeeee", zorder=0)


def _target(line: Any, dim: int) -> None:
    line(accuracy.TARGETS[dim], color=GREY, linestyle=":", linewidth=1, label="aim of the median over laws")


def _legend(grid: Any) -> None:
    handles: Any = next((a.get_legend_handles_labels() for a in grid if a.lines), ([], []))
    grid[-1].legend(*handles, loc="center left", bbox_to_anchor=(1, 0.5), fontsize=9)
