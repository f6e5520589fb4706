"""`voronaut bench entropy` runs (small) and writes what it promises. No time is judged here."""

import json
from pathlib import Path

import pytest

from voronaut.bench import entropy


def test_entropy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"CLUSTERS": 10, "DIMS": (3,), "POINTS": 2048, "NEIGHBOUR_SIZES": (500,)}.items():
        monkeypatch.setattr(entropy, name, value)
    monkeypatch.setattr(entropy, "LENGTHS", (10_000, 20_000))
    monkeypatch.setattr(entropy, "cost", lambda dim, whole=entropy.cost: whole(dim, 0.1))
    assert "stream/floor" in entropy.run(tmp_path)
    result = json.loads((tmp_path / "entropy.json").read_text())
    assert result["cost"][0]["floor"] > 0 and result["kNN"][0]["kNN"] > 0
    small, large = (row["state kB"] for row in result["memory"])
    assert large < 1.2 * small
    assert (tmp_path / "entropy.png").stat().st_size > 1000
