"""Are cells balanced, and do clusters follow when the data moves? The paper's numbers and the scale-free rule."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from voronaut import presets
from voronaut.bonuses.kme import KME
from voronaut.experiments.common.jobs import Job, Values

DIMS = (2, 8, 17, 64)
SHIFTS = (3.0, 10.0)  # in deviations, along one diagonal
SEEDS = 3
BATCH = 10_000
SETTLE, FOLLOW = 300_000, 300_000
WAYS: Mapping[str, Mapping[str, Any]] = {
    "paper": {**presets.paper().kme, "init": "data"},
    "auto": {"clusters": 300, "balance": "auto", "step_size": "auto", "init": "data"},
}


def work(dim: int, shift: float, way: str, scale: float, seed: int, settle: int, follow: int) -> Values:
    """N(0, I), then N(shift, I): cell masses before, and the share of cells in use as the points come after."""
    rng = np.random.default_rng([seed, 29])
    kme = KME(dim, seed=seed, **WAYS[way])
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


def _masses(kme: KME, points: Any) -> Any:
    """How many of the points are in each cell of the clusters as they are."""
    from voronaut.kernels import cpu

    balance = kme.metrics().get("balance", kme.settings.balance)
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
