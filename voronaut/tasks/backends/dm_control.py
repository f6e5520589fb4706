"""The tasks on dm_control: portable, in one process, and resumed bit for bit."""

import copy
import importlib
import logging
import os
import sys
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from voronaut.helpers.missing import pip, require
from voronaut.tasks.backends.render import choose_renderer, frame, impossible
from voronaut.tasks.base import Array, State, Step, bounded, check_fits, env_seeds, sparse
from voronaut.tasks.table import EPISODE_STEPS, Task


class DmControlTask:
    """Environments of the suite side by side. They share one model: loading it takes far longer than copying data."""

    resumes_exactly = True
    choices = 0

    def __init__(
        self,
        task: Task,
        seeds: Sequence[int],
        envs_per_seed: int = 16,
        *,
        threshold: str = "release",
        episode_steps: float = EPISODE_STEPS,
        render: bool = False,
    ) -> None:
        self._threshold = task.threshold(threshold)
        self._episode_steps = episode_steps
        self._render, self._camera = render, task.camera
        randoms = [np.random.RandomState(seed) for seed in env_seeds(seeds, envs_per_seed)]
        self._envs = _environments(task, randoms, render)
        spec = self._envs[0].action_spec()
        self.action_low, self.action_high = spec.minimum.astype(np.float64), spec.maximum.astype(np.float64)
        self.num_envs, self.action_dim = len(self._envs), len(self.action_low)
        self.obs_dim = sum(int(np.prod(part.shape)) for part in self._envs[0].observation_spec().values())
        self._steps = np.zeros(self.num_envs, np.int64)
        self._obs: Array | None = None

    def reset(self) -> Array:
        """Start a new episode everywhere -> obs (n, d)."""
        obs = np.empty((self.num_envs, self.obs_dim), np.float32)
        self._restart(np.arange(self.num_envs), obs)
        self._obs = obs.copy()
        return obs

    def reseed(self, seeds: Sequence[int], envs_per_seed: int) -> None:
        """Start the random numbers of every environment anew; the next reset uses them."""
        for env, seed in zip(self._envs, env_seeds(seeds, envs_per_seed), strict=True):
            env.task.random.seed(seed)

    def step(self, actions: Any) -> Step:
        """Clip the actions (n, a) to the bounds and take them; episodes that end start anew."""
        if self._obs is None:
            raise RuntimeError("the task has not started: call reset() before step().")
        actions = bounded(actions, self.action_low, self.action_high, self.num_envs)
        next_states = np.empty((self.num_envs, self.obs_dim), np.float32)
        dense = np.empty(self.num_envs, np.float32)
        terminated = np.zeros(self.num_envs, np.bool_)
        for index, env in enumerate(self._envs):
            time_step = env.step(actions[index])
            _write(time_step.observation, next_states[index])
            dense[index], terminated[index] = time_step.reward, time_step.last()
        self._steps += 1
        truncated = (self._steps >= self._episode_steps) & ~terminated
        self._obs = self._after(next_states, terminated | truncated)
        return Step(self._obs, next_states, sparse(dense, self._threshold), dense, terminated, truncated)

    def state_dict(self) -> State:
        """Physics, random numbers and step counts of every environment, and the observations to act on."""
        if self._obs is None:
            raise RuntimeError("the task has not started: call reset() before state_dict().")
        randoms = [env.task.random.get_state(legacy=False) for env in self._envs]
        return {
            "physics": np.stack([_physics_state(env.physics) for env in self._envs]),
            "random_keys": np.stack([random["state"]["key"] for random in randoms]),
            "random_positions": np.array([random["state"]["pos"] for random in randoms], np.int64),
            "random_has_gauss": np.array([random["has_gauss"] for random in randoms], np.int64),
            "random_gauss": np.array([random["gauss"] for random in randoms], np.float64),
            "steps": self._steps.copy(),
            "obs": self._obs.copy(),
        }

    def load_state_dict(self, state: Mapping[str, NDArray[Any]]) -> Array:
        """Go on exactly from `state_dict` -> the observations to act on."""
        if self._obs is None:
            self.reset()
        check_fits(state, self.state_dict())
        for index, env in enumerate(self._envs):
            env.task.random.set_state(_random_state(state, index))
            _set_physics_state(env.physics, state["physics"][index])
        self._steps = np.array(state["steps"], np.int64)
        self._obs = np.array(state["obs"], np.float32)
        return self._obs.copy()

    def render(self, index: int = 0) -> NDArray[np.uint8]:
        """A picture (height, width, 3) of one environment."""
        if not self._render:
            raise RuntimeError("this task was made without pictures: use make(..., render=True).")
        return frame(self._envs[index].physics, self._camera)

    def close(self) -> None:
        """Free the environments."""
        for env in self._envs:
            env.physics.free()

    def _after(self, next_states: Array, done: NDArray[np.bool_]) -> Array:
        if not done.any():
            return next_states
        obs = next_states.copy()
        self._restart(np.flatnonzero(done), obs)
        return obs

    def _restart(self, indices: NDArray[np.intp], obs: Array) -> None:
        for index in indices:
            _write(self._envs[index].reset().observation, obs[index])
        self._steps[indices] = 0


def _environments(task: Task, randoms: Sequence[np.random.RandomState], render: bool) -> list[Any]:
    """One environment of the suite per random state, without a time limit of its own."""
    with _quiet():
        suite, control = _import_suite(render)
        kwargs = {"random": randoms[0], "time_limit": float("inf")}
        first = suite.load(task.domain, task.task, task_kwargs=kwargs)
    envs = [first]
    for random in randoms[1:]:
        physics, rules = first.physics.copy(share_model=True), copy.deepcopy(first.task)
        rules.random.set_state(random.get_state())
        envs.append(control.Environment(physics, rules, control_timestep=first.control_timestep()))
    return envs


def _require_suite() -> None:
    """dm_control, or what to do without it."""
    try:
        require("dm_control", "train")
    except ImportError as error:
        if sys.version_info < (3, 13):
            raise
        raise ImportError(
            "dm_control does not install with Python 3.13 and later, because its labmaze has no wheel there. Take "
            f"envpool instead: {pip('fast')}; for pictures an earlier Python."
        ) from error


def _import_suite(render: bool) -> tuple[ModuleType, ModuleType]:
    """dm_control's suite and its control module. Importing them loads an OpenGL library, if MUJOCO_GL names one."""
    _require_suite()
    if render:
        choose_renderer()
    try:
        return importlib.import_module("dm_control.suite"), importlib.import_module("dm_control.rl.control")
    except Exception as error:  # each OpenGL library fails with a class of its own
        if os.environ.get("MUJOCO_GL"):
            raise impossible() from error
        raise


@contextmanager
def _quiet() -> Iterator[None]:
    """Without the words of GLFW about a missing display and of MuJoCo about its older models."""
    logger = logging.getLogger("absl")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logger.setLevel(level)


def _write(observation: Mapping[str, Any], row: Array) -> None:
    np.concatenate(list(observation.values()), axis=None, out=row, casting="same_kind")


def _physics_state(physics: Any) -> NDArray[np.float64]:
    mujoco = require("mujoco", "train")
    kind = mujoco.mjtState.mjSTATE_INTEGRATION
    state = np.empty(mujoco.mj_stateSize(physics.model.ptr, kind), np.float64)
    mujoco.mj_getState(physics.model.ptr, physics.data.ptr, state, kind)
    return state


def _set_physics_state(physics: Any, state: NDArray[np.float64]) -> None:
    """Set the integration state, then redo what the end of a control step does: positions and velocities, no forces."""
    mujoco = require("mujoco", "train")
    mujoco.mj_setState(physics.model.ptr, physics.data.ptr, state, mujoco.mjtState.mjSTATE_INTEGRATION)
    mujoco.mj_step1(physics.model.ptr, physics.data.ptr)


def _random_state(state: Mapping[str, NDArray[Any]], index: int) -> dict[str, Any]:
    return {
        "bit_generator": "MT19937",
        "state": {"key": state["random_keys"][index], "pos": int(state["random_positions"][index])},
        "has_gauss": int(state["random_has_gauss"][index]),
        "gauss": float(state["random_gauss"][index]),
    }
