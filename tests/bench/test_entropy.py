"""`voronaut bench entropy` runs (small) and writes what it promises. No time is judged here."""

import json
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from voronaut.bench import entropy
from voronaut.bench import entropy_neighbours as neighbours


def test_entropy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"CLUSTERS": 10, "DIMS": (3,), "POINTS": 2048, "NEIGHBOUR_SIZES": (500,)}.items():
        monkeypatch.setattr(entropy, name, value)
    monkeypatch.setattr(entropy, "LENGTHS", (10_000, 20_000))
    monkeypatch.setattr(entropy, "cost", lambda dim, whole=entropy.cost: whole(dim, 0.1))
    assert "stream/floor" in entropy.run(tmp_path)
    result = json.loads((tmp_path / "entropy.json").read_text())
    assert result["cost"][0]["floor"] > 0 and result["kNN"][0]["kNN/stream"] > 0
    small, large = (row["state kB"] for row in result["memory"])
    assert large < 1.2 * small
    assert (tmp_path / "entropy.png").stat().st_size > 1000


def test_both_searches_find_the_same_neighbours() -> None:
    points = np.random.default_rng(0).normal(size=(300, 5))
    tree, pairs = (search(points) for search in neighbours.SEARCHES.values())
    np.testing.assert_allclose(tree, pairs, rtol=1e-9)
    gaps = np.sort(np.linalg.norm(points[:, None] - points[None], axis=2), axis=1)
    np.testing.assert_allclose(tree, gaps[:, 3], rtol=1e-9)


@pytest.fixture
def stream(monkeypatch: pytest.MonkeyPatch) -> Callable[[np.ndarray], None]:
    """A stream of 0.01 s per point and two searches of 1e-3 and 1e-4 s per pair, on a clock that only they move."""
    now = [0.0]

    def takes(seconds: Callable[[int], float]) -> Callable[[np.ndarray], None]:
        def work(points: np.ndarray) -> None:
            now[0] += seconds(len(points))

        return work

    searches = {"k-d tree": takes(lambda n: 1e-3 * n**2), "all pairs": takes(lambda n: 1e-4 * n**2)}
    monkeypatch.setattr(neighbours, "time", SimpleNamespace(perf_counter=lambda: now[0]))
    monkeypatch.setattr(neighbours, "SEARCHES", searches)
    return takes(lambda n: 0.01 * n)


def test_no_search_is_begun_that_would_not_end(stream: Callable[[np.ndarray], None]) -> None:
    """All pairs take 1, 4, 16, 64, 256 s, the tree ten times that: it is left where it would take above 20 s."""
    rows = neighbours.sweep(stream, [100, 200, 400, 800, 1600], budget=120.0)
    assert [row["points"] for row in rows] == [100, 200, 400, 800]
    assert [row["all pairs"] for row in rows] == pytest.approx([1, 4, 16, 64])
    assert rows[0]["k-d tree"] == pytest.approx(10) and [row["k-d tree"] for row in rows[1:]] == [None] * 3
    assert {row["faster"] for row in rows} == {"all pairs"}
    assert [row["kNN/stream"] for row in rows] == pytest.approx([1, 2, 4, 8])
    assert neighbours.shown(rows)[1]["k-d tree"] == "–"


def test_the_verdict_says_what_is_not_reached() -> None:
    rows = [{"points": 10, "kNN/stream": 20.0}, {"points": 1000, "kNN/stream": 49.0}]
    assert neighbours.verdict(rows) == "49 times faster at the most, at 1,000 points: 50 times is not reached."
    assert neighbours.verdict([*rows, {"points": 2000, "kNN/stream": 80.0}]).startswith("50 times faster from 2,000")
