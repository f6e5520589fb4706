"""The protocol that every bonus keeps, and the small ones that it may keep besides.

A training loop or an adapter asks for nothing else. `voronaut.conformance` checks all of them.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Literal, Protocol, TypeGuard, runtime_checkable

import numpy as np
from numpy.typing import NDArray

State = dict[str, NDArray[Any]]


@runtime_checkable
class Bonus(Protocol):
    """Pays states for being worth a visit, and learns from the states that were visited.

    A bonus may also say, as class attributes, what it does not promise: `learns = False` (it has no memory),
    `pays = False` (its rewards are all 0), `batchwise = True` (rewards depend on the batch a state comes in).
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


@runtime_checkable
class Steps(Protocol):
    """A bonus that can be paid and taught state by state (Algorithm 1): `--kme.absorb online` asks for it."""

    def step(self, next_states: Any) -> NDArray[np.floating[Any]]:
        """(n, dim) -> (n,): pay each state against what is known after those before it, and learn it."""


@runtime_checkable
class HasCenters(Protocol):
    """A bonus whose memory can be drawn: snapshots of a training run ask for it."""

    @property
    def centers(self) -> NDArray[np.float64]:
        """(k, dim) in the states' own coordinates."""

    @property
    def counts(self) -> NDArray[np.int64]:
        """(k,) states at each center."""


def has_centers(bonus: Any) -> TypeGuard[HasCenters]:
    """Whether its memory can be drawn now: a KME of views has centers of parts only, and says so when it is asked.

    From Python 3.12 on `isinstance` looks at the class alone and does not ask.
    """
    return all(hasattr(bonus, name) for name in ("centers", "counts"))


@runtime_checkable
class SideBySide(Protocol):
    """A bonus of which many can be computed as one program: a population on an accelerator asks for it."""

    @property
    def params(self) -> dict[str, Any]:
        """Keyword arguments that make it again. Members of one program differ in nothing but `seed`."""

    @staticmethod
    def rewards_many(members: Sequence[Any], states: NDArray[Any]) -> NDArray[Any]:
        """(runs, n, dim) -> (runs, n): `rewards` of each run's states by its own member."""

    @staticmethod
    def update_many(members: Sequence[Any], states: NDArray[Any]) -> None:
        """`update` of each member with its own run's states (runs, n, dim)."""


@runtime_checkable
class TakesTensors(Protocol):
    """A bonus that takes torch tensors where they are and pays in tensors: adapters on a GPU ask for it."""

    takes_tensors: Literal[True]


@runtime_checkable
class PaysInPrograms(Protocol):
    """A bonus whose rewards can be part of a JAX program: learning from a replay on an accelerator asks for it."""

    def frozen(self) -> Any:
        """What pays as it is now, a pytree of arrays, alike in shape for equal parameters; None if they forbid it."""

    @staticmethod
    def pay(frozen: Any, states: Any) -> Any:
        """(n, dim) -> (n,): `rewards` inside a program. States that are not finite earn 0."""
