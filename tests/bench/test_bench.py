"""The benchmarks run (small) and write what they promise. No time is judged here."""

import json
from pathlib import Path

import pytest

from voronaut.bench import bonuses, kernels, measure, sac, train


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


@pytest.mark.usefixtures("quick_compilation")
def test_sac_beside_its_rivals(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("stable_baselines3")

    monkeypatch.setattr(sac, "SIZES", {"8 × 8, batch 4": (8, 4)})
    monkeypatch.setattr(sac, "KEPT", 64)
    monkeypatch.setattr(sac, "TURN", 64)
    for each in (sac.own(8, 4, 2), sac.rival("stable_baselines3", 8, 4)):
        each()
    for name in ("own", "rival"):
        monkeypatch.setattr(sac, name, lambda *given: lambda: None)
    monkeypatch.setattr(sac.measure, "seconds", lambda work, budget: dict.fromkeys(work, 1.0))
    steps = sac.step_rows()
    assert [row["SB3 / this"] for row in steps][-3:] == [1, 1, 2]  # of a pair two agents take the step
    share = train.with_share(sac.turner("kme", {"clusters": 8})())
    assert 0 < share["bonus %"] < 100 and share["seconds"] > share["collect"] > 0
    *_, shown, _, shares = sac.parts(steps, [{"": "kme", **share}])
    assert "this, as SB3, 8 × 8, batch 4" in measure.table(shown) and "bonus %" in measure.table(shares)


def test_tables_are_markdown() -> None:
    lines = measure.table([{"a": 1.0, "b": "x"}, {"a": 1234.5678, "b": "yy"}]).splitlines()
    assert lines[0] == "|    a |  b |" and lines[3] == "| 1235 | yy |" and set(lines[1]) == set("|-: ")
