"""The mean of the recent half of a stream of numbers, and its error, in constant memory."""

import math

import numpy as np
from numpy.typing import NDArray

BLOCKS = 64


class Tally:
    """Sums over blocks of the stream; when there are too many blocks, neighbours are merged."""

    def __init__(self) -> None:
        self._blocks: list[tuple[int, float, float]] = []  # count, sum, sum of squares about 0
        self._size = 1  # chunks per block
        self._open = 0  # chunks in the last block

    def add(self, values: NDArray[np.float64]) -> None:
        """A chunk of the stream."""
        chunk = len(values), float(values.sum()), float((values**2).sum())
        if self._open in (0, self._size):
            if len(self._blocks) == 2 * BLOCKS:
                pairs = zip(self._blocks[::2], self._blocks[1::2], strict=True)
                self._blocks = [(a[0] + b[0], a[1] + b[1], a[2] + b[2]) for a, b in pairs]
                self._size *= 2
            self._blocks.append((0, 0.0, 0.0))
            self._open = 0
        old = self._blocks[-1]
        self._blocks[-1] = old[0] + chunk[0], old[1] + chunk[1], old[2] + chunk[2]
        self._open += 1

    def read(self, share: float = 0.5) -> tuple[float, float, int]:
        """Mean over the latest values, about this share of all, its standard error, and how many values that is.

        The error is the larger of that of independent values and that seen between blocks, so that a stream whose
        neighbours resemble each other is not taken for more than it is.
        """
        window = self._window(share)
        count = sum(n for n, _, _ in window)
        if count == 0:
            return math.nan, math.nan, 0
        mean = sum(s for _, s, _ in window) / count
        spread = max(sum(q for _, _, q in window) / count - mean**2, 0.0)
        error = math.sqrt(spread / count)
        if len(window) >= 8:
            between = sum((s - n * mean) ** 2 for n, s, _ in window) / count**2
            error = max(error, math.sqrt(between * len(window) / (len(window) - 1)))
        return mean, error, count

    def _window(self, share: float) -> list[tuple[int, float, float]]:
        total = sum(n for n, _, _ in self._blocks)
        window: list[tuple[int, float, float]] = []
        for block in reversed(self._blocks):
            if sum(n for n, _, _ in window) >= share * total:
                break
            window.append(block)
        return window
