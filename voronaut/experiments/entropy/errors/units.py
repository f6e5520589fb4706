"""Does the unit of the data matter? Laws the estimator is made for, each as it is and in other units."""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from voronaut.entropy.laws import COVERED, LAWS
from voronaut.entropy.stream import ESTIMATOR_VERSION
from voronaut.experiments.common.jobs import Job, Results, Values
from voronaut.experiments.entropy.curves import finite
from voronaut.experiments.entropy.errors.run import CLUSTERS, stream

Floats = NDArray[np.float64]
DIMS = (2, 8, 17)
POINTS = 300_000
LIMITS = {2: 0.1, 8: 0.3, 17: 0.7}  # nats, for every law and seed
WAYS = {
    "plain": "as they are",
    "moved": "× 1000 + 1,000,000",
    "mixed": "every column its own unit: × 10⁻⁶ to × 10⁶, ± 1000 of that",
}


def units(way: str, dim: int) -> tuple[Floats, Floats]:
    """Factor and offset of every column."""
    if way == "mixed":
        scale = 10.0 ** np.linspace(-6, 6, dim)
        return scale, 1000 * scale * (-1.0) ** np.arange(dim)
    return np.full(dim, 1000.0 if way == "moved" else 1.0), np.full(dim, 1e6 if way == "moved" else 0.0)


def work(law: str, dim: int, way: str, seed: int, points: int) -> Values:
    """One pass over the law in these units: the error against its entropy + Σ ln scale."""
    from voronaut import KMeansEntropy

    truth, meter = LAWS[law](dim), KMeansEntropy(clusters=CLUSTERS, random_state=seed)
    scale, offset = units(way, dim)
    for chunk in stream(truth, points, seed):
        meter.partial_fit(chunk * scale + offset)
    wanted = truth.entropy + float(np.log(scale).sum())
    return {"error": finite(float(meter.entropy_) - wanted), "entropy": wanted, "estimator": ESTIMATOR_VERSION}


def jobs(seeds: int = 1, points: int = POINTS) -> list[Job]:
    """Thirteen laws, three dimensions, three units."""
    return [
        Job(
            "units", f"{law}-{dim}-{way}-{seed}", work,
            {"law": law, "dim": dim, "way": way, "seed": seed, "points": min(points, POINTS)}, 2.0 + dim / 2 + seed,
        )
        for dim in DIMS for law in COVERED for way in WAYS for seed in range(min(seeds, 1))
    ]  # fmt: skip


def errors(found: Results, dim: int, way: str) -> dict[str, float]:
    """Error by law of the results that are there."""
    told: dict[str, Any] = {law: found.get(f"units/{law}-{dim}-{way}-0") for law in COVERED}
    return {law: math.inf if r["error"] is None else float(r["error"]) for law, r in told.items() if r}
