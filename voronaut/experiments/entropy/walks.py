"""Random walks on Gaussians in 2, 4 and 64 dimensions: a Metropolis walk, and the release's walk beside it."""

import math
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from voronaut import presets
from voronaut.bonuses.kme import KME
from voronaut.entropy.scale_free.stream import ScaleFree
from voronaut.experiments.common.drawing import NOT_RUN, not_run
from voronaut.experiments.common.jobs import Job, Results, Values
from voronaut.experiments.entropy.curves import curves, edges, falling, finite, line
from voronaut.helpers.markdown import table
from voronaut.helpers.plotting import figure
from voronaut.kernels.compiled import compiled

Floats = NDArray[np.float64]
DIMS = (2, 4, 64)
VARIANCES = (0.1, 0.01, 0.001)
STEP = 0.01  # length of a proposed step, its direction is uniform: the release's default
GIVE_UP = 500  # rejections in a row after which the release's walk goes to 0
CHECKPOINTS = (1_000, 10_000, 50_000, 100_000, 200_000, 500_000, 1_000_000)
SEEDS = 3
COLORS = ("#3b6fb6", "#e08a1e", "#c8443f")
BATCH = 1_000
WAYS: Mapping[str, Any] = {"zeros": partial(KME, **presets.paper().kme), "auto": partial(ScaleFree, replay=0.5)}


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
def seed_walks(seed: int) -> None:
    """Seed the generator that the walks use."""
    np.random.seed(seed)  # noqa: NPY002


SAMPLERS = {"metropolis": metropolis, "release": until_accepted}


def work(sampler: str, dim: int, variance: float, seed: int, points: int, batch: int) -> Values:
    """Walk from 0, cluster the states as they come, and read the clusters at the checkpoints."""
    seed_walks(seed)
    place, out = np.zeros(dim), np.empty((batch, dim))
    ways = {way: make(dim, seed=seed) for way, make in WAYS.items()}
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


def orders(found: Results, sampler: str, dim: int, read_out: str) -> list[dict[int, bool]]:
    """Whether the three variances stand in their order, at each checkpoint, of every seed that is there."""
    names = [[f"walks/{sampler}-{dim}-{variance}-{seed}" for variance in VARIANCES] for seed in range(SEEDS)]
    return [told for each in names if (told := falling(found, each, read_out))]


def computed(found: Results) -> dict[str, str]:
    """At how many of the checkpoints the three variances stand in their order, and what the walks really visit."""
    rows = []
    for sampler in SAMPLERS:
        for dim in DIMS:
            row: list[Any] = [sampler, dim]
            for read_out in ("zeros.objective", "zeros.entropy", "auto.objective", "auto.entropy"):
                held = [holds for each in orders(found, sampler, dim, read_out) for holds in each.values()]
                row.append(f"{sum(held)} of {len(held)}" if held else NOT_RUN)
            last = [list(each.values())[-1] for each in orders(found, sampler, dim, "zeros.objective")]
            row.append(f"{sum(last)} of {len(last)} seeds right" if last else NOT_RUN)
            rows.append([*row, _visited(found, sampler, dim)])
    head = ["walk", "d", "L, the paper's", "entropy, the paper's", "L, scale-free", "entropy, scale-free",
            "L, the paper's, at 1M", "variance visited / asked"]  # fmt: skip
    return {"walks": table(head, rows)}


def _visited(found: Results, sampler: str, dim: int) -> str:
    """Variance visited in the second half of the walk, as a share of that asked for."""
    shares = []
    for variance in VARIANCES:
        names = [f"walks/{sampler}-{dim}-{variance}-{seed}" for seed in range(SEEDS)]
        seen = [found[name]["variance_seen"] / variance for name in names if name in found]
        shares.append(f"{np.mean(seen):.2f}" if seen else "–")
    return ", ".join(shares)


ROWS = (  # sampler, curve, what it is divided by, label
    ("metropolis", "zeros.objective", 300, "Metropolis walk\n" r"$L_{\sqrt{\cdot}}/k$, the paper's numbers"),
    ("release", "zeros.objective", 300, "the release's walk\n" r"$L_{\sqrt{\cdot}}/k$, the paper's numbers"),
    ("metropolis", "auto.entropy", 1, "Metropolis walk\nentropy in nats, scale-free"),
    ("release", "auto.entropy", 1, "the release's walk\nentropy in nats, scale-free"),
)


def draw(found: Results, figures: Path) -> list[Path]:
    """walks.png: objective and entropy along random walks; dashed: the truth of the Gaussian walked on."""
    path = figures / "walks.png"
    with figure(path, columns=3, rows=len(ROWS), size=(11, 11)) as grid:
        for row, (sampler, key, divide, name) in zip(grid, ROWS, strict=True):
            for axes, dim in zip(row, DIMS, strict=True):
                for color, variance in zip(COLORS, VARIANCES, strict=True):
                    names = [f"walks/{sampler}-{dim}-{variance}-{seed}" for seed in range(SEEDS)]
                    line(axes, curves(found, names, key), color, rf"$\sigma^2={variance:g}$", divide)
                    if key.endswith("entropy") and axes.lines:
                        axes.axhline(truth(dim, variance), color=color, linestyle="--", linewidth=1)
                if not axes.lines:
                    not_run(axes)
                    continue
                axes.set(xscale="log")
            row[0].set_ylabel(name)
        edges(grid, DIMS, "states")
        if grid[0, 0].lines:
            grid[0, 0].legend(loc="upper left")
    return [path]
