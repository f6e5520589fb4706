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

from voronaut import machine
from voronaut.bench import measure
from voronaut.entropy.clustering import start
from voronaut.entropy.mixture import CHUNK, ROOM
from voronaut.entropy.stream import FIRST, EntropyStream
from voronaut.kernels.mixture import normalise

CLUSTERS = 300
DIMS = (2, 8, 17, 64)
POINTS = 16 * CHUNK  # timed at a time, once the stream is under way
NEIGHBOUR_DIM = 17
NEIGHBOUR_SIZES = (10_000, 20_000, 40_000, 80_000)
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


def neighbours(n: int) -> dict[str, Any]:
    """Seconds of exact kNN (k-d tree, third neighbour) and of the stream for the same n points, start included."""
    from scipy.spatial import cKDTree

    x = np.random.default_rng(0).normal(size=(n, NEIGHBOUR_DIM))

    def ours() -> None:
        stream = EntropyStream(CLUSTERS)
        stream.update(x)
        stream.read()

    took = {}
    for name, call in (("kNN", lambda: cKDTree(x).query(x, 4)), ("stream", ours)):
        before = time.perf_counter()
        call()
        took[name] = time.perf_counter() - before
    return {"points": n, **took, "kNN/stream": took["kNN"] / took["stream"]}


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
    """Measure, keep tables and a plot in `folder`, and return the tables."""
    grown = memory(NEIGHBOUR_DIM)
    costs = [cost(dim) for dim in DIMS]
    beside = [neighbours(n) for n in NEIGHBOUR_SIZES]
    text = "\n\n".join(
        [
            f"# Entropy of a stream: seconds per million points, {CLUSTERS} clusters, float64 rows, one thread",
            "`floor` = `clustering` (one pass over the points) + `EM` (bare matrix products and softmax of both "
            "paths). Aim: stream/floor ≤ 2 at d = 17. `start` is spent once, in seconds.",
            measure.table(costs),
            f"## Exact kNN at equal n (d = {NEIGHBOUR_DIM}, seconds, the stream's start included). Aim: 50 x",
            measure.table(beside),
            f"## Memory over the length of the stream (d = {NEIGHBOUR_DIM})",
            measure.table(grown),
        ]
    )
    result = {"machine": machine.describe(), "room": ROOM, "cost": costs, "kNN": beside, "memory": grown}
    measure.keep(folder, "entropy", result, text)
    plot(result, folder / "entropy.png")
    return text


def plot(result: dict[str, Any], path: Path) -> None:
    """Time over n beside kNN's, and memory over n."""
    from voronaut.plotting import COLORS, figure

    with figure(path, 2, (11, 4.2)) as (left, right):
        sizes = [row["points"] for row in result["kNN"]]
        left.loglog(sizes, [row["kNN"] for row in result["kNN"]], "o-", color=COLORS["re3"], label="exact kNN")
        left.loglog(sizes, [row["stream"] for row in result["kNN"]], "o-", color=COLORS["kme"], label="KMeansEntropy")
        left.set(xlabel="points", ylabel="seconds", title=f"d = {NEIGHBOUR_DIM}, one thread")
        left.legend()
        grown = result["memory"]
        right.plot([row["points"] for row in grown], [row["state kB"] for row in grown], "o-", color=COLORS["kme"])
        right.set(xlabel="points", ylabel="kB of state", title="Memory over the stream", ylim=(0, None))
