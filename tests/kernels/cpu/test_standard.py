"""States standardised in one pass: NumPy's numbers to the bit, and nothing bad gets through."""

from typing import Any

import numpy as np
import pytest

from voronaut.kernels.cpu import standard

LIMIT = 1e100


@pytest.mark.parametrize("shape", [(0, 3), (1, 1), (15, 17), (16, 17), (1000, 5)])
@pytest.mark.parametrize("given", [np.float32, np.float64])
@pytest.mark.parametrize("wanted", ["float32", "float64"])
def test_the_bits_are_numpys(shape: tuple[int, int], given: Any, wanted: str) -> None:
    rng = np.random.default_rng(0)
    mean, deviation = 1e3 * rng.normal(size=shape[1]), rng.exponential(size=shape[1])
    deviation[0] = 0.0  # has not changed so far
    states = (mean + 5 * deviation * rng.normal(size=shape) + (np.arange(shape[1]) == 0)).astype(given)
    scaled = np.clip((states - mean) / np.where(deviation > 0, deviation, 1.0), -10, 10)
    found = standard.standardised(states, mean, deviation, 10.0, LIMIT, wanted)
    assert found is not None and found.dtype == wanted
    assert found.tobytes() == np.where(deviation > 0, scaled, 0.0).astype(wanted).tobytes()


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, 1e101, -1e101])
@pytest.mark.parametrize("place", [(0, 0), (17, 2), (39, 4)])
def test_one_bad_number_is_found_wherever_it_is(bad: float, place: tuple[int, int]) -> None:
    states, mean, deviation = np.zeros((40, 5)), np.zeros(5), np.array([0.0, 1, 1, 1, 1])
    assert standard.standardised(states, mean, deviation, 10.0, LIMIT, "float32") is not None
    states[place] = bad
    assert standard.standardised(states, mean, deviation, 10.0, LIMIT, "float32") is None
