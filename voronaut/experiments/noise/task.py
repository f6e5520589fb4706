"""A task whose states carry coordinates of pure noise, as a robot's might that nobody has looked through."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from voronaut.tasks.base import Array, State, Step, VectorTask


class Noisy:
    """The task with `extra` coordinates behind its own: independent, from N(0, 1), drawn anew at every step."""

    resumes_exactly = False

    def __init__(self, task: VectorTask, extra: int, seeds: Sequence[int]) -> None:
        self.task, self.extra = task, extra
        self.num_envs, self.obs_dim = task.num_envs, task.obs_dim + extra
        self.action_dim, self.choices = task.action_dim, task.choices
        self.action_low, self.action_high = task.action_low, task.action_high
        self._rng = np.random.default_rng([*seeds, extra])

    def reset(self) -> Array:
        """Start a new episode everywhere -> obs (n, d + extra)."""
        return self._beside(self.task.reset())

    def step(self, actions: Any) -> Step:
        """Take the actions. A state keeps its noise when it is observed; a new episode begins with noise of its own."""
        step = self.task.step(actions)
        led_to = self._beside(step.next_states)
        over = (step.terminated | step.truncated)[:, None]
        return step._replace(next_states=led_to, obs=np.where(over, self._beside(step.obs), led_to))

    def state_dict(self) -> State:
        """The task's own: the noise goes on anew."""
        return self.task.state_dict()

    def load_state_dict(self, state: Mapping[str, NDArray[Any]]) -> Array:
        """Go on from `state_dict` with other noise."""
        return self._beside(self.task.load_state_dict(state))

    def render(self, index: int = 0) -> NDArray[np.uint8]:
        """The task's picture: noise cannot be seen."""
        return self.task.render(index)

    def close(self) -> None:
        """Free the environments."""
        self.task.close()

    def _beside(self, states: Array) -> Array:
        noise = self._rng.normal(size=(len(states), self.extra)).astype(np.float32)
        return np.concatenate([states, noise], axis=1)
