"""What the estimator was asked for, judged from the kept results; and the tables and pages that tell it."""

from pathlib import Path

import numpy as np
import pytest

from voronaut.entropy.laws import COVERED, LAWS
from voronaut.experiments.common import jobs
from voronaut.experiments.common.jobs import Values
from voronaut.experiments.entropy.errors import figures, run, tables, units

ROOT = Path(__file__).parents[3]
KEPT = ROOT / "results" / "entropy"


@pytest.fixture(scope="module")
def found() -> dict[str, Values]:
    return jobs.collect([*run.jobs(), *units.jobs()], KEPT)


@pytest.mark.parametrize(("dim", "limit"), [(2, 0.02), (8, 0.05), (17, 0.10), (64, 0.30)])
def test_the_median_error_of_a_million_points_is_small(found: dict[str, Values], dim: int, limit: float) -> None:
    errors = run.errors(found, dim)
    assert len(errors) == 10 and all(len(values) == 5 for values in errors.values())
    for seed in range(5):
        assert np.median([abs(values[seed]) for values in errors.values()]) <= limit


@pytest.mark.parametrize(("dim", "limit"), [(2, 0.1), (8, 0.3), (17, 0.7)])
@pytest.mark.parametrize("points", [300_000, 1_000_000])
def test_no_error_is_large_on_what_it_is_made_for(
    found: dict[str, Values], dim: int, limit: float, points: int
) -> None:
    errors = run.errors(found, dim, points=points)
    made_for = [law for law in errors if law in COVERED]
    assert len(made_for) == 6
    assert max(abs(error) for law in made_for for error in errors[law]) <= limit


@pytest.mark.parametrize(("dim", "limit"), [(2, 0.1), (8, 0.3), (17, 0.7)])
def test_units_do_not_matter(found: dict[str, Values], dim: int, limit: float) -> None:
    plain = units.errors(found, dim, "plain")
    assert set(plain) == set(COVERED)
    for way in units.WAYS:
        errors = units.errors(found, dim, way)
        assert max(map(abs, errors.values())) <= limit
        assert all(abs(errors[law] - plain[law]) < 0.02 for law in COVERED), way


def test_units_are_added_to_the_truth(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(units, "CLUSTERS", 20)
    told = units.work(law="beta", dim=2, way="mixed", seed=0, points=4_000)
    assert told["entropy"] == pytest.approx(LAWS["beta"](2).entropy, abs=1e-9)  # 1e-6 and 1e6 cancel
    assert abs(told["error"]) < 0.1
    moved = units.work(law="beta", dim=2, way="moved", seed=0, points=4_000)
    assert moved["entropy"] == pytest.approx(LAWS["beta"](2).entropy + 2 * np.log(1000))
    assert moved["error"] == pytest.approx(told["error"], abs=0.01)


# Tables


def toy(error: float | None) -> dict[str, Values]:
    """One law in two dimensions: one seed of the estimator, kNN at two sizes."""
    return {
        "accuracy/ball-2-mixture-0": {"points": [10_000, 1_000_000], "error": [0.4, error], "fit_seconds": 3.0},
        "rivals/ball-2-knn-0": {
            "points": [10_000, 30_000], "error": [-0.2, 0.1], "seconds": [1.0, 3.0], "kept": 1800, "error_kept": 0.5,
        },
    }  # fmt: skip


def test_tables_say_what_is_there() -> None:
    assert "| 2 | mixture | 0.300 | 0.02 | 0.30 (ball) | 10" not in tables.accuracy_table(toy(0.3))
    assert "| 2 | mixture | 0.300 | 0.02 | 0.30 (ball) | 1 laws, 1 seed | 3.0 |" in tables.accuracy_table(toy(0.3))
    assert "| ∞ (ball) |" not in tables.accuracy_table(toy(0.3)) and "∞ (ball)" in tables.accuracy_table(toy(None))
    assert "| ball | +0.300 ± 0.000 | not run yet" in tables.law_table(toy(0.3))
    assert "| 2 | kNN | 30,000 | 3.0 | 100.0 | 1,800 | 0.500 |" in tables.rival_table(toy(0.3))
    assert "| 2 | 30,000 | 1,000,000 | 1 of 1 | ball (0.100 / 0.300) |" in tables.knn_wins(toy(0.3))
    assert "0 of 1 | none" in tables.knn_wins(toy(0.05))
    assert all(
        "not run yet" in make({}) or "–" in make({}) or make({}).endswith("- |") for make in tables.TABLES.values()
    )


def test_equal_data_is_told_only_where_all_laws_were_done(found: dict[str, Values]) -> None:
    assert "0.3" not in tables.data_table(toy(0.3))
    assert list(figures.medians(found, 8, "mixture")) == list(run.CHECKPOINTS)
    assert list(figures.medians(found, 8, "knn")) == [10_000, 30_000, 100_000]
    assert figures.medians(toy(0.3), 2, "knn") == {}
