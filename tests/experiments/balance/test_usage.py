"""Usage that fades: by hand where that is possible, then what the rule promises on any stream."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.experiments.balance import usage
from tests.experiments.balance.usage import Clusters, Rule
from voronaut.clusters import Array


def line(*points: float, usage: tuple[float, ...] | None = None, margin: float = 1.0) -> Clusters:
    k = len(points)
    shares = np.array(usage or (1.0,) * k)
    return Clusters(np.array(points, float)[:, None], shares, np.full(k, 100), margin, 1000)


def absorbed(states: Array, clusters: Clusters, rule: Rule = usage.DEFAULT) -> Clusters:
    for state in states:
        clusters = usage.absorb(clusters, state, rule)
    return clusters


def normal(*shape: int, seed: int = 0) -> Array:
    return np.random.default_rng(seed).normal(size=shape)


def test_nearest_cluster_wins_and_the_lowest_index_on_a_tie() -> None:
    assert usage.assign(line(0, 2), np.array([1.9])) == 1
    assert usage.assign(line(0, 2), np.array([1.0])) == 0


def test_a_cluster_in_use_is_further_away() -> None:
    busy = line(0, 2, usage=(1.2, 0.8))  # 0.8 + 3.6 against 1.2 + 2.4
    assert usage.assign(busy, np.array([0.8])) == 1
    assert usage.assign(busy, np.array([0.8]), Rule(strength=0.0)) == 0


def test_what_a_state_changes_by_hand() -> None:
    after = usage.absorb(line(0, 4), np.array([5.0]), Rule(floor=0.5))
    assert after.centers.ravel().tolist() == [0.0, 4.5]
    assert after.usage == pytest.approx([1 - 0.005, 1 - 0.005 + 0.01])
    assert after.ages.tolist() == [100, 101]
    assert after.margin == pytest.approx(1 + 1e-3 * (4 - 1))
    assert after.seen == 1001


def test_a_state_counts_by_its_distance_up_to_the_margin() -> None:
    for at, counts in ((4.0, 0.0), (4.25, 0.25), (5.0, 1.0), (9.0, 1.0)):
        assert usage.decide(line(0, 4), np.array([at])).counts == pytest.approx(counts)


def test_margins_that_are_far_too_large_are_clipped() -> None:
    assert usage.absorb(line(0, 1e6), np.array([0.5])).margin == pytest.approx(1 + 1e-3 * (10 - 1))


def test_a_crowded_cluster_is_split_with_the_least_used_one() -> None:
    after = usage.absorb(line(0, 4, 90, usage=(1.0, 1.0, 0.1)), np.array([6.0]), Rule(floor=0.5))
    assert after.centers.ravel().tolist() == [0.0, 5.0, 5.1]
    assert after.usage[1] == after.usage[2] == pytest.approx((1.1 * (1 - 0.01 / 3) + 0.01) / 2)
    assert after.ages.tolist() == [100, 101, 10]
    assert usage.absorb(line(0, 4, 90), np.array([6.0])).centers[2] == 90


def test_gaps_and_reward_by_hand() -> None:
    three = line(0, 1, 5, usage=(1.0, 1.1, 0.9))
    assert usage.gaps(three) == pytest.approx([1.3, 0.7, 3.4 + 1.2])
    assert usage.objective(three) == pytest.approx(np.sqrt([1.3, 0.7, 4.6]).sum())
    paid = usage.reward(line(0, 2), np.array([3.0]), Rule(floor=0.5))  # 2 moves to 2.5; its handicap is not paid for
    assert paid == pytest.approx(2 * np.sqrt(2.5) - 2 * np.sqrt(2))


def test_a_reward_changes_nothing_and_looks_at_the_state_alone() -> None:
    before = absorbed(normal(50, 2), usage.start(normal(5, 2, seed=1)))
    kept = [np.copy(part) for part in before]
    usage.reward(before, np.ones(2))
    assert all(np.array_equal(a, b) for a, b in zip(before, kept, strict=True))
    moved = usage.move(before, np.ones(2))
    assert (moved.centers != before.centers).any(axis=1).sum() == 1
    assert moved.usage is before.usage and moved.margin == before.margin


def test_a_state_at_the_winning_center_earns_nothing() -> None:
    """Though it wins, and its cluster is handicapped by more from then on."""
    clusters = absorbed(normal(200, 2), usage.start(normal(5, 2, seed=1)))
    winner = usage.assign(clusters, clusters.centers[2])
    assert usage.reward(clusters, clusters.centers[winner]) == pytest.approx(0, abs=1e-12)


@given(st.integers(-60, 60), st.integers(0, 9))
@settings(max_examples=20, deadline=None)
def test_units_change_no_decision(power: int, seed: int) -> None:
    """A power of two changes no bit; rewards of f = √ grow with the root of the unit."""
    states, unit = normal(60, 3, seed=seed), 2.0**power
    one = absorbed(states[10:], usage.start(states[:10]))
    other = absorbed(states[10:] * unit, usage.start(states[:10] * unit))
    assert np.array_equal(one.centers * unit, other.centers)
    assert np.array_equal(one.usage, other.usage)
    assert one.margin * unit == other.margin
    paid = usage.reward(one, states[0]), usage.reward(other, states[0] * unit)
    assert paid[1] == pytest.approx(paid[0] * np.sqrt(unit), rel=1e-9)


def test_places_and_directions_change_no_decision() -> None:
    states = normal(200, 3)
    turn, shift = np.linalg.qr(normal(3, 3, seed=1))[0], np.array([1e3, -1e3, 0])
    one = absorbed(states, usage.start(states[:10]))
    other = absorbed(states @ turn + shift, usage.start(states[:10] @ turn + shift))
    assert one.centers @ turn + shift == pytest.approx(other.centers, abs=1e-8)
    assert one.usage == pytest.approx(other.usage)


@given(st.integers(0, 9), st.sampled_from(["same", "jumps", "walk", "atoms", "outliers"]))
@settings(max_examples=25, deadline=None)
def test_handicaps_are_bounded_by_distances_that_exist(seed: int, kind: str) -> None:
    """u ≤ 4 min u + b ≤ 4 + b, and m is no more than the widest distance between two centers so far."""
    rng, rule = np.random.default_rng(seed), Rule(fade=0.1)
    states = rng.normal(size=(400, 2))
    states = {
        "same": states,
        "jumps": states + 50 * (np.arange(400) // 100)[:, None],
        "walk": states.cumsum(axis=0),
        "atoms": states[rng.integers(0, 4, 400)],
        "outliers": states * np.where(rng.random((400, 1)) < 0.02, 1e6, 1),
    }[kind]
    clusters, widest = usage.start(states[:12]), 0.0
    for state in states:
        widest = max(widest, np.linalg.norm(clusters.centers[:, None] - clusters.centers[None], axis=2).max())
        clusters = usage.absorb(clusters, state, rule)
        assert clusters.margin <= widest * (1 + 1e-12)
        assert clusters.usage.mean() <= 1 + 1e-12
        assert clusters.usage.max() <= rule.crowded * clusters.usage.min() + rule.fade
        assert usage.handicaps(clusters, rule).max() <= rule.strength * (rule.crowded + rule.fade) * widest * (1 + 1e-9)


def test_usage_forgets() -> None:
    """Two histories that differ become one present: after k/b states e^−1 of the difference is left."""
    states, rule = normal(60, 2), Rule(fade=0.5, strength=0.0, crowded=np.inf)
    fair = usage.start(normal(3, 2, seed=1))._replace(margin=1e-9)
    past = fair._replace(usage=np.array([0.2, 0.8, 2.0]))
    one, other = absorbed(states, fair, rule), absorbed(states, past, rule)
    assert np.array_equal(one.centers, other.centers)
    assert other.usage - one.usage == pytest.approx((past.usage - 1) * (1 - 0.5 / 3) ** 60)


def test_clusters_follow_a_jump_of_any_distance() -> None:
    rule = Rule(fade=0.1)
    for far in (1e2, 1e8):
        here = absorbed(normal(400, 2), usage.start(normal(20, 2, seed=1)), rule)
        away = normal(1000, 2, seed=2) + far
        for crowded, low, high in ((4.0, 0.9, 1.0), (np.inf, 0.0, 0.5)):
            there = absorbed(away, here, rule._replace(crowded=crowded))
            assert low <= (there.centers[:, 0] > far / 2).mean() <= high


def test_a_place_where_nothing_moves_draws_no_clusters() -> None:
    """Half of all states are one and the same point: one cluster sits there, no cell is empty, no gap clamped."""
    rng, rule = np.random.default_rng(0), Rule(fade=0.05)
    states = rng.normal(size=(3000, 2)) * (rng.random((3000, 1)) < 0.5)
    clusters = absorbed(states, usage.start(states[rng.permutation(3000)[:15]] + 1e-3 * rng.normal(size=(15, 2))), rule)
    assert (usage.gaps(clusters, rule) > 0).all()
    assert (np.linalg.norm(clusters.centers, axis=1) < 0.05).sum() <= 2
    cells = [usage.assign(clusters, state, rule) for state in states]
    assert len(set(cells)) == 15


def test_one_cluster() -> None:
    clusters = absorbed(normal(20, 3), usage.start(np.zeros((1, 3))))
    assert np.isfinite(clusters.centers).all()
    assert clusters.margin == 0


def test_one_state_again_and_again() -> None:
    clusters = absorbed(np.ones((50, 3)), usage.start(np.ones((4, 3))))
    assert (clusters.centers == 1).all()
    assert clusters.margin == 0
    assert usage.gaps(clusters).tolist() == [0.0] * 4
    assert usage.reward(clusters, np.ones(3)) == 0


def test_more_clusters_than_states() -> None:
    states = normal(3, 2)
    clusters = absorbed(states[[0, 1, 2] * 20], usage.start(states[np.arange(10) % 3]))
    assert np.isfinite(clusters.centers).all()
    assert {usage.assign(clusters, state) for state in states} <= set(range(10))


def test_a_constant_coordinate_changes_nothing() -> None:
    states = normal(200, 2)
    flat = np.c_[states, np.full(200, 7.0)]
    one = absorbed(states, usage.start(states[:10]))
    other = absorbed(flat, usage.start(flat[:10]))
    assert one.centers == pytest.approx(other.centers[:, :2])
    assert one.usage == pytest.approx(other.usage)


@pytest.mark.parametrize("unit", [1e30, 1e-30])
def test_extreme_units(unit: float) -> None:
    states = normal(200, 2)
    one = absorbed(states, usage.start(states[:10]))
    other = absorbed(states * unit, usage.start(states[:10] * unit))
    assert other.centers / unit == pytest.approx(one.centers)
    assert np.isfinite(usage.gaps(other)).all()
