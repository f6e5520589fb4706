"""The bonus that is none."""

import numpy as np
import pytest

from voronaut.bonuses.none import NoBonus


def test_pays_nothing_in_any_layout() -> None:
    paid = NoBonus(dim=3).rewards(np.ones((4, 2, 3)))
    assert paid.shape == (4, 2) and paid.dtype == np.float32 and not paid.any()


def test_bad_states_are_refused_as_by_others() -> None:
    with pytest.raises(ValueError, match="not finite"):
        NoBonus(dim=2).update(np.array([[0, np.nan]]))
