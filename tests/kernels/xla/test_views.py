"""The views for XLA ≡ `voronaut.views`: what states earn."""

import jax
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from voronaut import views as ref
from voronaut.kernels.xla import views as xla

DIM, STEP = 6, 0.1
SIZES = pytest.mark.parametrize(("m", "count"), [(1, 6), (2, 5), (3, 4), (DIM, 1)])
pytestmark = pytest.mark.usefixtures("quick_compilation")


def start(states, m, count, k=8):
    """Views of the reference, started at these states, and which coordinates are theirs."""
    which = ref.columns(states.shape[1], count, m, seed=0)
    return [ref.start(states[:, own], k, seed) for seed, own in enumerate(which)], which


def stacked(views, which, dtype=np.float64):
    return xla.Views(which.astype(np.int32), np.stack([np.asarray(view.centers, dtype) for view in views]))


def paid(views, which, states):
    return np.array([[ref.reward(v, s[own], STEP) for s in states] for v, own in zip(views, which, strict=True)])


def gaussian(n, seed=0):
    return np.random.default_rng(seed).normal(size=(n, DIM)) * [1, 3, 0.1, 1, 1, 10]


@SIZES
def test_rewards_are_the_reference_s(m, count):
    views, which = start(gaussian(50), m, count)
    states = np.concatenate([gaussian(100, seed=1), 5 * gaussian(20, seed=2), [views[0].centers[0].repeat(DIM)[:DIM]]])
    weights, wanted = np.linspace(0.5, 2, count), paid(views, which, states)
    with jax.enable_x64(True):
        wide = stacked(views, which)
        np.testing.assert_allclose(xla.each(wide, states, STEP), wanted, atol=1e-12)
        np.testing.assert_allclose(xla.rewards(wide, weights, states, STEP), weights @ wanted, atol=1e-11)
    narrow = xla.each(stacked(views, which, np.float32), states.astype(np.float32), STEP)
    assert narrow.dtype == np.float32
    np.testing.assert_allclose(narrow, wanted, atol=1e-5)


def test_states_that_are_paid_in_parts_are_paid_the_same(monkeypatch):
    views, which = start(gaussian(50), 2, 5)
    own, states = stacked(views, which, np.float32), gaussian(100, seed=1).astype(np.float32)
    whole = xla.each(own, states, STEP)
    monkeypatch.setattr(xla, "NUMBERS", 300)  # three states at once
    parts = jax.jit(xla.each.__wrapped__)(own, states, STEP)
    np.testing.assert_allclose(parts, whole, atol=1e-6)


@pytest.mark.parametrize("k", [2, 3, 4])
def test_centers_without_neighbours(k):
    states = gaussian(40)
    views, which = start(states, 1, DIM, k)
    with jax.enable_x64(True):
        got = xla.each(stacked(views, which), states, STEP)
    np.testing.assert_allclose(got, paid(views, which, states), atol=1e-12)


@settings(max_examples=40, deadline=None)
@given(
    centers=st.lists(st.integers(-3, 3), min_size=5, max_size=5),
    states=st.lists(st.integers(-10, 10), min_size=12, max_size=12),
)
def test_ties_and_equal_centers_pay_as_the_reference_does(centers, states):
    """Halves and whole numbers: no tie is decided by rounding."""
    view = ref.ordered(ref.View(np.array(centers, float)[:, None], np.ones(5)))
    states, which = np.array(states)[:, None] / 2, np.array([[0]])
    with jax.enable_x64(True):
        got = xla.each(stacked([view], which), states, STEP)
    np.testing.assert_allclose(got, paid([view], which, states), atol=1e-12)


def test_a_weight_of_zero_leaves_out_even_a_broken_view():
    views, which = start(gaussian(50), 1, DIM)
    own, states = stacked(views, which, np.float32), gaussian(30, seed=1).astype(np.float32)
    own.centers[2] = np.nan
    weights = np.array([1, 1, 0, 1, 1, 1], np.float32)
    got = xla.rewards(own, weights, states, STEP)
    np.testing.assert_allclose(got, np.delete(xla.each(own, states, STEP), 2, axis=0).sum(axis=0), rtol=1e-5)
    np.testing.assert_array_equal(xla.rewards(own, 0 * weights, states, STEP), 0)
