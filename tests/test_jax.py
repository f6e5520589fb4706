"""`voronaut.jax` ≡ `voronaut.clusters` and `vn.KME`, inside jit, vmap and scan, on good states and bad ones."""

import dataclasses
import functools
import os
import re
import subprocess
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import voronaut as vn
import voronaut.jax as vj
from voronaut import clusters as ref

ROOT = Path(__file__).parents[1]
K, D, N, STEP, BALANCE = 6, 3, 40, 0.1, 0.02
make = functools.partial(vj.init, D, clusters=K, step_size=STEP, balance=BALANCE)
rewards, metrics = jax.jit(vj.rewards), jax.jit(vj.metrics)
update = jax.jit(vj.update, static_argnames="chunk")
pytestmark = pytest.mark.usefixtures("quick_compilation")


def batch(seed=0, n=N, d=D):
    return np.random.default_rng(seed).normal(size=(n, d)).astype(np.float32)


def shuffled(states, key):
    """The order that `update` takes, as its code says."""
    return states[np.argsort(np.asarray(jax.random.uniform(key, (4, len(states))))[0], kind="stable")]


def sequence(clusters, states):
    """Assign, move and count in the given order; bad states are passed over."""
    for state in states[np.isfinite(states).all(axis=1)]:
        clusters = ref.absorb(clusters, state, STEP, BALANCE)
    return clusters


def reference(state):
    """Its clusters for `voronaut.clusters`, in the states' own coordinates."""
    centers = np.asarray(state.centers, np.float64) + np.asarray(state.origin, np.float64)
    return ref.Clusters(centers, np.asarray(state.counts, np.int64))


def concave(state):
    return ref.sqrt if state.objective == "sqrt" else functools.partial(ref.log, floor=float(state.floor))


def wanted_rewards(state, states):
    return [ref.reward(reference(state), s, STEP, BALANCE, concave(state)) for s in np.asarray(states, np.float64)]


# ---- the same numbers ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("objective, init, chunk", [("sqrt", "zeros", None), ("log", "data", 1), ("sqrt", "data", 16)])
def test_float64_equals_the_reference_over_several_rollouts(objective, init, chunk):
    with jax.enable_x64(True):
        state = make(objective=objective, init=init, dtype="float64")
        for t in range(3):
            states, key = batch(t).astype(np.float64), jax.random.key(t)
            before, state = state, update(state, states, key, chunk=chunk)
            if t > 0 or init == "zeros":  # where "data" starts is checked below
                after = sequence(reference(before), shuffled(states, key))
                np.testing.assert_allclose(state.centers, after.centers, atol=1e-12)
                np.testing.assert_array_equal(state.counts, after.counts)
            np.testing.assert_allclose(rewards(state, states), wanted_rewards(state, states), atol=1e-10)
        assert np.asarray(state.counts).sum() == K + 3 * N


def test_a_loss_may_learn_on_the_way():
    """No gradient goes through an update, and none is refused: rewards after it have theirs."""
    state, key, states = update(make(), batch(), jax.random.key(0)), jax.random.key(1), batch(1)

    def loss(scale):
        return vj.rewards(vj.update(state, scale * states, key), scale * states).sum()

    later = update(state, states, key)
    np.testing.assert_allclose(
        jax.jit(jax.grad(loss))(1.0), jax.jit(jax.grad(lambda s: vj.rewards(later, s * states).sum()))(1.0), rtol=1e-4
    )


@pytest.mark.parametrize("k, d, n", [(2, 1, 1), (20, 17, 50)])
def test_float32_of_any_size(k, d, n):
    state = vj.init(d, clusters=k, step_size=STEP, balance=BALANCE)
    states, key = batch(1, n, d), jax.random.key(0)
    after = update(state, states, key, chunk=1)
    wanted = sequence(reference(state), shuffled(states, key).astype(np.float64))
    np.testing.assert_array_equal(after.counts, wanted.counts)
    np.testing.assert_allclose(reference(after).centers, wanted.centers, atol=1e-5)
    paid = rewards(after, states)
    assert paid.dtype == jnp.float32 and paid.shape == (n,)
    np.testing.assert_allclose(paid, wanted_rewards(after, states), atol=1e-4)


def test_rewards_keep_the_shape_and_change_nothing():
    state = update(make(), batch(), jax.random.key(0), chunk=1)
    grid = rewards(state, batch().reshape(5, 8, D))
    assert grid.shape == (5, 8)
    np.testing.assert_array_equal(grid.reshape(-1), rewards(state, batch()))
    shapes = [jax.eval_shape(vj.rewards, state, np.zeros(shape)).shape for shape in ((D,), (2, 0, D))]
    assert shapes == [(), (2, 0)]


def test_no_states_change_nothing():
    state = make()
    assert vj.update(state, np.zeros((0, D)), jax.random.key(0)) is state


# ---- transformations -------------------------------------------------------------------------------------------------


def test_runs_side_by_side_equal_runs_alone_and_may_differ_in_their_numbers():
    runs = [dataclasses.replace(make(init="data"), balance=np.float32(kappa)) for kappa in (0.0, BALANCE)]
    stacked = jax.tree.map(lambda *leaves: np.stack(leaves), *runs)
    states, keys = np.stack([batch(r) for r in range(2)]), jax.random.split(jax.random.key(0), 2)
    together = jax.jit(jax.vmap(functools.partial(vj.update, chunk=1)))(stacked, states, keys)
    paid = jax.jit(jax.vmap(vj.rewards))(together, states)
    for r, run in enumerate(runs):
        alone = update(run, states[r], keys[r], chunk=1)
        np.testing.assert_array_equal(together.counts[r], alone.counts)
        np.testing.assert_allclose(together.centers[r], alone.centers, atol=1e-6)
        np.testing.assert_allclose(paid[r], rewards(alone, states[r]), atol=1e-5)


def test_a_scan_equals_a_loop():
    states, keys = np.stack([batch(t) for t in range(4)]), jax.random.split(jax.random.key(1), 4)

    def rollout(state, now):
        return vj.update(state, *now, chunk=1), vj.rewards(state, now[0])

    scanned, paid = jax.jit(lambda state: jax.lax.scan(rollout, state, (states, keys)))(make(init="data"))
    state = make(init="data")
    for t in range(4):
        np.testing.assert_allclose(paid[t], rewards(state, states[t]), atol=1e-5)
        state = update(state, states[t], keys[t], chunk=1)
    np.testing.assert_array_equal(scanned.counts, state.counts)
    np.testing.assert_allclose(scanned.sample[: 4 * N], state.sample[: 4 * N])
    assert not np.asarray(paid[0]).any() and np.asarray(paid[1]).any()


# ---- bad states and large offsets ------------------------------------------------------------------------------------


@settings(max_examples=25, deadline=None)
@given(st.lists(st.tuples(st.integers(0, N - 1), st.integers(0, D - 1),
                          st.sampled_from([np.nan, np.inf, -np.inf, 1e30])), max_size=12))  # fmt: skip
def test_bad_states_earn_nothing_teach_nothing_and_are_counted(holes):
    states, key = batch(2), jax.random.key(3)
    for row, column, value in holes:
        states[row, column] = value
    bad = ~(np.abs(states) < 1e15).all(axis=1)
    state = update(make(), batch(), jax.random.key(0), chunk=1)
    paid, after = np.asarray(rewards(state, states)), update(state, states, key, chunk=1)
    assert not paid[bad].any()
    np.testing.assert_allclose(
        paid[~bad], np.asarray(rewards(state, np.where(bad[:, None], 0, states)))[~bad], atol=1e-6
    )
    clean = np.where(bad[:, None], np.nan, states)
    wanted = sequence(reference(state), shuffled(clean, key).astype(np.float64))
    np.testing.assert_array_equal(after.counts, wanted.counts)
    np.testing.assert_allclose(after.centers, wanted.centers, atol=1e-5)
    assert int(after.bad) == bad.sum() and np.isfinite(after.sample).all()


@pytest.mark.parametrize("init", ["zeros", "data"])
def test_nothing_but_bad_states(init):
    state = update(make(init=init), np.full((N, D), np.nan, np.float32), jax.random.key(0), chunk=1)
    assert int(state.bad) == N and int(state.updates) == 0
    fresh = make(init=init)
    for name in ("centers", "counts", "origin", "sample"):
        np.testing.assert_array_equal(getattr(state, name), getattr(fresh, name))


@pytest.mark.parametrize("offset", [2.0**12, 2.0**17])
def test_an_offset_costs_no_precision(offset):
    """States on a grid of 1/64, so that the offset itself rounds nothing: pay is that of the states without it."""
    steps = [np.round(batch(t) * 64) / 64 for t in range(4)]
    near, far = make(init="data"), make(init="data")
    for t, states in enumerate(steps):
        near, far = (update(s, states + by, jax.random.key(t), chunk=1) for s, by in ((near, 0), (far, offset)))
        np.testing.assert_array_equal(near.counts, far.counts)
    np.testing.assert_allclose(rewards(far, steps[0] + np.float32(offset)), rewards(near, steps[0]), atol=2e-5)
    assert np.linalg.norm(np.asarray(far.origin) - offset) < 3 and not np.asarray(near.origin).any()


def test_clusters_that_drifted_away_take_the_reference_point_along_when_states_double():
    far = dataclasses.replace(make(), centers=batch(0, K) + 5000, counts=jnp.full(K, 10), updates=jnp.array(1))
    few, many = (update(far, batch(1, n) + 5000, jax.random.key(0), chunk=1) for n in (2, N))
    assert not np.asarray(few.origin).any()
    assert np.linalg.norm(np.asarray(many.origin) - 5000) < 3
    wanted = sequence(reference(far), shuffled(batch(1) + np.float32(5000), jax.random.key(0)).astype(np.float64))
    np.testing.assert_array_equal(many.counts, wanted.counts)
    np.testing.assert_allclose(reference(many).centers, wanted.centers, atol=1e-3)


def test_before_the_first_update_data_pays_nothing():
    assert not np.asarray(rewards(make(init="data"), batch())).any()
    assert np.asarray(rewards(make(), batch())).any()


# ---- to vn.KME and back ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("objective", ["sqrt", "log"])
def test_to_kme_and_back_through_a_file(objective, tmp_path):
    state = make(init="data", objective=objective)
    for t in range(2):
        state = update(state, batch(t) + 300, jax.random.key(t), chunk=1)
    state = update(state, np.full((2, D), np.inf), jax.random.key(9), chunk=1)
    vj.to_kme(state, seed=4).save(tmp_path / "kme.npz")
    kme = vn.load(tmp_path / "kme.npz")
    assert kme.params["step_size"] == STEP and kme.params["balance"] == BALANCE and kme.params["seed"] == 4
    np.testing.assert_allclose(kme.rewards(batch(3) + 300), rewards(state, batch(3) + 300), atol=1e-5)
    again = vj.from_kme(kme)
    assert jax.tree.structure(again) == jax.tree.structure(state)
    jax.tree.map(np.testing.assert_array_equal, again, state)


def test_a_kme_goes_on_as_a_pytree():
    kme = vn.KME(D, clusters=K, step_size=STEP, balance=BALANCE, seed=1)
    kme.update(batch(0))
    state = vj.from_kme(kme)
    np.testing.assert_allclose(rewards(state, batch(1)), kme.rewards(batch(1)), atol=1e-6)
    after = vj.to_kme(update(state, batch(1), jax.random.key(0), chunk=1))
    assert after.counts.sum() == K + 2 * N and np.isfinite(after.entropy())


def test_metrics_are_those_of_kme():
    state = make(init="data", objective="log")
    for t in range(3):
        state = update(state, batch(t), jax.random.key(t), chunk=1)
    found, wanted = metrics(state), vj.to_kme(state).metrics()
    assert set(found) <= set(wanted)
    for name, value in found.items():
        assert float(value) == pytest.approx(wanted[name], rel=1e-4), name


def test_what_cannot_be_converted_is_named():
    with pytest.raises(ValueError, match="jax_enable_x64"):
        vj.init(D, dtype="float64")
    with pytest.raises(ValueError, match=r"does not know features=.*apply features= to the states yourself"):
        vj.from_kme(vn.KME(D, balance=1e-4, features=np.abs))
    with pytest.raises(ValueError, match="does not know views=1"):
        vj.from_kme(vn.KME(D))
    with pytest.raises(ValueError, match="clusters must be a whole number"):
        vj.init(D, clusters=1)


# ---- errors ----------------------------------------------------------------------------------------------------------


def test_errors_name_the_repair():
    state, key = make(), jax.random.key(0)
    with pytest.raises(ValueError, match=r"end in dim=3; got shape \(4, 2\). Flatten"):
        vj.rewards(state, np.zeros((4, 2)))
    with pytest.raises(ValueError, match="real numbers; got dtype complex64"):
        vj.update(state, np.zeros((4, D), np.complex64), key)
    with pytest.raises(TypeError, match=r"Write jax.random.key\(7\)"):
        vj.update(state, batch(), 7)
    with pytest.raises(ValueError, match="at least 1; got 0"):
        vj.update(state, batch(), key, chunk=0)
    stacked = jax.tree.map(lambda leaf: np.stack([leaf] * 2), state)
    for act in (vj.metrics, vj.to_kme, lambda state: vj.rewards(state, batch())):
        with pytest.raises(ValueError, match=r"runs side by side, centers \(2, 6, 3\).*jax.vmap"):
            act(stacked)


def test_other_number_types_are_widened():
    state = update(make(), batch(), jax.random.key(0), chunk=1)
    for kind in (np.float16, np.int32):
        states = batch(1).astype(kind)
        np.testing.assert_allclose(rewards(state, states), rewards(state, states.astype(np.float32)), atol=1e-6)


# ---- the example -----------------------------------------------------------------------------------------------------


def test_example_runs():
    command = [
        sys.executable,
        str(ROOT / "examples" / "jax_in_jit.py"),
        "--iterations",
        "2",
        "--envs",
        "4",
        "--seeds",
        "1",
    ]
    quick = {**os.environ, "JAX_DISABLE_MOST_OPTIMIZATIONS": "1"}
    done = subprocess.run(command, env=quick, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    cells = [float(number) for number in re.findall(r"visited +(\d+\.\d+) of", done.stdout)]
    assert len(cells) == 2 and min(cells) >= 1
