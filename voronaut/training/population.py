"""The bonuses of all runs: runs of one method share one stack."""

import inspect
import os
import time
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from voronaut.bonuses import bonus_class
from voronaut.bonuses.stack import stack
from voronaut.training import ways
from voronaut.training.checkpoint import nest, part
from voronaut.training.config import Config, Method
from voronaut.training.schedule import weight


class Population:
    """Bonuses of every run, (runs, ...) arrays in and out, in the order of `config.runs`."""

    def __init__(self, config: Config, dim: int) -> None:
        self.config = config
        self.stacks = [self._stack([self._make(m, dim, seed) for seed in config.seeds]) for m in config.methods]
        self.ways = [ways.WAYS[m.params.get(ways.OPTION, ways.USUAL)] for m in config.methods]

    def scales(self, rollout: int) -> NDArray[np.float64]:
        """β of every run in this rollout. The first pays nothing: clusters and predictors know nothing yet."""
        progress = rollout / max(self.config.rollouts - 1, 1)
        return np.array([weight(m.scale, progress) if rollout else 0.0 for m, _ in self.config.runs])

    def pay(self, next_states: NDArray[np.float32], rollout: int) -> tuple[NDArray[np.float32], NDArray[np.float64]]:
        """What every state earns, (runs, t, n), and the seconds that took, by method."""
        paid, took = np.empty(next_states.shape[:-1], np.float32), []
        for way, each, rows in self._groups():
            started = time.perf_counter()
            paid[rows] = ways.pay(way, each, next_states[rows], rollout)
            took.append(time.perf_counter() - started)
        return paid, np.array(took)

    def absorb(self, next_states: NDArray[np.float32], rollout: int) -> NDArray[np.float64]:
        """Let every bonus learn from its own run's states; the seconds that took, by method."""
        took = []
        for way, each, rows in self._groups():
            started = time.perf_counter()
            ways.absorb(way, each, next_states[rows], rollout)
            took.append(time.perf_counter() - started)
        return np.array(took)

    def metrics(self) -> list[dict[str, float]]:
        """Each run's metrics, named <bonus>/<metric>."""
        return [
            {f"{m.kind}/{name}": value for name, value in metrics.items()}
            for m, each in zip(self.config.methods, self.stacks, strict=True)
            for metrics in each.metrics()
        ]

    def members(self) -> list[Any]:
        """The bonus of every run."""
        return [bonus for each in self.stacks for bonus in each.members]

    def state_dict(self) -> dict[str, NDArray[Any]]:
        """All bonuses."""
        arrays: dict[str, NDArray[Any]] = {}
        for index, bonus in enumerate(self.members()):
            arrays |= nest(str(index), bonus.state_dict())
        return arrays

    def load_state_dict(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Take over all bonuses."""
        for index, bonus in enumerate(self.members()):
            bonus.load_state_dict(part(state, str(index)))

    def _make(self, method: Method, dim: int, seed: int) -> Any:
        """A run's bonus; one that can use several threads gets the cores that the other seeds leave."""
        kind = bonus_class(method.kind)
        spare = {"threads": max(1, cores() // len(self.config.seeds))}
        known = inspect.signature(kind.__init__).parameters
        own = {k: v for k, v in method.params.items() if k != ways.OPTION}
        return kind(dim=dim, seed=seed, **{k: v for k, v in spare.items() if k in known} | own)

    def _stack(self, members: list[Any]) -> Any:
        return stack(members, threads=min(len(members), cores()))

    def _groups(self) -> Iterator[tuple[ways.Way, Any, slice]]:
        count = len(self.config.seeds)
        for index, (way, each) in enumerate(zip(self.ways, self.stacks, strict=True)):
            yield way, each, slice(index * count, (index + 1) * count)


def cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
