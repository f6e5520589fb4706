"""The sparse tasks as Gymnasium environments: what `gymnasium.make` and `gymnasium.make_vec` build."""

import math
from typing import Any

import gymnasium
import numpy as np
from gymnasium.vector import AutoresetMode
from gymnasium.vector.utils import batch_space
from numpy.typing import NDArray

from voronaut.tasks.backends.dm_control import DmControlTask
from voronaut.tasks.backends.maze import MazeTask
from voronaut.tasks.base import Array, VectorTask
from voronaut.tasks.factory import make
from voronaut.tasks.table import EPISODE_STEPS, TOYS, find


class SparseEnv(gymnasium.Env[Array, Array]):
    """One environment on dm_control, or a toy. The limit is Gymnasium's TimeLimit; `info` has the `dense_reward`."""

    metadata = {"render_modes": ["rgb_array"], "render_fps": 50}  # noqa: RUF012 (Gymnasium's own way)

    def __init__(self, task: str, threshold: str = "release", render_mode: str | None = None) -> None:
        self.render_mode = render_mode
        picture = render_mode is not None
        self._task: DmControlTask | MazeTask
        if task in TOYS:
            self._task = MazeTask([0], 1, episode_steps=math.inf)
        else:
            self._task = DmControlTask(find(task), [0], 1, threshold=threshold, episode_steps=math.inf, render=picture)
        self._seeded = False
        self.observation_space, self.action_space = _spaces(self._task)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Array, dict[str, Any]]:
        """Start an episode; without a seed, the first one is seeded by chance."""
        super().reset(seed=seed)
        if seed is not None or not self._seeded:
            self._task.reseed([int(self.np_random.integers(2**31)) if seed is None else seed], 1)
            self._seeded = True
        return self._task.reset()[0], {}

    def step(self, action: Array) -> tuple[Array, float, bool, bool, dict[str, Any]]:
        """Take one action (a,)."""
        step = self._task.step(np.asarray(action)[None])
        info = {"dense_reward": float(step.dense_rewards[0])}
        return step.next_states[0], float(step.rewards[0]), bool(step.terminated[0]), False, info

    def render(self) -> NDArray[np.uint8] | None:
        """A picture (height, width, 3), or None without a render mode."""
        return None if self.render_mode is None else self._task.render()

    def close(self) -> None:
        """Free the environment."""
        self._task.close()


class SparseVectorEnv(gymnasium.vector.VectorEnv[Array, Array, NDArray[Any]]):
    """Many environments on the fastest backend. Ended episodes start anew at once; `info["final_obs"]` is their end."""

    metadata = {"autoreset_mode": AutoresetMode.SAME_STEP}  # noqa: RUF012 (Gymnasium's own way)

    def __init__(
        self,
        task: str,
        num_envs: int = 1,
        *,
        max_episode_steps: int = EPISODE_STEPS,
        threshold: str = "release",
        backend: str = "auto",
        threads: int = 0,
    ) -> None:
        self.num_envs = num_envs
        self._name = task
        self._options: dict[str, Any] = {"threshold": threshold, "backend": backend, "threads": threads}
        self._options["episode_steps"] = max_episode_steps
        self._task = self._make([int(seed) for seed in np.random.SeedSequence().generate_state(num_envs)])
        self.single_observation_space, self.single_action_space = _spaces(self._task)
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)

    def reset(
        self, *, seed: int | list[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Array, dict[str, Any]]:
        """Start episodes everywhere. From one seed, environment i takes seed + i, as always in Gymnasium."""
        if isinstance(seed, int):
            seed = [seed + index for index in range(self.num_envs)]
        if seed is not None:
            chance = np.random.SeedSequence().generate_state(self.num_envs)
            self._task.close()
            self._task = self._make([int(c) if s is None else s for s, c in zip(seed, chance, strict=True)])
        return self._task.reset(), {}

    def step(self, actions: Array) -> tuple[Array, NDArray[Any], NDArray[Any], NDArray[Any], dict[str, Any]]:
        """Take one action (n, a) everywhere."""
        step = self._task.step(actions)
        done = step.terminated | step.truncated
        info: dict[str, Any] = {"dense_reward": step.dense_rewards, "_dense_reward": np.ones_like(done)}
        if done.any():
            final = np.full(self.num_envs, None, dtype=object)
            for index in np.flatnonzero(done):
                final[index] = step.next_states[index]
            info |= {"final_obs": final, "_final_obs": done}
        return step.obs, step.rewards, step.terminated, step.truncated, info

    def close_extras(self, **kwargs: Any) -> None:
        """Free the environments."""
        self._task.close()

    def _make(self, seeds: list[int]) -> VectorTask:
        return make(self._name, seeds, 1, **self._options)


def _spaces(task: VectorTask) -> tuple[Any, Any]:
    observations = gymnasium.spaces.Box(-np.inf, np.inf, (task.obs_dim,), np.float32)
    low, high = task.action_low.astype(np.float32), task.action_high.astype(np.float32)
    return observations, gymnasium.spaces.Box(low, high, dtype=np.float32)
