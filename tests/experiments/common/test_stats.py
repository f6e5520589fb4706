"""Numbers over seeds against cases worked out by hand, and the degenerate ones first."""

from itertools import combinations
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.typing import NDArray
from scipy.stats import mannwhitneyu

from voronaut.experiments.common import stats

NAN = float("nan")


def test_one_seed_has_a_mean_and_no_interval() -> None:
    measured = stats.mean_interval([[1.0, 2.0]])
    assert measured.value.tolist() == [1, 2] and np.isnan([measured.low, measured.high]).all()
    again = stats.bootstrap([[3.0]], stats.mean)
    assert again.value == 3 and np.isnan(again.low) and np.isnan(again.high)


def test_equal_seeds_have_an_interval_of_no_width() -> None:
    assert stats.mean_interval([2.0, 2.0, 2.0]) == (2, 2, 2)
    assert stats.bootstrap([[2.0] * 5], stats.mean) == (2, 2, 2)
    assert stats.rank_test([0.0] * 5, [0.0] * 5) == 1


def test_the_t_interval_by_hand() -> None:
    measured = stats.mean_interval([1.0, 2.0, 3.0])  # s = 1, t(2) = 4.302653
    assert measured.value == 2
    np.testing.assert_allclose([measured.low, measured.high], [2 - 4.302653 / 3**0.5, 2 + 4.302653 / 3**0.5], rtol=1e-6)


def test_what_is_unknown_stays_unknown() -> None:
    assert np.isnan(stats.mean_interval([[1.0], [NAN]]).value[0])
    for statistic in (stats.mean, stats.iqm):
        assert np.isnan(stats.bootstrap([[1.0, NAN], [1.0, 2.0]], statistic)).all()
    assert np.isnan(stats.bootstrap([[1.0, 2.0], [1.0, NAN]], stats.better)).all()
    assert np.isnan(stats.bootstrap([[1.0, 2.0], []], stats.better)).all()
    assert np.isnan(stats.rank_test([1.0, NAN], [2.0, 3.0]))


def test_gaps_are_filled_with_what_was_known_before() -> None:
    np.testing.assert_array_equal(stats.carried([NAN, 1, NAN, NAN, 4, NAN]), [NAN, 1, 1, 1, 4, 4])
    assert np.isnan(stats.carried([NAN, NAN])).all()


def test_area_by_hand() -> None:
    assert stats.area([10, 20, 30, 40], [0, 2, 4, 6]) == 3
    assert stats.area([10, 20, 60], [0, 2, 4]) == pytest.approx((0 * 10 + 2 * 10 + 4 * 40) / 60)
    assert stats.area([10, 20, 30, 40], [NAN, 2, NAN, 8]) == 4  # (2 + 2 + 8) / 3
    assert np.isnan(stats.area([10, 20], [NAN, NAN]))


def test_final_is_the_last_tenth() -> None:
    steps = np.arange(1, 21) * 5
    assert stats.final(steps, np.arange(20)) == 18.5
    assert stats.final([10, 20], [1, 7]) == 7
    assert stats.final([10, 20], [3, NAN]) == 3
    assert np.isnan(stats.final([10, 20], [NAN, NAN]))


def test_iqm_leaves_out_a_quarter_at_each_end() -> None:
    assert stats.iqm([np.array([[0, 1, 2, 100.0]])])[0] == 1.5
    assert stats.iqm([np.array([[100.0, 0]]), np.array([[2, 1.0]])])[0] == 1.5


def test_the_chance_of_being_better_by_hand() -> None:
    def better(*strata: list[float]) -> float:
        return float(stats.better([np.array([stratum]) for stratum in strata])[0])

    assert better([1, 2], [0, 0]) == 1 and better([0, 0], [1, 2]) == 0
    assert better([1, 1], [1, 1]) == 0.5
    assert better([1, 3], [2, 1]) == (0.5 + 0 + 1 + 1) / 4
    assert better([1, 2], [0, 0], [0, 0], [1, 1]) == 0.5  # the mean over tasks


def test_the_rank_test_of_five_against_five() -> None:
    assert stats.rank_test([6, 7, 8, 9, 10], [1, 2, 3, 4, 5]) == pytest.approx(2 / 252)
    assert stats.rank_test([0, 1, 4, 103, 368], [0] * 5) == pytest.approx(12 / 252)  # with the normal law 0.025
    many = np.arange(10.0)
    assert stats.rank_test(many, many + 4) == pytest.approx(mannwhitneyu(many, many + 4).pvalue)


@given(arrays(np.int64, st.integers(1, 4), elements=st.integers(0, 3)),
       arrays(np.int64, st.integers(1, 4), elements=st.integers(0, 3)))  # fmt: skip
def test_the_rank_test_is_exact_with_ties_too(x: NDArray[np.int64], y: NDArray[np.int64]) -> None:
    def far(x: Any, y: Any) -> float:
        return abs(float(mannwhitneyu(x, y).statistic) - len(x) * len(y) / 2)

    both = set(range(len(x) + len(y)))
    pool = np.concatenate([x, y])
    parted = [far(pool[list(part)], pool[list(both - set(part))]) for part in combinations(both, len(x))]
    assert stats.rank_test(x, y) == pytest.approx(np.mean(np.array(parted) >= far(x, y)))
    assert stats.rank_test(x, y) == pytest.approx(stats.rank_test(y, x))


def test_the_bootstrap_draws_within_strata_and_repeats_itself() -> None:
    strata = [np.zeros(5), np.full(5, 10.0)]
    assert stats.bootstrap(strata, stats.mean) == (5, 5, 5)  # drawn across strata it would spread
    values = np.random.default_rng(0).normal(size=200)
    one, two = (stats.bootstrap([values], stats.mean) for _ in range(2))
    assert one == two
    exact = stats.mean_interval(values)
    np.testing.assert_allclose([one.low, one.high], [exact.low, exact.high], atol=0.03)


def test_normalising_by_the_best_run() -> None:
    assert [s.tolist() for s in stats.normalise([[1.0, 2.0], [4.0, 0.0]])] == [[0.25, 0.5], [1, 0]]
    assert [s.tolist() for s in stats.normalise([[0.0, 0.0], [0.0]])] == [[0, 0], [0]]
    assert [s.tolist() for s in stats.normalise([[0.02, 0.0], [0.0]])] == [[0.02, 0], [0]]  # nobody has learned it
