"""The protocol that every bonus keeps, and all that a training loop or an adapter may ask for."""

from collections.abc import Mapping
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

State = dict[str, NDArray[Any]]


@runtime_checkable
class Bonus(Protocol):
    """Pays states for being worth a visit, and learns from the states that were visited.

    A bonus may also say, as class attributes, what it does not promise: `learns = False`, `pays = False`.
    """

    dim: int

    def rewards(self, next_states: Any) -> NDArray[np.floating[Any]]:
        """(..., dim) -> (...,): what each state would earn now. Changes nothing."""

    def update(self, next_states: Any) -> None:
        """Learn from the visited states (..., dim). Returns nothing."""

    def metrics(self) -> dict[str, float]:
        """A flat dict of floats for any logger."""

    def state_dict(self) -> State:
        """Everything learned, as named arrays (copies)."""

    def load_state_dict(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Take over what `state_dict` gave; refuse what does not fit and then change nothing."""
