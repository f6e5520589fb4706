"""Does the objective order laws by entropy? Six laws in two dimensions, as in the paper, and three ways to cluster."""

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from voronaut import presets
from voronaut.bonuses.kme import KME
from voronaut.experiments.common.jobs import Job, Values

Floats = NDArray[np.float64]
CHECKPOINTS = (1_000, 2_000, 5_000, 10_000, 20_000, 50_000, 100_000, 200_000, 500_000, 1_000_000)
SEEDS = 5
BATCH = 1_000
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
WAYS: Mapping[str, Mapping[str, Any]] = {
    "zeros": presets.paper().kme,  # the paper's numbers, and its start
    "data": {**presets.paper().kme, "init": "data"},
    "auto": {"clusters": 300, "balance": "auto", "step_size": "auto", "init": "data"},
}


def work(cloud: str, way: str, seed: int, points: int, batch: int) -> Values:
    """Cluster a stream of points and read the clusters at the checkpoints.

    The paper's numbers go state by state (Algorithm 1), which counts recomputations; the rest in shuffled batches.
    """
    law, rng = CLOUDS[cloud], np.random.default_rng([seed, 17])
    kme = KME(2, seed=seed, **WAYS[way])
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
    return {**rows, "grown": metrics["grown_gaps"], "recomputed": metrics["recomputed_gaps"], "centers": centers}


def finite(value: float) -> Any:
    """A number for JSON, which has no infinity: None."""
    return round(value, 5) if math.isfinite(value) else None


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


def ordered(found: Mapping[str, Values], way: str, seed: int, read_out: str = "objective") -> dict[int, bool] | None:
    """Whether the six laws stand in their order, at each checkpoint; None if a result is missing."""
    curves = [found.get(f"orders/{cloud}-{way}-{seed}") for cloud in CLOUDS]
    if any(curve is None for curve in curves):
        return None
    values = np.array([[np.nan if v is None else v for v in curve[read_out]] for curve in curves if curve])
    points = next(curve["points"] for curve in curves if curve)
    falling = np.all(np.diff(values, axis=0) < 0, axis=0)
    return {int(at): bool(holds) for at, holds in zip(points, falling, strict=True)}


def right_from(found: Mapping[str, Values], way: str, seed: int, read_out: str = "objective") -> float | None:
    """From how many points on the order is right at every checkpoint; infinity if it is wrong at the last."""
    right = ordered(found, way, seed, read_out)
    if right is None:
        return None
    wrong = [points for points, holds in right.items() if not holds]
    after = [points for points in right if points > max(wrong, default=0)]
    return min(after, default=math.inf)
