"""What brought many environments to where they are: enough to bring fresh ones to the same place."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

Ids = NDArray[np.int32]
Actions = NDArray[np.float64]


class Tape:
    """How often each environment was reset, and the actions that it has taken since."""

    def __init__(self, num_envs: int, action_dim: int) -> None:
        self._shape = (num_envs, action_dim)
        self._resets, self._begun = np.zeros(num_envs, np.int64), np.zeros(num_envs, np.int64)
        self._actions: list[Actions] = []  # since the oldest episode under way began; others began at `begun`

    def reset(self, ids: Ids) -> None:
        """These environments began a new episode."""
        self._resets[ids] += 1
        self._begun[ids] = len(self._actions)
        over = int(self._begun.min())
        del self._actions[:over]
        self._begun -= over

    def step(self, actions: Actions) -> None:
        """Every environment took an action (n, a). The array is kept: it must not change."""
        self._actions.append(actions)

    def state_dict(self) -> dict[str, NDArray[Any]]:
        """Plain arrays."""
        actions = np.array(self._actions).reshape(len(self._actions), *self._shape)
        return {"resets": self._resets.copy(), "begun": self._begun.copy(), "actions": actions}

    def load_state_dict(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Take over what another tape held."""
        self._resets, self._begun = state["resets"].astype(np.int64), state["begun"].astype(np.int64)
        self._actions = list(state["actions"])

    def replay(self, reset: Callable[[Ids], None], step: Callable[[Ids, Actions], None]) -> None:
        """Do it all again with fresh environments. Episodes that are over are begun, not played."""
        for done in range(int(self._resets.max())):
            reset(np.flatnonzero(self._resets > done).astype(np.int32))
        for t, actions in enumerate(self._actions):
            ids = np.flatnonzero(self._begun <= t).astype(np.int32)
            step(ids, actions[ids])
