"""A task small enough to follow by hand, and experiments that take a second."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from voronaut.tasks.base import Step
from voronaut.tasks.table import TASKS
from voronaut.training.api import configure
from voronaut.training.config import Config


class Counter:
    """Environment e counts its steps: the state is (e, steps in this episode). Episodes end after `limit` steps."""

    obs_dim, action_dim, choices, resumes_exactly = 2, 1, 0, True
    action_low, action_high = np.array([-1.0]), np.array([1.0])

    def __init__(self, num_envs: int, limit: int = 3, terminates: bool = False) -> None:
        self.num_envs, self.limit, self.terminates = num_envs, limit, terminates
        self.count = np.zeros(num_envs, np.int64)

    def _observe(self) -> NDArray[np.float32]:
        return np.stack([np.arange(self.num_envs), self.count], axis=1).astype(np.float32)

    def reset(self) -> NDArray[np.float32]:
        self.count[:] = 0
        return self._observe()

    def step(self, actions: Any) -> Step:
        self.count += 1
        states, over = self._observe(), self.count == self.limit
        reward = states[:, 1] / 10
        self.count[over] = 0
        no = np.zeros(self.num_envs, bool)
        ends = (over, no) if self.terminates else (no, over)
        return Step(self._observe(), states, reward, reward * 2, *ends)

    def state_dict(self) -> dict[str, NDArray[Any]]:
        return {"count": self.count.copy()}

    def load_state_dict(self, state: Mapping[str, NDArray[Any]]) -> NDArray[np.float32]:
        self.count = state["count"].copy()
        return self._observe()

    def render(self, index: int = 0) -> NDArray[np.uint8]:
        return np.zeros((4, 4, 3), np.uint8)

    def close(self) -> None:
        """Nothing to free."""


def small(**choices: Any) -> Config:
    """Two environments, rollouts of 64 states, 4 rollouts of Cheetah with dm_control."""
    given: dict[str, Any] = {
        "task": "cheetah-run", "bonuses": ["none", "kme"], "seeds": 2, "steps": 256, "rollout": 64, "envs": 2,
        "backend": "dm_control", "options": {"kme": {"clusters": 10}},
    }  # fmt: skip
    made = configure(**(given | choices))
    if made.task in TASKS and made.backend == "dm_control":
        pytest.importorskip("dm_control")  # which does not install with Python 3.13
    return made
