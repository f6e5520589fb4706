"""Any Gymnasium environment with flat Box observations and Box or Discrete actions: `gym:ID`, or what makes one."""

import importlib
import inspect
import operator
import textwrap
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any

import numpy as np
from numpy.typing import NDArray

from voronaut.helpers.missing import require
from voronaut.tasks.base import Array, State, Step, bounded, env_seeds

PREFIXES = ("gym:", "env:")  # an id; module:name of a function that makes an environment
_FUNCTIONS: dict[str, Callable[..., Any]] = {}
HOW = "In Python: vn.train(lambda: Wrapper(gymnasium.make(ID)), out=...)."


class GymTask:
    """Environments stepped one after the other; their own rewards, ends and limits. No threshold."""

    resumes_exactly = False

    def __init__(
        self,
        name: str,
        seeds: Sequence[int],
        envs_per_seed: int = 16,
        *,
        episode_steps: int | None = None,
        render: bool = False,
    ) -> None:
        self._name, self._seeds, self._envs_per_seed, self._generation = name, seeds, envs_per_seed, 0
        self._pending = env_seeds(seeds, envs_per_seed)
        self._started = False
        self._envs = [_make_env(name, episode_steps, render) for _ in self._pending]
        if len({id(env.unwrapped) for env in self._envs}) < len(self._envs):
            raise ValueError(f"{name} gave the same environment twice; it must make a new one each time.")
        space = self._envs[0].action_space
        self._action_dtype, self.choices = space.dtype, int(getattr(space, "n", 0))
        low, high = ([space.start], [space.start + space.n - 1]) if self.choices else (space.low, space.high)
        self.action_low, self.action_high = np.array(low, np.float64), np.array(high, np.float64)
        self.num_envs, self.action_dim = len(self._envs), len(low)
        self.obs_dim = len(self._envs[0].observation_space.low)

    def reset(self) -> Array:
        """Start a new episode everywhere -> obs (n, d). The first time, every environment is seeded."""
        seeds: Sequence[int | None] = self._pending or [None] * self.num_envs
        self._pending, self._started = [], True
        return self._states([self._reset(index, seed) for index, seed in enumerate(seeds)])

    def step(self, actions: Any) -> Step:
        """Clip the actions (n, a) to the bounds, where there are any, and take them; episodes that end start anew."""
        if not self._started:
            raise RuntimeError("the task has not started: call reset() before step().")
        if self.choices:
            actions = np.reshape(actions, (-1, 1))
        actions = bounded(actions, self.action_low, self.action_high, self.num_envs).astype(self._action_dtype)
        if self.choices:
            actions = actions[:, 0]
        results = [env.step(action) for env, action in zip(self._envs, actions, strict=True)]
        if any(len(result) != 5 for result in results):
            raise ValueError(f"{self._name}: step must give observation, reward, terminated, truncated and info.")
        states, rewards, terminated, truncated, _ = zip(*results, strict=True)
        next_states = obs = self._states(states)
        dense = self._floats("a reward", rewards, ())
        ended, limited = np.array(terminated, bool), np.array(truncated, bool)
        limited &= ~ended
        done = ended | limited
        if done.any():
            obs = next_states.copy()
            for index in np.flatnonzero(done):
                obs[index] = self._states([self._reset(int(index))])[0]
        return Step(obs, next_states, dense, dense, ended, limited)

    def _reset(self, index: int, seed: int | None = None) -> Any:
        """A new episode's first observation."""
        given = self._envs[index].reset(seed=seed)
        if not isinstance(given, tuple) or len(given) != 2:
            raise ValueError(f"{self._name}: reset must give an observation and info, as a tuple.")
        return given[0]

    def _states(self, given: Sequence[Any]) -> Array:
        return self._floats("an observation", given, (self.obs_dim,))

    def _floats(self, what: str, given: Sequence[Any], shape: tuple[int, ...]) -> Array:
        """What environments gave, (n, …) float32; ValueError where it is of another shape, or not finite."""
        with suppress(TypeError, ValueError):
            found = np.array(given, np.float32)
            if found.shape[1:] == shape and np.isfinite(found).all():
                return found
        bad = next((one for one in given if not _fits(one, shape)), given)
        wanted = f"{shape[0]} finite numbers, as its space says" if shape else "a finite number"
        raise ValueError(f"{self._name} gave {what} that is not {wanted}: {textwrap.shorten(repr(bad), 120)}.")

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
            raise RuntimeError(
                "this task was made without pictures: use make(..., render=True). A function that makes an environment "
                "needs a parameter `render_mode` for that."
            )
        gymnasium = require("gymnasium", "train")
        try:
            return np.asarray(self._envs[index].render(), np.uint8)
        except gymnasium.error.DependencyNotInstalled as error:
            raise ImportError(f"Gymnasium cannot draw this environment: {error}") from error

    def close(self) -> None:
        """Close the environments."""
        for env in self._envs:
            env.close()


def _fits(given: Any, shape: tuple[int, ...]) -> bool:
    with suppress(TypeError, ValueError):
        found = np.array(given, np.float32)
        return found.shape == shape and bool(np.isfinite(found).all())
    return False


def name_of(function: Callable[..., Any]) -> str:
    """env:module:name of a function or class that makes environments, which is kept under that name."""
    name = getattr(function, "__qualname__", type(function).__qualname__)
    full = f"{PREFIXES[1]}{getattr(function, '__module__', None)}:{name}"
    _FUNCTIONS[full] = function
    return full


def _function(name: str) -> Callable[..., Any]:
    """What `name_of` named, here or in another process that can import it."""
    if name in _FUNCTIONS:
        return _FUNCTIONS[name]
    module, _, path = name.removeprefix(PREFIXES[1]).partition(":")
    try:
        found: Callable[..., Any] = operator.attrgetter(path)(importlib.import_module(module))
        if not callable(found):
            raise ValueError("it is no function")
        return found
    except (ImportError, AttributeError, ValueError) as error:
        raise ValueError(
            f"the task {name} cannot be found from here: {error}. A function needs a name in a module that can be "
            "imported (see PYTHONPATH). Without one, use the policy in a loop of your own: vn.load_policy."
        ) from error


def _make_env(name: str, episode_steps: int | None, render: bool) -> Any:
    gymnasium = require("gymnasium", "train")
    if name.startswith(PREFIXES[1]):
        env = _call(name, _function(name), gymnasium, render)
        env = env if episode_steps is None else gymnasium.wrappers.TimeLimit(env, episode_steps)
    else:
        kwargs = {"max_episode_steps": episode_steps, "render_mode": "rgb_array" if render else None}
        try:
            env_id = name.removeprefix(PREFIXES[0])
            env = gymnasium.make(env_id, **{key: value for key, value in kwargs.items() if value is not None})
        except gymnasium.error.Error as error:
            raise ValueError(f"the task {name} cannot be made: {error}") from error
    _check_spaces(name, env, gymnasium.spaces)
    return env


def _call(name: str, function: Callable[..., Any], gymnasium: Any, render: bool) -> Any:
    """A new environment, one that draws if the function knows a `render_mode`."""
    known: Mapping[str, inspect.Parameter] = {}
    with suppress(ValueError):  # some that are not written in Python have no signature
        known = inspect.signature(function).parameters
    given = {"render_mode": "rgb_array"} if render and "render_mode" in known else {}
    optional = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    needed = [key for key, each in known.items() if each.default is each.empty and each.kind not in optional]
    if set(needed) - set(given):
        raise ValueError(f"{name} is called without arguments and needs {', '.join(needed)}: give them with a lambda.")
    env = function(**given)
    if not isinstance(env, gymnasium.Env):
        raise ValueError(f"{name} must make one gymnasium.Env (many are run side by side here); got {type(env)}.")
    return env


def _check_spaces(name: str, env: Any, spaces: Any) -> None:
    """ValueError, with the wrapper that helps, unless observations are a flat Box and actions that or Discrete."""
    seen, done = env.observation_space, env.action_space
    if not isinstance(seen, spaces.Box) or len(seen.shape) != 1:
        picture = isinstance(seen, spaces.Box) and len(seen.shape) > 1
        advice = (
            "Flatten what is small with gymnasium.wrappers.FlattenObservation; of pictures, cluster features in a loop "
            "of your own: vn.KME(dim, features=...)"
            if picture
            else "Wrap it in gymnasium.wrappers.FlattenObservation (of a Dict, FilterObservation chooses the keys)"
        )
        raise ValueError(f"{name} has observations {seen}; a flat Box with one axis is needed. {advice}. {HOW}")
    if not isinstance(done, spaces.Discrete) and not (isinstance(done, spaces.Box) and len(done.shape) == 1):
        raise ValueError(
            f"{name} has actions {done}; Discrete or a flat Box with one axis is needed. Wrap it in "
            f"gymnasium.wrappers.TransformAction. {HOW}"
        )
    if 0 in (*seen.shape, *done.shape):
        raise ValueError(f"{name} has observations {seen} and actions {done}; at least one number of each is needed.")
