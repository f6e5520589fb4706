"""`balance="counts"`, `step_size="auto"`, `normalize` and `replay`: the rules, and that units change no decision."""

import itertools
import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import voronaut as vn
from tests.bonuses.kme import paper
from voronaut import clusters as ref
from voronaut.conformance import check_bonus
from voronaut.entropy.scale_free import rule
from voronaut.training.population import Stack

FREE = {"balance": "counts", "step_size": "auto", "init": "data"}
VARIANTS = {
    "auto": FREE,
    "normalized": {**FREE, "normalize": True},
    "replaying": {**FREE, "normalize": True, "replay": 0.5},
    "only balance": {"balance": "counts", "init": "data"},
    "only step": {"step_size": "auto"},
    "only normalize": {"normalize": True, "init": "data"},
    "only replay": {"replay": 0.25, "init": "data"},
    "zeros": {"balance": "counts", "step_size": "auto", "normalize": True},
}


def made(dim: int = 3, **options: object) -> vn.KME:
    return paper(dim, **{"clusters": 12, "dtype": "float64", **FREE, **options})  # type: ignore[arg-type]


def assigned(kme: vn.KME, states: np.ndarray) -> list[int]:
    """The cluster of each state, from what a user can see."""
    distances = np.linalg.norm(states[:, None] - kme.centers[None], axis=2)
    return np.argmin(distances + kme.metrics()["balance"] * kme.counts, axis=1).tolist()


@pytest.mark.parametrize("name", VARIANTS)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_conforms(name: str, dtype: str) -> None:
    check_bonus(lambda dim, seed: paper(dim, clusters=20, seed=seed, dtype=dtype, **VARIANTS[name]))  # type: ignore[arg-type]


# The rules


def grown(kme: vn.KME, margin: float) -> rule.Grown:
    return rule.Grown(ref.Clusters(kme.centers, kme.counts), margin, np.inf)


def test_a_reward_is_what_the_update_would_change() -> None:
    """κ frozen, α the winner's own: young and old clusters side by side."""
    kme, rng = made(), np.random.default_rng(0)
    for size in (40, 30, 2000):
        kme.update(rng.normal(size=(size, 3)))
        margin = float(kme.state_dict()["margin"][0])
        before = grown(kme, margin)
        for state, paid in zip(states := rng.normal(size=(60, 3)), kme.rewards(states), strict=True):
            after = rule.absorb(before, state, eta=0.03, floor=0.01)
            gaps = [ref.gaps(each.clusters, 0.03 * margin) for each in (before, after)]
            assert paid == pytest.approx((ref.sqrt(gaps[1]) - ref.sqrt(gaps[0])).sum(), abs=1e-10)
    assert (1 / (kme.counts + 1) < 0.01).all()


@pytest.mark.parametrize("options", [FREE, {"step_size": "auto", "balance": 1e-3}, {"step_size": 0.05}])
def test_step_rewards_and_absorbs_state_by_state(options: dict[str, object]) -> None:
    kme, rng = made(**options), np.random.default_rng(1)
    kme.update(rng.normal(size=(100, 3)))
    auto = kme.settings.balance == "counts"
    eta, balance = (0.03, 0.0) if auto else (0.0, 1e-3)
    floor, share = (0.01, 1.0) if kme.settings.step_size == "auto" else (0.05, 0.0)
    now = grown(kme, float(kme.state_dict()["margin"][0]))
    states = rng.normal(size=(80, 3))
    for state, paid in zip(states, kme.step(states), strict=True):
        kappa = rule.balance_of(now.margin, eta, balance)
        after = rule.absorb(now, state, eta=eta, floor=floor, balance=balance, share=share)
        wanted = ref.sqrt(ref.gaps(after.clusters, kappa)) - ref.sqrt(ref.gaps(now.clusters, kappa))
        assert paid == pytest.approx(wanted.sum(), abs=1e-10)
        now = after
    np.testing.assert_allclose(kme.centers, now.clusters.centers, rtol=0, atol=1e-12)
    assert kme.counts.tolist() == now.clusters.counts.tolist()
    wanted_gaps = ref.gaps(now.clusters, rule.balance_of(now.margin, eta, balance))
    np.testing.assert_allclose(kme.gaps, wanted_gaps, rtol=0, atol=1e-12)


def test_with_a_fixed_balance_rewards_still_telescope() -> None:
    kme = made(balance=1e-3)
    kme.update(np.random.default_rng(0).normal(size=(50, 3)))
    before = kme.objective_value()
    paid = kme.step(np.random.default_rng(1).normal(size=(200, 3)))
    assert paid.sum() == pytest.approx(kme.objective_value() - before, abs=1e-9)


def test_step_in_pieces_is_step_whole() -> None:
    states = np.random.default_rng(0).normal(size=(90, 3))
    whole, pieces = made(init="zeros"), made(init="zeros")
    together = whole.step(states)
    apart = np.concatenate([pieces.step(states[a : a + 7]) for a in range(0, 90, 7)])
    np.testing.assert_allclose(apart, together, rtol=0, atol=1e-10)


def test_defaults_are_the_papers_and_their_state_has_not_grown() -> None:
    kme = vn.KME(2, **vn.presets.paper().kme)
    assert (kme.settings.balance, kme.settings.step_size, kme.settings.normalize, kme.settings.replay) == (
        1e-4, 0.05, False, 0.0,
    )  # fmt: skip
    assert not {"margin", "replayed", "frame.mean"} & set(kme.state_dict()) and "balance" not in kme.metrics()


# Units


SCALES = st.one_of(st.integers(-30, 30).map(lambda p: 2.0**p), st.just(1000.0))


@pytest.mark.parametrize("normalize", [False, True])
@settings(max_examples=25, deadline=None)
@given(scale=SCALES, offset=st.sampled_from([0.0, 1e6, -3e5]), seed=st.integers(0, 10**6))
def test_units_change_no_decision(normalize: bool, scale: float, offset: float, seed: int) -> None:
    rng = np.random.default_rng(seed)
    plain, other = made(normalize=normalize), made(normalize=normalize)
    for batch in rng.normal(size=(4, 300, 3)):
        plain.update(batch)
        other.update(batch * scale + offset * scale)
    assert other.entropy() - plain.entropy() == pytest.approx(3 * np.log(scale), abs=1e-3)
    assert other.counts.tolist() == plain.counts.tolist()
    np.testing.assert_allclose(other.centers / scale - offset, plain.centers, rtol=0, atol=1e-7)
    probe = rng.normal(size=(200, 3))
    if not normalize:
        assert assigned(other, (probe + offset) * scale) == assigned(plain, probe)
    else:
        np.testing.assert_allclose(other.rewards((probe + offset) * scale), plain.rewards(probe), rtol=0, atol=1e-5)


@pytest.mark.parametrize("normalize", [False, True])
@settings(max_examples=15, deadline=None)
@given(power=st.integers(-20, 20), seed=st.integers(0, 10**6))
def test_float32_powers_of_two_change_no_bit(normalize: bool, power: int, seed: int) -> None:
    """Other factors and offsets round states anew; then a decision as close as the rounding may fall otherwise."""
    plain, other = (made(normalize=normalize, dtype="float32") for _ in range(2))
    for batch in np.random.default_rng(seed).normal(size=(4, 300, 3)).astype(np.float32):
        plain.update(batch)
        other.update(batch * np.float32(2.0**power))
    assert other.counts.tolist() == plain.counts.tolist()
    assert (other.centers == plain.centers * 2.0**power).all()


def test_float32_at_another_unit_decides_nearly_always_alike() -> None:
    rng = np.random.default_rng(0)
    plain, other = made(dtype="float32", clusters=50), made(dtype="float32", clusters=50)
    for batch in rng.normal(size=(10, 1000, 3)):
        plain.update(batch)
        other.update(1000 * (batch + 1e6))
    np.testing.assert_allclose(np.sort(other.counts), np.sort(plain.counts), atol=5)
    np.testing.assert_allclose(other.centers / 1000 - 1e6, plain.centers, rtol=0, atol=0.02)


def test_a_fixed_balance_does_feel_units() -> None:
    """The test above can fail."""
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


# Replay


def test_replay_is_the_share_it_says_and_counts_add_up() -> None:
    kme = made(replay=0.5)
    for batch in np.random.default_rng(0).normal(size=(3, 100, 3)):
        kme.update(batch)
    assert kme.counts.sum() == 12 + 300 + 200  # the first batch has nothing to look back on
    assert kme.metrics()["states"] == 300 and kme.state_dict()["replayed"].tolist() == [200]
    kme.step(np.zeros((10, 3)))
    assert kme.counts.sum() == 12 + 300 + 200 + 10


def test_replay_keeps_centers_where_the_stream_was() -> None:
    """A stream that stays in one place for long: with replay the other place is not forgotten."""
    rng, kept = np.random.default_rng(0), {}
    for share in (0.0, 0.5):
        kme = made(2, clusters=40, replay=share)
        for place in (0.0, 30.0):
            for _ in range(30):
                kme.update(rng.normal(size=(500, 2)) + place)
        kept[share] = (np.linalg.norm(kme.centers, axis=1) < 15).sum()
    assert kept[0.5] > kept[0.0] and kept[0.5] >= 10


# Choosing, saving, many at once


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"balance": "Auto"}, 'balance.*"auto".*Auto'), ({"step_size": "car"}, "step_size"),
        ({"replay": 1.0}, "replay.*share"), ({"replay": -0.1}, "replay"), ({"replay": "half"}, "replay"),
        ({"normalize": "yes"}, "normalize"),
    ],
)  # fmt: skip
def test_bad_choices_are_named(options: dict[str, object], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        made(**options)


@pytest.mark.parametrize("name", VARIANTS)
def test_saved_and_loaded_goes_on_and_damage_is_refused(name: str, tmp_path) -> None:  # type: ignore[no-untyped-def]
    kme, rng = paper(3, clusters=10, **VARIANTS[name]), np.random.default_rng(0)  # type: ignore[arg-type]
    for batch in rng.normal(size=(3, 100, 3)):
        kme.update(batch)
    json.dumps(kme.params)
    kme.save(tmp_path / "kme.npz")
    loaded, more = vn.load(tmp_path / "kme.npz"), rng.normal(size=(50, 3))
    for one in (kme, loaded):
        one.update(more)
    assert loaded.rewards(more).tolist() == kme.rewards(more).tolist() and loaded.metrics() == kme.metrics()
    for damage in ("margin", "replayed", "frame.deviation"):
        state = kme.state_dict()
        if damage in state:
            with pytest.raises(ValueError, match="damaged"):
                loaded.load_state_dict({**state, damage: -1 - np.abs(state[damage])})


def test_many_side_by_side_are_each_alone() -> None:
    options = {**FREE, "replay": 0.5, "clusters": 9}
    alone, together = ([paper(3, seed=s, **options) for s in range(2)] for _ in range(2))  # type: ignore[arg-type]
    loop, program = Stack(alone, mapped=False), Stack(together, mapped=True)
    for batch in np.random.default_rng(0).normal(size=(3, 2, 4, 25, 3)):
        assert program.rewards(batch).tolist() == loop.rewards(batch).tolist()
        loop.update(batch)
        program.update(batch)
    for one, other in itertools.zip_longest(alone, together):
        assert other.centers.tolist() == one.centers.tolist()
