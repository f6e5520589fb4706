"""A fair sample of a stream in constant memory."""

from typing import Any

import numpy as np
from numpy.typing import NDArray


class Reservoir:
    """Every state of the stream is in the sample with the same probability (Vitter's algorithm R).

    Its randomness is a hash of the seed and the state's place in the stream: nothing to save but the sample, and the
    same sample however the stream is cut into batches.
    """

    def __init__(self, size: int, dim: int, dtype: Any, seed: int) -> None:
        self.size, self.seen = size, 0
        self._key = np.random.SeedSequence([seed, 1]).generate_state(1, np.uint64)[0]
        self._rows = np.empty((size, dim), dtype)

    @property
    def sample(self) -> NDArray[Any]:
        """The states kept, (min(seen, size), dim). A view."""
        return self._rows[: min(self.seen, self.size)]

    def add(self, states: NDArray[Any]) -> None:
        """Take in the next states of the stream (n, dim)."""
        place = self.seen + np.arange(len(states))
        slot = np.where(place < self.size, place, (uniform(self._key, place) * (place + 1)).astype(np.int64))
        kept = slot < self.size
        self._rows[slot[kept]] = states[kept]  # NumPy lets the last of equal slots win, as the algorithm wants
        self.seen += len(states)

    def draw(self, count: int, seed: list[int]) -> NDArray[Any]:
        """States of the sample, with repetition (count, dim); none before there are any."""
        return self.sample[np.random.default_rng(seed).integers(0, max(len(self.sample), 1), count if self.seen else 0)]

    def restore(self, sample: NDArray[Any], seen: int) -> None:
        """Become what was saved."""
        self.seen = seen
        self._rows[: len(sample)] = sample


def uniform(key: np.uint64, place: NDArray[np.int64]) -> NDArray[np.float64]:
    """Uniform numbers in [0, 1), one per place: SplitMix64 of key + place."""
    z = key + (place.astype(np.uint64) + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    z ^= z >> np.uint64(31)
    return (z >> np.uint64(11)).astype(np.float64) * 2.0**-53
