"""Chan's formula equals one pass over everything, however the data come."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from voronaut.bonuses import running


@given(st.lists(st.integers(0, 7), max_size=6), st.floats(-1e8, 1e8), st.integers(0, 99))
def test_pieces_equal_the_whole(sizes: list[int], offset: float, seed: int) -> None:
    rows = offset + np.random.default_rng(seed).normal(size=(sum(sizes), 3))
    joined, at = running.start((3,)), 0
    for size in sizes:
        joined, at = running.absorb(joined, rows[at : at + size]), at + size
    assert joined.seen == len(rows)
    if len(rows):
        np.testing.assert_allclose(joined.mean, rows.mean(axis=0), rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(joined.variance, rows.var(axis=0), rtol=1e-6, atol=1e-9)


def test_nothing_seen() -> None:
    empty = running.start((2,))
    assert empty.seen == 0 and not empty.deviation.any()
    assert running.absorb(empty, np.zeros((0, 2))) is empty


def test_overflow_is_refused() -> None:
    with pytest.raises(ValueError, match="nothing was learned"):
        running.absorb(running.start((1,)), np.array([[1e200], [-1e200]]))


def test_named_round_trip() -> None:
    kept = running.absorb(running.start((2,)), np.arange(6.0).reshape(3, 2))
    again = running.from_arrays(running.to_arrays(kept, "x"), "x")
    assert again.seen == kept.seen
    np.testing.assert_array_equal(again.variance, kept.variance)
