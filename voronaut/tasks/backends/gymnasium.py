"""Any Gymnasium environment with flat Box observations and Box actions, as `gym:ID`."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from voronaut.tasks.base import Array, State, Step, bounded, env_seeds, require

PREFIX = "gym:"


class GymTask:
    """Environments stepped one after the other; their own rewards, ends and limits. No threshold."""

    resumes_exactly = False

    def __init__(
        self,
        env_id: str,
        seeds: Sequence[int],
        envs_per_seed: int = 16,
        *,
        episode_steps: int | None = None,
        render: bool = False,
    ) -> None:
        self._seeds, self._envs_per_seed, self._generation = seeds, envs_per_seed, 0
        self._pending = env_seeds(seeds, envs_per_seed)
        self._started = False
        kwargs = {"max_episode_steps": episode_steps, "render_mode": "rgb_array" if render else None}
        self._envs = [_make_env(env_id, kwargs) for _ in self._pending]
        space = self._envs[0].action_space
        self._action_dtype = space.dtype
        self.action_low, self.action_high = space.low.astype(np.float64), space.high.astype(np.float64)
        self.num_envs, self.action_dim = len(self._envs), len(space.low)
        self.obs_dim = len(self._envs[0].observation_space.low)

    def reset(self) -> Array:
        """Start a new episode everywhere -> obs (n, d). The first time, every environment is seeded."""
        seeds: Sequence[int | None] = self._pending or [None] * self.num_envs
        self._pending, self._started = [], True
        return np.array([env.reset(seed=seed)[0] for env, seed in zip(self._envs, seeds, strict=True)], np.float32)

    def step(self, actions: Any) -> Step:
        """Clip the actions (n, a) to the bounds, where there are any, and take them; episodes that end start anew."""
        if not self._started:
            raise RuntimeError("the task has not started: call reset() before step().")
        actions = bounded(actions, self.action_low, self.action_high, self.num_envs).astype(self._action_dtype)
        results = [env.step(action) for env, action in zip(self._envs, actions, strict=True)]
        states, rewards, terminated, truncated, _ = zip(*results, strict=True)
        next_states = obs = np.array(states, np.float32)
        dense, ended, limited = np.array(rewards, np.float32), np.array(terminated, bool), np.array(truncated, bool)
        limited &= ~ended
        done = ended | limited
        if done.any():
            obs = next_states.copy()
            for index in np.flatnonzero(done):
                obs[index] = self._envs[index].reset()[0]
        return Step(obs, next_states, dense, dense, ended, limited)

    def state_dict(self) -> State:
        """How often the run was resumed; Gymnasium has no way to ask for an environment's state."""
        return {"generation": np.array(self._generation, np.int64)}

    def load_state_dict(self, state: Mapping[str, NDArray[Any]]) -> Array:
        """Start new episodes, other ones than before -> the observations to act on."""
        self._generation = int(state["generation"]) + 1
        self._pending = env_seeds(self._seeds, self._envs_per_seed, self._generation)
        return self.reset()

    def render(self, index: int = 0) -> NDArray[np.uint8]:
        """A picture (height, width, 3) of one environment."""
        if self._envs[index].render_mode is None:
            raise RuntimeError("this task was made without pictures: use make(..., render=True).")
        return np.asarray(self._envs[index].render(), np.uint8)

    def close(self) -> None:
        """Close the environments."""
        for env in self._envs:
            env.close()


def _make_env(env_id: str, kwargs: Mapping[str, Any]) -> Any:
    gymnasium = require("gymnasium", "train")
    try:
        env = gymnasium.make(env_id, **{key: value for key, value in kwargs.items() if value is not None})
    except gymnasium.error.Error as error:
        raise ValueError(f"the task {PREFIX}{env_id} cannot be made: {error}") from error
    spaces = {"observations": env.observation_space, "actions": env.action_space}
    for what, space in spaces.items():
        if not isinstance(space, gymnasium.spaces.Box) or len(space.shape) != 1:
            raise ValueError(
                f"{PREFIX}{env_id} has {what} {space}; a flat Box with one axis is needed. Register a version of it "
                f"wrapped by gymnasium.wrappers.FlattenObservation, or choose an environment with continuous actions."
            )
    return env
