"""The figures of docs/idea.md, drawn by the library itself: `python -m voronaut.pages.idea` (seconds)."""

from pathlib import Path
from typing import Any

import numpy as np

from voronaut.bonuses.kme import KME
from voronaut.clusters import Array
from voronaut.helpers.plotting import COLORS, figure

FIGURES = Path("docs/figures/idea")
MEMORIES = 64  # of one memory the picture has wedges: what a state earns depends on the center that it would move
OWN = {"balance": "auto", "dtype": "float64"}  # the library's own rule, without the paper's handicaps
INK, PALE = "#1f2430", "#9aa7b8"


def walk(steps: int, seed: int = 0, length: float = 0.02) -> Array:
    """A walk in the unit square that turns slowly and is thrown back by the walls, (steps, 2)."""
    rng = np.random.default_rng(seed)
    heading = rng.uniform(0, 2 * np.pi) + np.cumsum(rng.normal(scale=0.3, size=steps))
    moves = length * np.stack([np.cos(heading), np.sin(heading)], axis=1)
    free = 0.5 + np.cumsum(moves, axis=0)
    return np.asarray(1 - np.abs(1 - np.mod(free, 2)))


def clustered(states: Array, rollout: int = 250, **options: Any) -> KME:
    """A KME that has taken in the states, rollout by rollout."""
    kme = KME(2, **{"clusters": 40, "init": "data", "balance": 1e-3, **options})
    for start in range(0, len(states), rollout):
        kme.update(states[start : start + rollout])
    return kme


def edges(axes: Any, centers: Array, color: str = INK) -> None:
    """Borders between the cells of the centers, cut off at the axes, and the centers."""
    from scipy.spatial import Voronoi

    far = 10 * np.array([[-1, -1], [-1, 1], [1, -1], [1, 1], [0, -1], [0, 1], [-1, 0], [1, 0]], float)
    diagram = Voronoi(np.concatenate([centers, far * np.ptp(centers, axis=0).max() + centers.mean(axis=0)]))
    for ridge in diagram.ridge_vertices:
        if min(ridge) >= 0:
            axes.plot(*diagram.vertices[ridge].T, color=color, lw=0.6, alpha=0.7)
    axes.plot(*centers.T, "o", color=color, ms=3)


def square(axes: Any, low: float, high: float, title: str) -> None:
    """A square view without numbers."""
    axes.set(xlim=(low, high), ylim=(low, high), xticks=[], yticks=[], aspect="equal")
    axes.set_title(title, fontsize=10)
    for side in axes.spines.values():
        side.set_visible(True)
        side.set_color(PALE)


def memory(path: Path) -> Path:
    """What the clusters remember of a walk: objective and entropy grow as it gets around."""
    states = walk(16_000)
    with figure(path, 3, (10, 3.95)) as panels:
        for axes, steps in zip(panels, (250, 2000, 16_000), strict=True):
            kme = clustered(states[:steps])
            axes.plot(*states[:steps][:: max(1, steps // 2000)].T, ".", color=COLORS["kme"], ms=2, alpha=0.6)
            edges(axes, kme.centers)
            objective, entropy = kme.objective_value(), kme.entropy()
            square(axes, 0, 1, f"after {steps:,} steps\nobjective {objective:.1f}, entropy {entropy:.2f} nats")
    return path


def worth(path: Path) -> Path:
    """What a state would earn, at every place, after the left half has been visited: the mean of many memories."""
    side = np.linspace(-0.05, 1.05, 221)
    grid = np.stack(np.meshgrid(side, side), axis=-1)
    walks = [walk(8000, seed) * [0.5, 1.0] for seed in range(MEMORIES)]
    paid = [clustered(states, rollout=500, **OWN, seed=seed).rewards(grid) for seed, states in enumerate(walks)]
    earned, most = np.mean(paid, axis=0), np.mean(paid, axis=0).max()
    with figure(path, 1, (5, 4.1)) as axes:
        shown = axes.pcolormesh(side, side, earned, cmap="PRGn", vmin=-most, vmax=most, rasterized=True)
        axes.plot(*walks[0][::8].T, ".", color=INK, ms=1, alpha=0.35)
        square(axes, -0.05, 1.05, "what a state would earn, in deviations")
        axes.figure.colorbar(shown, ax=axes, shrink=0.85)
    return path


def uneven(states: int = 20_000, seed: int = 0) -> Array:
    """A dense spot in a wide plain."""
    rng = np.random.default_rng(seed)
    spot, plain = rng.normal([0.3, 0.3], 0.06, size=(states // 2, 2)), rng.uniform(0, 1, size=(states // 2, 2))
    return rng.permutation(np.concatenate([spot, plain]))


def balance(path: Path) -> Path:
    """Centers and cell masses without balancing, with enough, and with far too much."""
    states = uneven()
    with figure(path, 3, (10, 3.95)) as panels:
        for axes, kappa in zip(panels, (0.0, 1e-3, 1.0), strict=True):
            kme = clustered(states, rollout=2000, clusters=60, balance=kappa)
            axes.plot(*states[::8].T, ".", color=PALE, ms=1.5)
            edges(axes, kme.centers)
            square(axes, 0, 1, f"κ = {kappa:g}\nspread of cell masses {kme.metrics()['cell_mass_cv']:.2f}")
    return path


def draw(figures: Path = FIGURES) -> list[Path]:
    """All figures of the page."""
    return [memory(figures / "memory.png"), worth(figures / "worth.png"), balance(figures / "balance.png")]


if __name__ == "__main__":
    print(*draw(), sep="\n")
