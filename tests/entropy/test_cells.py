"""Entropy in nats against closed forms, with the error that is promised."""

import math

import numpy as np
import pytest

from tests.bonuses.kme import paper
from voronaut.entropy.cells import bound, cell_entropy, discrete_entropy, log_ball, log_det_bias


def test_volumes_of_balls() -> None:
    assert [math.exp(log_ball(d)) for d in (1, 2, 3)] == pytest.approx([2, math.pi, 4 / 3 * math.pi])


def test_theorem_2_by_hand() -> None:
    # One dimension, gaps 1 and 4: ½ (ln 1 + ln 4) + ln 2 − ln 2.
    assert bound(np.array([1.0, 4.0]), 1) == pytest.approx(math.log(2))
    assert bound(np.array([1.0, 0.0]), 1) == -math.inf


def test_entropy_of_a_die() -> None:
    assert discrete_entropy(np.array([600] * 6 + [0])) == pytest.approx(math.log(6), abs=1e-3)


@pytest.mark.parametrize(("dim", "error"), [(1, 0.03), (2, 0.05), (8, 0.3), (17, 0.3), (64, 0.8)])
@pytest.mark.parametrize("width", [1e-3, 1.0, 50.0])
def test_gaussians(dim: int, error: float, width: float) -> None:
    kme = paper(dim, init="data", balance=1e-4 * width)
    rng = np.random.default_rng(0)
    for _ in range(6):
        kme.update(rng.normal(size=(16_384, dim)) * width + 7)
    truth = dim / 2 * math.log(2 * math.pi * math.e) + dim * math.log(width)
    assert kme.entropy() == pytest.approx(truth, abs=error)


def test_a_uniform_square_and_a_correlated_gaussian() -> None:
    rng = np.random.default_rng(0)
    square, narrow = paper(2, init="data"), paper(2, init="data")
    turn = np.array([[1.0, 0.99], [0.0, 0.1]])
    for _ in range(6):
        square.update(rng.uniform(-1, 1, size=(16_384, 2)))
        narrow.update(rng.normal(size=(16_384, 2)) @ turn)
    assert square.entropy() == pytest.approx(math.log(4), abs=0.05)
    assert narrow.entropy() == pytest.approx(math.log(2 * math.pi * math.e) + math.log(0.1), abs=0.1)


def test_it_speaks_of_all_states_absorbed_not_of_the_last() -> None:
    kme, rng = paper(1, init="data", clusters=50), np.random.default_rng(0)
    for shift in (0.0, 100.0):
        kme.update(rng.uniform(size=(20_000, 1)) + shift)
    assert kme.entropy() == pytest.approx(math.log(2), abs=0.4)  # the last batch alone: 0


def test_the_log_determinant_of_few_states_is_corrected() -> None:
    rng = np.random.default_rng(0)
    found = [np.linalg.slogdet(np.cov(rng.normal(size=(100, 20)), rowvar=False))[1] for _ in range(300)]
    assert np.mean(found) + log_det_bias(20, 99) == pytest.approx(0, abs=0.1)
    assert np.mean(found) < -2


def test_degenerate_states() -> None:
    flat = np.random.default_rng(0).normal(size=(500, 3)) * [1, 1, 0]
    cells = np.zeros(500, int)
    assert cell_entropy(flat, cells, 1) == -math.inf
    assert math.isfinite(cell_entropy(flat, cells, 1, resolution=1e-3))
    assert cell_entropy(np.zeros((500, 3)), cells, 1) == -math.inf
    assert cell_entropy(np.zeros((500, 3)), cells, 1, resolution=0.1) == pytest.approx(
        1.5 * math.log(2 * math.pi * math.e * 0.01), abs=0.5
    )
    assert math.isnan(cell_entropy(flat[:2], cells[:2], 1))
    assert math.isnan(paper(3).entropy())


def test_resolution_changes_nothing_where_states_are_wide() -> None:
    states = np.random.default_rng(0).normal(size=(5000, 2))
    cells = (states[:, 0] > 0).astype(int)
    assert cell_entropy(states, cells, 2, resolution=1e-3) == pytest.approx(cell_entropy(states, cells, 2), abs=1e-4)
