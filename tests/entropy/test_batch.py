"""One yardstick for all methods: close to closed forms, finite whatever comes, no randomness."""

import math

import numpy as np
import pytest

from voronaut.entropy.batch import batch_entropy


@pytest.mark.parametrize(("dim", "error"), [(2, 0.1), (8, 0.35), (17, 0.4), (67, 1.5)])
def test_gaussians(dim: int, error: float) -> None:
    states = np.random.default_rng(0).normal(size=(16, 1024, dim)) * 2 + 5
    truth = dim / 2 * math.log(2 * math.pi * math.e) + dim * math.log(2)
    assert batch_entropy(states) == pytest.approx(truth, abs=error)


def test_wider_is_more_and_repetition_is_the_same() -> None:
    states = np.random.default_rng(0).normal(size=(4096, 5)).astype(np.float32)
    assert batch_entropy(states * 2) == pytest.approx(batch_entropy(states) + 5 * math.log(2), abs=0.01)
    assert batch_entropy(states) == batch_entropy(states)


def test_constant_coordinates_and_few_states() -> None:
    states = np.random.default_rng(0).normal(size=(4096, 3))
    states[:, 1] = 4.0
    assert math.isfinite(batch_entropy(states))
    assert math.isfinite(batch_entropy(np.zeros((500, 3))))
    assert math.isnan(batch_entropy(states[:3]))
