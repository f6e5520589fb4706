"""The laws' entropies against SciPy's, against a nearest-neighbour estimate, and their lists."""

import math

import numpy as np
import pytest
from scipy import stats
from scipy.spatial import cKDTree
from scipy.special import digamma

from voronaut.entropy.cells import log_ball
from voronaut.entropy.laws import COVERED, HELD_OUT, LAWS, TUNING

SCIPY = {
    "gaussian": stats.norm(),
    "uniform": stats.uniform(),
    "student3": stats.t(3),
    "exponential": stats.expon(),
    "laplace": stats.laplace(),
    "lognormal": stats.lognorm(1),
    "beta": stats.beta(2, 5),
    "gamma": stats.gamma(2),
}


def kozachenko(points: np.ndarray, k: int = 3) -> float:
    """Kozachenko and Leonenko's estimate."""
    n, d = points.shape
    radius = cKDTree(points).query(points, k + 1)[0][:, k]
    return float(d * np.log(radius).mean() + log_ball(d) + digamma(n) - digamma(k))


@pytest.mark.parametrize("name", SCIPY)
def test_closed_forms(name: str) -> None:
    assert LAWS[name](5).entropy == pytest.approx(5 * float(SCIPY[name].entropy()), abs=1e-9)


@pytest.mark.parametrize("dim", [1, 2])
@pytest.mark.parametrize("name", LAWS)
def test_samples_have_the_entropy(name: str, dim: int) -> None:
    law = LAWS[name](dim)
    assert kozachenko(law.sample(8000, 0)) == pytest.approx(law.entropy, abs=0.06)


def test_a_gaussian_in_disguise() -> None:
    """Two bumps, each of half the mass and half the width: exactly the entropy of one, but for their overlap."""
    assert LAWS["bimodal"](1).entropy == pytest.approx(LAWS["gaussian"](1).entropy + math.log(2 * 0.5), abs=1e-3)


@pytest.mark.parametrize("name", LAWS)
def test_shape_and_seed(name: str) -> None:
    law = LAWS[name](64)
    assert law.sample(7, 3).shape == (7, 64) and law.name == name and law.dim == 64
    assert np.array_equal(law.sample(7, 3), law.sample(7, 3)) and not np.array_equal(law.sample(7, 3), law.sample(7, 4))


def test_ten_laws_are_held_out() -> None:
    assert len(HELD_OUT) >= 10 and not set(TUNING) & set(HELD_OUT)
    assert {*TUNING, *HELD_OUT} == set(LAWS) and set(COVERED) <= set(LAWS)
