"""`voronaut bench kernels`: microseconds per state, and the ratio to a floor measured in the same run.

The floor is a bare loop that only forms the k squared distances of each state, written as well as the kernels' own.
"""

from pathlib import Path
from typing import Any

import numpy as np

from voronaut import views as judge
from voronaut.bench import measure
from voronaut.kernels import cpu
from voronaut.kernels.compiled import compiled
from voronaut.kernels.cpu.distances import Floats, aligned, squared_distances
from voronaut.kernels.rules import Rules

CLUSTERS = (300, 3000)
DIMS = (5, 17, 24, 67, 78)
STATES = 16_384
STEP = 0.05
RULES = Rules(step_size=STEP, balance=1e-4)
VIEWS = (
    (67, 1, 32),
    (67, 2, 64),
    (1, 67, 300),
    (1, 17, 300),
    (1, 4, 300),
)  # how many, of how many coordinates, clusters
AIMS = "update 2x, rewards 4x at d = 17, 2x at d = 67, step 8x"


@compiled
def floor_rows(states: Floats, centers: Floats, out: Floats) -> None:
    """‖s − μ_j‖² of every state and cluster, each overwritten by the next state's. OUT: out (width,)."""
    for r in range(states.shape[0]):
        squared_distances(centers, states[r], out)


def cost(clusters: int, dim: int, states: int = STATES, budget: float = 3.0) -> dict[str, Any]:
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
    micros = {name: took / states * 1e6 for name, took in measure.seconds(work, budget=budget).items()}
    ratios = {f"{name}/floor": micros[name] / micros["floor"] for name in ("update", "rewards", "step")}
    return {"clusters": clusters, "dim": dim, **micros, **ratios}


def view_cost(views: int, view_dim: int, clusters: int, states: int = STATES, budget: float = 3.0) -> dict[str, Any]:
    """Microseconds per state of views, settled on Gaussian states, and beside them of 300 clusters without balance."""
    dim, rng, alone = max(views, view_dim), np.random.default_rng(0), Rules(STEP, 0.0)
    batch, columns = rng.normal(size=(states, dim)).astype(np.float32), judge.columns(dim, views, view_dim, 0)
    centers = np.stack([judge.start(batch[:, own].astype(float), clusters, 0).centers for own in columns])
    now = cpu.views.Views(columns, centers.astype(np.float32), np.ones((views, clusters)), np.zeros(views))
    one, ones, order = batch[:300].copy(), np.ones(min(300, states), np.int64), np.arange(states)
    for _ in range(3):
        now, one = cpu.views.update(now, batch, STEP), cpu.update(one, ones, batch, order, alone)[0]
    ready, weights, prepared = cpu.views.prepare(now), np.ones(views), cpu.prepare(one, ones, 0.0)
    work = {
        "rewards": lambda: cpu.views.rewards(ready, weights, batch, STEP),
        "update": lambda: cpu.views.update(now, batch, STEP),
        "step": lambda: cpu.views.step(now, batch, STEP),
        "prepare": lambda: cpu.views.prepare(now),
        "one's rewards": lambda: cpu.rewards(prepared, batch, alone),
        "one's update": lambda: cpu.update(one, ones, batch, order, alone),
    }
    micros = {name: took / states * 1e6 for name, took in measure.seconds(work, budget=budget).items()}
    ratios = {f"{name}/one's": micros[name] / micros[f"one's {name}"] for name in ("rewards", "update")}
    return {"views": views, "coordinates": view_dim, "clusters": clusters, **micros, **ratios}


def run(folder: Path) -> str:
    """Measure, keep tables and a plot in `folder`, and return the tables."""
    grid = [cost(k, d) for k in CLUSTERS for d in DIMS]
    growth_k = [cost(k, 17, budget=1.0) for k in (50, 100, 200, 300, 600, 1200, 2400)]
    growth_d = [cost(300, d, budget=1.0) for d in (2, 4, 8, 16, 32, 64, 128)]
    views = [view_cost(*shape) for shape in VIEWS]
    result = {"grid": grid, "growth_k": growth_k, "growth_d": growth_d, "views": views}
    plot(result, folder / "kernels.png")
    return measure.keep(folder, "kernels", result, [
        f"# Kernels: microseconds per state, {STATES} float32 states, one thread",
        f"`update` includes rebuilding the gaps at its end. Aims at 300 clusters: {AIMS}.",
        grid,
        "## Growth with the number of clusters (d = 17)",
        growth_k,
        "## Growth with the dimension (k = 300)",
        growth_d,
        "## Views: many small clusterings at once",
        "`one's`: 300 clusters of the whole state without balance, in the same run. All per state, `prepare` too. "
        "Aims: rewards 5 µs for 67 pairs, 2 µs for 67 singles; for one view no more than `one's`.",
        views,
    ])  # fmt: skip


def plot(result: dict[str, Any], path: Path) -> None:
    """Cost against k and against d on logarithmic axes: straight lines of slope 1 are linear growth."""
    from voronaut.helpers.plotting import figure

    shown = (("growth_k", "clusters", "clusters k (d = 17)"), ("growth_d", "dim", "dimension d (k = 300)"))
    with figure(path, 2, (11, 4.2)) as axes:
        for axis, (key, variable, label) in zip(axes, shown, strict=True):
            rows = result[key]
            x = [r[variable] for r in rows]
            for name in ("step", "rewards", "update", "floor"):
                axis.loglog(x, [r[name] for r in rows], "o-", label=name, color="0.4" if name == "floor" else None)
            guide = rows[-1]["floor"] * np.array(x) / x[-1] * 0.5
            axis.loglog(x, guide, ":", color="0.6", label="linear growth")
            axis.set(xlabel=label, ylabel="µs per state")
            axis.legend()
