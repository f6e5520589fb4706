"""Exact nearest neighbours beside the stream at equal n: a k-d tree, and all pairs by matrix products.

Both are what people use: SciPy's cKDTree and scikit-learn's NearestNeighbors(algorithm="brute"), whose blocks of pairs
are matrix products. The stream is held against the faster of them at every size.
"""

import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from voronaut.helpers.missing import check, require

Floats = NDArray[np.float64]
Row = dict[str, Any]
DIM = 17
NEIGHBOUR = 3
SIZES = (10_000, 20_000, 40_000, 80_000, 160_000, 320_000)
AIM = 50
BUDGET = 640.0  # seconds for all sizes: one that would end later is not begun
PATIENCE = 20.0  # seconds: a search that is not the faster one is not taken to a size that would take longer
MARGIN = 1.05  # on the square of the points' ratio, which a search by all pairs grows with


def by_tree(points: Floats) -> Floats:
    """Distance of each point to its 3rd neighbour; the point itself is the nearest, at 0."""
    from scipy.spatial import cKDTree

    return np.asarray(cKDTree(points).query(points, [NEIGHBOUR + 1])[0][:, 0])


def by_pairs(points: Floats) -> Floats:
    """The same from all pairs."""
    from sklearn.neighbors import NearestNeighbors

    search = NearestNeighbors(n_neighbors=NEIGHBOUR + 1, algorithm="brute").fit(points)
    return np.asarray(search.kneighbors(points)[0][:, NEIGHBOUR])


def one_thread() -> Any:
    """A context in which matrix products and scikit-learn use one thread."""
    check("sklearn", "threadpoolctl", extra="entropy")  # before minutes are spent
    return require("threadpoolctl", "entropy").threadpool_limits(1)


SEARCHES: dict[str, Callable[[Floats], Floats]] = {"k-d tree": by_tree, "all pairs": by_pairs}


def sweep(stream: Callable[[Floats], Any], sizes: Sequence[int] = SIZES, budget: float = BUDGET) -> list[Row]:
    """Seconds of each search and of `stream` on the same points, size by size while time is left."""
    points = np.random.default_rng(0).normal(size=(max(sizes), DIM))
    rows: list[Row] = []
    end = time.perf_counter() + budget
    for n in sizes:
        chosen = [name for name in SEARCHES if _worth(name, rows, n, end - time.perf_counter())]
        if not chosen:
            break
        took = {name: _seconds(SEARCHES[name], points[:n]) if name in chosen else None for name in SEARCHES}
        rows.append(_row(n, took, _seconds(stream, points[:n])))
    return rows


def _row(n: int, took: dict[str, float | None], stream: float) -> Row:
    done = {name: seconds for name, seconds in took.items() if seconds is not None}
    fastest = min(done, key=lambda name: done[name])
    return {"points": n, **took, "faster": fastest, "stream": stream, "kNN/stream": done[fastest] / stream}


def _worth(name: str, rows: list[Row], n: int, left: float) -> bool:
    """Whether a search should go on to n points: it is the faster one or does not take long, and there is time."""
    if not rows:
        return True
    before = rows[-1][name]
    if before is None:
        return False
    expected = before * MARGIN * (n / rows[-1]["points"]) ** 2
    return bool(expected < left and (rows[-1]["faster"] == name or expected < PATIENCE))


def _seconds(work: Callable[[Floats], Any], points: Floats) -> float:
    start = time.perf_counter()
    work(points)
    return time.perf_counter() - start


def verdict(rows: Sequence[Row]) -> str:
    """What was aimed at, and the first size that has it."""
    most = max(row["kNN/stream"] for row in rows)
    reached = [row["points"] for row in rows if row["kNN/stream"] >= AIM]
    if reached:
        return f"{AIM} times faster from {reached[0]:,} points on, {most:.0f} times at the most."
    return f"{most:.0f} times faster at the most, at {rows[-1]['points']:,} points: {AIM} times is not reached."


def shown(rows: Sequence[Row]) -> list[Row]:
    """Rows for a table: a dash for what was not begun, and whole numbers of points."""
    plain = [{key: "–" if value is None else value for key, value in row.items()} for row in rows]
    return [{**row, "points": f"{row['points']:,}"} for row in plain]
