"""RE3 against a brute-force search in float64."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from voronaut.bonuses import networks, re3
from voronaut.bonuses.re3 import RE3, kth_distances

SMALL = {"hidden": 32, "features": 8}
compiled = networks.jax.jit(networks.kth_distance, static_argnums=3)
nearest = networks.jax.jit(networks.nearest, static_argnums=(4, 5))


def brute(queries: np.ndarray, candidates: np.ndarray, k: int, own: bool) -> np.ndarray:
    far = np.linalg.norm(queries[:, None].astype(np.float64) - candidates[None].astype(np.float64), axis=2)
    if own:
        np.fill_diagonal(far, np.inf)
    return np.sort(far, axis=1)[:, k - 1]


@settings(deadline=None, max_examples=25)
@given(n=st.integers(5, 90), k=st.integers(1, 4), seed=st.integers(0, 99), copies=st.booleans(), own=st.booleans())
def test_distances_equal_brute_force(n: int, k: int, seed: int, copies: bool, own: bool) -> None:
    rng = np.random.default_rng(seed)
    codes = rng.normal(size=(n, 6)).astype(np.float32)
    if copies:
        codes = codes[rng.integers(0, max(1, n // 3), size=n)]
    np.testing.assert_allclose(kth_distances(codes, codes, k, own=own), brute(codes, codes, k, own), rtol=3e-7 * 6)


@pytest.mark.parametrize("offset", [0, 1e3])
@pytest.mark.parametrize("spread", [1, 1e-4, 1e-7])
def test_clumps_and_offsets_are_exact_too(offset: float, spread: float) -> None:
    rng = np.random.default_rng(0)
    places = rng.normal(size=(4, 10))[rng.integers(0, 4, size=700)]
    codes = (offset + places + spread * rng.normal(size=(700, 10))).astype(np.float32)
    np.testing.assert_allclose(kth_distances(codes, codes, 3, own=True), brute(codes, codes, 3, True), rtol=2e-6)


def test_blocks_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    codes = np.random.default_rng(0).normal(size=(500, 8)).astype(np.float32)
    whole = kth_distances(codes, codes, 3, own=True)
    monkeypatch.setattr(re3, "PAIRS", 512 * 4)
    np.testing.assert_allclose(kth_distances(codes, codes, 3, own=True), whole, rtol=1e-6)


def test_reward_is_the_equation_at_the_papers_size() -> None:
    states = np.random.default_rng(0).normal(size=(6, 50, 17)).astype(np.float32)
    bonus = RE3(dim=17, seed=2)
    rows, state = states.reshape(-1, 17).astype(np.float64), bonus.state_dict()
    for i in range(3):
        rows = rows @ state[f"encoder.{i}.weight"].astype(np.float64)
        rows = np.maximum(rows, 0) if i < 2 else rows
    wanted = np.log(brute(rows, rows, 3, True) + 1).reshape(6, 50)
    np.testing.assert_allclose(bonus.rewards(states), wanted, rtol=1e-5)


def test_copies_of_a_state_are_neighbours_at_distance_zero() -> None:
    states = np.random.default_rng(0).normal(size=(20, 3))
    states[:4] = states[0]
    paid = RE3(dim=3, neighbors=3, **SMALL).rewards(states)
    assert not paid[:4].any() and (paid[4:] > 0).all()


def test_a_batch_too_small_says_so() -> None:
    with pytest.raises(ValueError, match=r"too small for neighbors=3.*memory=N"):
        RE3(dim=2, **SMALL).rewards(np.zeros((3, 2)))
    assert RE3(dim=2, **SMALL).rewards(np.zeros((4, 2))).shape == (4,)


def test_memory_is_the_last_states_and_nothing_else() -> None:
    states = np.random.default_rng(0).normal(size=(60, 3)).astype(np.float32)
    bonus = RE3(dim=3, memory=16, **SMALL)
    assert not bonus.rewards(states).any()  # nothing to compare with yet
    for piece in np.split(states, [2, 7, 40]):
        bonus.update(piece)
    codes = bonus.encode(states)
    wanted = np.log1p(brute(codes, codes[-16:], 3, False))
    np.testing.assert_allclose(bonus.rewards(states), wanted, rtol=1e-5)
    assert bonus.learns and not bonus.batchwise and bonus.metrics() == {"states": 60, "stored": 16, "bad_states": 0}


def test_without_memory_nothing_is_learned() -> None:
    assert not RE3(dim=3).learns and RE3(dim=3).batchwise


@pytest.mark.parametrize("wrong", [{"neighbors": 0}, {"memory": -1}, {"memory": 2}, {"features": 0}])
def test_wrong_parameters(wrong: dict[str, int]) -> None:
    with pytest.raises(ValueError, match="got"):
        RE3(dim=2, **wrong)  # type: ignore[arg-type]


@settings(deadline=None, max_examples=25)
@given(count=st.integers(4, 400), k=st.sampled_from([1, 3]), seed=st.integers(0, 99))
def test_neighbours_inside_a_program_are_those_of_brute_force(count: int, k: int, seed: int) -> None:
    """Also where fewer are stored than there is room for, and where some of them are copies."""
    rng = np.random.default_rng(seed)
    stored = np.zeros((400, 5), np.float32)
    stored[:count] = rng.normal(size=(count, 5))[rng.integers(0, count, size=count)]
    queries = np.concatenate([rng.normal(size=(14, 5)).astype(np.float32), stored[:2]])
    found = compiled(queries, stored, np.int32(count), k)
    np.testing.assert_allclose(found, brute(queries, stored[:count], k, False), rtol=2e-6, atol=1e-6)


def test_a_program_pays_what_rewards_pays() -> None:
    rng, bonus = np.random.default_rng(0), RE3(dim=4, seed=1, memory=300, **SMALL)
    states = rng.normal(size=(50, 4)).astype(np.float32)
    assert RE3(dim=4).frozen() is None
    assert not np.any(bonus.pay(bonus.frozen(), states))  # nothing is stored
    for _ in range(3):
        bonus.update(rng.normal(size=(130, 4)))
        np.testing.assert_allclose(bonus.pay(bonus.frozen(), states), bonus.rewards(states), rtol=1e-5, atol=1e-6)
    states[3, 1] = np.nan
    paid = np.asarray(bonus.pay(bonus.frozen(), states))
    assert paid[3] == 0 and (np.delete(paid, 3) > 0).all()


@pytest.mark.parametrize(("apart", "sure"), [(0.0, True), (1000.0, False)])
def test_a_distance_called_certain_is_right_where_rounding_hides_neighbours(apart: float, sure: bool) -> None:
    """Two groups far from their mean: there the ranking by products cannot tell neighbours in a group apart."""
    rng = np.random.default_rng(0)
    rows = (rng.normal(size=(256, 64)) + apart * rng.choice([-1.0, 1.0], size=(256, 1))).astype(np.float32)
    found, certain = nearest(rows, np.arange(256), rows, np.int32(256), 3, 64)
    certain = np.asarray(certain)
    np.testing.assert_allclose(np.asarray(found)[certain], brute(rows, rows, 3, True)[certain], rtol=1e-5)
    assert certain.all() == sure
