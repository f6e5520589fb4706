"""Environments and bonuses whose every number is known beforehand."""

from collections.abc import Callable, Sequence
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from voronaut.conformance import Walk


class WalkEnv(gymnasium.Env[Any, Any]):
    """A `Walk` as a Gymnasium environment. Resetting a fresh episode again does not start another one."""

    observation_space = spaces.Box(-np.inf, np.inf, (4,), np.float32)
    action_space = spaces.Box(-1, 1, (1,), np.float32)

    def __init__(self, walk: Walk | int = 0, discrete: bool = False) -> None:
        self.walk = Walk(walk) if isinstance(walk, int) else walk
        if discrete:
            self.action_space = spaces.Discrete(3)  # type: ignore[assignment]

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        if self.walk.episode < 0 or self.walk.time > 0:
            self.walk.reset()
        return self.observe(), {}

    def step(self, action: Any) -> Any:
        _, reward, terminated, truncated = self.walk.step()
        return self.observe(), reward, terminated, truncated, {}

    def observe(self) -> Any:
        return self.walk.state()

    def action_masks(self) -> NDArray[np.bool_]:
        return np.array([True, False, True])


class DictWalkEnv(WalkEnv):
    """The same state in two parts, and a table."""

    observation_space = spaces.Dict(  # type: ignore[assignment]
        {
            "who": spaces.Box(-np.inf, np.inf, (1,), np.float32),
            "rest": spaces.Box(-np.inf, np.inf, (3,), np.float32),
            "table": spaces.Box(0, 255, (2, 2), np.float32),
        }
    )

    def observe(self) -> Any:
        state = self.walk.state()
        return {"who": state[:1], "rest": state[1:], "table": np.full((2, 2), self.walk.time, np.float32)}


class PictureEnv(WalkEnv):
    """Pictures of (walk, episode, step, 1) in their first four pixels."""

    observation_space = spaces.Box(0, 255, (8, 8, 3), np.uint8)

    def observe(self) -> Any:
        picture = np.zeros((8, 8, 3), np.uint8)
        picture[0, :4, 0] = self.walk.state()
        return picture


def corner(pictures: Any) -> Any:
    """The state in a batch of pictures."""
    return pictures[:, 0, :4, 0].astype(np.float32)


def walks(kind: type[WalkEnv] = WalkEnv, count: int = 3, wrap: Callable[[Any], Any] = lambda env: env) -> Sequence[Any]:
    """Functions that make environments of walks 0, 1, …"""
    return [lambda i=i: wrap(kind(i)) for i in range(count)]


class Spy:
    """Pays the sum of a state's numbers; writes down what it is asked, in order."""

    dim = 4

    def __init__(self) -> None:
        self.calls: list[tuple[str, NDArray[Any]]] = []

    def rewards(self, next_states: Any) -> Any:
        self.calls.append(("rewards", np.array(next_states)))
        return np.asarray(next_states).sum(axis=-1)

    def update(self, next_states: Any) -> None:
        self.calls.append(("update", np.array(next_states)))

    def metrics(self) -> dict[str, float]:
        return {"entropy": float(len(self.calls))}

    def state_dict(self) -> dict[str, NDArray[Any]]:
        return {"calls": np.array(len(self.calls))}

    def load_state_dict(self, state: Any) -> None:
        pass

    def seen(self, kind: str = "rewards") -> list[NDArray[Any]]:
        return [states for name, states in self.calls if name == kind]
