"""Entropies against the truth, at any scale, whatever is wrong with the columns; memory that does not grow."""

import functools
import math
import pickle
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from voronaut.entropy.laws import LAWS
from voronaut.entropy.stream import EntropyStream


def read(x: np.ndarray, **options: object) -> tuple[float, float]:
    stream = EntropyStream(**options)  # type: ignore[arg-type]
    stream.update(x)
    reading = stream.read()
    return reading.entropy, reading.std


@pytest.mark.parametrize(
    ("name", "dim", "error"),
    [
        ("gaussian", 2, 0.04),
        ("uniform", 2, 0.04),
        ("student3", 2, 0.05),
        ("correlated", 8, 0.1),
        ("exponential", 8, 0.1),
        ("lognormal", 8, 0.1),
        ("bimodal", 4, 0.1),
        ("mixture", 2, 0.05),
        ("mixture", 8, 0.3),
    ],
)
def test_mixture_against_the_truth(name: str, dim: int, error: float) -> None:
    law = LAWS[name](dim)
    entropy, std = read(law.sample(30_000, 1), clusters=100)
    assert abs(entropy - law.entropy) < error + 2 * std and std < 0.05


@pytest.mark.parametrize("n", [1000, 4000])
def test_the_error_is_as_large_as_it_says(n: int) -> None:
    """Below and above the number of rows that are kept at first."""
    law = LAWS["gaussian"](2)
    misses = []
    for seed in range(12):
        entropy, std = read(law.sample(n, seed), clusters=5, seed=seed)
        misses.append((entropy - law.entropy) / std)
    assert 0.5 < np.sqrt(np.mean(np.square(misses))) < 1.8


@pytest.mark.parametrize(("dim", "error"), [(2, 0.15), (8, 0.4)])
def test_moments_against_the_truth(dim: int, error: float) -> None:
    law = LAWS["gaussian"](dim)
    assert read(law.sample(30_000, 1), clusters=100, method="moments")[0] == pytest.approx(law.entropy, abs=error)


def test_bound_orders_what_it_cannot_measure() -> None:
    wide, narrow = (LAWS["gaussian"](2).sample(20_000, 1) * s for s in (1.0, 0.5))
    high, low = (read(x, clusters=100, method="bound")[0] for x in (wide, narrow))
    assert high - low == pytest.approx(2 * math.log(2), abs=1e-6)


@pytest.mark.parametrize("method", ["mixture", "moments", "bound"])
@pytest.mark.parametrize(("scale", "offset"), [(1e-4, 0.0), (1e6, 1e6), (1e-4, 1e6)])
def test_scale_and_offset_only_add_their_logarithm(method: str, scale: float, offset: float) -> None:
    x = LAWS["lognormal"](3).sample(4000, 0)
    plain, moved = (read(y, clusters=30, method=method)[0] for y in (x, x * scale + offset))
    assert moved - plain == pytest.approx(3 * math.log(scale), abs=1e-3)


units = st.tuples(st.floats(-6, 6), st.floats(-1000, 1000))
SKEWED = LAWS["lognormal"](3).sample(1500, 0)


@functools.cache
def skewed_entropy() -> float:
    return read(SKEWED, clusters=15)[0]


@settings(max_examples=8, deadline=None)
@given(st.lists(units, min_size=3, max_size=3))
def test_every_column_may_have_its_own_unit(chosen: list[tuple[float, float]]) -> None:
    """x ↦ 10^a (x + b), column by column: the entropy grows by Σ a ln 10 and nothing else."""
    scale, offset = 10.0 ** np.array([a for a, _ in chosen]), np.array([b for _, b in chosen])
    moved = read((SKEWED + offset) * scale, clusters=15)[0]
    assert moved - skewed_entropy() == pytest.approx(float(np.log(scale).sum()), abs=1e-3)


def test_any_linear_map_only_adds_its_determinant() -> None:
    x, matrix = LAWS["gaussian"](3).sample(4000, 0), np.array([[1.0, 0, 0], [1, 1e-4, 0], [1, 1, 1e3]])
    plain, turned = (read(y, clusters=30, gaussianize=False)[0] for y in (x, x @ matrix))
    assert turned - plain == pytest.approx(math.log(0.1), abs=0.02)


@pytest.mark.parametrize("method", ["mixture", "moments"])
def test_density_and_entropy_agree(method: str) -> None:
    law = LAWS["gaussian"](2)
    stream = EntropyStream(60, method)  # type: ignore[arg-type]
    stream.update(law.sample(20_000, 0))
    assert -stream.log_density(law.sample(20_000, 1)).mean() == pytest.approx(stream.read().entropy, abs=0.06)


def test_the_density_integrates_to_one() -> None:
    stream = EntropyStream(60)
    stream.update(LAWS["exponential"](1).sample(20_000, 0) * 5)
    grid = np.linspace(-10, 100, 200_001)
    assert np.exp(stream.log_density(grid[:, None])).sum() * (grid[1] - grid[0]) == pytest.approx(1, abs=0.01)


def test_pieces_or_all_at_once() -> None:
    x = LAWS["gaussian"](2).sample(5000, 0)
    pieces = EntropyStream(20)
    for part in np.array_split(x, 37):
        pieces.update(part)
    assert pieces.read().entropy == pytest.approx(read(x, clusters=20)[0], abs=0.03)


def test_reading_changes_nothing() -> None:
    x = LAWS["gaussian"](2).sample(6000, 0)
    watched, quiet = EntropyStream(20), EntropyStream(20)
    for part in np.array_split(x, 12):
        watched.update(part)
        watched.read()
        quiet.update(part)
    assert watched.read() == quiet.read()


def test_memory_does_not_grow() -> None:
    stream, rng = EntropyStream(20), np.random.default_rng(0)
    sizes = []
    for _ in range(6):
        stream.update(rng.normal(size=(8192, 3)))
        sizes.append(len(pickle.dumps(stream)))
    assert max(sizes[1:]) - min(sizes[1:]) < 10_000 < sizes[0]


def test_bad_columns_are_dropped_named_and_told() -> None:
    x = LAWS["gaussian"](2).sample(3000, 0)
    stream = EntropyStream(20)
    with pytest.warns(UserWarning, match="column 2 is constant"):
        stream.update(np.column_stack([x, np.ones(3000), x[:, 0] * 2]))
    reading = stream.read()
    assert set(reading.dropped) == {2, 3} and reading.entropy == pytest.approx(LAWS["gaussian"](2).entropy, abs=0.1)
    with pytest.warns(UserWarning, match="column 2 was dropped as constant and is not any more"):
        stream.update(np.random.default_rng(0).normal(size=(10, 4)))


def test_nothing_varies() -> None:
    stream = EntropyStream(5)
    with pytest.warns(UserWarning, match="constant"):
        stream.update(np.ones((3000, 2)))
        reading = stream.read()
    assert reading.entropy == -math.inf and stream.log_density(np.ones((2, 2))).tolist() == [math.inf] * 2


def test_atoms_have_a_resolution() -> None:
    """Five equal atoms blurred by a width w: ln 5 + ½ ln 2πe + ln w."""
    x = 10.0 * np.random.default_rng(0).integers(0, 5, (20_000, 1))
    stream = EntropyStream(20, resolution=0.01)
    with pytest.warns(UserWarning, match="repeated values in column 0"):
        stream.update(x)
    reading = stream.read()
    truth = math.log(5) + 0.5 * math.log(2 * math.pi * math.e) + math.log(reading.resolution[0])
    assert truth - 0.02 < reading.entropy < truth + 0.1


def test_far_outliers_do_not_decide() -> None:
    x = LAWS["gaussian"](2).sample(20_000, 0)
    x[::2000] = 1e6
    entropy, _ = read(x, clusters=50)
    assert entropy == pytest.approx(LAWS["gaussian"](2).entropy, abs=0.15)


def test_effective_dim() -> None:
    x = np.random.default_rng(0).normal(size=(3000, 4))
    one = EntropyStream(5, "moments")
    one.update(x)
    assert one.read().effective_dim == pytest.approx(4, abs=0.05)
    x[:, 1:] = x[:, :1] + 0.01 * x[:, 1:]
    same = EntropyStream(5, "moments")
    same.update(x)
    assert same.read().effective_dim == pytest.approx(1, abs=0.01)


@pytest.mark.parametrize(("n", "dim"), [(6, 1), (14, 5), (10, 3), (84, 40), (41, 2)])
@pytest.mark.parametrize("method", ["mixture", "moments"])
def test_few_rows_give_a_number(n: int, dim: int, method: str) -> None:
    x = np.random.default_rng(0).normal(size=(n, dim))
    assert math.isfinite(read(x, method=method)[0])


def test_bad_input() -> None:
    with pytest.raises(ValueError, match="no rows yet"):
        EntropyStream().read()
    with pytest.raises(ValueError, match="method must be one of"):
        EntropyStream(method="guess")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="clusters"):
        EntropyStream(0)
    with pytest.raises(ValueError, match="resolution"):
        EntropyStream(resolution=0)
    with pytest.raises(ValueError, match="on_bad"):
        EntropyStream(on_bad="ignore")  # type: ignore[arg-type]
    stream = EntropyStream(5, on_bad="drop")
    stream.update(np.array([[np.nan], [np.inf]]))
    stream.update(np.random.default_rng(0).normal(size=(50, 1)))
    assert stream.read().bad == 2 and stream.read().rows == 50


@pytest.mark.parametrize("method", ["mixture", "moments", "bound"])
@pytest.mark.parametrize(("n", "dim"), [(2, 1), (2, 2), (7, 2), (18, 17), (37, 17)])
def test_too_few_rows_give_no_number_and_say_how_many_are_needed(n: int, dim: int, method: str) -> None:
    x = np.random.default_rng(0).normal(size=(2 * (dim + 2), dim))
    stream = EntropyStream(method=method)  # type: ignore[arg-type]
    stream.update(x[:n])
    with pytest.warns(UserWarning, match=rf"{n} rows are too few for {dim} columns?: .* {2 * (dim + 2)}"):
        reading = stream.read()
    assert math.isnan(reading.entropy) and math.isnan(reading.std)
    stream.update(x[n:])
    assert not math.isnan(stream.read().entropy)


@pytest.mark.parametrize(("method", "near", "far"), [("mixture", 1e5, 1e9), ("moments", 20.0, 1e3)])
@pytest.mark.parametrize("late", [False, True])
def test_an_outlier_that_may_decide_is_told(method: str, near: float, far: float, late: bool) -> None:
    x = np.random.default_rng(0).normal(size=(3000, 2))
    row = 2900 if late else 100  # after the rows that start the models, or among them
    for value, count in ((near, 0), (far, 1)):
        x[row, 1] = value
        stream = EntropyStream(clusters=20, method=method)  # type: ignore[arg-type]
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            stream.update(x)
            assert stream.read().far == count
        assert [("column 1" in str(each.message) and f"{value:g}" in str(each.message)) for each in told] == [
            True
        ] * count


@pytest.mark.parametrize("far", [1e9, 1e30, 1e300])
@pytest.mark.parametrize("method", ["mixture", "moments", "bound"])
def test_a_row_out_of_all_bounds_counts_as_one_at_the_bound(method: str, far: float) -> None:
    """One of 1e9 made 46,896 nats, and one of 1e200 ended in an error of linear algebra."""
    x = np.random.default_rng(0).normal(size=(3000, 3))
    found = {}
    for value in (2.9e6, far):
        x[7] = value
        stream = EntropyStream(clusters=50, method=method)  # type: ignore[arg-type]
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            stream.update(x)
            found[value] = stream.read().entropy
            assert np.isfinite(stream.log_density(x)).all()
    assert found[far] == pytest.approx(found[2.9e6], abs=0.5)
    assert [f"{far:g}" in str(each.message) for each in told] == [True]
