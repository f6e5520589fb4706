"""Are cells balanced, and do clusters follow when the data moves? The paper's numbers and the scale-free rule."""

import math
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from voronaut import presets
from voronaut.bonuses.kme import KME
from voronaut.entropy.scale_free.stream import ScaleFree
from voronaut.experiments.common.drawing import GREY, NOT_RUN
from voronaut.experiments.common.jobs import Job, Results, Values
from voronaut.experiments.entropy.curves import edges
from voronaut.helpers.markdown import table
from voronaut.helpers.plotting import figure

DIMS = (2, 8, 17, 64)
SHIFTS = (3.0, 10.0)  # in deviations, along one diagonal
SEEDS = 3
BATCH = 10_000
SETTLE, FOLLOW = 300_000, 300_000
WAYS: Mapping[str, Any] = {"paper": partial(KME, **{**presets.paper().kme, "init": "data"}), "auto": ScaleFree}
LABELS = {"paper": "κ = 1e-4, α = 0.05", "auto": "scale-free"}
COLORS = {"paper": GREY, "auto": "#2a9d62"}


def work(dim: int, shift: float, way: str, scale: float, seed: int, settle: int, follow: int) -> Values:
    """N(0, I), then N(shift, I): cell masses before, and the share of cells in use as the points come after."""
    rng = np.random.default_rng([seed, 29])
    kme = WAYS[way](dim, seed=seed)
    away = shift / np.sqrt(dim)
    for _ in range(0, settle, BATCH):
        kme.update(scale * rng.normal(size=(BATCH, dim)))
    masses = _masses(kme, scale * rng.normal(size=(50_000, dim)))
    used = []
    for _ in range(0, follow, BATCH):
        kme.update(scale * (away + rng.normal(size=(BATCH, dim))))
        after = _masses(kme, scale * (away + rng.normal(size=(20_000, dim))))
        used.append(round(float((after > 0).mean()), 3))
    return {
        "cv": round(float(masses.std() / masses.mean()), 4), "dead": float((masses == 0).mean()), "used_after": used,
        "batch": BATCH,
    }  # fmt: skip


def _masses(kme: KME | ScaleFree, points: Any) -> Any:
    """How many of the points are in each cell of the clusters as they are."""
    from voronaut.kernels import cpu

    balance = kme.balance if isinstance(kme, ScaleFree) else kme.settings.balance
    view = cpu.prepare(np.ascontiguousarray(kme.centers), kme.counts, float(balance))
    return np.bincount(cpu.assign(view, np.ascontiguousarray(points, np.float64)), minlength=len(kme.counts))


def jobs(seeds: int = SEEDS, points: int = SETTLE) -> list[Job]:
    """Shifts in four dimensions at scale 1; without a shift at other scales."""
    cells = [(dim, shift, 1.0) for dim in DIMS for shift in SHIFTS]
    cells += [(dim, 0.0, scale) for dim in DIMS for scale in (1e-3, 1e3)]
    return [
        Job(
            "shift", f"{dim}-{shift:g}-{scale:g}-{way}-{seed}", work,
            {"dim": dim, "shift": shift, "way": way, "scale": scale, "seed": seed, "settle": points,
             "follow": FOLLOW if shift else 0},
            3.0 + dim / 8 + seed / 10,
        )
        for dim, shift, scale in cells for way in WAYS for seed in range(seeds)
    ]  # fmt: skip


def _there(found: Results, dim: int, way: str, distance: float, scale: float = 1.0) -> list[Values]:
    """Results of every seed."""
    names = [f"shift/{dim}-{distance:g}-{scale:g}-{way}-{seed}" for seed in range(SEEDS)]
    return [found[name] for name in names if name in found]


def computed(found: Results) -> dict[str, str]:
    """Balance before, and states until 99 % of the cells are in use after a shift."""
    rows = []
    for dim in DIMS:
        for way, label in LABELS.items():
            later = [_used(_there(found, dim, way, distance)) for distance in SHIFTS]
            rows.append([dim, label, *_balance(found, dim, way), *later])
    head = ["d", "", "std / mean of cell masses at scale 0.001 / 1 / 1000", "dead cells, same scales",
            "states until 99 % in use, shift 3", "shift 10"]  # fmt: skip
    return {"shift": table(head, rows)}


def _balance(found: Results, dim: int, way: str) -> tuple[str, str]:
    told = [_there(found, dim, way, distance, scale) for distance, scale in ((0.0, 1e-3), (3.0, 1.0), (0.0, 1e3))]
    cvs = [f"{np.mean([r['cv'] for r in there]):.2f}" if there else "–" for there in told]
    dead = [f"{np.mean([r['dead'] for r in there]):.0%}" if there else "–" for there in told]
    return " / ".join(cvs), " / ".join(dead)


def _used(there: list[Values]) -> str:
    """The mean over seeds of the first batch after which 99 % of the cells stay in use."""
    times = []
    for result in there:
        last = max((at for at, used in enumerate(result["used_after"], 1) if used < 0.99), default=0)
        times.append((last + 1) * result["batch"] if last < len(result["used_after"]) else math.inf)
    if not times:
        return NOT_RUN
    return "over 300,000" if math.isinf(max(times)) else f"{np.mean(times):,.0f}"


def draw(found: Results, figures: Path) -> list[Path]:
    """shift.png: share of the cells that hold any of the new states, after N(0, I) became N(shift, I)."""
    path = figures / "shift.png"
    with figure(path, columns=len(DIMS), rows=2, size=(12, 5)) as grid:
        for row, distance in zip(grid, SHIFTS, strict=True):
            for axes, dim in zip(row, DIMS, strict=True):
                for way, label in LABELS.items():
                    if there := _there(found, dim, way, distance):
                        used = np.array([result["used_after"] for result in there])
                        points = there[0]["batch"] * np.arange(1, used.shape[1] + 1)
                        axes.plot(points / 1e3, used.mean(axis=0), color=COLORS[way], label=label)
                axes.set(ylim=(0, 1.05))
            row[0].set_ylabel(f"shift of {distance:g} deviations\ncells in use")
        edges(grid, DIMS, "thousand states after the shift")
        if grid[0, 1].lines:
            grid[0, 1].legend(loc="lower right", fontsize=9)
    return [path]
