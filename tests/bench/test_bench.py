"""The benchmarks run (small) and write what they promise. No time is judged here."""

import json
from pathlib import Path

import pytest

from voronaut.bench import bonuses, kernels, measure


def test_kernels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernels, "CLUSTERS", (20,))
    monkeypatch.setattr(kernels, "DIMS", (3,))
    whole = kernels.cost
    monkeypatch.setattr(kernels, "cost", lambda k, d, budget=0.1: whole(min(k, 20), d, 200, 0.05))
    views = kernels.view_cost
    monkeypatch.setattr(kernels, "VIEWS", ((5, 1, 4), (5, 2, 6), (1, 9, 10)))
    monkeypatch.setattr(kernels, "view_cost", lambda v, m, k: views(v, m, k, 200, 0.05))
    assert "floor" in kernels.run(tmp_path)
    result = json.loads((tmp_path / "kernels.json").read_text())
    assert result["grid"][0]["update/floor"] > 0 and "cpu" in result["machine"]
    assert [row["rewards/one's"] > 0 for row in result["views"]] == [True] * 3
    assert (tmp_path / "kernels.png").stat().st_size > 1000


def test_bonuses(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bonuses, "BATCHES", (32, 64))
    monkeypatch.setattr(bonuses, "one_thread", lambda: None)
    text = bonuses.run(tmp_path)
    assert all(name in text for name in ("none", "kme", "rnd", "re3", "hash"))


def test_tables_are_markdown() -> None:
    lines = measure.table([{"a": 1.0, "b": "x"}, {"a": 1234.5678, "b": "yy"}]).splitlines()
    assert lines[0] == "|    a |  b |" and lines[3] == "| 1235 | yy |" and set(lines[1]) == set("|-: ")
