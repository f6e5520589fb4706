"""When a rollout is paid for and how it is absorbed: Algorithm 2, Algorithm 1, and what lies between.

Algorithm 2 pays all states of a rollout against the clusters as they are, then absorbs them in shuffled order.
Algorithm 1 pays and absorbs state by state, as they came. A bonus needs a `step` for anything but Algorithm 2.
"""

from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from voronaut.bonuses.stack import Stack

OPTION, USUAL = "absorb", "shuffled"


class Way(NamedTuple):
    """How a rollout meets a bonus."""

    online: bool  # each state is paid when it is absorbed; else all are paid before
    shuffled: bool


WAYS = {
    USUAL: Way(online=False, shuffled=True),  # Algorithm 2
    "in-order": Way(online=False, shuffled=False),
    "online": Way(online=True, shuffled=False),  # Algorithm 1
    "online-shuffled": Way(online=True, shuffled=True),
}


def check(name: Any, replay: Any = 0) -> str:
    """The name of a way, or a ValueError."""
    if name not in WAYS:
        raise ValueError(f"{OPTION} must be {', '.join(WAYS)}; got {name!r}.")
    if name != USUAL and replay:
        raise ValueError(f"{OPTION}={name} absorbs what comes and nothing else; leave out replay={replay}.")
    return str(name)


def pay(way: Way, bonuses: Stack, states: NDArray[Any], rollout: int) -> NDArray[Any]:
    """(runs, t, n, d) -> (runs, t, n). Online this is also when the bonuses learn."""
    return _walk(bonuses, states, _orders(way, bonuses, states, rollout)) if way.online else bonuses.rewards(states)


def absorb(way: Way, bonuses: Stack, states: NDArray[Any], rollout: int) -> None:
    """Let the bonuses learn from (runs, t, n, d), unless they did when they paid."""
    if way == WAYS[USUAL]:
        bonuses.update(states)
    elif not way.online:
        _walk(bonuses, states, _orders(way, bonuses, states, rollout))


def _orders(way: Way, bonuses: Stack, states: NDArray[Any], rollout: int) -> list[NDArray[np.int64]]:
    """In which order each run's states are taken: as they came, or drawn from (seed, rollout) alone."""
    size = int(np.prod(states.shape[1:-1]))
    if not way.shuffled:
        return [np.arange(size)] * len(states)
    seeds = [member.settings.seed for member in bonuses.members]  # type: ignore[attr-defined]
    return [np.random.default_rng([seed, rollout, 3]).permutation(size) for seed in seeds]


def _walk(bonuses: Stack, states: NDArray[Any], orders: list[NDArray[np.int64]]) -> NDArray[Any]:
    """Algorithm 1 for every run; each reward goes back to its own state."""

    def step(member: Any, own: NDArray[Any], order: NDArray[np.int64]) -> NDArray[Any]:
        flat = own.reshape(-1, own.shape[-1])
        paid = np.empty(len(flat), np.float32)
        paid[order] = member.step(flat[order])
        return paid.reshape(own.shape[:-1])

    with ThreadPoolExecutor(bonuses.threads) as pool:
        return np.stack(list(pool.map(step, bonuses.members, states, orders)))
