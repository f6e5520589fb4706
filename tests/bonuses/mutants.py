"""Three honest bonuses of a third party, and what goes wrong with bonuses in the wild, one fault each."""

from typing import Any, ClassVar

import numpy as np
import torch

ROOM = 400


class Honest:
    """Distance to the nearest state of a small ring: a third party's bonus with nothing but the protocol."""

    def __init__(self, dim: int, seed: int = 0) -> None:
        self.dim, self.seed = dim, seed
        self.ring, self.seen = np.full((ROOM, dim), 99.0), 0

    def read(self, states: Any) -> np.ndarray:
        array = np.array(states, np.float64)
        if array.shape[-1:] != (self.dim,) or not np.isfinite(array).all():
            raise ValueError("bad states")
        return array

    def pay(self, flat: np.ndarray) -> np.ndarray:
        return np.linalg.norm(flat[:, None] - self.ring[None], axis=2).min(axis=1)

    def rewards(self, next_states: Any) -> Any:
        states = self.read(next_states)
        return self.pay(states.reshape(-1, self.dim)).reshape(states.shape[:-1])

    def update(self, next_states: Any) -> Any:
        states = self.read(next_states).reshape(-1, self.dim)
        kept = np.random.default_rng([self.seed, self.seen]).random(len(states)) < 0.9
        self.ring = self.ring.copy()
        self.ring[(self.seen + np.flatnonzero(kept)) % ROOM] = states[kept]
        self.seen += len(states)

    def metrics(self) -> Any:
        return {"states": float(self.seen)}

    def state_dict(self) -> Any:
        return {"ring": self.ring.copy(), "seen": np.array(self.seen)}

    def load_state_dict(self, state: Any) -> None:
        if set(state) != {"ring", "seen"} or np.shape(state["ring"]) != self.ring.shape:
            raise ValueError("foreign state")
        self.ring, self.seen = np.array(state["ring"]), int(state["seen"])


class Lonely(Honest):
    """Distance to the batch's mean: pays without memory."""

    learns, batchwise = False, True

    def pay(self, flat: np.ndarray) -> np.ndarray:
        return np.linalg.norm(flat - flat.mean(axis=0), axis=1) if len(flat) else np.zeros(0)

    def update(self, next_states: Any) -> Any:
        self.read(next_states)


class Able(Honest):
    """A third party's bonus that keeps every optional protocol too."""

    takes_tensors = True

    def read(self, states: Any) -> np.ndarray:
        return super().read(states.numpy() if isinstance(states, torch.Tensor) else states)

    def rewards(self, next_states: Any) -> Any:
        paid = super().rewards(next_states)
        return torch.from_numpy(np.asarray(paid)) if isinstance(next_states, torch.Tensor) else paid

    def step(self, next_states: Any) -> Any:
        paid = []
        for state in np.asarray(next_states)[:, None]:
            paid += [self.rewards(state)]
            self.update(state)
        return np.concatenate(paid)

    @property
    def centers(self) -> np.ndarray:
        return self.ring.copy()

    @property
    def counts(self) -> np.ndarray:
        return np.ones(ROOM, np.int64)

    @property
    def params(self) -> dict[str, Any]:
        return {"dim": self.dim, "seed": self.seed}

    @staticmethod
    def rewards_many(members: Any, states: np.ndarray) -> np.ndarray:
        return np.stack([member.rewards(own) for member, own in zip(members, states, strict=True)])

    @staticmethod
    def update_many(members: Any, states: np.ndarray) -> None:
        for member, own in zip(members, states, strict=True):
            member.update(own)


class StepsWithoutLearning(Able):
    def step(self, next_states: Any) -> Any:
        return self.rewards(next_states)


class StepsBackwards(Able):
    def step(self, next_states: Any) -> Any:
        return super().step(np.asarray(next_states)[::-1])


class StepsAtOnce(Able):
    """Pays the whole piece before it learns any of it."""

    def step(self, next_states: Any) -> Any:
        paid = self.rewards(next_states)
        self.update(next_states)
        return paid


class GivesItsCenters(Able):
    @property
    def centers(self) -> np.ndarray:
        return self.ring


class CentersElsewhere(Able):
    @property
    def centers(self) -> np.ndarray:
        return self.ring[:, :2].copy()


class SharesStates(Able):
    @staticmethod
    def update_many(members: Any, states: np.ndarray) -> None:
        for member in members:
            member.update(states.reshape(-1, member.dim))


class PaysTheFirst(Able):
    @staticmethod
    def rewards_many(members: Any, states: np.ndarray) -> np.ndarray:
        return np.stack([members[0].rewards(own) for own in states])


class TeachesTheFirst(Able):
    @staticmethod
    def update_many(members: Any, states: np.ndarray) -> None:
        members[0].update(states[0])


class TensorsToArrays(Able):
    def rewards(self, next_states: Any) -> Any:
        return np.asarray(super().rewards(next_states))


class TensorsInHalves(Able):
    def update(self, next_states: Any) -> Any:
        super().update(next_states.half().float() if isinstance(next_states, torch.Tensor) else next_states)


class NoMetrics(Honest):
    metrics = None


class UpdatePays(Honest):
    def update(self, next_states: Any) -> Any:
        super().update(next_states)
        return self.rewards(next_states)


class ImpureState(Honest):
    def rewards(self, next_states: Any) -> Any:
        self.seen += 1
        return super().rewards(next_states)


class ImpureStatistics(Honest):
    """A running scale outside the state dict, moved by every look."""

    scale = 1.0

    def rewards(self, next_states: Any) -> Any:
        paid = super().rewards(next_states)
        self.scale = 0.9 * self.scale + 0.1 * float(np.std(paid)) if paid.size > 1 else self.scale
        return paid / self.scale


class ImpureLater(Honest):
    """`rewards` moves a generator that the next update draws from."""

    looks = 0

    def rewards(self, next_states: Any) -> Any:
        self.looks += 1
        return super().rewards(next_states)

    def update(self, next_states: Any) -> Any:
        super().update(np.asarray(next_states) + 0.1 * self.looks)


class NeverLearns(Honest):
    def update(self, next_states: Any) -> Any:
        self.read(next_states)


class SaysItDoesNotLearn(Honest):
    learns = False


class Flat(Honest):
    def rewards(self, next_states: Any) -> Any:
        return super().rewards(next_states).ravel()


class Column(Honest):
    def rewards(self, next_states: Any) -> Any:
        return super().rewards(next_states)[..., None]


class Whole(Honest):
    def rewards(self, next_states: Any) -> Any:
        return np.asarray(super().rewards(next_states)).astype(int)


class Infinite(Honest):
    def pay(self, flat: np.ndarray) -> np.ndarray:
        return np.where(super().pay(flat) == 0, np.inf, 1.0)


class EmptyCounts(Honest):
    def update(self, next_states: Any) -> Any:
        super().update(next_states)
        self.seen += 1


class GlobalNoise(Honest):
    def update(self, next_states: Any) -> Any:
        super().update(np.asarray(next_states) + np.random.normal(size=self.dim))  # noqa: NPY002


class OwnNoise(Honest):
    def update(self, next_states: Any) -> Any:
        super().update(np.asarray(next_states) + np.random.default_rng().normal(size=self.dim))


class Permuted(Honest):
    """The permutation of a shuffled minibatch applied once more instead of undone."""

    def pay(self, flat: np.ndarray) -> np.ndarray:
        order = np.random.default_rng(len(flat)).permutation(len(flat))
        return super().pay(flat[order])[order]


class Transposed(Honest):
    def rewards(self, next_states: Any) -> Any:
        paid = super().rewards(next_states)
        return paid.ravel(order="F").reshape(paid.shape) if paid.ndim == 2 else paid


class BatchMean(Honest):
    def pay(self, flat: np.ndarray) -> np.ndarray:
        paid = super().pay(flat)
        return paid / (1 + paid.mean()) if len(paid) else paid


class PaysLength(Honest):
    def pay(self, flat: np.ndarray) -> np.ndarray:
        return np.linalg.norm(flat, axis=1) + flat[:, 0]


class NeighboursIndex(Honest):
    def pay(self, flat: np.ndarray) -> np.ndarray:
        return np.linalg.norm(flat[:, None] - self.ring[None], axis=2).argmin(axis=1).astype(float)


class LonelyInverse(Lonely):
    def pay(self, flat: np.ndarray) -> np.ndarray:
        return -super().pay(flat)


class SaysItDoesNotPay(Honest):
    pays = False


class WritesInput(Honest):
    def update(self, next_states: Any) -> Any:
        super().update(next_states)
        np.clip(next_states, -1, 1, out=next_states)


class KeepsInput(Honest):
    def update(self, next_states: Any) -> Any:
        super().update(next_states)
        self.last = next_states

    def state_dict(self) -> Any:
        return {**super().state_dict(), "last": np.array(getattr(self, "last", np.zeros(1)))}


class WantsWritable(Honest):
    def read(self, states: Any) -> np.ndarray:
        if not np.asarray(states).flags.writeable:
            raise ValueError("read-only")
        return super().read(states)


class TakesNaN(Honest):
    def read(self, states: Any) -> np.ndarray:
        return np.array(states, np.float64)


class TakesNaNInUpdate(Honest):
    def update(self, next_states: Any) -> Any:
        self.seen += 1
        super().update(np.nan_to_num(next_states))


class TakesAnyDim(Honest):
    def read(self, states: Any) -> np.ndarray:
        return super().read(np.asarray(states)[..., : self.dim])


def shared() -> type[Honest]:
    class Shared(Honest):
        rings: ClassVar[dict[int, np.ndarray]] = {}

        def __init__(self, dim: int, seed: int = 0) -> None:
            super().__init__(dim, seed)
            self.rings.setdefault(dim, self.ring)

        def update(self, next_states: Any) -> Any:
            self.ring = self.rings[self.dim]
            super().update(next_states)
            self.rings[self.dim] = self.ring

        def state_dict(self) -> Any:
            return {"ring": self.rings[self.dim].copy(), "seen": np.array(self.seen)}

    return Shared


class ForgetsPosition(Honest):
    def load_state_dict(self, state: Any) -> None:
        super().load_state_dict(state)
        self.seen = 0


class ForgetsVisits(Honest):
    """Exact counts that are not saved: only states visited before tell the difference."""

    def __init__(self, dim: int, seed: int = 0) -> None:
        super().__init__(dim, seed)
        self.visits: dict[bytes, int] = {}

    def pay(self, flat: np.ndarray) -> np.ndarray:
        return np.array([1 / (1 + self.visits.get(row.tobytes(), 0)) for row in flat])

    def update(self, next_states: Any) -> Any:
        super().update(next_states)
        for row in self.read(next_states).reshape(-1, self.dim):
            self.visits[row.tobytes()] = self.visits.get(row.tobytes(), 0) + 1


class GivesItself(Honest):
    def state_dict(self) -> Any:
        return {"ring": self.ring, "seen": np.array(self.seen)}


class KeepsGiven(Honest):
    def load_state_dict(self, state: Any) -> None:
        super().load_state_dict(state)
        self.ring = state["ring"]


class Pickles(Honest):
    def state_dict(self) -> Any:
        return {"ring": self.ring.astype(object), "seen": np.array(self.seen)}


class TakesAnyState(Honest):
    def load_state_dict(self, state: Any) -> None:
        self.ring, self.seen = np.array(state.get("ring", self.ring)), int(state.get("seen", 0))


class HalfLoads(Honest):
    def load_state_dict(self, state: Any) -> None:
        self.seen = -1
        super().load_state_dict(state)


class NestedMetrics(Honest):
    def metrics(self) -> Any:
        return {"ring": {"states": float(self.seen)}}


class CountingMetrics(Honest):
    def metrics(self) -> Any:
        self.seen += 1
        return super().metrics()
