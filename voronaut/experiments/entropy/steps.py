"""How often must Algorithm 1 recompute a gap? The paper says in about 0.01 % of the steps."""

from pathlib import Path
from typing import Any

import numpy as np

from voronaut import presets
from voronaut.bonuses.kme import KME
from voronaut.experiments.common.drawing import NOT_RUN
from voronaut.experiments.common.jobs import Job, Results, Values
from voronaut.helpers.markdown import table
from voronaut.helpers.plotting import figure

DIMS = (2, 4, 17, 64)
POINTS = 300_000
WATCHED = 3_000  # steps looked at one by one, at the end
SEEDS = 3


def work(dim: int, init: Any, seed: int, points: int, watched: int) -> Values:
    """Gaussian states one by one with the paper's numbers: gaps that grew and gaps recomputed, per step."""
    rng = np.random.default_rng([seed, 23])
    kme = KME(dim, seed=seed, **{**presets.paper().kme, "init": init})
    for start in range(0, points, 10_000):
        kme.step(rng.normal(size=(min(10_000, points - start), dim)))
    before = _totals(kme)
    grew = again = 0
    for state in rng.normal(size=(watched, 1, dim)):
        last = _totals(kme)
        kme.step(state)
        now = _totals(kme)
        grew += now[0] > last[0]
        again += now[1] > last[1]
    return {
        "grown_per_step": before[0] / points, "recomputed_per_step": before[1] / points,
        "steps_with_grown": grew / watched, "steps_with_recomputed": again / watched,
    }  # fmt: skip


def _totals(kme: KME) -> tuple[int, int]:
    """What `metrics` says of both, without the rest that it measures."""
    totals = kme.state_dict()["totals"]
    return int(totals[3]), int(totals[4])


def jobs(seeds: int = SEEDS, points: int = POINTS) -> list[Job]:
    """Four dimensions, both starts."""
    return [
        Job(
            "steps", f"{dim}-{init}-{seed}", work,
            {"dim": dim, "init": init, "seed": seed, "points": points, "watched": min(WATCHED, points)},
            {2: 4.0, 4: 4.0, 17: 6.0, 64: 15.0}[dim] + seed / 10,
        )
        for dim in DIMS for init in ("zeros", "data") for seed in range(seeds)
    ]  # fmt: skip


def shares(found: Results, dim: int, init: str, key: str) -> list[float]:
    """One number per seed that is there."""
    names = [f"steps/{dim}-{init}-{seed}" for seed in range(SEEDS)]
    return [float(found[name][key]) for name in names if name in found]


def computed(found: Results) -> dict[str, str]:
    """Shares of steps, and gaps per step."""
    rows = []
    for init in ("zeros", "data"):
        for dim in DIMS:
            keys = ("steps_with_grown", "grown_per_step", "steps_with_recomputed", "recomputed_per_step")
            told = [shares(found, dim, init, key) for key in keys]
            if not told[0]:
                rows.append(["0" if init == "zeros" else "states", dim, *[NOT_RUN] * 4])
                continue
            means = [float(np.mean(values)) for values in told]
            rows.append(["0" if init == "zeros" else "states", dim, f"{means[0]:.0%}", f"{means[1]:.2f}",
                         f"{means[2]:.0%}", f"{means[3]:.2f}"])  # fmt: skip
    head = ["centers start at", "d", "steps in which a gap grew", "such gaps per step", "steps that recompute here",
            "gaps recomputed per step"]  # fmt: skip
    return {"steps": table(head, rows)}


def draw(found: Results, figures: Path) -> list[Path]:
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
                for place, dim in enumerate(DIMS):
                    if told := shares(found, dim, init, key):
                        places.append(place + offset)
                        means.append(100 * float(np.mean(told)))
                axes.bar(places, means, width=0.38, label=label, color="#3b6fb6" if offset < 0 else "#2a9d62")
            axes.axhline(0.01, color="#c8443f", linestyle="--", label="the paper: about 0.01 %")
            axes.set_xticks(range(len(DIMS)), [f"d = {dim}" for dim in DIMS])
            axes.set(yscale="log", ylim=(0.003, 150))
            axes.set_title(f"centers start at {'0' if init == 'zeros' else 'states'}")
            axes.set_yticks([0.01, 0.1, 1, 10, 100], ["0.01", "0.1", "1", "10", "100"])
        grid[0].set_ylabel("% of steps")
        grid[1].legend(loc="center left", bbox_to_anchor=(1, 0.5), fontsize=9)
    return [path]
