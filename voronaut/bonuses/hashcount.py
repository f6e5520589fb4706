"""Counts of hashed states (SimHash, Tang et al. 2017).

In NumPy, not JAX: a rollout is one product with a (dim, 32) matrix and one gather from a table of a million counts,
milliseconds on one thread, and a scatter into a table is what accelerators do worst.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from voronaut.bonuses.base import State
from voronaut.bonuses.saving import Saved, check_state
from voronaut.bonuses.states import check_on_bad, like, read
from voronaut.bonuses.turns import Turns, in_turn

GOLDEN = np.uint64(0x9E3779B97F4A7C15)  # 2⁶⁴ / golden ratio, odd: spreads codes over a table of 2^b slots


class HashCount(Saved):
    """r(s) = 1 / √(n(φ(s)) + 1), φ(s) = sign(A s), A Gaussian of shape (bits, dim), n the visits before this batch.

    Counts live in a table of 2^`table_bits` slots, so memory is fixed. Codes that fall on one slot share its count and
    are paid too little: with m codes visited, a new code meets a taken slot with probability 1 − exp(−m / slots).
    Angles from the origin are what is hashed: states that share a large offset share a code (subtract it first).
    """

    learns = True
    pays = True

    def __init__(self, dim: int, *, seed: int = 0, bits: int = 32, table_bits: int = 20, on_bad: str = "raise") -> None:
        if not 1 <= bits <= 64:
            raise ValueError(f"bits must be between 1 and 64; got {bits}. Tang et al. use 16 to 512, most often 32.")
        if not 1 <= table_bits <= 30:
            raise ValueError(f"table_bits must be between 1 and 30 (8 bytes a slot); got {table_bits}.")
        self.dim, self.seed, self.bits, self.table_bits = dim, seed, bits, table_bits
        self.on_bad = check_on_bad(on_bad)
        self._directions = np.random.default_rng(seed).standard_normal((dim, bits))
        self._counts = np.zeros(2**table_bits, np.int64)
        self._bad = 0
        self._turns = Turns()

    def codes(self, states: NDArray[np.floating[Any]]) -> NDArray[np.uint64]:
        """sign(A s) as the bits of an integer: (n, dim) -> (n,). Zero counts as positive."""
        powers = np.uint64(1) << np.arange(self.bits, dtype=np.uint64)
        signs = states @ self._directions >= 0
        codes: NDArray[np.uint64] = np.where(signs, powers, np.uint64(0)).sum(axis=1, dtype=np.uint64)
        return codes

    def slots(self, states: NDArray[np.floating[Any]]) -> NDArray[np.int64]:
        """Where in the table each state is counted; codes of at most `table_bits` bits never collide."""
        codes = self.codes(states)
        if self.bits > self.table_bits:
            codes = (codes * GOLDEN) >> np.uint64(64 - self.table_bits)
        return codes.astype(np.int64)

    @in_turn
    def rewards(self, next_states: Any) -> Any:
        """(..., dim) -> (...,): 1 for a code never visited, less with every visit."""
        batch = read(next_states, self.dim, on_bad=self.on_bad, dtype=np.float64)
        counts = self._counts[self.slots(batch.states)]
        return like(next_states, batch.restore((1 / np.sqrt(counts + 1.0)).astype(np.float32)))

    @in_turn
    def update(self, next_states: Any) -> None:
        """Count every state of the batch, repetitions too."""
        batch = read(next_states, self.dim, on_bad=self.on_bad, dtype=np.float64)
        np.add.at(self._counts, self.slots(batch.states), 1)
        self._bad += batch.bad

    @in_turn
    def metrics(self) -> dict[str, float]:
        """States counted, slots in use, and the chance that a new code meets a taken slot."""
        taken = int(np.count_nonzero(self._counts))
        return {
            "states": float(self._counts.sum()),
            "codes": float(taken),
            "full": taken / len(self._counts),
            "bad_states": float(self._bad),
        }

    @in_turn
    def state_dict(self) -> State:
        """The table, the directions and how many states were set aside."""
        bad = np.asarray(self._bad, np.int64)
        return {"counts": self._counts.copy(), "directions": self._directions.copy(), "bad": bad}

    @in_turn
    def load_state_dict(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Take over a table of the same size."""
        check_state(state, self.state_dict(), "HashCount")
        if np.min(state["counts"]) < 0 or state["bad"] < 0:
            raise ValueError("counts and bad must not be negative. Nothing was loaded.")
        if state["counts"].sum(dtype=float) >= 2**62:  # a float does not wrap around
            raise ValueError("counts must add up to less than 2⁶². Nothing was loaded.")
        self._counts, self._directions = np.array(state["counts"]), np.array(state["directions"])
        self._bad = int(state["bad"])
