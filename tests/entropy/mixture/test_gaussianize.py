"""The maps are monotone, their Jacobian is their derivative, and known laws become Gaussian."""

from itertools import pairwise

import numpy as np
import pytest
from scipy import stats

from voronaut.entropy.laws import LAWS
from voronaut.entropy.mixture.gaussianize import Gaussianizer
from voronaut.entropy.mixture.pieces import guides, piece

ROUND = ("gaussian", "uniform", "student3", "exponential", "lognormal", "bimodal")


def first(name: str, n: int = 6000, dim: int = 2, seed: int = 0) -> np.ndarray:
    points = LAWS[name](dim).sample(n, seed)
    return (points - np.median(points, axis=0)) / points.std(axis=0)


@pytest.mark.parametrize("name", ROUND)
def test_columns_become_gaussian(name: str) -> None:
    points = first(name, 26_000)
    maps = Gaussianizer(points[:6000])
    g, _ = maps.warp(points[6000:])
    assert all(stats.kstest(row, "norm").statistic < 0.025 for row in g)


@pytest.mark.parametrize("name", ROUND)
def test_counting_more_brings_it_closer(name: str) -> None:
    points = first(name, 60_000)
    maps = Gaussianizer(points[:1000])
    few = stats.kstest(maps.warp(points)[0][0], "norm").statistic
    maps.count(points[1000:])
    maps.refit()
    assert stats.kstest(maps.warp(points)[0][0], "norm").statistic < min(few, 0.01)


@pytest.mark.parametrize("name", ROUND)
def test_the_density_integrates_to_one(name: str) -> None:
    maps = Gaussianizer(first(name, dim=1))
    edges = maps.edges[0]
    inner = edges[(np.abs(edges) < 50)]
    grid = np.unique(np.concatenate([np.linspace(a, b, 8) for a, b in pairwise(inner)]))
    middle = (grid[1:] + grid[:-1]) / 2
    g, jacobian = maps.warp(middle[:, None])
    assert (stats.norm.pdf(g[0]) * np.exp(jacobian) * np.diff(grid)).sum() == pytest.approx(1, abs=3e-3)


def test_jacobian_is_the_slope() -> None:
    maps = Gaussianizer(first("student3"))
    points = np.random.default_rng(1).normal(size=(500, 2)) * 3
    step = 1e-7
    g, jacobian = maps.warp(points)
    slope = (maps.warp(points + step)[0] - g) / step
    assert np.median(np.abs(np.log(slope).sum(axis=0) - jacobian)) < 1e-5


@pytest.mark.parametrize("far", [1e3, 1e9, 1e15])
def test_far_points_stay_finite_and_in_order(far: float) -> None:
    maps = Gaussianizer(first("uniform", dim=1))
    points = np.array([-far, -1.0, 0.0, 1.0, far])[:, None]
    g, jacobian = maps.warp(points)
    assert np.isfinite(g).all() and np.isfinite(jacobian).all() and (np.diff(g[0]) > 0).all()


def test_the_guide_finds_what_a_search_finds() -> None:
    rng = np.random.default_rng(0)
    edges = np.sort(np.concatenate([rng.normal(size=200), 1e6 * rng.normal(size=50), [0.25, 0.25 + 1e-9]]))[None]
    points = np.concatenate([rng.normal(size=2000), edges[0], 1e7 * rng.normal(size=100)])
    guide = guides(edges)[0]
    wanted = np.clip(np.searchsorted(edges[0], points, side="right") - 1, 0, edges.shape[1] - 2)
    assert [piece(edges[0], guide, x) for x in points] == wanted.tolist()


def test_counting_on_the_way() -> None:
    points = first("gaussian")
    maps, other = Gaussianizer(points), Gaussianizer(points)
    assert np.array_equal(maps.warp(points)[0], other.warp_and_count(points)[0])
    maps.count(points)
    assert np.array_equal(maps.counts, other.counts) and maps.counts.sum() == 2 * points.size


def test_two_values_only() -> None:
    points = np.random.default_rng(0).choice([0.0, 1.0], (500, 1))
    g, jacobian = Gaussianizer(points).warp(points)
    assert np.isfinite(g).all() and np.isfinite(jacobian).all()
