"""Runs of one kind side by side: one program on an accelerator, a loop over threads on a CPU."""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from numpy.typing import NDArray

from voronaut.bonuses.base import Bonus


class Stack:
    """Bonuses of `members`, each with its own states and its own seed. The members always hold what they learned."""

    def __init__(self, members: Sequence[Bonus], *, threads: int = 1, mapped: bool | None = None) -> None:
        kinds = {type(member) for member in members}
        if len(kinds) != 1:
            names = sorted(kind.__name__ for kind in kinds)
            raise ValueError(f"a stack needs bonuses of one kind; got {names or 'none'}. Make one stack for each kind.")
        if mapped and not _mappable(members):
            raise ValueError("mapped=True needs RND or RE3 with equal parameters but for the seed. Leave mapped out.")
        self.members, self.threads = list(members), threads
        self.dim = members[0].dim
        self._mapped = mapped

    def rewards(self, next_states: Any) -> NDArray[np.floating[Any]]:
        """(runs, ..., dim) -> (runs, ...): what each run's states would earn from its own bonus."""
        states = self._checked(next_states)
        if self._one_program(states):
            flat = states.reshape(len(self.members), -1, self.dim)
            paid: NDArray[np.floating[Any]] = type(self.members[0]).rewards_many(self.members, flat)  # type: ignore[attr-defined]
            return paid.reshape(states.shape[:-1])
        return np.stack(self._each(lambda member, own: member.rewards(own), states))

    def update(self, next_states: Any) -> None:
        """Each run's bonus learns from its own states (runs, ..., dim)."""
        states = self._checked(next_states)
        if self._one_program(states):
            flat = states.reshape(len(self.members), -1, self.dim)
            type(self.members[0]).update_many(self.members, flat)  # type: ignore[attr-defined]
        else:
            self._each(lambda member, own: member.update(own), states)

    def metrics(self) -> list[dict[str, float]]:
        """One flat dict for each run."""
        return [member.metrics() for member in self.members]

    def _checked(self, next_states: Any) -> NDArray[Any]:
        states = np.asarray(next_states)
        if states.ndim < 2 or len(states) != len(self.members) or states.shape[-1] != self.dim:
            raise ValueError(
                f"states must be (runs, ..., dim) = ({len(self.members)}, ..., {self.dim}); got shape {states.shape}. "
                "Put the axis of runs first."
            )
        return states

    def _one_program(self, states: NDArray[Any]) -> bool:
        """Not for bad states (runs would differ in length), nor on a CPU, where the loop is as fast."""
        if self._mapped is False or states.size == 0 or not _mappable(self.members):
            return False
        if not np.abs(states).max() <= 1e15:  # true for NaN
            return False
        from voronaut.bonuses.networks import on_accelerator

        return self._mapped is True or on_accelerator()

    def _each(self, act: Callable[[Bonus, NDArray[Any]], Any], states: NDArray[Any]) -> list[Any]:
        if self.threads < 2:
            return [act(member, own) for member, own in zip(self.members, states, strict=True)]
        with ThreadPoolExecutor(self.threads) as pool:
            return list(pool.map(act, self.members, states))


def stack(bonuses: Sequence[Bonus], *, threads: int = 1, mapped: bool | None = None) -> Stack:
    """Bonuses of one kind as one: states and rewards get a leading axis of runs.

    `threads` share the loop on a CPU (KME's kernels and JAX release the GIL). RND and RE3 with equal parameters but for
    the seed run as one mapped program on an accelerator; `mapped` forces that on or off.
    """
    return Stack(bonuses, threads=threads, mapped=mapped)


def _mappable(members: Sequence[Bonus]) -> bool:
    """Whether the kind has a mapped program and the members differ in nothing but the seed."""
    if not hasattr(type(members[0]), "update_many"):
        return False
    first, *others = [{**member.params, "seed": 0} for member in members]  # type: ignore[attr-defined]
    return all(other == first for other in others)
