"""The XLA kernel ≡ `voronaut.clusters`: one set of clusters and many, ties, duplicates, any size of chunk and block."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from voronaut import clusters as ref
from voronaut.kernels.xla import kmeans as xla

STEP, BALANCE, FLOOR = 0.1, 0.02, 0.01
CONCAVE = {"sqrt": ref.sqrt, "log": functools.partial(ref.log, floor=FLOOR)}
SHAPES = [(2, 1, 1), (2, 3, 9), (5, 2, 40), (30, 17, 50)]  # k, d, n


def world(k, d, n, seed=0):
    rng = np.random.default_rng(seed)
    clusters = ref.Clusters(rng.normal(size=(k, d)), rng.integers(1, 40, size=k))
    return clusters, rng.normal(size=(n, d)) * 1.5


def sequence(clusters, states):
    """Algorithm 1's assign and move."""
    for state in states:
        clusters = ref.absorb(clusters, state, STEP, BALANCE)
    return clusters


def reference_rewards(clusters, states, objective="sqrt"):
    return np.array([ref.reward(clusters, state, STEP, BALANCE, CONCAVE[objective]) for state in states])


def narrow(clusters):
    return xla.Clusters(clusters.centers.astype(np.float32), clusters.counts.astype(np.int32))


def wide(clusters):
    return xla.Clusters(*clusters)


paid = functools.partial(xla.rewards, step_size=STEP, balance=BALANCE, floor=FLOOR)
moved = functools.partial(xla.update, step_size=STEP, balance=BALANCE)


# ---- degenerate cases ------------------------------------------------------------------------------------------------


def test_a_tie_goes_to_the_lowest_index():
    clusters = xla.Clusters(np.array([[1.0], [-1.0], [1.0]], np.float32), np.ones(3, np.int32))
    for states, winner in ([[0.0]], 0), ([[1.0]], 0), ([[-1.0]], 1):
        after = moved(clusters, np.array(states, np.float32), chunk=1)
        np.testing.assert_array_equal(after.counts, 1 + np.eye(3, dtype=int)[winner])


@pytest.mark.parametrize("k, d", [(7, 3), (300, 17)])
def test_all_centers_equal(k, d):
    """The start of training: every distance is a tie, every gap zero."""
    clusters = ref.Clusters(np.zeros((k, d)), np.ones(k, np.int64))
    states = np.random.default_rng(0).normal(size=(20, d))
    with jax.enable_x64(True):
        after = moved(wide(clusters), states, chunk=1)
        np.testing.assert_allclose(
            paid(wide(clusters), states, objective="sqrt"), reference_rewards(clusters, states), atol=1e-10
        )
    np.testing.assert_array_equal(after.counts, sequence(clusters, states).counts)
    np.testing.assert_array_equal(moved(narrow(clusters), states, chunk=1).counts, sequence(clusters, states).counts)


def test_duplicate_centers():
    clusters, states = world(12, 3, 30)
    clusters.centers[5:9] = clusters.centers[2]
    with jax.enable_x64(True):
        got, after = paid(wide(clusters), states, objective="sqrt"), moved(wide(clusters), states, chunk=1)
    np.testing.assert_allclose(got, reference_rewards(clusters, states), atol=1e-10)
    np.testing.assert_array_equal(after.counts, sequence(clusters, states).counts)


def test_no_states():
    clusters, states = world(4, 2, 0)
    after = moved(narrow(clusters), states.astype(np.float32), chunk=8)
    jax.tree.map(np.testing.assert_array_equal, after, narrow(clusters))
    assert paid(narrow(clusters), states.astype(np.float32), objective="sqrt").shape == (0,)


def test_bad_input_is_named():
    clusters, states = world(4, 2, 3)
    with pytest.raises(ValueError, match="sqrt, log; got 'cube'"):
        paid(narrow(clusters), states, objective="cube")
    for chunk in (0, 2.5, True):
        with pytest.raises(ValueError, match=f"at least 1; got {chunk}"):
            moved(narrow(clusters), states, chunk=chunk)


def test_a_chunk_needs_no_more_memory_than_there_are_states():
    clusters, states = world(4, 2, 3)
    after = moved(narrow(clusters), states.astype(np.float32), chunk=10**9)
    np.testing.assert_array_equal(after.counts, sequence(clusters, states).counts)


# ---- equal to the reference ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", SHAPES)
def test_float64_equals_the_reference(shape):
    clusters, states = world(*shape)
    with jax.enable_x64(True):
        for objective in CONCAVE:
            got = paid(wide(clusters), states, objective=objective, block=16)
            np.testing.assert_allclose(got, reference_rewards(clusters, states, objective), atol=1e-10)
        np.testing.assert_allclose(xla.gaps(wide(clusters), BALANCE), ref.gaps(clusters, BALANCE), atol=1e-12)
        after = moved(wide(clusters), states, chunk=1)
    wanted = sequence(clusters, states)
    np.testing.assert_allclose(after.centers, wanted.centers, atol=1e-10)
    np.testing.assert_array_equal(after.counts, wanted.counts)


@pytest.mark.parametrize("offset", [0.0, 1e3, 1e5])
def test_float32_equals_the_reference_of_the_same_numbers(offset):
    clusters, states = world(30, 17, 200)
    small = xla.Clusters((clusters.centers + offset).astype(np.float32), clusters.counts.astype(np.int32))
    near = (states + offset).astype(np.float32)
    exact = ref.Clusters(np.asarray(small.centers, np.float64), clusters.counts)
    got = paid(small, near, objective="sqrt")
    assert got.dtype == np.float32
    np.testing.assert_allclose(got, reference_rewards(exact, near.astype(np.float64)), atol=1e-4)
    if offset <= 1e3:  # beyond, centers move by less than they can be stored with
        after, wanted = moved(small, near, chunk=1), sequence(exact, near.astype(np.float64))
        np.testing.assert_array_equal(after.counts, wanted.counts)
        np.testing.assert_allclose(after.centers, wanted.centers, rtol=1e-6, atol=1e-4)


@pytest.mark.parametrize("chunk, n", [(3, 31), (7, 49), (64, 50), (16, 200)], ids=["ragged", "whole", "one", "many"])
def test_a_chunk_is_the_sequence(chunk, n):
    clusters, states = world(6, 3, n)
    with jax.enable_x64(True):
        after = moved(wide(clusters), states, chunk=chunk)
    wanted = sequence(clusters, states)
    np.testing.assert_allclose(after.centers, wanted.centers, atol=1e-10)
    np.testing.assert_array_equal(after.counts, wanted.counts)


@settings(max_examples=40, deadline=None)
@given(
    places=st.lists(st.tuples(st.integers(-2, 2), st.integers(-2, 2)), min_size=24, max_size=24),
    good=st.lists(st.booleans(), min_size=24, max_size=24),
    kind=st.sampled_from(["apart", "zeros", "twins"]),
    chunk=st.sampled_from([5, 24]),
)
def test_every_chunk_breaks_ties_as_the_sequence_does(places, good, kind, chunk):
    """Numbers that binary fractions hold, many of them equal: not one tie is decided by rounding."""
    centers = {"apart": np.arange(10.0) % 3, "zeros": np.zeros(10), "twins": np.tile([1.0, -1.0], 5)}[kind].reshape(
        5, 2
    )
    old, states = ref.Clusters(centers, np.array([1, 3, 1, 2, 1])), np.array(places, float)
    numbers = {"step_size": 0.5, "balance": 0.25, "good": np.array(good)}
    with jax.enable_x64(True):
        one, many = (xla.update(wide(old), states, chunk=c, **numbers) for c in (1, chunk))
    for state in states[np.array(good)]:
        i = ref.assign(old, state, 0.25)
        centers, counts = old.centers.copy(), old.counts.copy()
        centers[i], counts[i] = 0.5 * state + 0.5 * centers[i], counts[i] + 1
        old = ref.Clusters(centers, counts)
    for after in (one, many):
        np.testing.assert_array_equal(after.counts, old.counts)
        np.testing.assert_array_equal(after.centers, old.centers)


def test_every_chunk_gives_the_same_bits():
    clusters, states = world(40, 5, 600)
    one, *others = (moved(narrow(clusters), states.astype(np.float32), chunk=c) for c in (1, 7, 64, 600))
    for after in others:
        jax.tree.map(np.testing.assert_array_equal, after, one)


def test_centers_that_are_not_finite_do_not_loop_for_ever():
    clusters, states = world(5, 2, 20)
    clusters.centers[:] = np.nan
    assert int(moved(narrow(clusters), states.astype(np.float32), chunk=8).counts.sum()) == clusters.counts.sum() + 20


def test_a_chunk_is_done_as_soon_as_nothing_changes(monkeypatch):
    """Guesses that are right are made again twice: once to move the centers, once to see that nothing changes."""
    weights, asked, centers = xla.weights, [], 10 * jnp.arange(8.0)[:, None]
    monkeypatch.setattr(xla, "weights", lambda *given: asked.append(True) or weights(*given))
    with jax.disable_jit():
        moved(xla.Clusters(centers, jnp.ones(8, int)), centers + 1, chunk=8)
    assert len(asked) == 1 + 2


def test_float32_stays_float32_where_float64_is_allowed():
    clusters, states = world(5, 2, 9)
    with jax.enable_x64(True):
        after = moved(narrow(clusters), states.astype(np.float32), chunk=4)
        got = paid(narrow(clusters), states.astype(np.float32), objective="sqrt")
    assert after.centers.dtype == got.dtype == np.float32 and after.counts.dtype == np.int32


@pytest.mark.parametrize("block", [1, 7, 50, 4096])
def test_rewards_do_not_depend_on_the_block(block):
    clusters, states = world(10, 4, 50)
    whole = paid(narrow(clusters), states.astype(np.float32), objective="sqrt")
    parts = paid(narrow(clusters), states.astype(np.float32), objective="sqrt", block=block)
    np.testing.assert_allclose(parts, whole, atol=1e-6)


def test_large_counts_lose_nothing():
    clusters, states = world(5, 2, 40)
    high = clusters._replace(counts=clusters.counts + 100_000_000)
    plain = moved(narrow(clusters), states.astype(np.float32), chunk=4)
    after = moved(narrow(high), states.astype(np.float32), chunk=4)
    np.testing.assert_array_equal(after.counts - 100_000_000, plain.counts)
    np.testing.assert_array_equal(after.centers, plain.centers)
    same = [paid(narrow(c), states.astype(np.float32), objective="sqrt") for c in (clusters, high)]
    np.testing.assert_array_equal(*same)


# ---- runs side by side -----------------------------------------------------------------------------------------------


def test_vmapped_equals_looped():
    runs = [world(9, 4, 33, seed) for seed in range(3)]
    clusters = jax.tree.map(lambda *leaves: np.stack(leaves), *(narrow(c) for c, _ in runs))
    states = np.stack([s.astype(np.float32) for _, s in runs])
    rewards = jax.jit(jax.vmap(functools.partial(paid, objective="sqrt", block=16)))(clusters, states)
    after = jax.jit(jax.vmap(functools.partial(moved, chunk=8)))(clusters, states)
    for run, (c, _) in enumerate(runs):
        alone = paid(narrow(c), states[run], objective="sqrt", block=16)
        np.testing.assert_allclose(rewards[run], alone, atol=1e-5)
        single = moved(narrow(c), states[run], chunk=8)
        np.testing.assert_allclose(after.centers[run], single.centers, atol=1e-5)
        np.testing.assert_array_equal(after.counts[run], single.counts)


def test_runs_may_differ_in_their_numbers_and_be_scanned():
    """A sweep over κ is one program, and so is a scan of rewards and update."""
    clusters, states = world(6, 3, 24)

    def rollouts(balance):
        def rollout(now, batch):
            got = xla.rewards(now, batch, step_size=STEP, balance=balance, objective="sqrt", floor=FLOOR)
            return xla.update(now, batch, step_size=STEP, balance=balance, chunk=4), got

        return jax.lax.scan(rollout, narrow(clusters), states.astype(np.float32).reshape(2, 12, 3))

    after, rewards = jax.jit(jax.vmap(rollouts))(np.array([0.0, BALANCE], np.float32))
    assert rewards.shape == (2, 2, 12)
    np.testing.assert_array_equal(after.counts[1], sequence(clusters, states).counts)
    np.testing.assert_allclose(rewards[1, 0], reference_rewards(clusters, states[:12]), atol=1e-4)
    assert (after.counts[0] != after.counts[1]).any()
