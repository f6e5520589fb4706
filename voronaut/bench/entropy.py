"""`voronaut bench entropy`: seconds per million points against a floor, exact kNN at equal n, memory over the stream.

The floor is what cannot be left out: one clustering pass over the points (the library's own), and for each of the two
paths the bare matrix products and the softmax of an E and an M step of k Gaussians, at the same sizes and in the same
chunks, with everything in place and nothing done with the results.
"""

import pickle
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from voronaut.bench import entropy_neighbours as neighbours
from voronaut.bench import measure
from voronaut.entropy.clustering import start
from voronaut.entropy.mixture.gaussians import CHUNK, ROOM
from voronaut.entropy.mixture.softmax import normalise
from voronaut.entropy.stream import FIRST, EntropyStream

CLUSTERS = 300
DIMS = (2, 8, 17, 64)
POINTS = 16 * CHUNK  # timed at a time, once the stream is under way
NEIGHBOUR_SIZES = neighbours.SIZES
LENGTHS = (50_000, 100_000, 200_000, 400_000, 800_000)


def em_floor(dim: int, points: int) -> Callable[[], None]:
    """The matrix products and softmax of E and M steps over so many points, on two paths."""
    groups = max(1, round(CLUSTERS / dim)) if dim > 1 else 1
    slots = int(np.ceil(CLUSTERS / groups))
    rng = np.random.default_rng(0)
    frames, columns = (rng.normal(size=s).astype(np.float32) for s in ((groups, dim, dim), (dim, CHUNK)))
    coefficients = -np.abs(rng.normal(size=(groups, slots, 2 * dim + 1))).astype(np.float32)
    features = np.ones((groups, 2 * dim + 1, CHUNK), np.float32)
    logs, sums = np.empty((groups, slots, CHUNK), np.float32), np.empty((groups, slots, 2 * dim + 1), np.float32)
    fixed = -rng.random((groups, slots, CHUNK)).astype(np.float32)

    def work() -> None:
        for _ in range(2 * points // CHUNK):
            np.matmul(frames, columns, out=features[:, dim : 2 * dim])
            np.matmul(coefficients, features, out=logs)
            np.copyto(logs, fixed)
            normalise(logs.reshape(groups * slots, CHUNK))
            np.matmul(logs, features.transpose(0, 2, 1), out=sums)

    return work


def cost(dim: int, budget: float = 6.0) -> dict[str, Any]:
    """Seconds per million points of the stream, of the floor, and their ratio; and of the start, once."""
    x = np.random.default_rng(0).normal(size=(FIRST * CLUSTERS + 4 * POINTS, dim))
    first, later = x[: FIRST * CLUSTERS], x[FIRST * CLUSTERS :]
    EntropyStream(CLUSTERS).update(first)  # compiles
    stream = EntropyStream(CLUSTERS)
    before = time.perf_counter()
    stream.update(first)
    begun = time.perf_counter() - before
    stream.update(later)
    states = later[:POINTS].astype(np.float32)
    clusters, order = start(states[:2000], CLUSTERS, 0), np.arange(POINTS)
    work = {
        "stream": lambda: stream.update(later[:POINTS]),
        "clustering": lambda: clusters.update(states, order),
        "EM": em_floor(dim, POINTS),
    }
    took = {name: s / POINTS * 1e6 for name, s in measure.seconds(work, budget=budget).items()}
    floor = took["clustering"] + took["EM"]
    return {"dim": dim, **took, "floor": floor, "stream/floor": took["stream"] / floor, "start": begun}


def whole(points: NDArray[np.float64]) -> float:
    """The entropy of these points, start included."""
    stream = EntropyStream(CLUSTERS)
    stream.update(points)
    return stream.read().entropy


def memory(dim: int = 17) -> list[dict[str, Any]]:
    """Kilobytes of the stream's state, and the process's peak, after ever more points."""
    import resource  # not on Windows

    stream, rng, rows = EntropyStream(CLUSTERS), np.random.default_rng(0), []
    unit = 1 if sys.platform == "darwin" else 1024
    for length in LENGTHS:
        while stream.rows < length:
            stream.update(rng.normal(size=(10_000, dim)))
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
        rows.append({"points": length, "state kB": len(pickle.dumps(stream)) / 1e3, "peak MB": peak / 1e6})
    return rows


def run(folder: Path) -> str:
    """Measure on one thread, keep tables and a plot in `folder`, and return the tables."""
    with neighbours.one_thread():
        grown = memory(neighbours.DIM)
        costs = [cost(dim) for dim in DIMS]
        beside = neighbours.sweep(whole, NEIGHBOUR_SIZES)
    result = {"room": ROOM, "cost": costs, "kNN": beside, "memory": grown}
    plot(result, folder / "entropy.png")
    return measure.keep(folder, "entropy", result, [
        f"# Entropy of a stream: seconds per million points, {CLUSTERS} clusters, float64 rows, one thread",
        "`floor` = `clustering` (one pass over the points) + `EM` (bare matrix products and softmax of both "
        "paths). Aim: stream/floor ≤ 2 at d = 17. `start` is spent once, in seconds.",
        costs,
        f"## Exact kNN at equal n (d = {neighbours.DIM}, seconds, one thread, the stream's start included)",
        "Third neighbour of every point by SciPy's cKDTree and by all pairs (scikit-learn, brute force with matrix "
        f"products); the stream is held against the faster. Aim: {neighbours.AIM} x. {neighbours.verdict(beside)}",
        neighbours.shown(beside),
        f"## Memory over the length of the stream (d = {neighbours.DIM})",
        neighbours.shown(grown),
    ])  # fmt: skip


def plot(result: dict[str, Any], path: Path) -> None:
    """Time over n beside kNN's, and memory over n."""
    from voronaut.helpers.plotting import COLORS, figure

    colors = {"k-d tree": COLORS["rnd"], "all pairs": COLORS["re3"], "stream": COLORS["kme"]}
    labels = {"k-d tree": "exact kNN, k-d tree", "all pairs": "exact kNN, all pairs", "stream": "KMeansEntropy"}
    with figure(path, 2, (11, 4.2)) as (left, right):
        for name, color in colors.items():
            rows = [row for row in result["kNN"] if row[name] is not None]
            left.loglog([r["points"] for r in rows], [r[name] for r in rows], "o-", color=color, label=labels[name])
        left.set(xlabel="points", ylabel="seconds", title=f"d = {neighbours.DIM}, one thread")
        left.legend()
        grown = result["memory"]
        sizes = [row["state kB"] for row in grown]
        right.plot([row["points"] / 1e3 for row in grown], sizes, "o-", color=COLORS["kme"])
        right.set(xlabel="thousand points", ylabel="kB of state", title="Memory", ylim=(0, 1.3 * max(sizes)))
