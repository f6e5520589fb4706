"""Random walks on Gaussians in 2, 4 and 64 dimensions: a Metropolis walk, and the release's walk beside it."""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from voronaut import presets
from voronaut.bonuses.kme import KME
from voronaut.experiments.common.jobs import Job, Values
from voronaut.experiments.entropy.orders import finite
from voronaut.kernels.compiled import compiled

Floats = NDArray[np.float64]
DIMS = (2, 4, 64)
VARIANCES = (0.1, 0.01, 0.001)
STEP = 0.01  # length of a proposed step, its direction is uniform: the release's default
GIVE_UP = 500  # rejections in a row after which the release's walk goes to 0
CHECKPOINTS = (1_000, 10_000, 50_000, 100_000, 200_000, 500_000, 1_000_000)
SEEDS = 3
BATCH = 1_000
WAYS: Mapping[str, Mapping[str, Any]] = {
    "zeros": presets.paper().kme,
    "auto": {"clusters": 300, "balance": "auto", "step_size": "auto", "init": "data", "replay": 0.5},
}


@compiled
def propose(place: Floats, out: Floats) -> None:
    """A step of length STEP in a random direction. OUT: out (d,)."""
    total = 0.0
    for p in range(place.shape[0]):
        out[p] = np.random.normal()  # noqa: NPY002 (numba's own generator, seeded by the caller)
        total += out[p] * out[p]
    for p in range(place.shape[0]):
        out[p] = place[p] + STEP * out[p] / np.sqrt(total)


@compiled
def metropolis(place: Floats, variance: float, out: Floats) -> int:
    """Accept with min(1, p(y)/p(x)), stay otherwise: visits x in proportion to p. OUT: place, out (n, d)."""
    trial, stays = np.empty_like(place), 0
    for r in range(out.shape[0]):
        propose(place, trial)
        if np.log(np.random.random()) < ((place * place).sum() - (trial * trial).sum()) / (2 * variance):  # noqa: NPY002
            place[:] = trial
        else:
            stays += 1
        out[r] = place
    return stays


@compiled
def until_accepted(place: Floats, variance: float, out: Floats) -> int:
    """Propose until one is accepted with p(y)/p(0); to 0 after 500 rejections. OUT: place, out (n, d). Times at 0.

    Rejections are not counted as visits: short steps make that x in proportion to p², a Gaussian of half the variance.
    """
    trial, resets = np.empty_like(place), 0
    for r in range(out.shape[0]):
        rejected = 0
        propose(place, trial)
        while np.log(np.random.random()) >= -(trial * trial).sum() / (2 * variance):  # noqa: NPY002
            rejected += 1
            if rejected > GIVE_UP:
                trial[:] = 0
                resets += 1
                break
            propose(place, trial)
        place[:] = trial
        out[r] = place
    return resets


@compiled
def plant(seed: int) -> None:
    """Seed the generator that the walks use."""
    np.random.seed(seed)  # noqa: NPY002


SAMPLERS = {"metropolis": metropolis, "release": until_accepted}


def work(sampler: str, dim: int, variance: float, seed: int, points: int, batch: int) -> Values:
    """Walk from 0, cluster the states as they come, and read the clusters at the checkpoints."""
    plant(seed)
    place, out = np.zeros(dim), np.empty((batch, dim))
    ways = {way: KME(dim, seed=seed, **options) for way, options in WAYS.items()}
    absorb = {"zeros": ways["zeros"].step, "auto": ways["auto"].update}
    rows: dict[str, list[Any]] = {
        "points": [],
        **{f"{way}.{name}": [] for way in WAYS for name in ("objective", "entropy")},
    }
    events, squares, late = 0, 0.0, 0
    for done in range(batch, points + 1, batch):
        events += SAMPLERS[sampler](place, variance, out)
        for way in WAYS:
            absorb[way](out)
        if done > points // 2:
            squares, late = squares + float((out**2).sum()), late + out.size
        if done in CHECKPOINTS or done == points:
            rows["points"].append(done)
            for way, kme in ways.items():
                rows[f"{way}.objective"].append(finite(kme.objective_value()))
                rows[f"{way}.entropy"].append(finite(kme.entropy()))
    told = ways["zeros"].metrics()
    return {
        **rows, "events": events, "variance_seen": squares / late,
        "grown": told["grown_gaps"], "recomputed": told["recomputed_gaps"],
    }  # fmt: skip


def truth(dim: int, variance: float) -> float:
    """(d/2) ln(2πe σ²)."""
    return dim / 2 * math.log(2 * math.pi * math.e * variance)


def jobs(seeds: int = SEEDS, points: int = CHECKPOINTS[-1]) -> list[Job]:
    """Two samplers, three dimensions, three variances."""
    return [
        Job(
            "walks", f"{sampler}-{dim}-{variance}-{seed}", work,
            {"sampler": sampler, "dim": dim, "variance": variance, "seed": seed, "points": points,
             "batch": min(BATCH, points)},
            {2: 15.0, 4: 15.0, 64: 60.0 if sampler == "metropolis" else 250.0}[dim] + seed,
        )
        for sampler in SAMPLERS for dim in DIMS for variance in VARIANCES
        for seed in range(1 if (sampler, dim) == ("release", 64) else seeds)  # it rejects hundreds of proposals a step
    ]  # fmt: skip


def orders(found: Mapping[str, Values], sampler: str, dim: int, seed: int, read_out: str) -> dict[int, bool] | None:
    """Whether the three variances stand in their order, at each checkpoint; None if a result is missing."""
    curves = [found.get(f"walks/{sampler}-{dim}-{variance}-{seed}") for variance in VARIANCES]
    if any(curve is None for curve in curves):
        return None
    values = np.array([[np.nan if v is None else v for v in curve[read_out]] for curve in curves if curve])
    points = next(curve["points"] for curve in curves if curve)
    falling = np.all(np.diff(values, axis=0) < 0, axis=0)
    return {int(at): bool(holds) for at, holds in zip(points, falling, strict=True)}
