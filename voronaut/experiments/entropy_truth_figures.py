"""Figures that hold estimates against the truth: Theorem 1's density, and the error of entropies in nats."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from voronaut.experiments import entropy_accuracy as accuracy
from voronaut.experiments import entropy_density as density
from voronaut.experiments.drawing import GREY, not_run
from voronaut.experiments.jobs import Values
from voronaut.plotting import figure

SIZES = {10: "#e0a21e", 100: "#d9692b", 1000: "#a3262a"}
KINDS = {
    ("online", "error"): ("#3b6fb6", "1/(k m), as the stream leaves the cells"),
    ("slower", "error"): ("#2a9d62", "1/(k m), cells balanced further"),
    ("slower", "error_masses"): (GREY, "P(c)/m, the same cells' true masses"),
    ("quantiles", "error"): ("#d9692b", "1/(k m), centers at quantiles"),
}
ROWS = (
    "density, 1-D,\ncenters at quantiles",
    "density, 1-D, cells of a\nstream, balanced further",
    "∫|p̂ − p|, 1-D",
    "∫|p̂ − p|, 2-D",
    "cell masses: std / mean",
)
METHODS = {
    "mixture": ("#2a9d62", "KMeansEntropy, 1M points"),
    "moments": ("#88c9a1", 'method="moments"'),
    "knn": ("#3b6fb6", "kNN"),
    "kde": ("#7b5ea7", "KDE"),
    "gmm": ("#e08a1e", "GMM"),
    "gaussian": (GREY, "one Gaussian"),
}


def draw(found: Mapping[str, Values], figures: Path) -> list[Path]:
    """Everything in this file."""
    return [draw_density(found, figures), draw_accuracy(found, figures), draw_memory(found, figures)]


def draw_density(found: Mapping[str, Values], figures: Path) -> Path:
    """density.png: 1-D profiles, ∫|p̂ − p| over k in 1-D and 2-D, and how balanced the cells are."""
    path = figures / "density.png"
    with figure(path, columns=3, rows=5, size=(11, 14.5)) as grid:
        for column, (name, shape) in enumerate(density.SHAPES.items()):
            _profiles(grid[0, column], found, name, "quantiles")
            _profiles(grid[1, column], found, name, "slower")
            grid[0, column].set_title(f"{shape.label}: {shape.holds}", fontsize=10)
            for row, dim in ((2, 1), (3, 2)):
                _errors(grid[row, column], found, name, dim)
            _balance(grid[4, column], found, name)
        for row, label in enumerate(ROWS):
            grid[row, 0].set_ylabel(label)
        for axes, place in ((grid[0, 0], "lower center"), (grid[2, 0], "lower left"), (grid[4, 0], "upper left")):
            if axes.lines:
                axes.legend(fontsize=7, loc=place)
    return path


def _profiles(axes: Any, found: Mapping[str, Values], name: str, kind: str) -> None:
    shape = density.SHAPES[name]
    axes.plot(density.GRID, shape.density(density.GRID), color="black", linewidth=2, alpha=0.4, label="p")
    for k, color in SIZES.items():
        result = found.get(f"density/{name}-1d-{k}-0")
        if result and kind in result:
            profile = result[kind]["profile"]
            axes.plot(density.GRID, profile, color=color, linewidth=0.9, label=f"k = {k}")
    axes.set(ylim=(0, 1.25 * shape.most), xlabel="x")


def _errors(axes: Any, found: Mapping[str, Values], name: str, dim: int) -> None:
    for (kind, key), (color, label) in KINDS.items():
        curve = density.curve(found, name, dim, kind, key)
        if curve:
            means = [np.mean(values) for values in curve.values()]
            axes.plot(list(curve), means, "-o", color=color, label=label, markersize=4)
    if not axes.lines:
        return not_run(axes)
    axes.set(xscale="log", yscale="log", xlim=(8, 1250), ylim=(0.001, 2))


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


def draw_accuracy(found: Mapping[str, Values], figures: Path) -> Path:
    """accuracy.png: absolute error in nats by law and dimension, each method at the most points it could take."""
    path = figures / "accuracy.png"
    with figure(path, columns=len(accuracy.DIMS), size=(14, 5)) as grid:
        for axes, dim in zip(grid, accuracy.DIMS, strict=True):
            for shift, (method, (color, label)) in enumerate(METHODS.items()):
                _dots(axes, _at_most(found, dim, method), (shift - 2.5) * 0.12, color, label)
            _finish(axes, dim)
        _legend(grid)
    return path


def draw_memory(found: Mapping[str, Values], figures: Path) -> Path:
    """memory.png: the same where every method may keep no more numbers than the estimator does."""
    path = figures / "memory.png"
    with figure(path, columns=len(accuracy.DIMS), size=(14, 5)) as grid:
        for axes, dim in zip(grid, accuracy.DIMS, strict=True):
            for shift, (method, (color, label)) in enumerate(METHODS.items()):
                _dots(axes, _in_memory(found, dim, method), (shift - 2.5) * 0.12, color, label)
            _finish(axes, dim)
        _legend(grid)
    return path


def _at_most(found: Mapping[str, Values], dim: int, method: str) -> dict[str, list[float]]:
    if method in ("mixture", "moments"):
        return accuracy.errors(found, dim, method)
    rivals = {law: accuracy.rival(found, law, dim, method) for law in accuracy.NAMES}
    return {law: [told["error"]] for law, told in rivals.items() if told and told["error"] is not None}


def _in_memory(found: Mapping[str, Values], dim: int, method: str) -> dict[str, list[float]]:
    if method in ("mixture", "moments"):
        return accuracy.errors(found, dim, method)
    rivals = {law: accuracy.rival(found, law, dim, method) for law in accuracy.NAMES}
    return {law: [told["error_kept"]] for law, told in rivals.items() if told and told["error_kept"] is not None}


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
    axes.axvline(accuracy.TARGETS[dim], color=GREY, linestyle=":", linewidth=1)
    axes.set_yticks(range(len(accuracy.NAMES)), accuracy.NAMES if dim == accuracy.DIMS[0] else [])
    axes.set(
        xscale="log", xlim=(8e-5, 200), title=f"d = {dim}", xlabel="|error| in nats", ylim=(len(accuracy.NAMES), -1)
    )
    axes.grid(axis="y", color="#eeeeee", zorder=0)


def _legend(grid: Any) -> None:
    handles: Any = next((a.get_legend_handles_labels() for a in grid if a.lines), ([], []))
    grid[-1].legend(*handles, loc="center left", bbox_to_anchor=(1, 0.5), fontsize=9)
