"""Who drives which environment of a pair."""

from typing import Any

import numpy as np
from numpy.typing import NDArray


class Drivers:
    """Which environments the explorer drives, (n,): the last of several, or the only one for whole episodes."""

    def __init__(self, count: int, share: float) -> None:
        if not 0 < share < 1:
            raise ValueError(f"explorer_share must lie between 0 and 1; got {share}. The default is 0.5.")
        self.share, self.steps, self.explored = float(share), 0, 0
        given = min(max(round(share * count), 1), count - 1)
        self.explorers = np.arange(count) >= count - given
        if count == 1:
            self._next()

    def choose(self, own: NDArray[Any], other: NDArray[Any]) -> NDArray[Any]:
        """(n, …) the explorer's rows of `other` and the exploiter's of `own`."""
        return np.where(self.explorers.reshape(-1, *[1] * (own.ndim - 1)), other, own)

    def step(self, dones: NDArray[Any]) -> None:
        """One step is over: with one environment the next episode is whose share of the steps lags behind."""
        if len(self.explorers) == 1:
            self.steps, self.explored = self.steps + 1, self.explored + int(self.explorers[0])
            if dones[0]:
                self._next()

    def state(self) -> NDArray[np.int64]:
        """For a file."""
        return np.array([self.steps, self.explored], np.int64)

    def restore(self, state: NDArray[np.int64]) -> None:
        """Go on with what `state` gave; the environment begins an episode."""
        self.steps, self.explored = (int(each) for each in state)
        if len(self.explorers) == 1:
            self._next()

    def _next(self) -> None:
        self.explorers = np.array([self.explored < self.share * (self.steps + 1)])
