"""The scale-free update against its rule in NumPy, and what the rule promises."""

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from voronaut import clusters as ref
from voronaut.entropy.scale_free import kernel, rule
from voronaut.kernels import cpu

AUTO = {"eta": 0.03, "floor": 0.01}


def start(k: int, d: int, seed: int, states: int = 60) -> tuple[np.ndarray, np.ndarray]:
    """States and the first centers, which are states of their own."""
    rng = np.random.default_rng(seed)
    return rng.normal(size=(states, d)), rng.normal(size=(k, d))


@settings(max_examples=100, deadline=None)
@given(
    st.integers(2, 40), st.integers(1, 9), st.sampled_from([0.0, 0.003, 0.03, 3.0]), st.sampled_from([0.01, 0.3]),
    st.integers(0, 10**6),
)  # fmt: skip
def test_update_is_the_rule(k: int, d: int, eta: float, floor: float, seed: int) -> None:
    states, centers = start(k, d, seed)
    order = np.random.default_rng(seed).permutation(len(states))
    chosen = {"eta": eta, "floor": floor}
    wanted = rule.Grown(ref.Clusters(centers, np.ones(k, np.int64)), 0.0, np.inf)
    for row in order:
        wanted = rule.absorb(wanted, states[row], **chosen)
    assume(wanted.closest > 1e-9)
    got, counts, margin = kernel.update(centers, np.ones(k, np.int64), 0.0, states, order, **chosen)
    assert counts.tolist() == wanted.clusters.counts.tolist()
    np.testing.assert_allclose(got, wanted.clusters.centers, rtol=0, atol=1e-12)
    assert margin == pytest.approx(wanted.margin, rel=1e-9)


def test_pieces_are_the_whole_and_nothing_given_is_written() -> None:
    states, centers = start(20, 3, 0, 500)
    counts, order = np.ones(20, np.int64), np.arange(500)
    kept = [array.copy() for array in (states, centers, counts)]
    whole = kernel.update(centers, counts, 0.0, states, order, **AUTO)
    pieces = (centers, counts, 0.0)
    for part in np.split(order, [1, 7, 300]):
        pieces = kernel.update(*pieces, states, part, **AUTO)
    np.testing.assert_allclose(pieces[0], whole[0], rtol=0, atol=1e-12)
    assert pieces[1].tolist() == whole[1].tolist() and pieces[2] == pytest.approx(whole[2], rel=1e-9)
    assert all((a == b).all() for a, b in zip(kept, (states, centers, counts), strict=True))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@settings(max_examples=30, deadline=None)
@given(power=st.integers(-30, 30), seed=st.integers(0, 10**6))
def test_a_scale_that_is_a_power_of_two_changes_no_bit(dtype: str, power: int, seed: int) -> None:
    states, centers = (array.astype(dtype) for array in start(25, 4, seed, 300))
    scale = np.asarray(2.0**power, dtype)
    counts, order = np.ones(25, np.int64), np.arange(300)
    plain = kernel.update(centers, counts, 0.0, states, order, **AUTO)
    scaled = kernel.update(centers * scale, counts, 0.0, states * scale, order, **AUTO)
    assert scaled[1].tolist() == plain[1].tolist()
    assert (scaled[0] == plain[0] * scale).all() and scaled[2] == plain[2] * float(scale)


def test_equal_centers_and_equal_states_are_no_trouble() -> None:
    centers, counts, margin = kernel.update(
        np.zeros((5, 2)), np.ones(5, np.int64), 0.0, np.zeros((50, 2)), np.arange(50), **AUTO
    )
    assert counts.tolist() == [51, 1, 1, 1, 1] and margin == 0 and (centers == 0).all()
    centers, counts, margin = kernel.update(
        centers, counts, margin, np.random.default_rng(0).normal(size=(4000, 2)), np.arange(4000), **AUTO
    )
    assert margin > 0 and (counts > 100).all()


@pytest.mark.parametrize("dim", [2, 17, 64])
def test_cells_are_balanced_and_none_is_dead(dim: int) -> None:
    """Measured: coefficients of variation 0.12 to 0.13 (300 clusters, 300k states); here a tenth of that."""
    rng = np.random.default_rng(dim)
    states = (1e4 * rng.normal(size=(60_000, dim))).astype(np.float32)
    start = (states[:100].copy(), np.ones(100, np.int64), 0.0)
    centers, counts, margin = kernel.update(*start, states[:40_000], np.arange(40_000), **AUTO)
    cell = cpu.assign(cpu.prepare(centers, counts, AUTO["eta"] * margin), states[40_000:])
    mass = np.bincount(cell, minlength=100)
    assert mass.std() / mass.mean() < 0.25 and mass.min() > 0.2 * mass.mean()
