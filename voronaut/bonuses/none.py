"""No bonus, as a bonus: the baseline runs through the same loop as everything else."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from voronaut.bonuses.base import State
from voronaut.bonuses.saving import Saved, check_state
from voronaut.bonuses.states import check_on_bad, like, read


class NoBonus(Saved):
    """r(s) = 0. Bad states are refused as by any other bonus, so that a comparison stays fair."""

    learns = False
    pays = False

    def __init__(self, dim: int, *, seed: int = 0, on_bad: str = "raise") -> None:
        self.dim, self.seed = dim, seed
        self.on_bad = check_on_bad(on_bad)

    def rewards(self, next_states: Any) -> Any:
        """(..., dim) -> zeros (...,)."""
        batch = read(next_states, self.dim, on_bad=self.on_bad)
        return like(next_states, batch.restore(np.zeros(len(batch.states), np.float32)))

    def update(self, next_states: Any) -> None:
        """Look at the states and learn nothing."""
        read(next_states, self.dim, on_bad=self.on_bad)

    def metrics(self) -> dict[str, float]:
        """Nothing to report."""
        return {}

    def state_dict(self) -> State:
        """Empty."""
        return {}

    def load_state_dict(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Take nothing; refuse the state of another bonus."""
        check_state(state, {}, "NoBonus")
