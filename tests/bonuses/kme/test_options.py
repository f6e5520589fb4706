"""`normalize` of the paper's memory, and what older files may ask for that has left the bonus."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import voronaut as vn
from tests.bonuses.kme import paper
from voronaut.conformance import check_bonus

VARIANTS: dict[str, dict[str, Any]] = {
    "normalized": {"normalize": True, "init": "data"},
    "zeros": {"normalize": True},
}


def made(dim: int = 3, **options: Any) -> vn.KME:
    return paper(dim, **{"clusters": 12, "dtype": "float64", "init": "data", **options})


@pytest.mark.parametrize("name", VARIANTS)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_conforms(name: str, dtype: str) -> None:
    check_bonus(lambda dim, seed: paper(dim, clusters=20, seed=seed, dtype=dtype, **VARIANTS[name]))


def test_the_papers_state_has_not_grown() -> None:
    kme = vn.KME(2, **vn.presets.paper().kme)
    assert "frame.mean" not in kme.state_dict()


def test_a_fixed_balance_feels_units() -> None:
    plain, other = made(balance=1e-2), made(balance=1e-2)
    for batch in np.random.default_rng(0).normal(size=(4, 300, 3)):
        plain.update(batch)
        other.update(batch * 1000)
    assert other.counts.tolist() != plain.counts.tolist()


# Standardising


def test_columns_of_any_unit_count_alike_when_normalized() -> None:
    rng, units = np.random.default_rng(0), np.array([1e-3, 1.0, 1e4])
    plain, other = made(normalize=True), made(normalize=True)
    for batch in rng.normal(size=(3, 200, 3)):
        plain.update(batch)
        other.update(batch * units + 5 * units)
    assert other.counts.tolist() == plain.counts.tolist()
    assert other.entropy() == pytest.approx(plain.entropy() + np.log(units).sum(), abs=1e-6)
    assert other.entropy_bound() == pytest.approx(plain.entropy_bound() + np.log(units).sum(), abs=1e-6)


def test_normalized_entropy_is_that_of_the_states() -> None:
    kme = made(normalize=True, clusters=64, dtype="float32")
    for batch in np.random.default_rng(0).normal(size=(20, 2000, 3)):
        kme.update(1e3 * batch + 1e5)
    assert kme.entropy() == pytest.approx(3 * (0.5 * np.log(2 * np.pi * np.e) + np.log(1e3)), abs=0.2)


def test_outliers_are_clipped_and_a_shift_is_followed() -> None:
    kme, rng = made(normalize=True, clusters=30), np.random.default_rng(0)
    kme.update(rng.normal(size=(5000, 3)))
    kme.update(np.full((2, 3), 1e6))
    assert np.abs(kme.state_dict()["centers"]).max() <= 10 and kme.centers.max() < 20
    for _ in range(8):
        kme.update(rng.normal(size=(5000, 3)) + 50)
    assert np.median(kme.centers) > 20


def test_a_constant_coordinate_counts_for_nothing_until_it_moves() -> None:
    rng, with_one, without = np.random.default_rng(0), made(3, normalize=True), made(2, normalize=True)
    for batch in rng.normal(size=(3, 200, 2)):
        with_one.update(np.column_stack([batch, np.full(200, 0.1)]))
        without.update(batch)
    np.testing.assert_allclose(with_one.centers[:, :2], without.centers, rtol=0, atol=1e-12)
    assert with_one.entropy() == -np.inf and (with_one.centers[:, 2] == pytest.approx(0.1))
    with_one.update(rng.normal(size=(400, 3)))
    assert np.isfinite(with_one.entropy())


# Choosing, saving, many at once


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"balance": "Auto"}, 'balance.*"auto".*Auto'), ({"step_size": "car"}, "step_size"),
        ({"normalize": "yes"}, "normalize"), ({"step_size": 0.0}, "step_size"), ({"step_size": 1.0}, "step_size"),
        ({"balance": -0.1}, "balance"),
    ],
)  # fmt: skip
def test_bad_choices_are_named(options: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        made(**options)


@pytest.mark.parametrize("name", VARIANTS)
def test_saved_and_loaded_goes_on_and_damage_is_refused(name: str, tmp_path: Path) -> None:
    kme, rng = paper(3, clusters=10, **VARIANTS[name]), np.random.default_rng(0)
    for batch in rng.normal(size=(3, 100, 3)):
        kme.update(batch)
    json.dumps(kme.params)
    kme.save(tmp_path / "kme.npz")
    loaded, more = vn.load(tmp_path / "kme.npz"), rng.normal(size=(50, 3))
    for one in (kme, loaded):
        one.update(more)
    assert loaded.rewards(more).tolist() == kme.rewards(more).tolist() and loaded.metrics() == kme.metrics()
    state = kme.state_dict()
    with pytest.raises(ValueError, match="damaged"):
        loaded.load_state_dict({**state, "frame.deviation": -1 - np.abs(state["frame.deviation"])})


@pytest.mark.parametrize(
    "options", [{"balance": "auto"}, {"balance": "counts", "views": 0}, {"balance": 1e-4, "step_size": "auto"}]
)
def test_a_file_of_the_rule_that_left_says_why_it_cannot_go_on(options: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"has left the bonus.*vn\.KME\(3\).*entropy\.scale_free"):
        vn.KME.from_params({"dim": 3, "clusters": 5, "step_size": 0.05, **options})


@pytest.mark.parametrize("balance", [1e-4, "auto"])
def test_a_file_from_before_replay_was_part_of_the_rule_loads(balance: Any) -> None:
    """Every file of before names it; 0 is what the memory does by itself."""
    kme = vn.KME(3, clusters=5, balance=balance)
    again = vn.KME.from_params({**kme.params, "replay": 0.0})
    assert again.settings == kme.settings and "replay" not in kme.params


def test_a_file_of_the_papers_clusters_with_replay_says_why_it_cannot_go_on() -> None:
    params = made().params
    with pytest.raises(ValueError, match=r"saved with replay=0\.5.*no choice any more.*vn\.KME\(3\)"):
        vn.KME.from_params({**params, "replay": 0.5})
