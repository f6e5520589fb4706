"""A small sparse task, many at once in NumPy: a ladder on which one action climbs and the others fall."""

from typing import Any

import numpy as np
from gymnasium import spaces
from stable_baselines3.common.vec_env import VecEnv

RUNGS, ACTIONS, LIMIT = 16, 4, 50


class Ladder(VecEnv):
    """On each rung another one of four actions (drawn once, from seed 0) climbs a rung; the others fall back by one.

    The reward is 1 for each step on the top rung, else 0. Random actions stand on rung n in about 3⁻ⁿ of the steps: the
    top is out of their reach. Observations are one-hot.
    """

    def __init__(self, count: int) -> None:
        super().__init__(count, spaces.Box(0, 1, (RUNGS + 1,), np.float32), spaces.Discrete(ACTIONS))
        self._right = np.random.default_rng(0).integers(ACTIONS, size=RUNGS + 1)
        self.tops: list[int] = []  # the highest rung of each episode

    def reset(self) -> Any:
        self._rung, self._highest, self._time = (np.zeros(self.num_envs, int) for _ in range(3))
        return self._observe()

    def step_async(self, actions: Any) -> None:
        self._moves = np.where(actions == self._right[self._rung], 1, -1)

    def step_wait(self) -> Any:
        self._rung, self._time = np.clip(self._rung + self._moves, 0, RUNGS), self._time + 1
        self._highest = np.maximum(self._highest, self._rung)
        rewards, dones = (self._rung == RUNGS).astype(np.float32), self._time == LIMIT
        infos: list[dict[str, Any]] = [{} for _ in dones]
        for i in np.flatnonzero(dones):
            infos[i] = {"terminal_observation": self._observe()[i], "TimeLimit.truncated": True}
        self.tops += self._highest[dones].tolist()
        self._rung[dones] = self._highest[dones] = self._time[dones] = 0
        return self._observe(), rewards, dones, infos

    def _observe(self) -> Any:
        return np.eye(RUNGS + 1, dtype=np.float32)[self._rung]

    def close(self) -> None:
        pass

    def get_attr(self, attr_name: str, indices: Any = None) -> list[Any]:
        return [None] * self.num_envs

    def set_attr(self, attr_name: str, value: Any, indices: Any = None) -> None:
        raise NotImplementedError

    def env_method(self, method_name: str, *args: Any, indices: Any = None, **kwargs: Any) -> list[Any]:
        raise NotImplementedError

    def env_is_wrapped(self, wrapper_class: Any, indices: Any = None) -> list[bool]:
        return [False] * self.num_envs
