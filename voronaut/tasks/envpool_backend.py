"""The tasks on envpool: the same physics in C++ threads. Episodes in flight cannot be saved."""

import importlib
import os
import sys
from collections.abc import Mapping, Sequence
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from voronaut.tasks.base import Array, State, Step, bounded, env_seeds, require, sparse
from voronaut.tasks.table import EPISODE_STEPS, Task


class EnvpoolTask:
    """One pool for all runs. Speaks to the pool's C++ side directly: its Python side builds trees at every step."""

    resumes_exactly = False

    def __init__(
        self,
        task: Task,
        seeds: Sequence[int],
        envs_per_seed: int = 16,
        *,
        threshold: str = "release",
        episode_steps: int = EPISODE_STEPS,
        threads: int = 0,
    ) -> None:
        self._task, self._seeds, self._envs_per_seed = task, seeds, envs_per_seed
        self._threshold = task.threshold(threshold)
        self._episode_steps, self._threads = episode_steps, threads
        self._generation = 0
        self._started = False
        self.num_envs = len(seeds) * envs_per_seed
        self._ids = np.arange(self.num_envs, dtype=np.int32)
        self._pool = self._make_pool()
        self.action_low, self.action_high = (bound.astype(np.float64) for bound in _action_bounds(self._pool))
        self.action_dim = len(self.action_low)
        names = list(self._pool._state_keys)
        self._reward, self._done, self._trunc, self._env_id = (
            names.index(name) for name in ("reward", "done", "trunc", "info:env_id")
        )
        sizes = [int(np.prod(self._pool.observation_space[key].shape)) for key in task.keys]
        ends = np.cumsum(sizes)
        self.obs_dim = int(ends[-1])
        parts = zip(task.keys, ends - sizes, ends, strict=True)
        self._parts = [(names.index(f"obs:{key}"), int(start), int(end)) for key, start, end in parts]

    def reset(self) -> Array:
        """Start a new episode everywhere -> obs (n, d)."""
        self._started = True
        obs = np.empty((self.num_envs, self.obs_dim), np.float32)
        self._restart(self._ids, obs)
        return obs

    def step(self, actions: Any) -> Step:
        """Clip the actions (n, a) to the bounds and take them; episodes that end start anew."""
        if not self._started:
            raise RuntimeError("the task has not started: call reset() before step().")
        actions = bounded(actions, self.action_low, self.action_high, self.num_envs)
        self._pool._send([self._ids, self._ids, actions])
        state = self._pool._recv()
        next_states = obs = self._flat(state)
        dense, done, truncated = state[self._reward], state[self._done], state[self._trunc]
        if done.any():  # reset now: the pool's own autoreset would swallow an action and repeat a reward
            obs = next_states.copy()
            self._restart(self._ids[done], obs)
        return Step(obs, next_states, sparse(dense, self._threshold), dense, done & ~truncated, truncated)

    def state_dict(self) -> State:
        """How often the run was resumed; the pool does not show its physics."""
        return {"generation": np.array(self._generation, np.int64)}

    def load_state_dict(self, state: Mapping[str, NDArray[Any]]) -> Array:
        """Start new episodes, other ones than before -> the observations to act on."""
        self._generation = int(state["generation"]) + 1
        self._pool = self._make_pool()
        return self.reset()

    def render(self, index: int = 0) -> NDArray[np.uint8]:
        """Refused: pictures are dm_control's."""
        raise RuntimeError("envpool tasks give no pictures: use make(..., backend='dm_control', render=True).")

    def close(self) -> None:
        """Free the environments and their threads."""
        self._pool = None

    def _make_pool(self) -> Any:
        return _registration().make_gymnasium(
            _pool_id(self._task),
            num_envs=self.num_envs,
            seed=env_seeds(self._seeds, self._envs_per_seed, self._generation),
            num_threads=min(self.num_envs, self._threads or _cores()),
            max_episode_steps=self._episode_steps,
        )

    def _restart(self, ids: NDArray[np.int32], obs: Array) -> None:
        self._pool._reset(ids)
        state = self._pool._recv()
        obs[state[self._env_id]] = self._flat(state)

    def _flat(self, state: Sequence[NDArray[Any]]) -> Array:
        flat = np.empty((len(state[self._env_id]), self.obs_dim), np.float32)
        for place, start, end in self._parts:
            flat[:, start:end] = state[place].reshape(len(flat), -1)
        return flat


def _registration() -> ModuleType:
    """envpool's registry with the suite in it, also of an envpool that was cut down to the suite."""
    try:
        require("envpool", "fast")
    except ModuleNotFoundError:  # its entry module imports every family, also those that were cut away
        sys.modules["envpool.entry"] = ModuleType("envpool.entry")
    importlib.import_module("envpool.mujoco.dmc.registration")
    return importlib.import_module("envpool.registration")


def _pool_id(task: Task) -> str:
    return "".join(word.capitalize() for word in (task.domain, *task.task.split("_"))) + "-v1"


def _action_bounds(pool: Any) -> tuple[NDArray[Any], NDArray[Any]]:
    return pool.action_space.low, pool.action_space.high


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
