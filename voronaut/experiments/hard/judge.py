"""Scores: the exploiters of all runs are evaluated beside the training, in a thread that shares nothing with it."""

import time
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from voronaut.experiments.hard.settings import EPISODES, EVALUATIONS, LAST
from voronaut.tasks.factory import make
from voronaut.training import policy
from voronaut.training.config import Config
from voronaut.training.off_policy import SACTrainer

Returns = NDArray[np.float64]
Evaluations = list[list[Any]]  # [steps, returns of every run]


def judged(total: int) -> list[int]:
    """The turns after which exploiters are evaluated: evenly in the last tenth, the last turn included."""
    return [max(1, int(np.ceil(total * (1 - LAST + LAST * i / EVALUATIONS) - 1e-9))) for i in range(1, EVALUATIONS + 1)]


class Judge:
    """Evaluates policies as they are in their files; episodes have seeds of their own, mean actions need no chance."""

    def __init__(self, config: Config, work: Path) -> None:
        self.config = config
        self.folders = [work / name for name in config.folders()]
        self.pool = ThreadPoolExecutor(1)
        self.pending: list[tuple[int, float, Future[Returns]]] = []  # turn, when it was asked for
        self.took = 0.0

    def __enter__(self) -> "Judge":
        return self

    def __exit__(self, *_: object) -> None:
        self.pool.shutdown(cancel_futures=True)

    def begin(self, trainer: SACTrainer) -> None:
        """Take the policies as they are now, and begin."""
        for each in self.folders:
            each.mkdir(parents=True, exist_ok=True)
        trainer.save_policies(self.folders)
        act = policy.load_many(self.folders)
        number = judged(trainer.total).index(trainer.done) + 1
        self.pending.append((trainer.done, time.monotonic(), self.pool.submit(self._timed, act, number)))

    def left(self) -> float:
        """About the seconds until all that was begun is over: none is told to take less than it has taken."""
        now = time.monotonic()
        return sum(max(self.took, now - asked) for _, asked, future in self.pending if not future.done())

    def settle(self, evaluations: Evaluations) -> None:
        """Wait for what was begun, and write it down."""
        for turn, _, future in self.pending:
            returns = [[round(float(x), 2) for x in run] for run in future.result()]
            evaluations.append([turn * self.config.rollout, returns])
        self.pending = []

    def _timed(self, act: policy.Policy, number: int) -> Returns:
        started = time.monotonic()
        returns = evaluate(self.config, act, number)
        self.took = time.monotonic() - started
        return returns


def evaluate(config: Config, act: policy.Policy, number: int) -> Returns:
    """(runs, episodes) returns of all runs' mean actions, side by side; evaluation `number` has its own episodes."""
    seeds = [1_000_000 * number + seed for _, seed in config.runs]
    task = make(config.task, seeds, EPISODES, threshold=config.threshold, backend=config.backend)

    def flat(observations: NDArray[Any], rng: Any = None) -> NDArray[np.float64]:
        return act(observations.reshape(len(seeds), EPISODES, -1)).reshape(len(observations), -1)

    try:
        return policy.returns(flat, task).reshape(len(seeds), EPISODES)
    finally:
        task.close()
