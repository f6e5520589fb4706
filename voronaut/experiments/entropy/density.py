"""Theorem 1, to be seen: 1/(k m(c_i)) against the density as k grows, and where its conditions fail."""

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from voronaut.entropy.density import Cells, measure, spread
from voronaut.entropy.scale_free import kernel
from voronaut.entropy.scale_free.stream import ScaleFree
from voronaut.experiments.common.drawing import GREY, not_run
from voronaut.experiments.common.jobs import Job, Results, Values
from voronaut.helpers.markdown import table
from voronaut.helpers.plotting import figure

Floats = NDArray[np.float64]
CLUSTERS = (10, 30, 100, 300, 1000)
POINTS = 1_000_000
SEEDS = 3
BATCH = 10_000
# After the stream, more passes with smaller κ and α: cells closer to Definition 1 than the online rule leaves them.
SLOWER = ((0.01, 0.003), (0.003, 0.001))
GRID = np.linspace(0, 1, 201)
SAMPLES = 1_000_000  # that measure cells, at least


class Shape(NamedTuple):
    """A density on [0, 1], the same in every coordinate; bounded by `most`."""

    label: str
    holds: str  # what it does to the theorem's conditions
    density: Callable[[Floats], Floats]
    most: float

    def at(self, points: Floats) -> Floats:
        """p (n,) at points (n, d)."""
        return np.asarray(np.prod(self.density(points), axis=1))

    def sample(self, n: int, dim: int, rng: np.random.Generator) -> Floats:
        """(n, d) points, by rejection."""
        kept: list[Floats] = []
        while sum(map(len, kept)) < n * dim:
            x = rng.random(2 * n * dim)
            kept.append(x[rng.random(len(x)) * self.most < self.density(x)])
        return np.concatenate(kept)[: n * dim].reshape(n, dim)


def _islands(x: Floats) -> Floats:
    """Two smooth hills of width 0.3 with nothing between and around them."""
    hills = [np.where(np.abs(x - c) < 0.15, 1 + np.cos(np.pi * (x - c) / 0.15), 0.0) / 0.6 for c in (0.25, 0.75)]
    return np.asarray(hills[0] + hills[1])


SHAPES = {
    "wave": Shape("wave", "all conditions hold", lambda x: 1 - 0.8 * np.cos(2 * np.pi * x), 1.8),
    "step": Shape("step", "the density jumps", lambda x: np.where(x < 0.5, 0.2, 1.8), 1.8),
    "islands": Shape("islands", "the density is 0 on part of the space", _islands, 2 / 0.6),
}


def work(shape: str, dim: int, clusters: int, seed: int, points: int) -> Values:
    """Cluster points of the law, measure the cells, and compare 1/(k m) with p; then balance further and compare."""
    law, rng = SHAPES[shape], np.random.default_rng([seed, 31])
    made = ScaleFree(dim, clusters, seed=seed, dtype="float64")
    for _ in range(0, points, BATCH):
        made.update(law.sample(min(BATCH, points), dim, rng))
    told = {"online": compare(law, made.centers, made.counts, made.balance, seed)}
    if dim == 1:
        told["quantiles"] = compare(law, quantiles(law, clusters), np.ones(clusters, np.int64), 0.0, seed)
    centers, counts, balance = slower(law, made.centers, made.counts, made.balance, points, rng)
    return {**told, "slower": compare(law, centers, counts, balance, seed)}


def quantiles(law: Shape, clusters: int) -> Floats:
    """Centers at the quantiles (i + ½)/k of the law on [0, 1]: cells balanced by construction, without weights."""
    fine = np.linspace(0, 1, 1_000_001)
    mass = np.concatenate([[0.0], np.cumsum(law.density((fine[1:] + fine[:-1]) / 2))])
    return np.interp((np.arange(clusters) + 0.5) / clusters, mass / mass[-1], fine)[:, None]


def slower(
    law: Shape, centers: Floats, counts: NDArray[np.int64], balance: float, points: int, rng: np.random.Generator
) -> tuple[Floats, NDArray[np.int64], float]:
    """Further passes with a smaller κ and α. Counts are stretched so that the weights κ n stay what they were."""
    margin, eta = balance / 0.03, 0.03
    for smaller, floor in SLOWER:
        counts = 1 + np.round((counts - counts.min()) * (eta / smaller)).astype(np.int64)
        states, eta = law.sample(points, centers.shape[1], rng), smaller
        order = np.arange(len(states))
        moved, counts, margin = kernel.update(centers, counts, margin, states, order, eta=eta, floor=floor)
        centers = moved.astype(np.float64)
    return centers, counts, eta * margin


def compare(law: Shape, centers: Floats, counts: NDArray[np.int64], balance: float, seed: int) -> Values:
    """∫|p̂ − p|, with 1/k and with the masses as they are; balance and width of cells, steepness of weights."""
    dim, samples = centers.shape[1], max(SAMPLES, SAMPLES // 250 * len(counts))
    cells = measure(centers, counts, balance, low=np.zeros(dim), high=np.ones(dim), samples=samples, seed=seed)
    masses = true_masses(law, cells, samples, seed)
    points = np.random.default_rng([seed, 37]).random((SAMPLES // 5, dim))
    wanted, found = law.at(points), cells.density(points)
    seen = masses[cells.of(points)] / cells.volumes[cells.of(points)]
    profile = [round(float(v), 3) for v in cells.density(GRID[:, None])] if dim == 1 and seed == 0 else []
    return {
        "error": round(float(np.abs(found - wanted).mean()), 4),
        "error_masses": round(float(np.abs(seen - wanted).mean()), 4),
        "cv": round(float(masses.std() / masses.mean()), 4),
        "steepest": round(steepest(centers, counts, balance), 4),
        "widest": round(widest(cells, centers, points), 4),
        "profile": profile,
    }


def true_masses(law: Shape, cells: Cells, samples: int, seed: int) -> Floats:
    """P(c_i) = ∫ p over the cell, by the points that measured it: hardly any noise is left in P(c)/m(c)."""
    masses = np.zeros(len(cells.volumes))
    for points in spread(cells.low, cells.high, samples, seed):
        masses += np.bincount(cells.of(points), weights=law.at(points), minlength=len(masses))
    return masses / samples


def steepest(centers: Floats, counts: NDArray[np.int64], balance: float) -> float:
    """max |w_i − w_j| / ‖μ_i − μ_j‖: the η of Theorem 1, which must stay below 1."""
    distances = np.sqrt(((centers[:, None] - centers[None]) ** 2).sum(axis=2))
    np.fill_diagonal(distances, math.inf)
    weights = balance * (counts - counts.min())
    return float((np.abs(weights[:, None] - weights[None]) / distances).max())


def widest(cells: Cells, centers: Floats, points: Floats) -> float:
    """The longest distance from a point to its center: the theorem wants it to vanish as k grows."""
    return float(np.sqrt(((points - centers[cells.of(points)]) ** 2).sum(axis=1)).max())


def jobs(seeds: int = SEEDS, points: int = POINTS) -> list[Job]:
    """Three laws in one and two dimensions, five sizes."""
    return [
        Job(
            "density", f"{shape}-{dim}d-{k}-{seed}", work,
            {"shape": shape, "dim": dim, "clusters": k, "seed": seed, "points": points},
            8.0 + k / 25 + seed / 10,
        )
        for shape in SHAPES for dim in (1, 2) for k in CLUSTERS for seed in range(seeds)
    ]  # fmt: skip


def curve(found: Results, shape: str, dim: int, kind: str, name: str) -> dict[int, list[float]]:
    """A number by k, one per seed."""
    values: dict[int, list[Any]] = {k: [] for k in CLUSTERS}
    for k in CLUSTERS:
        for seed in range(SEEDS):
            result = found.get(f"density/{shape}-{dim}d-{k}-{seed}")
            values[k] += [result[kind][name]] if result and kind in result else []
    return {k: v for k, v in values.items() if v}


CELLS = {"online": "as the stream leaves them", "slower": "balanced further", "quantiles": "centers at quantiles"}


def computed(found: Results) -> dict[str, str]:
    """∫|p̂ − p| by k, and the balance at the largest."""
    rows = []
    for name, shape in SHAPES.items():
        for dim in (1, 2):
            for kind, label in list(CELLS.items())[: 3 if dim == 1 else 2]:
                errors = curve(found, name, dim, kind, "error")
                cells = [f"{np.mean(errors[k]):.3f}" if k in errors else "–" for k in CLUSTERS]
                last = max(errors, default=0)
                told = [np.mean(curve(found, name, dim, kind, key).get(last, [math.nan])) for key in
                        ("error_masses", "cv", "steepest", "widest")]  # fmt: skip
                rows.append([shape.label, dim, label, *cells, *(f"{value:.2f}" for value in told)])
    head = ["law", "d", "cells", *(f"k = {k}" for k in CLUSTERS), "with true masses", "std / mean of masses",
            "steepest weights", "farthest point"]  # fmt: skip
    return {"density": table(head, rows)}


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


def draw(found: Results, figures: Path) -> list[Path]:
    """density.png: 1-D profiles, ∫|p̂ − p| over k in 1-D and 2-D, and how balanced the cells are."""
    path = figures / "density.png"
    with figure(path, columns=3, rows=5, size=(11, 14.5)) as grid:
        for column, (name, shape) in enumerate(SHAPES.items()):
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
    return [path]


def _profiles(axes: Any, found: Results, name: str, kind: str) -> None:
    shape = SHAPES[name]
    axes.plot(GRID, shape.density(GRID), color="black", linewidth=2, alpha=0.4, label="p")
    for k, color in SIZES.items():
        result = found.get(f"density/{name}-1d-{k}-0")
        if result and kind in result:
            profile = result[kind]["profile"]
            axes.plot(GRID, profile, color=color, linewidth=0.9, label=f"k = {k}")
    axes.set(ylim=(0, 1.4 * shape.most), xlabel="x")


def _errors(axes: Any, found: Results, name: str, dim: int) -> None:
    for (kind, key), (color, label) in KINDS.items():
        if by_size := curve(found, name, dim, kind, key):
            means = [np.mean(values) for values in by_size.values()]
            dashes = "--o" if kind == "quantiles" else "-o"
            axes.plot(list(by_size), means, dashes, color=color, label=label, markersize=4)
    if not axes.lines:
        return not_run(axes)
    axes.set(xscale="log", yscale="log", xlim=(8, 1250), ylim=(5e-4, 2), xlabel="clusters k")


def _balance(axes: Any, found: Results, name: str) -> None:
    for dim, marker in ((1, "o"), (2, "s")):
        for kind, color in (("online", "#3b6fb6"), ("slower", "#2a9d62")):
            if by_size := curve(found, name, dim, kind, "cv"):
                label = f"{dim}-D, {CELLS[kind]}"
                means = [np.mean(values) for values in by_size.values()]
                axes.plot(list(by_size), means, f"-{marker}", color=color, label=label, markersize=4)
    if not axes.lines:
        return not_run(axes)
    axes.set(xscale="log", xlim=(8, 1250), ylim=(0, 0.55), xlabel="clusters k")
