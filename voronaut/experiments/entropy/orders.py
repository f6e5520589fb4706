"""Does the objective order laws by entropy? Six laws in two dimensions, as in the paper, and three ways to cluster."""

import math
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from voronaut import presets
from voronaut.bonuses.kme import KME
from voronaut.entropy.scale_free.stream import ScaleFree
from voronaut.experiments.common.drawing import GREY, NOT_RUN, not_run
from voronaut.experiments.common.jobs import Job, Results, Values
from voronaut.experiments.entropy.curves import curves, falling, finite, line
from voronaut.helpers.markdown import table
from voronaut.helpers.plotting import figure

Floats = NDArray[np.float64]
CHECKPOINTS = (1_000, 2_000, 5_000, 10_000, 20_000, 50_000, 100_000, 200_000, 500_000, 1_000_000)
SEEDS = 5
BATCH = 1_000
CLUSTERS = 300  # of every way
COLORS = ("#1f3d7a", "#3b7dd8", "#2a9d62", "#e0a21e", "#d9692b", "#a3262a")
READ_OUTS = ("objective", "entropy", "entropy_bound")


class Cloud(NamedTuple):
    """Gaussians of one variance around some means; no means: uniform on [−1, 1]²."""

    label: str
    means: tuple[tuple[float, float], ...]
    variance: float

    def sample(self, n: int, rng: np.random.Generator) -> Floats:
        """(n, 2) points."""
        if not self.means:
            return rng.uniform(-1, 1, (n, 2))
        means = np.array(self.means)[rng.integers(0, len(self.means), n)]
        return np.asarray(means + math.sqrt(self.variance) * rng.normal(size=(n, 2)))

    def entropy(self) -> float:
        """Nats: closed for one Gaussian and the uniform, by a sum over a fine grid for the mixtures."""
        if not self.means:
            return math.log(4)
        grid = np.linspace(-2.5, 2.5, 1501)
        exponents = [np.add.outer((grid - x) ** 2, (grid - y) ** 2) / (-2 * self.variance) for x, y in self.means]
        density = np.exp(exponents).sum(axis=0) / (len(self.means) * 2 * math.pi * self.variance)
        filled = density[density > 0]
        return float(-(filled * np.log(filled)).sum() * (grid[1] - grid[0]) ** 2)


CORNERS = ((0.5, 0.5), (-0.5, -0.5), (0.5, -0.5), (-0.5, 0.5))
# By falling entropy. The paper names the kinds; means and variances are chosen here.
CLOUDS = {
    "uniform": Cloud("U", (), 1.0),
    "four": Cloud("4N(0.02)", CORNERS, 0.02),
    "two": Cloud("2N(0.02)", CORNERS[:2], 0.02),
    "wide": Cloud("N(0.02)", ((0.0, 0.0),), 0.02),
    "medium": Cloud("N(0.01)", ((0.0, 0.0),), 0.01),
    "narrow": Cloud("N(0.001)", ((0.0, 0.0),), 0.001),
}
WAYS: Mapping[str, Any] = {
    "zeros": partial(KME, **presets.paper().kme),  # the paper's numbers, and its start
    "data": partial(KME, **{**presets.paper().kme, "init": "data"}),
    "auto": ScaleFree,
}
LABELS = {
    "zeros": "the paper's numbers,\ncenters start at 0",
    "data": "the paper's numbers,\ncenters start at states",
    "auto": "scale-free,\ncenters start at states",
}


def work(cloud: str, way: str, seed: int, points: int, batch: int) -> Values:
    """Cluster a stream of points and read the clusters at the checkpoints.

    The paper's numbers go state by state (Algorithm 1), which counts recomputations; the rest in shuffled batches.
    """
    law, rng = CLOUDS[cloud], np.random.default_rng([seed, 17])
    kme = WAYS[way](2, seed=seed)
    rows: dict[str, list[float]] = {name: [] for name in ("points", "objective", "entropy", "entropy_bound", "cv")}
    absorb = kme.update if way == "auto" else kme.step
    for done in range(batch, points + 1, batch):
        absorb(law.sample(batch, rng))
        if done in CHECKPOINTS or done == points:
            metrics = kme.metrics()
            rows["points"].append(done)
            for name in READ_OUTS:
                rows[name].append(finite(metrics[name]))
            rows["cv"].append(round(metrics["cell_mass_cv"], 4))
    centers = [[round(float(x), 3) for x in center] for center in kme.centers] if seed == 0 else []
    counted = {name: metrics.get(f"{name}_gaps", 0.0) for name in ("grown", "recomputed")}
    return {**rows, **counted, "centers": centers}


def jobs(seeds: int = SEEDS, points: int = CHECKPOINTS[-1]) -> list[Job]:
    """Six laws, three ways."""
    return [
        Job(
            "orders", f"{cloud}-{way}-{seed}", work,
            {"cloud": cloud, "way": way, "seed": seed, "points": points, "batch": min(BATCH, points)},
            {"zeros": 9.0, "data": 9.0, "auto": 2.0}[way] + seed / 10,
        )
        for cloud in CLOUDS for way in WAYS for seed in range(seeds)
    ]  # fmt: skip


def ordered(found: Results, way: str, seed: int, read_out: str = "objective") -> dict[int, bool] | None:
    """Whether the six laws stand in their order, at each checkpoint; None if a result is missing."""
    return falling(found, [f"orders/{cloud}-{way}-{seed}" for cloud in CLOUDS], read_out)


def right_from(found: Results, way: str, seed: int, read_out: str = "objective") -> float | None:
    """From how many points on the order is right at every checkpoint; infinity if it is wrong at the last."""
    right = ordered(found, way, seed, read_out)
    if right is None:
        return None
    wrong = [points for points, holds in right.items() if not holds]
    after = [points for points in right if points > max(wrong, default=0)]
    return min(after, default=math.inf)


def computed(found: Results) -> dict[str, str]:
    """From how many points on all seeds have the six laws in their order."""
    rows = []
    for way, label in LABELS.items():
        row = [label.replace("\n", " ")]
        for read_out in READ_OUTS:
            firsts = [right_from(found, way, seed, read_out) for seed in range(SEEDS)]
            row.append(_worst([first for first in firsts if first is not None]))
        rows.append(row)
    return {"orders": table(["", "objective L", "`entropy()`", "Theorem 2's bound"], rows)}


def _worst(firsts: Sequence[float]) -> str:
    if not firsts:
        return NOT_RUN
    text = "never" if math.isinf(max(firsts)) else f"{max(firsts):,.0f}"
    return f"{text} ({len(firsts)} seed{'s' if len(firsts) > 1 else ''})"


def draw(found: Results, figures: Path) -> list[Path]:
    """orders.png and points.png."""
    return [draw_orders(found, figures / "orders.png"), draw_points(found, figures / "points.png")]


def draw_orders(found: Results, path: Path) -> Path:
    """L_sqrt / k over the number of points; grey where the order is wrong for some seed."""
    with figure(path, columns=3, size=(12, 4.2)) as grid:
        for axes, (way, title) in zip(grid, LABELS.items(), strict=True):
            for color, (name, cloud) in zip(COLORS, CLOUDS.items(), strict=True):
                names = [f"orders/{name}-{way}-{seed}" for seed in range(SEEDS)]
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


def _shade_wrong(axes: Any, found: Results, way: str) -> None:
    """Grey up to the last checkpoint where some seed has the order wrong."""
    told = [right for seed in range(SEEDS) if (right := ordered(found, way, seed))]
    wrong = max((p for right in told for p, holds in right.items() if not holds), default=0)
    if told and wrong:
        axes.axvspan(axes.get_xlim()[0], wrong, color="#eeeeee", zorder=0)
        axes.text(0.03, 0.97, "order wrong", transform=axes.transAxes, va="top", color=GREY, style="italic")
        axes.set_xlim(left=800)


def draw_points(found: Results, path: Path) -> Path:
    """Points and centers after the whole stream, as the paper's six panels, for two of the ways."""
    rows = ("zeros", "auto")
    with figure(path, columns=6, rows=2, size=(13, 4.8)) as grid:
        for row, way in zip(grid, rows, strict=True):
            for axes, (name, cloud) in zip(row, CLOUDS.items(), strict=True):
                result = found.get(f"orders/{name}-{way}-0")
                if result is None:
                    not_run(axes)
                    continue
                points = cloud.sample(3_000, np.random.default_rng(0))
                axes.plot(*points.T, ".", color="#9db8dc", markersize=1.2, rasterized=True)
                axes.plot(*np.array(result["centers"]).T, ".", color="#e0701e", markersize=3)
                _frame(axes, 1.1 if len(cloud.means) != 1 else 4.5 * cloud.variance**0.5)
                axes.set_title(f"{cloud.label}: {cloud.entropy():.2f} nats" if way == rows[0] else "")
            row[0].set_ylabel(LABELS[way])
    return path


def _frame(axes: Any, half: float) -> None:
    """A square of ± half a width, which is written below it: narrow Gaussians are shown larger."""
    axes.set(aspect="equal", xlim=(-half, half), ylim=(-half, half), yticks=[])
    axes.set_xticks([-half, half], [f"−{half:.2g}", f"{half:.2g}"], fontsize=8, color=GREY)
