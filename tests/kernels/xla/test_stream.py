"""First centers and the fair sample of a stream, for XLA."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from voronaut.kernels.xla import stream


def batch(seed, n):
    return np.random.default_rng(seed).normal(size=(n, 3)).astype(np.float32)


def test_data_starts_at_distinct_states_of_the_first_batch():
    choose = jax.jit(stream.first_centers, static_argnums=2)
    states, chances = np.repeat(batch(0, 8), 5, axis=0), np.random.default_rng(0).uniform(size=40)
    start = choose(states, np.arange(40) > 0, 8, chances)  # eight distinct ones, five times each, one of them bad
    assert {tuple(row) for row in np.asarray(start).tolist()} == {tuple(row) for row in states.tolist()}
    few = choose(states, np.arange(40) < 15, 8, chances)
    assert len(np.unique(np.asarray(few), axis=0)) == 3
    lowest = choose(batch(1, 40), np.ones(40, bool), 8, chances)
    np.testing.assert_array_equal(lowest, batch(1, 40)[np.argsort(chances)[:8]])


def test_the_sample_holds_all_good_states_in_their_order_until_it_is_full():
    states, good, sample = batch(0, 7), np.arange(7) != 1, jnp.zeros((6, 3))
    for seen, part in ((0, slice(0, 3)), (2, slice(3, 7))):
        sample = stream.resample(sample, float(seen), states[part], good[part], jnp.full((2, len(good[part])), 0.99))
    np.testing.assert_array_equal(sample, states[good])


def test_every_state_is_in_the_sample_with_the_same_probability():
    size, parts, keys = 50, 8, jax.random.split(jax.random.key(0), 400)

    def one(key):
        sample = jnp.zeros((size, 1))
        for t, own in enumerate(jax.random.split(key, parts)):
            states = jnp.full((100, 1), t, float)
            sample = stream.resample(sample, 100.0 * t, states, jnp.ones(100, bool), jax.random.uniform(own, (2, 100)))
        return sample[:, 0]

    found = np.bincount(np.asarray(jax.jit(jax.vmap(one))(keys), int).reshape(-1), minlength=parts)
    assert np.abs(found - 400 * size / parts).max() < 5 * np.sqrt(400 * size / parts)


@pytest.mark.parametrize(("apart", "far"), [(1e4, True), (200.0, True), (50.0, False), (0.0, False)])
def test_a_better_reference_is_the_mean_of_what_counts_where_that_is_far(apart: float, far: bool) -> None:
    """In float32, with masses; what has none may be anything."""
    rng = np.random.default_rng(0)
    points, mass = rng.normal([apart, 0.0, -apart], size=(300, 3)), rng.integers(0, 3, 300)
    wanted = np.average(points, axis=0, weights=mass)
    points[mass == 0] = 1e9
    found = jax.jit(stream.offset)(points.astype(np.float32), mass.astype(np.float32))
    np.testing.assert_allclose(found, wanted if far else 0, rtol=1e-4, atol=0.01 * far)
