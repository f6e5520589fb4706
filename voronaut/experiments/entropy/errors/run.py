"""Error in nats against laws whose entropy is known: the estimator, and others beside it at equal data and memory."""

import time
import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray

from voronaut.entropy.laws import HELD_OUT, LAWS, Law
from voronaut.entropy.stream import ESTIMATOR_VERSION
from voronaut.experiments.common.jobs import Job, Results, Values
from voronaut.experiments.entropy.curves import finite
from voronaut.experiments.entropy.errors.rivals import RIVALS

DIMS = (2, 8, 17, 64)
NAMES = HELD_OUT  # ten laws that no setting was chosen by
CLUSTERS = 300
POINTS = 1_000_000
CHECKPOINTS = (10_000, 30_000, 100_000, 300_000, 1_000_000)
CHUNK = 10_000
SEEDS, RIVAL_SEEDS = 5, 1
LIMIT = 30.0  # seconds of one core: no rival begins a size that would take longer
SLOWER = {"knn": 11.0, "kde": 3.5, "gmm": 3.5, "gaussian": 3.5}  # what three times the points are taken to cost
POINTS_KEPT = 6 * CLUSTERS  # as many rows as the estimator's 6 k d floats hold
TARGETS = {2: 0.02, 8: 0.05, 17: 0.10, 64: 0.30}  # median absolute error over laws


def older(found: Results) -> list[str]:
    """Results of an estimator before this version."""
    now = ESTIMATOR_VERSION
    return [name for name, result in found.items() if result.get("estimator", now) < now]


def stream(law: Law, points: int, seed: int) -> Any:
    """Chunks (n, d) of a law, the same however far they are read."""
    for start in range(0, points, CHUNK):
        yield law.sample(min(CHUNK, points - start), [seed, start // CHUNK])


def work(law: str, dim: int, method: Any, seed: int, points: int) -> Values:
    """One pass of the estimator over a stream: error at the checkpoints, its own error bar, and seconds."""
    from voronaut import KMeansEntropy

    truth, meter = LAWS[law](dim), KMeansEntropy(clusters=CLUSTERS, method=method, random_state=seed)
    rows: dict[str, list[Any]] = {"points": [], "error": [], "std": []}
    seconds, done = 0.0, 0
    for chunk in stream(truth, points, seed):
        start = time.process_time()
        meter.partial_fit(chunk)
        seconds, done = seconds + time.process_time() - start, done + len(chunk)
        if done in CHECKPOINTS or done == points:
            rows["points"].append(done)
            rows["error"].append(finite(float(meter.entropy_) - truth.entropy))
            rows["std"].append(finite(float(meter.entropy_std_)))
    return {**rows, "entropy": truth.entropy, "fit_seconds": round(seconds, 3), "estimator": ESTIMATOR_VERSION}


def beside(law: str, dim: int, method: str, seed: int, points: int) -> Values:
    """A rival on growing samples while the next should end within the limit; and on as many rows as memory holds."""
    truth, rival = LAWS[law](dim), RIVALS[method]
    rows: dict[str, list[Any]] = {"points": [], "error": [], "seconds": []}
    for size in (size for size in CHECKPOINTS if size <= points):
        if rows["seconds"] and rows["seconds"][-1] * SLOWER[method] > LIMIT:
            break
        sample, start = _first(truth, size, seed), time.process_time()
        error = _error(rival, truth, sample, seed)
        rows["points"].append(size)
        rows["error"].append(error)
        rows["seconds"].append(round(time.process_time() - start, 3))
    # One Gaussian is a mean and a covariance, however many points there were: its memory allows all of them.
    kept = points if method == "gaussian" else POINTS_KEPT
    few = rows["error"][-1] if method == "gaussian" else _error(rival, truth, _first(truth, kept, seed), seed)
    return {**rows, "entropy": truth.entropy, "kept": kept, "error_kept": few}


def _first(law: Law, size: int, seed: int) -> NDArray[np.float64]:
    return np.concatenate(list(stream(law, size, seed)))


def _error(rival: Any, law: Law, points: NDArray[np.float64], seed: int) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a mixture that has not settled in 50 rounds is still a mixture
        options = {"judges": len(points) // 5} if rival is RIVALS["kde"] and len(points) < 10_000 else {}
        return finite(rival(points, seed=seed, **options) - law.entropy)


SECONDS = {2: 12.0, 8: 20.0, 17: 40.0, 64: 200.0}


def jobs(seeds: int = SEEDS, points: int = POINTS) -> list[Job]:
    """Ten laws in four dimensions. The default method with every seed, the simpler ones with the first."""
    mine = [
        Job(
            "accuracy", f"{law}-{dim}-{method}-{seed}", work,
            {"law": law, "dim": dim, "method": method, "seed": seed, "points": points}, SECONDS[dim] + seed / 10,
        )
        for dim in DIMS for law in NAMES for method in ("mixture", "moments", "bound")
        for seed in range(seeds if method == "mixture" else 1)
    ]  # fmt: skip
    theirs = [
        Job(
            "rivals", f"{law}-{dim}-{method}-{seed}", beside,
            {"law": law, "dim": dim, "method": method, "seed": seed, "points": points},
            SECONDS[dim] / 2 if method == "gaussian" else 30.0 + dim / 2 + seed / 10,
        )
        for dim in DIMS for law in NAMES for method in RIVALS for seed in range(min(seeds, RIVAL_SEEDS))
    ]  # fmt: skip
    return mine + theirs


def errors(found: Results, dim: int, method: str = "mixture", points: int = POINTS) -> dict[str, list[float]]:
    """Errors at a checkpoint by law, one per seed that is there."""
    table: dict[str, list[float]] = {}
    for law in NAMES:
        for seed in range(SEEDS):
            result = found.get(f"accuracy/{law}-{dim}-{method}-{seed}")
            if result and points in result["points"]:
                error = result["error"][result["points"].index(points)]
                table.setdefault(law, []).append(np.nan if error is None else error)
    return table


def sizes(found: Results, dim: int, method: str = "mixture", points: int = POINTS) -> dict[str, float]:
    """Mean absolute error over seeds at `points`, by law, of the estimator (infinite where it is) or of a rival."""
    if method in RIVALS:
        told = {law: rival(found, law, dim, method, points) for law in NAMES}
        return {law: abs(t["error"]) for law, t in told.items() if t and t["error"] is not None}
    mine = errors(found, dim, method, points)
    return {law: float(np.mean(np.nan_to_num(np.abs(values), nan=np.inf))) for law, values in mine.items()}


def rival(found: Results, law: str, dim: int, method: str, points: int | None = None) -> Values | None:
    """What a rival did at its largest sample or at `points`: points, error, seconds; and with equal memory."""
    result = found.get(f"rivals/{law}-{dim}-{method}-0")
    if result is None or (points is not None and points not in result["points"]):
        return None
    at = -1 if points is None else result["points"].index(points)
    told = {name: result[name][at] for name in ("points", "error", "seconds")}
    return {**told, "kept": result["kept"], "error_kept": result["error_kept"]}
