"""The E and M steps against plain float64 formulas, and one pass of learning."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.special import logsumexp
from scipy.stats import multivariate_normal

from voronaut.entropy.clustering import nearest, partition
from voronaut.entropy.mixture.gaussians import CHUNK, STEP, Mixture
from voronaut.entropy.mixture.softmax import normalise


def made(n: int = 600, dim: int = 3, clusters: int = 12, seed: int = 0) -> tuple[np.ndarray, Mixture]:
    points = np.random.default_rng(seed).normal(size=(n, dim)).astype(np.float32)
    return points, Mixture(points, partition(points, clusters, 0), clusters, 1e-6)


@given(arrays(np.float32, st.tuples(st.integers(1, 40), st.integers(1, 300)), elements=st.floats(-200, 50, width=32)))
@settings(max_examples=40, deadline=None)
def test_responsibilities_are_a_softmax(logs: np.ndarray) -> None:
    exact = logsumexp(logs.astype(np.float64), axis=0)
    wanted = np.exp(logs - exact)
    total = normalise(logs)
    assert np.allclose(total, exact, atol=1e-5, rtol=1e-6)
    assert np.allclose(logs, wanted, atol=2e-6)


def test_responsibilities_of_empty_slots_vanish() -> None:
    logs = np.array([[0.0, -3e38], [-1e30, -1e30]], np.float32)
    normalise(logs)
    assert logs[0, 0] == 1 and logs[1, 0] < 1e-30 and np.isfinite(logs).all()


@pytest.mark.parametrize("dim", [1, 2, 5, 17])
def test_density_is_that_of_its_components(dim: int) -> None:
    points, mixture = made(dim=dim)
    total = np.zeros(len(points))
    for g, s in zip(*np.nonzero(mixture._live), strict=True):
        frame = mixture._frames[g]
        mean = frame.T @ (mixture._mean[g, s] + mixture._shift[g])
        covariance = frame.T @ np.diag(mixture._variance[g, s]) @ frame
        total += mixture._weight[g, s] * multivariate_normal(mean, covariance).pdf(points.astype(np.float64))
    assert np.allclose(mixture.log_density(points), np.log(total), atol=1e-8)
    assert np.allclose(mixture.score(np.ascontiguousarray(points.T)), np.log(total), atol=2e-4)


def test_points_are_scored_before_they_are_learned() -> None:
    points, mixture = made(CHUNK)
    columns = np.ascontiguousarray(points.T)
    before = mixture.score(columns)
    for _ in range(STEP // CHUNK):
        assert np.allclose(mixture.absorb(columns), before, atol=1e-6)
    assert not np.allclose(mixture.absorb(columns), before, atol=1e-3)


def test_chunks_of_any_size_learn_the_same() -> None:
    points, whole = made(2 * STEP)
    _, parts = made(2 * STEP)
    columns = np.ascontiguousarray(points.T)
    together = whole.absorb(columns)
    apart = np.concatenate([parts.absorb(part) for part in np.split(columns, 2 * STEP // CHUNK, axis=1)])
    assert np.allclose(together, apart, atol=1e-4)


def test_em_climbs() -> None:
    points, mixture = made(2000, 4, 20)
    scores = [mixture.log_density(points).mean()]
    for _ in range(5):
        mixture.settle(points, 1)
        scores.append(mixture.log_density(points).mean())
    assert scores[-1] > scores[0] and min(np.diff(scores)) > -1e-3


def test_turning_the_frames_keeps_means_and_weights() -> None:
    _, mixture = made(2000, 4, 20)
    before = np.matmul(mixture._mean + mixture._shift[:, None], mixture._frames)
    mixture._scatter += np.random.default_rng(0).normal(size=mixture._scatter.shape) * 0.01
    mixture._scatter = (mixture._scatter + mixture._scatter.transpose(0, 2, 1)) / 2
    mixture._refresh()
    mixture._maximise()
    after = np.matmul(mixture._mean + mixture._shift[:, None], mixture._frames)
    assert np.allclose(before[mixture._live], after[mixture._live], atol=1e-9)
    assert np.allclose(np.matmul(mixture._frames, mixture._frames.transpose(0, 2, 1)), np.eye(4), atol=1e-9)


def test_one_gaussian_learns_a_covariance() -> None:
    rng = np.random.default_rng(0)
    root = rng.normal(size=(3, 3))
    points = (rng.normal(size=(60 * CHUNK, 3)) @ root).astype(np.float32)
    mixture = Mixture(points[:200], np.zeros(200, np.int64), 1, 1e-6)
    for start in range(0, len(points), CHUNK):
        mixture.absorb(np.ascontiguousarray(points[start : start + CHUNK].T))
    exact = multivariate_normal(np.zeros(3), root.T @ root).logpdf(points[:2000].astype(np.float64))
    assert np.abs(mixture.log_density(points[:2000]) - exact).mean() < 0.01


def test_nearest_with_weights() -> None:
    points, centers = np.array([[0.0], [1.0], [3.0]]), np.array([[0.0], [3.0]])
    assert nearest(points, centers).tolist() == [0, 0, 1]
    assert nearest(points, centers, np.array([2.0, 0.0])).tolist() == [0, 1, 1]
