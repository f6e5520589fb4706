"""The tasks on envpool: the same physics in C++ threads, which show no state. What is saved is how they got there."""

import importlib
import sys
from collections.abc import Mapping, Sequence
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from voronaut.helpers.machine import cores
from voronaut.helpers.missing import require
from voronaut.tasks.backends.tape import Tape
from voronaut.tasks.base import Array, State, Step, bounded, check_fits, env_seeds, sparse
from voronaut.tasks.table import EPISODE_STEPS, Task


class EnvpoolTask:
    """One pool for all runs. Speaks to the pool's C++ side directly: its Python side builds trees at every step."""

    choices = 0
    resumes_exactly = True  # unless what was loaded could not be played again to the same bits

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
        self.num_envs = len(seeds) * envs_per_seed
        self._ids = np.arange(self.num_envs, dtype=np.int32)
        self._pool = self._make_pool()
        bounds = self._pool.action_space
        self.action_low, self.action_high = (bound.astype(np.float64) for bound in (bounds.low, bounds.high))
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
        self._tape = Tape(self.num_envs, self.action_dim)
        self._obs: Array | None = None  # the last that was given

    def reset(self) -> Array:
        """Start a new episode everywhere -> obs (n, d)."""
        obs = np.empty((self.num_envs, self.obs_dim), np.float32)
        self._restart(self._ids, obs)
        self._obs = obs.copy()
        return obs

    def step(self, actions: Any) -> Step:
        """Clip the actions (n, a) to the bounds and take them; episodes that end start anew."""
        self.begin(actions)
        return self.finish()

    def begin(self, actions: Any) -> None:
        """Clip the actions (n, a) to the bounds and let the pool's threads take them."""
        if self._obs is None:
            raise RuntimeError("the task has not started: call reset() before step().")
        actions = bounded(actions, self.action_low, self.action_high, self.num_envs)
        self._tape.step(actions)
        self._pool._send([self._ids, self._ids, actions])

    def finish(self) -> Step:
        """What came of it. No thread of Python runs while the pool is waited for: it does not release the GIL."""
        state = self._pool._recv()
        next_states = obs = self._flat(state)
        dense, done, truncated = state[self._reward], state[self._done], state[self._trunc]
        if done.any():  # reset now: the pool's own autoreset would swallow an action and repeat a reward
            obs = next_states.copy()
            self._restart(self._ids[done], obs)
        self._obs = obs
        return Step(obs, next_states, sparse(dense, self._threshold), dense, done & ~truncated, truncated)

    def state_dict(self) -> State:
        """Resets and actions since, what came of them, and how often new episodes had to be started."""
        before = {"generation": np.array(self._generation, np.int64)}
        return before if self._obs is None else before | self._tape.state_dict() | {"obs": self._obs.copy()}

    def load_state_dict(self, state: Mapping[str, NDArray[Any]]) -> Array:
        """Play the episodes under way again -> the observations to act on.

        If that does not give what it gave before (another envpool, another processor), or the state is of a version
        that kept no actions, start new episodes, other ones than before.
        """
        each, obs = np.zeros(self.num_envs), np.zeros((self.num_envs, self.obs_dim))
        played = {"resets": each, "begun": each, "obs": obs} if "resets" in state else {}
        check_fits(state, {"generation": np.zeros(()), **played})
        if played:
            self._start(int(state["generation"]))
            self._obs = self._replay(state)
            self.resumes_exactly = np.array_equal(self._obs, state["obs"])
            if self.resumes_exactly:
                return self._obs.copy()
        self.resumes_exactly = False
        self._start(int(state["generation"]) + 1)
        return self.reset()

    def render(self, index: int = 0) -> NDArray[np.uint8]:
        """Refused: pictures are dm_control's."""
        raise RuntimeError("envpool tasks give no pictures: use make(..., backend='dm_control', render=True).")

    def close(self) -> None:
        """Free the environments and their threads."""
        self._pool = None

    def _start(self, generation: int) -> None:
        self._generation, self._tape = generation, Tape(self.num_envs, self.action_dim)
        self._pool = None  # its threads end before others begin
        self._pool = self._make_pool()

    def _make_pool(self) -> Any:
        words = (self._task.domain, *self._task.task.split("_"))
        return _registration().make_gymnasium(
            "".join(word.capitalize() for word in words) + "-v1",
            num_envs=self.num_envs,
            seed=env_seeds(self._seeds, self._envs_per_seed, self._generation),
            num_threads=min(self.num_envs, self._threads or cores()),
            max_episode_steps=self._episode_steps,
        )

    def _replay(self, state: Mapping[str, NDArray[Any]]) -> Array:
        obs = np.empty((self.num_envs, self.obs_dim), np.float32)

        def act(ids: NDArray[np.int32], actions: NDArray[np.float64]) -> None:
            self._pool._send([ids, ids, actions])
            given = self._pool._recv()
            obs[given[self._env_id]] = self._flat(given)

        again = Tape(self.num_envs, self.action_dim)
        again.load_state_dict(state)
        again.replay(lambda ids: self._restart(ids, obs), act)
        self._tape = again
        return obs

    def _restart(self, ids: NDArray[np.int32], obs: Array) -> None:
        self._tape.reset(ids)
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
