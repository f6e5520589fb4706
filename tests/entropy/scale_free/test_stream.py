"""Clusters of a stream in any unit: what is learned is the rule's, units change no decision, replay keeps the past."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from voronaut import clusters as ref
from voronaut.entropy.scale_free import rule
from voronaut.entropy.scale_free.stream import ScaleFree


def made(dim: int = 3, clusters: int = 12, **options: Any) -> ScaleFree:
    return ScaleFree(dim, clusters, **{"dtype": "float64", **options})


def assigned(one: ScaleFree, states: np.ndarray) -> list[int]:
    """The cluster of each state, from what a user can see."""
    distances = np.linalg.norm(states[:, None] - one.centers[None], axis=2)
    return np.argmin(distances + one.balance * one.counts, axis=1).tolist()


def test_an_update_is_the_rule_over_shuffled_states() -> None:
    one, rng = made(), np.random.default_rng(0)
    one.update(rng.normal(size=(40, 3)))
    now = rule.Grown(ref.Clusters(one.centers, one.counts), one.balance / 0.03, np.inf)
    states = rng.normal(size=(60, 3))
    one.update(states)
    for row in np.random.default_rng([0, 1]).permutation(60):
        now = rule.absorb(now, states[row], eta=0.03, floor=0.01)
    np.testing.assert_allclose(one.centers, now.clusters.centers, rtol=0, atol=1e-12)
    assert one.counts.tolist() == now.clusters.counts.tolist()
    np.testing.assert_allclose(one.gaps, ref.gaps(now.clusters, 0.03 * now.margin), rtol=0, atol=1e-12)
    assert one.objective_value() == pytest.approx(ref.objective(now.clusters, 0.03 * now.margin))
    told = one.metrics()
    assert told["balance"] == one.balance and told["entropy"] == one.entropy()


def test_before_any_state_there_is_no_entropy() -> None:
    one = made()
    one.update(np.zeros((0, 3)))
    assert np.isnan(one.entropy()) and one.counts.sum() == 12


def test_the_entropy_is_that_of_the_states() -> None:
    one = made(clusters=64, dtype="float32")
    for batch in np.random.default_rng(0).normal(size=(20, 2000, 3)):
        one.update(1e3 * batch + 1e5)
    assert one.entropy() == pytest.approx(3 * (0.5 * np.log(2 * np.pi * np.e) + np.log(1e3)), abs=0.2)
    assert one.entropy_bound() < one.entropy()


SCALES = st.one_of(st.integers(-30, 30).map(lambda p: 2.0**p), st.just(1000.0))


@settings(max_examples=25, deadline=None)
@given(scale=SCALES, offset=st.sampled_from([0.0, 1e6, -3e5]), seed=st.integers(0, 10**6))
def test_units_change_no_decision(scale: float, offset: float, seed: int) -> None:
    rng = np.random.default_rng(seed)
    plain, other = made(), made()
    for batch in rng.normal(size=(4, 300, 3)):
        plain.update(batch)
        other.update(batch * scale + offset * scale)
    assert other.entropy() - plain.entropy() == pytest.approx(3 * np.log(scale), abs=1e-3)
    assert other.counts.tolist() == plain.counts.tolist()
    np.testing.assert_allclose(other.centers / scale - offset, plain.centers, rtol=0, atol=1e-7)
    probe = rng.normal(size=(200, 3))
    assert assigned(other, (probe + offset) * scale) == assigned(plain, probe)


@settings(max_examples=15, deadline=None)
@given(power=st.integers(-20, 20), seed=st.integers(0, 10**6))
def test_float32_powers_of_two_change_no_bit(power: int, seed: int) -> None:
    """Other factors and offsets round states anew; then a decision as close as the rounding may fall otherwise."""
    plain, other = (made(dtype="float32") for _ in range(2))
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


def test_replay_is_the_share_it_says_and_counts_add_up() -> None:
    one = made(replay=0.5)
    for batch in np.random.default_rng(0).normal(size=(3, 100, 3)):
        one.update(batch)
    assert one.counts.sum() == 12 + 300 + 200  # the first batch has nothing to look back on
    assert one.eta == 0.003


def test_replay_keeps_centers_where_the_stream_was() -> None:
    """A stream that stays in one place for long: with replay the other place is not forgotten."""
    rng, kept = np.random.default_rng(0), {}
    for share in (0.0, 0.5):
        one = made(2, clusters=40, replay=share)
        for place in (0.0, 30.0):
            for _ in range(30):
                one.update(rng.normal(size=(500, 2)) + place)
        kept[share] = (np.linalg.norm(one.centers, axis=1) < 15).sum()
    assert kept[0.5] > kept[0.0] and kept[0.5] >= 10
