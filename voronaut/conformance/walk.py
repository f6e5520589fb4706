"""The world an adapter is tried in: walks whose every state is known beforehand, and a bonus that tells them apart."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
WALKS = 3


class Walk:
    """An environment without a will of its own: actions do nothing, so a host of any policy walks the same way.

    A state is (walk, episode, step, 1), whole numbers all, never twice the same. Episodes last `length` steps; the even
    ones end by termination, the odd ones by truncation. Every step pays 1/4, and the last one of an episode 1 more.
    """

    dim = 4

    def __init__(self, number: int) -> None:
        self.number, self.length = number, 4 + number
        self.episode, self.time, self.steps = -1, 0, 0

    def reset(self) -> NDArray[np.float32]:
        """The first state of the next episode; a second reset before any step changes nothing."""
        if self.time > 0 or self.episode < 0:
            self.episode, self.time = self.episode + 1, 0
        return self.state()

    def step(self) -> tuple[NDArray[np.float32], float, bool, bool]:
        """Next state, extrinsic reward, terminated, truncated. After an end the host must reset."""
        self.time, self.steps = self.time + 1, self.steps + 1
        end = self.time == self.length
        return self.state(), 0.25 + end, end and self.episode % 2 == 0, end and self.episode % 2 == 1

    def state(self) -> NDArray[np.float32]:
        """Where the walk stands."""
        return np.array([self.number, self.episode, self.time, 1], np.float32)


class Toll:
    """A bonus whose pay is a number of its own for every state of every walk; it learns what it was shown."""

    dim = Walk.dim

    def __init__(self, price: float = 1.0) -> None:
        self.price = price
        self.shown = np.zeros(5)  # the number of states, and their sum weighted so that no exchange goes unnoticed

    def rewards(self, next_states: Any) -> Floats:
        """(..., 4) -> (...,) between 1 and 2, times the price."""
        return self.price * number_of(np.asarray(next_states))

    def update(self, next_states: Any) -> None:
        """Add up the states, each weighted by its number."""
        states = np.asarray(next_states, np.float64).reshape(-1, self.dim)
        weighted = (states * number_of(states)[:, None]).sum(axis=0)
        self.shown = self.shown + np.concatenate([[len(states)], weighted])

    def metrics(self) -> dict[str, float]:
        """How many states were learned from."""
        return {"states": float(self.shown[0])}

    def state_dict(self) -> dict[str, NDArray[Any]]:
        """What was shown."""
        return {"shown": self.shown.copy()}

    def load_state_dict(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Take over what was shown to another."""
        self.shown = np.array(state["shown"], np.float64)


def number_of(states: NDArray[Any]) -> Floats:
    """1 + a fraction that scatters (walk, episode, step) over [0, 1)."""
    walk, episode, time = (np.rint(states[..., i]).astype(np.int64) for i in range(3))
    scattered: Floats = ((walk * 7919 + episode * 104729 + time * 1299709 + 12345) * 2654435761 % 2**32) / 2**32
    return 1 + scattered


class Rollout(NamedTuple):
    """What the host saw of one rollout. Row t of column i is step t of walk i, counted from its first reset."""

    rewards: NDArray[Any]  # (t, n) what the learner gets, the bonus included; at least 20 rows
    episode_returns: list[float]  # the extrinsic return of each finished episode, as the host logs it
    advantages: NDArray[Any] | None = None  # (t, n) as the host computed them (unscaled); None: it computes none
    gamma: float = 0.99  # of those advantages
    lam: float = 0.95


class Host(Protocol):
    """A host library with the adapter in it, as an adapter's test presents it; see `check_adapter`."""

    bonus: Any  # the bonus in force now, also after `load`

    def collect(self) -> Rollout:
        """Reset the walks and collect one rollout; return when the bonus has learned from it."""

    def save(self, path: Path) -> None:
        """The host library's own way to save, to this file or this folder (which does not exist yet)."""

    def load(self, path: Path) -> None:
        """The host library's own way to load."""


class Known(NamedTuple):
    """What happens on a walk, by definition: states left, led to, the reset states after ends, and the ends."""

    left: Floats
    led_to: Floats
    reset_to: Floats
    ends: NDArray[np.bool_]


def replay(steps: int) -> Known:
    """The first `steps` steps of every walk: (t, n, 4) states and (t, n) ends."""
    left, led_to, reset_to = (np.zeros((steps, WALKS, Walk.dim)) for _ in range(3))
    ends = np.zeros((steps, WALKS), bool)
    for i in range(WALKS):
        walk = Walk(i)
        state = walk.reset()
        for t in range(steps):
            left[t, i] = state
            state, _, terminated, truncated = walk.step()
            led_to[t, i], ends[t, i] = state, terminated or truncated
            state = walk.reset() if ends[t, i] else state
            reset_to[t, i] = state
    return Known(left, led_to, reset_to, ends)
