"""The paper's entropy figures from the result files: orderings, clouds, walks, recomputations; and the shift."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from voronaut.experiments.common.drawing import GREY, not_run
from voronaut.experiments.common.jobs import Values
from voronaut.experiments.entropy import orders, shift, steps, walks
from voronaut.plotting import figure

SIX = ("#1f3d7a", "#3b7dd8", "#2a9d62", "#e0a21e", "#d9692b", "#a3262a")
THREE = ("#3b6fb6", "#e08a1e", "#c8443f")
WAYS = {
    "zeros": "the paper's numbers,\ncenters start at 0",
    "data": "the paper's numbers,\ncenters start at states",
    "auto": "scale-free,\ncenters start at states",
}
CLUSTERS = 300


def draw(found: Mapping[str, Values], figures: Path) -> list[Path]:
    """Everything in this file."""
    drawn = (draw_orders, draw_points, draw_walks, draw_steps, draw_shift)
    return [one(found, figures) for one in drawn]


def curves(found: Mapping[str, Values], names: Sequence[str], key: str) -> tuple[Any, Any] | None:
    """(points, (seeds, points) values) of the results that are there, NaN for what was not finite."""
    there = [found[name] for name in names if name in found]
    if not there:
        return None
    values = [[np.nan if v is None else v for v in result[key]] for result in there]
    return np.array(there[0]["points"]), np.array(values, float)


def line(axes: Any, curve: tuple[Any, Any] | None, color: str, label: str, divide: float = 1.0) -> None:
    """Mean over seeds, and their range."""
    if curve is None:
        return
    points, values = curve[0], curve[1] / divide
    axes.plot(points, values.mean(axis=0), "-o", color=color, linewidth=1.5, markersize=3, label=label)
    if len(values) > 1:
        axes.fill_between(points, values.min(axis=0), values.max(axis=0), color=color, alpha=0.15, linewidth=0)


def draw_orders(found: Mapping[str, Values], figures: Path) -> Path:
    """orders.png: L_sqrt / k over the number of points; grey where the order is wrong for some seed."""
    path = figures / "orders.png"
    with figure(path, columns=3, size=(12, 4.2)) as grid:
        for axes, (way, title) in zip(grid, WAYS.items(), strict=True):
            for color, (name, cloud) in zip(SIX, orders.CLOUDS.items(), strict=True):
                names = [f"orders/{name}-{way}-{seed}" for seed in range(orders.SEEDS)]
                line(axes, curves(found, names, "objective"), color, cloud.label, CLUSTERS)
            if not axes.lines:
                not_run(axes)
                continue
            axes.set(xscale="log", title=title, xlabel="points")
            _shade_wrong(axes, found, way)
        grid[0].set_ylabel(r"$L_{\sqrt{\cdot}}\;/\;k$")
        handles: Any = next((a.get_legend_handles_labels() for a in grid if a.lines), ([], []))
        grid[-1].legend(*handles, title="falling entropy ↓", loc="center left", bbox_to_anchor=(1, 0.5))
    return path


def _shade_wrong(axes: Any, found: Mapping[str, Values], way: str) -> None:
    """Grey up to the last checkpoint where some seed has the order wrong."""
    told = [right for seed in range(orders.SEEDS) if (right := orders.ordered(found, way, seed))]
    wrong = max((p for right in told for p, holds in right.items() if not holds), default=0)
    if told and wrong:
        axes.axvspan(axes.get_xlim()[0], wrong, color="#eeeeee", zorder=0)
        axes.text(0.03, 0.97, "order wrong", transform=axes.transAxes, va="top", color=GREY, style="italic")
        axes.set_xlim(left=800)


def draw_points(found: Mapping[str, Values], figures: Path) -> Path:
    """points.png: points and centers after the whole stream, as the paper's six panels, for two of the ways."""
    path, rows = figures / "points.png", ("zeros", "auto")
    with figure(path, columns=6, rows=2, size=(13, 4.8)) as grid:
        for row, way in zip(grid, rows, strict=True):
            for axes, (name, cloud) in zip(row, orders.CLOUDS.items(), strict=True):
                result = found.get(f"orders/{name}-{way}-0")
                if result is None:
                    not_run(axes)
                    continue
                points = cloud.sample(3_000, np.random.default_rng(0))
                axes.plot(*points.T, ".", color="#9db8dc", markersize=1.2, rasterized=True)
                axes.plot(*np.array(result["centers"]).T, ".", color="#e0701e", markersize=3)
                _frame(axes, 1.1 if len(cloud.means) != 1 else 4.5 * cloud.variance**0.5)
                axes.set_title(f"{cloud.label}: {cloud.entropy():.2f} nats" if way == rows[0] else "")
            row[0].set_ylabel(WAYS[way])
    return path


def _frame(axes: Any, half: float) -> None:
    """A square of ± half a width, which is written below it: narrow Gaussians are shown larger."""
    axes.set(aspect="equal", xlim=(-half, half), ylim=(-half, half), yticks=[])
    axes.set_xticks([-half, half], [f"−{half:.2g}", f"{half:.2g}"], fontsize=8, color=GREY)


ROWS = (
    ("metropolis", "zeros.objective", CLUSTERS, "Metropolis walk\n" r"$L_{\sqrt{\cdot}}/k$, the paper's numbers"),
    ("release", "zeros.objective", CLUSTERS, "the release's walk\n" r"$L_{\sqrt{\cdot}}/k$, the paper's numbers"),
    ("metropolis", "auto.entropy", 1, "Metropolis walk\nentropy in nats, scale-free"),
    ("release", "auto.entropy", 1, "the release's walk\nentropy in nats, scale-free"),
)


def draw_walks(found: Mapping[str, Values], figures: Path) -> Path:
    """walks.png: objective and entropy along random walks; dashed: the truth of the Gaussian walked on."""
    path = figures / "walks.png"
    with figure(path, columns=3, rows=len(ROWS), size=(11, 11)) as grid:
        for row, (sampler, key, divide, name) in zip(grid, ROWS, strict=True):
            for axes, dim in zip(row, walks.DIMS, strict=True):
                for color, variance in zip(THREE, walks.VARIANCES, strict=True):
                    names = [f"walks/{sampler}-{dim}-{variance}-{seed}" for seed in range(walks.SEEDS)]
                    line(axes, curves(found, names, key), color, rf"$\sigma^2={variance:g}$", divide)
                    if key.endswith("entropy") and axes.lines:
                        axes.axhline(walks.truth(dim, variance), color=color, linestyle="--", linewidth=1)
                if not axes.lines:
                    not_run(axes)
                    continue
                axes.set(xscale="log")
            row[0].set_ylabel(name)
        for axes, dim in zip(grid[0], walks.DIMS, strict=True):
            axes.set_title(f"d = {dim}")
        for axes in grid[-1]:
            axes.set_xlabel("states")
        if grid[0, 0].lines:
            grid[0, 0].legend(loc="upper left")
    return path


def draw_steps(found: Mapping[str, Values], figures: Path) -> Path:
    """recomputed.png: share of the steps in which a gap grew (the paper recomputes it), and in which one had to be."""
    path = figures / "recomputed.png"
    kinds = {
        "steps_with_grown": "some gap grew:\nAlgorithm 1 recomputes it",
        "steps_with_recomputed": "recomputed here",
    }
    with figure(path, columns=2, size=(11.5, 3.6)) as grid:
        for axes, init in zip(grid, ("zeros", "data"), strict=True):
            for offset, (key, label) in zip((-0.2, 0.2), kinds.items(), strict=True):
                places, means = [], []
                for place, dim in enumerate(steps.DIMS):
                    shares = step_shares(found, dim, init, key)
                    if shares:
                        places.append(place + offset)
                        means.append(100 * float(np.mean(shares)))
                axes.bar(places, means, width=0.38, label=label, color="#3b6fb6" if offset < 0 else "#2a9d62")
            axes.axhline(0.01, color="#c8443f", linestyle="--", label="the paper: about 0.01 %")
            axes.set_xticks(range(len(steps.DIMS)), [f"d = {dim}" for dim in steps.DIMS])
            axes.set(yscale="log", ylim=(0.003, 150))
            axes.set_title(f"centers start at {'0' if init == 'zeros' else 'states'}")
            axes.set_yticks([0.01, 0.1, 1, 10, 100], ["0.01", "0.1", "1", "10", "100"])
        grid[0].set_ylabel("% of steps")
        grid[1].legend(loc="center left", bbox_to_anchor=(1, 0.5), fontsize=9)
    return path


def step_shares(found: Mapping[str, Values], dim: int, init: str, key: str) -> list[float]:
    """One number per seed that is there."""
    names = [f"steps/{dim}-{init}-{seed}" for seed in range(steps.SEEDS)]
    return [float(found[name][key]) for name in names if name in found]


def draw_shift(found: Mapping[str, Values], figures: Path) -> Path:
    """shift.png: share of the cells that hold any of the new states, after N(0, I) became N(shift, I)."""
    path = figures / "shift.png"
    colors = {"paper": GREY, "auto": "#2a9d62"}
    labels = {"paper": "κ = 1e-4, α = 0.05", "auto": "scale-free"}
    with figure(path, columns=len(shift.DIMS), rows=2, size=(12, 5)) as grid:
        for row, distance in zip(grid, shift.SHIFTS, strict=True):
            for axes, dim in zip(row, shift.DIMS, strict=True):
                for way in shift.WAYS:
                    names = [f"shift/{dim}-{distance:g}-1-{way}-{seed}" for seed in range(shift.SEEDS)]
                    there = [found[name] for name in names if name in found]
                    if there:
                        used = np.array([result["used_after"] for result in there])
                        points = there[0]["batch"] * np.arange(1, used.shape[1] + 1)
                        axes.plot(points / 1e3, used.mean(axis=0), color=colors[way], label=labels[way])
                axes.set(ylim=(0, 1.05))
            row[0].set_ylabel(f"shift of {distance:g} deviations\ncells in use")
        for axes, dim in zip(grid[0], shift.DIMS, strict=True):
            axes.set_title(f"d = {dim}")
        for axes in grid[-1]:
            axes.set_xlabel("thousand states after the shift")
        if grid[0, 1].lines:
            grid[0, 1].legend(loc="lower right", fontsize=9)
    return path
