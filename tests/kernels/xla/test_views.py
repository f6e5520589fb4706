"""The views for XLA ≡ `voronaut.views`: rewards always, updates with blocks of 1; larger blocks are as healthy."""

import jax
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from voronaut import views as ref
from voronaut.kernels.xla import views as xla

DIM, N, STEP = 6, 300, 0.1
SIZES = pytest.mark.parametrize(("m", "count"), [(1, 6), (2, 5), (3, 4), (DIM, 1)])


def start(states, m, count, k=8):
    """Views of the reference, started at these states, and which coordinates are theirs."""
    which = ref.columns(states.shape[1], count, m, seed=0)
    return [ref.start(states[:, own], k, seed) for seed, own in enumerate(which)], which


def stacked(views, which, dtype=np.float64):
    fields = (np.stack([np.asarray(getattr(v, name), dtype) for v in views]) for name in ("centers", "usage", "margin"))
    return xla.Views(which.astype(np.int32), *fields, np.int32(views[0].seen))


def sequence(views, which, states, step=STEP):
    for state in states:
        views = [ref.absorb(view, state[own], step) for view, own in zip(views, which, strict=True)]
    return views


def paid(views, which, states):
    return np.array([[ref.reward(v, s[own], STEP) for s in states] for v, own in zip(views, which, strict=True)])


def gaussian(n, seed=0):
    return np.random.default_rng(seed).normal(size=(n, DIM)) * [1, 3, 0.1, 1, 1, 10]


def assert_same(got, wanted, **tolerance):
    for name in xla.Views._fields:
        np.testing.assert_allclose(getattr(got, name), getattr(wanted, name), err_msg=name, **tolerance)


# ---- rewards ---------------------------------------------------------------------------------------------------------


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


# ---- updates ---------------------------------------------------------------------------------------------------------


@SIZES
def test_a_block_of_one_is_the_sequence(m, count):
    """A stream that moves away from clusters of unequal usage, so that crowds are split."""
    views, which = start(gaussian(50), m, count)
    views = [view._replace(usage=np.geomspace(0.1, 3, 8)) for view in views]
    states = gaussian(N, seed=1) + np.linspace(0, 20, N)[:, None]
    wanted = sequence(views, which, states)
    assert min(view.usage.min() for view in wanted) > 0.2  # only splits can do that
    with jax.enable_x64(True):
        assert_same(xla.update(stacked(views, which), states, N, STEP, 1), stacked(wanted, which), atol=1e-10)
    narrow = xla.update(stacked(views, which, np.float32), states.astype(np.float32), N, STEP, 1)
    assert narrow.centers.dtype == narrow.usage.dtype == narrow.margin.dtype == np.float32
    assert_same(narrow, stacked(wanted, which), atol=1e-4)


@SIZES
def test_few_distinct_values_and_constant_columns(m, count):
    states = np.random.default_rng(0).integers(0, 3, (N, DIM)).astype(float)
    states[:, [1, 4]] = 7.0
    views, which = start(states[:40], m, count)
    wanted = sequence(views, which, states)
    with jax.enable_x64(True):
        after = xla.update(stacked(views, which), states, N, STEP, 1)
        assert_same(after, stacked(wanted, which), atol=1e-10)
        np.testing.assert_allclose(xla.each(after, states[:40], STEP), paid(wanted, which, states[:40]), atol=1e-7)
    narrow = xla.update(stacked(views, which, np.float32), states.astype(np.float32), N, STEP, 8)
    assert all(np.isfinite(field).all() for field in narrow)
    assert np.isfinite(xla.each(narrow, states.astype(np.float32), STEP)).all()


@pytest.mark.parametrize(("m", "real", "block"), [(1, 21, 8), (1, 16, 64), (2, 3, 1), (2, 16, 8)])
def test_padding_changes_nothing(m, real, block):
    views, which = start(gaussian(50), m, 3)
    own, states = stacked(views, which, np.float32), gaussian(40, seed=1).astype(np.float32)
    alone = xla.update(own, states[:real], real, STEP, block)
    states[real:] = np.nan
    assert_same(xla.update(own, states, real, STEP, block), alone, atol=1e-6)
    for begun in own, alone:
        jax.tree.map(np.testing.assert_array_equal, xla.update(begun, states, 0, STEP, block), begun)


def test_the_states_of_a_block_meet_the_same_centers():
    """Each of two winners moves through its wins, in their order; the last state is nearest to where 0 has come."""
    own = xla.Views(np.zeros((1, 1), np.int32), np.array([[[0.0], [10.0]]]), np.ones((1, 2)), np.ones(1), np.int32(999))
    states, fade = np.array([[4.0], [12.0], [2.0], [5.5]]), (1 - ref.FADE / 2) ** 4
    with jax.enable_x64(True):
        after = xla.update(own, states, 4, 0.5, 4)
    np.testing.assert_allclose(after.centers[0, :, 0], [2.0, ((10 + 12) / 2 + 5.5) / 2])
    np.testing.assert_allclose(after.usage[0], fade + 2 * ref.FADE)
    ahead = np.array([6 - 4, 12 - 2, 8 - 2, 5.5 - 4.5])
    np.testing.assert_allclose(after.margin[0], 1 + 4 * ref.RATE * (ahead.mean() - 1))
    assert after.seen == 1003


@pytest.mark.parametrize("block", [1, 2])
@pytest.mark.parametrize(("most", "splits"), [(4.0, False), (4.25, True)])
def test_a_crowd_is_more_than_four_times_the_least(most, splits, block):
    """A state that sits on its center counts for nothing, so that usages keep their ratio to the bit."""
    centers, usage = np.array([[[0.0], [10.0], [20.0], [30.0]]]), np.array([[most, 2, 1, 2]])
    own = xla.Views(np.zeros((1, 1), np.int32), centers, usage, np.ones(1), np.int32(9))
    with jax.enable_x64(True):
        after = xla.update(own, np.zeros((1, 1)), 1, 0.5, block)
    np.testing.assert_array_equal(after.centers[0, :, 0], [0, 0, 10, 30] if splits else [0, 10, 20, 30])


def test_a_block_splits_its_fullest_crowd():
    """Both winners are crowded; 1 is more so, and the least used cluster joins it, beside the state it has won."""
    own = xla.Views(
        np.zeros((1, 1), np.int32), np.array([[[0.0], [10.0], [90.0], [99.0]]]), np.array([[1.5, 2.2, 0.2, 0.1]]),
        np.ones(1), np.int32(999),
    )  # fmt: skip
    with jax.enable_x64(True):
        after = xla.update(own, np.array([[2.0], [14.0]]), 2, 0.5, 2)
    np.testing.assert_allclose(after.centers[0, :, 0], [1.0, 12.0, 12.2, 90.0])  # sorted again
    fade = (1 - ref.FADE / 4) ** 2
    np.testing.assert_allclose(after.usage[0], [1.5 * fade + ref.FADE, *2 * [(2.3 * fade + ref.FADE) / 2], 0.2 * fade])


@pytest.mark.parametrize(("m", "count"), [(1, 6), (DIM, 1)])
def test_a_block_of_eight_keeps_clusters_as_healthy(m, count):
    """Begun far from Gaussian states, where only splits can bring clusters: masses of cells vary as after the sequence.

    Without splits one cluster has all of the mass, and the variation is √15.
    """
    views, which = start(50 + gaussian(40) / 100, m, count, k=16)
    own, states = stacked(views, which, np.float32), (gaussian(16000, seed=1) / [1, 3, 0.1, 1, 1, 10]).astype("f")
    one, eight = (variation(xla.update(own, states, 16000, 0.05, block), states) for block in (1, 8))
    assert one < 0.5 and abs(eight - one) < 0.05


def variation(views, states):
    """Deviation over mean of the masses of cells, averaged over views."""
    far = np.linalg.norm(states[:, views.columns][:, :, None] - np.asarray(views.centers), axis=-1)  # (n, V, k)
    masses = (far.argmin(axis=2)[..., None] == np.arange(far.shape[2])).mean(axis=0)
    return (masses.std(axis=1) / masses.mean(axis=1)).mean()


@pytest.mark.parametrize("block", [0, 2.5, True])
def test_bad_blocks_are_named(block):
    views, which = start(gaussian(50), 1, DIM)
    with pytest.raises(ValueError, match=f"at least 1; got {block}"):
        xla.update(stacked(views, which), gaussian(3), 3, STEP, block)
