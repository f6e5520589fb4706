"""State entropy with a random encoder (Seo et al. 2021): a state far from its neighbours is worth a visit."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from voronaut.bonuses import networks as net
from voronaut.bonuses.base import State
from voronaut.bonuses.saving import Saved, check_state
from voronaut.bonuses.states import check_on_bad, like, read
from voronaut.bonuses.turns import Turns, in_turn

BLOCK = 2048  # rows per encoder pass
PAIRS = 2**20  # distances held at once on a CPU (4 MB)
WIDE_PAIRS = 2**25  # the same on an accelerator (128 MB for each run)
Rows = NDArray[np.float32]


class Frozen(NamedTuple):
    """Encoder and memory as they are, for programs that pay by them."""

    encoder: Any
    stored: Rows
    filled: NDArray[np.int32]
    neighbors: NDArray[np.bool_]  # as many as it is long: a shape is known when a program is compiled


class RE3(Saved):
    """r(s) = log(‖y − y_kNN‖ + 1), y = g(s), g fixed and random, y_kNN the k-th nearest neighbour, k = `neighbors`.

    `memory=0`: neighbours are sought in the batch itself, the state's own row left out (by its place, so a second copy
    of the same state is a neighbour at distance 0); nothing is learned. `memory=N`: neighbours are sought among the
    last N states given to `update` and nowhere else, so a state that was stored before finds itself at distance 0; pay
    is 0 until `neighbors` states are stored. Distances are measured directly in float32: equal to brute force.
    """

    pays = True

    def __init__(
        self,
        dim: int,
        *,
        seed: int = 0,
        neighbors: int = 3,
        hidden: int = 1024,
        features: int = 50,
        memory: int = 0,
        on_bad: str = "raise",
    ) -> None:
        if min(neighbors, hidden, features) < 1:
            raise ValueError(f"neighbors, hidden and features must be positive; got {neighbors}, {hidden}, {features}.")
        if memory < 0 or 0 < memory < neighbors:
            raise ValueError(f"memory must be 0 or hold at least neighbors={neighbors} states; got {memory}.")
        self.dim, self.seed, self.neighbors, self.hidden = dim, seed, neighbors, hidden
        self.features, self.memory = features, memory
        self.on_bad = check_on_bad(on_bad)
        self._encoder: Any = None
        self._stored = np.zeros((memory, features), np.float32)
        self._seen, self._bad = 0, 0
        self._turns = Turns()

    @property
    def learns(self) -> bool:
        """Only a memory learns."""
        return self.memory > 0

    @property
    def batchwise(self) -> bool:
        """Without a memory a state's reward depends on the batch it comes in."""
        return self.memory == 0

    @property
    def encoder(self) -> Any:
        """g, made and put on the device when first needed."""
        if self._encoder is None:
            sizes = (self.dim, self.hidden, self.hidden, self.features)
            self._encoder = net.to_device(net.start((self.seed,), sizes))
        return self._encoder

    def encode(self, states: Rows) -> Rows:
        """g(s): (n, dim) -> (n, features)."""
        parts = [states[i : i + BLOCK] for i in range(0, len(states), BLOCK)]
        codes = [np.asarray(net.forward_one(self.encoder, net.pad(p, net.roomy(len(p)))))[: len(p)] for p in parts]
        return np.concatenate(codes or [np.zeros((0, self.features), np.float32)])

    @in_turn
    def rewards(self, next_states: Any) -> Any:
        """(..., dim) -> (...,)."""
        batch = read(next_states, self.dim, on_bad=self.on_bad)
        self._check_enough(len(batch.states))
        return like(next_states, batch.restore(self._pay(self.encode(batch.states))))

    @in_turn
    def update(self, next_states: Any) -> None:
        """Store the encodings over the oldest ones; without a memory, nothing."""
        batch = read(next_states, self.dim, on_bad=self.on_bad)
        if self.memory == 0:
            return
        self._bad += batch.bad
        self._store(self.encode(batch.states[-self.memory :]), len(batch.states))

    @in_turn
    def metrics(self) -> dict[str, float]:
        """How much of the memory is filled."""
        return {"states": float(self._seen), "stored": float(self._filled), "bad_states": float(self._bad)}

    @in_turn
    def state_dict(self) -> State:
        """The encoder, and the memory where there is one."""
        state: State = net.to_arrays(self.encoder, "encoder")
        if self.memory:
            state["stored"] = self._stored.copy()
            state["seen"], state["bad"] = np.asarray(self._seen, np.int64), np.asarray(self._bad, np.int64)
        return state

    @in_turn
    def load_state_dict(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Take over an encoder and a memory of the same size."""
        check_state(state, self.state_dict(), "RE3")
        if self.memory and (state["seen"] < 0 or state["bad"] < 0):
            raise ValueError("seen and bad must not be negative. Nothing was loaded.")
        self._encoder = net.to_device(net.from_arrays(state, "encoder", 3))
        if self.memory:
            self._stored, self._seen, self._bad = np.array(state["stored"]), int(state["seen"]), int(state["bad"])

    @property
    def _filled(self) -> int:
        return min(self._seen, self.memory)

    def _check_enough(self, count: int) -> None:
        if self.memory == 0 and 0 < count <= self.neighbors:
            raise ValueError(
                f"a batch of {count} states is too small for neighbors={self.neighbors}: each state needs that many "
                "others. Give whole rollouts, or make RE3 with memory=N to compare with earlier states."
            )

    def _pay(self, codes: Rows) -> Rows:
        """log(distance + 1) against the batch or the memory."""
        if len(codes) == 0 or (self.memory and self._filled < self.neighbors):
            return np.zeros(len(codes), np.float32)
        if self.memory:
            return np.log1p(kth_distances(codes, self._stored[: self._filled], self.neighbors, own=False))
        return np.log1p(kth_distances(codes, codes, self.neighbors, own=True))

    def _store(self, codes: Rows, count: int) -> None:
        """The last of `count` new rows into the ring, each where its place in the stream puts it."""
        places = np.arange(self._seen + count - len(codes), self._seen + count) % self.memory
        stored = self._stored.copy()
        stored[places] = codes
        self._stored, self._seen = stored, self._seen + count

    def frozen(self) -> Frozen | None:
        """What pays as it is now; None without a memory: then the batch itself would have to be one."""
        if not self.memory:
            return None
        return Frozen(self.encoder, self._stored, np.asarray(self._filled, np.int32), np.ones(self.neighbors, bool))

    @staticmethod
    def pay(frozen: Frozen, states: Any) -> Any:
        """(n, dim) -> (n,): rewards of float32 states, inside a program, with the device's usual products."""
        # TF32, imitated on a CPU, moved rewards by 0.06 % of their deviation (codes) and 0.3 % or nothing (ranking), on
        # states of Humanoid and Quadruped; the differences that are paid for are float32's on any device.
        import jax.numpy as jnp

        good, k = jnp.isfinite(states).all(axis=1), len(frozen.neighbors)
        codes = net.forward(frozen.encoder, jnp.where(good[:, None], states, 0), net.USUAL)
        distances = net.kth_distance(codes, frozen.stored, frozen.filled, k)
        return jnp.where(good & (frozen.filled >= k), jnp.log1p(distances), 0)

    @staticmethod
    def rewards_many(members: Sequence["RE3"], batches: NDArray[Any]) -> NDArray[np.float32]:
        """`rewards` of runs side by side in one program: (runs, n, dim) -> (runs, n)."""
        codes = _encode_many(members, batches)
        first = members[0]
        if first.memory:
            return np.stack([m._pay(c) for m, c in zip(members, codes, strict=True)])
        first._check_enough(codes.shape[1])
        return np.log1p(kth_distances_many(codes, first.neighbors))

    @staticmethod
    def update_many(members: Sequence["RE3"], batches: NDArray[Any]) -> None:
        """`update` of runs side by side in one program."""
        if members[0].memory == 0:
            return
        codes = _encode_many(members, batches[:, -members[0].memory :])
        for member, own in zip(members, codes, strict=True):
            member._store(own, batches.shape[1])


def kth_distances(queries: Rows, candidates: Rows, k: int, *, own: bool) -> Rows:
    """‖q − c‖ to the k-th nearest of the candidates; with `own`, query i is candidate i and not its own neighbour."""
    m, (wide, block) = net.roomy(len(candidates)), _sizes(len(queries), len(candidates))
    index = np.where(own, np.arange(wide), -1)
    distances, certain = net.nearest_one(
        net.pad(queries, wide), index, net.pad(candidates, m), len(candidates), k, block
    )
    return _exact_where_uncertain(
        np.array(distances)[: len(queries)], np.asarray(certain)[: len(queries)], queries, candidates, k, own
    )


def kth_distances_many(codes: Rows, k: int) -> Rows:
    """`kth_distances` within each of the batches (runs, n, features), in one program."""
    runs, n, _ = codes.shape
    wide, block = _sizes(n, n)
    queries = np.stack([net.pad(c, wide) for c in codes])
    candidates = np.stack([net.pad(c, net.roomy(n)) for c in codes])
    index, counts = np.tile(np.arange(wide), (runs, 1)), np.full(runs, n)
    found = net.nearest_many(queries, index, candidates, counts, k, block)
    distances, certain = (np.array(part)[:, :n] for part in found)
    return np.stack(
        [_exact_where_uncertain(d, s, c, c, k, True) for d, s, c in zip(distances, certain, codes, strict=True)]
    )


def _exact_where_uncertain(
    distances: Rows, certain: NDArray[np.bool_], queries: Rows, candidates: Rows, k: int, own: bool
) -> Rows:
    """Distances where rounding left doubt (clumps far smaller than the whole) are found again by a tree in float64."""
    from scipy.spatial import cKDTree

    doubt = np.flatnonzero(~certain)
    if len(doubt) == 0:
        return distances
    wanted = min(k + own, len(candidates))
    far, index = cKDTree(candidates.astype(np.float64)).query(queries[doubt].astype(np.float64), k=wanted)
    far, index = far.reshape(len(doubt), wanted), index.reshape(len(doubt), wanted)
    if own:
        itself = index == doubt[:, None]
        itself[~itself.any(axis=1), -1] = True  # hidden behind copies of itself: as many copies are left
        far = far[~itself].reshape(len(doubt), k)
    distances[doubt] = far[:, k - 1]
    return distances


def _sizes(queries: int, candidates: int) -> tuple[int, int]:
    """Rows to pad the queries to, and rows per block, so that block × candidates stays within the budget."""
    pairs = WIDE_PAIRS if net.on_accelerator() else PAIRS
    fits = max(1, pairs // net.roomy(candidates))
    block = min(2 ** (fits.bit_length() - 1), 2 ** (max(queries - 1, 1)).bit_length())
    return -(-net.roomy(queries) // block) * block, block


def _encode_many(members: Sequence[RE3], batches: NDArray[Any]) -> Rows:
    """Every run's encodings by its own encoder: (runs, n, dim) -> (runs, n, features)."""
    rows = np.stack([read(b, m.dim, on_bad=m.on_bad).states for m, b in zip(members, batches, strict=True)])
    tree = net.stacked([m.encoder for m in members])
    parts = [np.asarray(net.forward_many(tree, rows[:, i : i + BLOCK])) for i in range(0, rows.shape[1], BLOCK)]
    return np.concatenate(parts, axis=1)
