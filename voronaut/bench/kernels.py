"""`voronaut bench kernels`: microseconds per state, and the ratio to a floor measured in the same run.

The floor is a bare loop that only forms the k squared distances of each state, written as well as the kernels' own.
"""

from pathlib import Path
from typing import Any

import numpy as np

from voronaut import machine
from voronaut.bench import measure
from voronaut.kernels import cpu
from voronaut.kernels.compiled import compiled
from voronaut.kernels.cpu.distances import Floats, aligned, squared_distances
from voronaut.kernels.rules import Rules

CLUSTERS = (300, 3000)
DIMS = (5, 17, 24, 67, 78)
STATES = 16_384
RULES = Rules(step_size=0.05, balance=1e-4)
AIMS = {"update": "2x", "rewards": "4x at d = 17, 2x at d = 67", "step": "8x"}


@compiled
def floor_rows(states: Floats, centers: Floats, out: Floats) -> None:
    """‖s − μ_j‖² of every state and cluster, each overwritten by the next state's. OUT: out (width,)."""
    for r in range(states.shape[0]):
        squared_distances(centers, states[r], out)


def cost(clusters: int, dim: int, states: int = STATES, budget: float = 3.0) -> dict[str, float]:
    """Microseconds per state of the floor and of each kernel, on clusters that have settled on Gaussian states."""
    rng = np.random.default_rng(0)
    batch = rng.normal(size=(states, dim)).astype(np.float32)
    order = rng.permutation(states)
    centers, counts = batch[rng.permutation(states)[:clusters]], np.ones(clusters, np.int64)
    for _ in range(3):
        centers, counts = cpu.update(centers, counts, batch, order, RULES)
    prepared = cpu.prepare(centers, counts, RULES.balance)
    kept, out = cpu.keep(prepared), aligned(prepared.clusters.weight.shape, prepared.clusters.weight.dtype)
    work = {
        "floor": lambda: floor_rows(batch, prepared.clusters.centers, out),
        "update": lambda: cpu.prepare(*cpu.update(centers, counts, batch, order, RULES), RULES.balance),
        "rewards": lambda: cpu.rewards(prepared, batch, RULES),
        "step": lambda: cpu.step(centers, counts, kept, batch, RULES),
    }
    return {name: took / states * 1e6 for name, took in measure.seconds(work, budget=budget).items()}


def row(clusters: int, dim: int, micros: dict[str, float]) -> dict[str, Any]:
    """A line of the table: times, and ratios to the floor."""
    ratios = {f"{name}/floor": micros[name] / micros["floor"] for name in ("update", "rewards", "step")}
    return {"clusters": clusters, "dim": dim, **micros, **ratios}


def run(folder: Path) -> str:
    """Measure, keep tables and a plot in `folder`, and return the tables."""
    grid = [row(k, d, cost(k, d)) for k in CLUSTERS for d in DIMS]
    growth_k = [row(k, 17, cost(k, 17, budget=1.0)) for k in (50, 100, 200, 300, 600, 1200, 2400)]
    growth_d = [row(300, d, cost(300, d, budget=1.0)) for d in (2, 4, 8, 16, 32, 64, 128)]
    text = "\n\n".join(
        [
            f"# Kernels: microseconds per state, {STATES} float32 states, one thread",
            "`update` includes rebuilding the gaps at its end. Aims at 300 clusters: "
            + ", ".join(f"{name} {aim}" for name, aim in AIMS.items())
            + ".",
            measure.table(grid),
            "## Growth with the number of clusters (d = 17)",
            measure.table(growth_k),
            "## Growth with the dimension (k = 300)",
            measure.table(growth_d),
        ]
    )
    result = {"machine": machine.describe(), "grid": grid, "growth_k": growth_k, "growth_d": growth_d}
    measure.keep(folder, "kernels", result, text)
    plot(result, folder / "kernels.png")
    return text


def plot(result: dict[str, Any], path: Path) -> None:
    """Cost against k and against d on logarithmic axes: straight lines of slope 1 are linear growth."""
    from voronaut.plotting import figure

    with figure(path, 2, (11, 4.2)) as axes:
        for axis, key, variable, label in zip(
            axes,
            ("growth_k", "growth_d"),
            ("clusters", "dim"),
            ("clusters k (d = 17)", "dimension d (k = 300)"),
            strict=True,
        ):
            rows = result[key]
            x = [r[variable] for r in rows]
            for name in ("step", "rewards", "update", "floor"):
                axis.loglog(x, [r[name] for r in rows], "o-", label=name, color="0.4" if name == "floor" else None)
            guide = rows[-1]["floor"] * np.array(x) / x[-1] * 0.5
            axis.loglog(x, guide, ":", color="0.6", label="linear growth")
            axis.set(xlabel=label, ylabel="µs per state")
            axis.legend()
