"""Theorem 1's density: cells measured by Monte Carlo against cells whose size is known."""

import numpy as np
import pytest

from voronaut.entropy import cell_density
from voronaut.entropy.density import measure
from voronaut.entropy.scale_free.stream import ScaleFree

FOUR = np.array([[0.25, 0.25], [0.25, 0.75], [0.75, 0.25], [0.75, 0.75]])


def test_equal_cells_are_a_uniform_density() -> None:
    points = np.random.default_rng(0).random((50, 2))
    found = cell_density(points, FOUR, np.ones(4), 0.0, low=(0, 0), high=(1, 1), samples=200_000)
    np.testing.assert_allclose(found, 1.0, rtol=0.02)


def test_weights_move_the_border_in_one_dimension() -> None:
    """‖x − 0.25‖ + 0.2 = ‖x − 0.75‖ at x = 0.4: cells of 0.4 and 0.6."""
    cells = measure([[0.25], [0.75]], [3, 1], 0.1, low=0.0, high=1.0, samples=400_000, seed=1)
    np.testing.assert_allclose(cells.volumes, [0.4, 0.6], atol=0.004)
    assert cells.of(np.array([[0.39], [0.41]])).tolist() == [0, 1]
    np.testing.assert_allclose(cells.density(np.array([[0.1], [0.9]])), [1 / 0.8, 1 / 1.2], rtol=0.01)
    assert cells.of(np.array([[0.1], [0.2], [0.3], [0.9]])).tolist() == [0, 0, 0, 1]


def test_outside_the_box_there_is_nothing_and_the_box_has_its_unit() -> None:
    low, high = np.array([10.0, -4.0]), np.array([12.0, 4.0])
    centers = low + FOUR * (high - low)
    points = np.array([[11.0, 0.5], [13.0, 0.0], [11.0, -4.5]])
    found = cell_density(points, centers, np.ones(4), 0.0, low=low, high=high, samples=100_000)
    np.testing.assert_allclose(found, [1 / 16, 0, 0], rtol=0.03)


def test_numbers_bound_a_box_of_any_dimension() -> None:
    cells = measure(2 * FOUR, np.ones(4), 0.0, low=0.0, high=2.0, samples=100_000)
    np.testing.assert_allclose(cells.volumes, 1.0, rtol=0.03)


def test_a_cell_that_no_point_hits_is_not_divided_by() -> None:
    cells = measure([[0.5], [5.0]], [1, 1], 0.0, low=0.0, high=1.0, samples=1_000)
    assert cells.volumes.tolist() == [1.0, 1e-3]


def test_it_approaches_the_density_as_clusters_grow() -> None:
    rng, errors = np.random.default_rng(0), []
    x = rng.random(400_000)
    points = x[rng.random(len(x)) * 1.8 < 1 - 0.8 * np.cos(2 * np.pi * x)][:, None]
    asked = np.linspace(0.01, 0.99, 99)[:, None]
    for k in (4, 32):
        made = ScaleFree(1, k, dtype="float64")
        for batch in np.array_split(points, 40):
            made.update(batch)
        found = cell_density(asked, made.centers, made.counts, made.balance, low=0.0, high=1.0, samples=200_000)
        errors.append(np.abs(found - (1 - 0.8 * np.cos(2 * np.pi * asked[:, 0]))).mean())
    assert errors[0] > 0.2 and errors[1] < 0.15


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"low": 0.0, "high": 0.0}, "box of 2 sides"), ({"low": (0, 0, 0), "high": (1, 1, 1)}, "box of 2 sides"),
        ({"low": 0.0, "high": np.inf}, "box of 2 sides"),
        ({"counts": np.ones(3)}, r"counts \(k,\); got \(4, 2\) and \(3,\)"),
    ],
)  # fmt: skip
def test_bad_boxes_are_named(options: dict[str, object], words: str) -> None:
    given = {"centers": FOUR, "counts": np.ones(4), "balance": 0.0, "low": 0.0, "high": 1.0, **options}
    with pytest.raises(ValueError, match=words):
        measure(**given)  # type: ignore[arg-type]
