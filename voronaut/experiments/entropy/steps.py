"""How often must Algorithm 1 recompute a gap? The paper says in about 0.01 % of the steps."""

from typing import Any

import numpy as np

from voronaut import presets
from voronaut.bonuses.kme import KME
from voronaut.experiments.common.jobs import Job, Values

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
