"""What brought many environments to where they are: enough to bring fresh ones to the same place."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

Ids = NDArray[np.int32]
Actions = NDArray[np.float64]


class Tape:
    """How often each environment was reset, and the actions it has taken since."""

    def __init__(self, num_envs: int, action_dim: int) -> None:
        self._resets, self._lengths = np.zeros(num_envs, np.int64), np.zeros(num_envs, np.int64)
        self._actions = np.zeros((16, num_envs, action_dim))
        self._all = np.arange(num_envs)

    def reset(self, ids: Ids) -> None:
        """These environments began a new episode."""
        self._resets[ids] += 1
        self._lengths[ids] = 0

    def step(self, actions: Actions) -> None:
        """Every environment took an action (n, a)."""
        if self._lengths.max() == len(self._actions):
            self._actions = np.concatenate([self._actions, np.zeros_like(self._actions)])
        self._actions[self._lengths, self._all] = actions
        self._lengths += 1

    def state_dict(self) -> dict[str, NDArray[Any]]:
        """Plain arrays."""
        played = self._actions[: self._lengths.max()].copy()
        played[np.arange(len(played))[:, None] >= self._lengths] = 0  # of episodes that are over
        return {"resets": self._resets.copy(), "lengths": self._lengths.copy(), "actions": played}

    def load_state_dict(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Take over what another tape held."""
        self._resets, self._lengths = state["resets"].astype(np.int64), state["lengths"].astype(np.int64)
        self._actions = np.zeros((max(16, len(state["actions"])), *self._actions.shape[1:]))
        self._actions[: len(state["actions"])] = state["actions"]

    def replay(self, reset: Callable[[Ids], None], step: Callable[[Ids, Actions], None]) -> None:
        """Do it all again with fresh environments. Episodes that are over are begun, not played."""
        for ids in self._those_beyond(self._resets):
            reset(ids)
        for t, ids in enumerate(self._those_beyond(self._lengths)):
            step(ids, self._actions[t, ids])

    def _those_beyond(self, numbers: NDArray[np.int64]) -> Iterator[Ids]:
        for done in range(int(numbers.max())):
            yield np.flatnonzero(numbers > done).astype(np.int32)
