"""Columns that cannot be used are found and named, at any scale and offset."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from voronaut.entropy.columns import drop_bad, study
from voronaut.entropy.mixture.tally import Tally


def rows(n: int = 400, dim: int = 3, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(n, dim))


@given(scale=st.sampled_from([1e-4, 1.0, 1e6]), offset=st.sampled_from([0.0, 1e6, -1e6]))
@settings(max_examples=9, deadline=None)
def test_constant_copy_and_sum_are_dropped(scale: float, offset: float) -> None:
    x = rows()
    x = np.column_stack([x, np.full(len(x), 0.1), 3 * x[:, 1] - 7, x[:, 0] + x[:, 2]]) * scale + offset
    columns = study(x, 1e-3)
    assert columns.kept.tolist() == [0, 1, 2] and not columns.resolution.any()
    assert columns.dropped[3] == "constant" and "copy of column 1" in columns.dropped[4]
    assert "columns 0, 2" in columns.dropped[5]
    assert columns.revived(x) == []


@pytest.mark.parametrize("scale", [1e-4, 1.0, 1e6])
def test_nearly_a_copy_is_kept(scale: float) -> None:
    x = rows()
    x[:, 1] = x[:, 0] + 1e-5 * x[:, 1]
    assert study(x * scale, 1e-3).kept.tolist() == [0, 1, 2]


@pytest.mark.parametrize("far", [1e8, 1e12, 1e200])
def test_one_far_row_makes_no_copies(far: float) -> None:
    """By their correlation all columns that it is far out in are one."""
    x = rows()
    x = np.column_stack([x, 3 * x[:, 1] - 7])
    x[5] = far
    x[5, 3] = 3 * x[5, 1] - 7
    columns = study(x, 1e-3)
    assert columns.kept.tolist() == [0, 1, 2] and "copy of column 1" in columns.dropped[3]
    assert columns.revived(x) == []


def test_a_column_that_varies_in_a_far_row_alone_is_no_copy() -> None:
    x = np.column_stack([rows(), np.zeros(400)])
    x[5] = 1e9
    assert study(x, 1e-3).kept.tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize(("scale", "offset"), [(1.0, 0.0), (1e-4, 1e6), (1e6, 1e6), (-3.0, -5.0)])
def test_standardised_rows_do_not_know_scale_and_offset(scale: float, offset: float) -> None:
    x = rows()
    columns, moved = study(x, 1e-3), study(x * scale + offset, 1e-3)
    rounding = 1e-15 * (1 + abs(offset) / abs(scale)) * 10
    assert np.allclose(np.sign(scale) * moved.standardise(x * scale + offset), columns.standardise(x), atol=rounding)
    assert moved.log_volume == pytest.approx(columns.log_volume + 3 * np.log(abs(scale)), abs=rounding)


def test_a_dropped_column_that_comes_to_life() -> None:
    x = np.column_stack([rows(), np.ones(400)])
    columns = study(x, 1e-3)
    x[5, 3] = 1.001
    assert columns.revived(x) == [3]


def test_atoms_are_blurred_in_their_own_unit() -> None:
    x = rows()
    x[:, 1] = 100 * np.random.default_rng(1).integers(0, 6, len(x))
    columns = study(x, 0.01)
    assert (columns.resolution > 0).tolist() == [False, True, False]
    noise = columns.standardise(x, np.random.default_rng(0)) - columns.standardise(x)
    assert np.allclose(noise[:, [0, 2]], 0) and noise[:, 1].std() == pytest.approx(0.01, rel=0.1)


def test_few_digits_are_no_atoms() -> None:
    x = np.random.default_rng(0).random((9600, 1)) * 1e-4 + 1e6
    assert len(np.unique(x)) < len(x) and not study(x, 1e-3).resolution.any()


@pytest.mark.parametrize("share", [0.01, 0.5])
def test_one_value_that_comes_back_is_an_atom(share: float) -> None:
    x = rows(4000, 1)
    x[: int(share * 4000)] = 0.5
    assert study(x, 1e-3).resolution.all()


def test_mostly_zero_still_has_a_scale() -> None:
    x = rows()
    x[:300, 0] = 0
    columns = study(x, 1e-3)
    assert columns.kept.tolist() == [0, 1, 2] and columns.scale[0] == pytest.approx(x[:, 0].std(), rel=0.1)


def test_heavy_tails_do_not_set_the_scale() -> None:
    x = rows()
    x[0, 0] = 1e12
    assert study(x, 1e-3).scale[0] == pytest.approx(1, rel=0.2)


def test_bad_rows() -> None:
    x = rows(5)
    x[2, 1] = np.nan
    kept, bad = drop_bad(x, "drop")
    assert len(kept) == 4 and bad == 1
    with pytest.raises(ValueError, match="column 1 of row 2"):
        drop_bad(x, "raise")


@given(st.lists(st.integers(1, 40), min_size=1, max_size=600))
@settings(max_examples=30, deadline=None)
def test_tally_reads_about_the_recent_half(sizes: list[int]) -> None:
    tally, values = Tally(), np.arange(float(sum(sizes)))
    for chunk in np.split(values, np.cumsum(sizes)[:-1]):
        tally.add(chunk)
    mean, _, count = tally.read()
    assert mean == pytest.approx(values[-count:].mean()) and count >= len(values) / 2
    assert len(tally._blocks) <= 128
    assert len(sizes) < 64 or count <= 0.5 * len(values) + 2 * max(n for n, _, _ in tally._blocks)


def test_tally_error() -> None:
    rng = np.random.default_rng(0)
    steady, slow = Tally(), Tally()
    for _ in range(400):
        steady.add(rng.normal(size=100))
        slow.add(np.full(100, rng.normal()))
    assert steady.read()[1] == pytest.approx(1 / np.sqrt(20_000), rel=0.3)
    assert slow.read()[1] == pytest.approx(1 / np.sqrt(200), rel=0.3)
