"""The reference against numbers worked out by hand: it judges everything else."""

import numpy as np
import pytest

from voronaut import clusters as ref
from voronaut.clusters import Clusters


def line(*points: float, counts: tuple[int, ...] | None = None) -> Clusters:
    centers = np.array(points, float)[:, None]
    return Clusters(centers, np.array(counts or (1,) * len(points)))


def test_nearest_cluster_wins_and_the_lowest_index_on_a_tie() -> None:
    assert ref.assign(line(0, 2), np.array([1.9]), balance=0.0) == 1
    assert ref.assign(line(0, 2), np.array([1.0]), balance=0.0) == 0


def test_a_crowded_cluster_is_further_away() -> None:
    crowded = line(0, 2, counts=(4, 1))
    assert ref.assign(crowded, np.array([0.8]), balance=0.0) == 0
    assert ref.assign(crowded, np.array([0.8]), balance=0.2) == 1


def test_counts_however_large_leave_distances_their_digits() -> None:
    old = line(0, 2, counts=(10**15, 10**15))
    assert ref.assign(old, np.array([1.05]), balance=1.0) == 1
    assert ref.gaps(old, balance=1.0).tolist() == [2.0, 2.0]


def test_the_winner_moves_and_counts_and_nothing_else_does() -> None:
    before = line(0, 2)
    after = ref.absorb(before, np.array([3.0]), step_size=0.25, balance=0.0)
    assert after.centers.ravel().tolist() == [0.0, 2.25]
    assert after.counts.tolist() == [1, 2]
    assert before.centers.ravel().tolist() == [0.0, 2.0]


def test_gaps_by_hand() -> None:
    # From 0: to 1 is 1 + κ(3−1) = 1.2; from 1: to 0 is 1 − 0.2 = 0.8; from 5: to 1 is 4 + κ(3−1) = 4.2.
    assert ref.gaps(line(0, 1, 5, counts=(1, 3, 1)), balance=0.1) == pytest.approx([1.2, 0.8, 4.2])


def test_a_negative_gap_marks_an_empty_cell() -> None:
    crowded = line(0, 1, counts=(1, 50))
    assert ref.gaps(crowded, balance=0.1)[1] < 0
    assert all(ref.assign(crowded, np.array([x]), balance=0.1) == 0 for x in np.linspace(-9, 9, 99))


def test_reward_by_hand() -> None:
    # 2 moves to 2.5: both gaps grow from 2 to 2.5.
    assert ref.reward(line(0, 2), np.array([3.0]), 0.5, 0.0) == pytest.approx(2 * (np.sqrt(2.5) - np.sqrt(2)))


def test_floors() -> None:
    assert ref.sqrt(np.array([-1.0, 4.0])).tolist() == [0.0, 2.0]
    assert ref.log(np.array([-1.0, 1.0]), floor=0.1) == pytest.approx([np.log(0.1), 0.0])
