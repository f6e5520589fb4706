"""Random network distillation (Burda et al. 2018): what a network cannot yet predict is new."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from voronaut.bonuses import networks as net
from voronaut.bonuses import running
from voronaut.bonuses.base import State
from voronaut.bonuses.saving import Saved, check_state
from voronaut.bonuses.states import Batch, check_on_bad, like, read
from voronaut.bonuses.turns import Turns, in_turn

BLOCK = 512  # rows per forward pass on a CPU: two megabytes of activations
WIDE_BLOCK = 16384  # the same on an accelerator
Minibatches = list[tuple[NDArray[np.float32], NDArray[np.float32]]]  # rows (b, dim), weights (b,)


class Frozen(NamedTuple):
    """Networks and statistics as they are, for programs that pay by them."""

    target: net.Layers
    predictor: net.Layers
    mean: NDArray[np.float32]
    scale: NDArray[np.float32]
    clip: NDArray[np.float32]
    deviation: NDArray[np.float32]


class RND(Saved):
    """r(s) = ‖f̂(s̄) − f(s̄)‖² / (h σ), s̄ = clip((s − mean) / deviation, ±clip), f̂ trained towards the fixed random f.

    `update` first takes the batch into mean and deviation, then trains f̂ on a random `fraction` of it, `batch_size`
    states per Adam step. σ is the running standard deviation of the errors met while training.
    Before the first update mean is 0, deviation and σ are 1.
    """

    learns = True
    pays = True

    def __init__(
        self,
        dim: int,
        *,
        seed: int = 0,
        hidden: int = 1024,
        features: int = 512,
        learning_rate: float = 1e-4,
        batch_size: int = 256,
        fraction: float = 0.25,
        clip: float = 5.0,
        on_bad: str = "raise",
    ) -> None:
        if not 0 < fraction <= 1:
            raise ValueError(f"fraction is the share of states trained on, above 0 and at most 1; got {fraction}.")
        if min(batch_size, hidden, features) < 1 or not learning_rate > 0 or not clip > 0:
            raise ValueError(
                "batch_size, hidden, features, learning_rate and clip must be positive; "
                f"got {batch_size}, {hidden}, {features}, {learning_rate}, {clip}."
            )
        self.dim, self.seed, self.hidden, self.features = dim, seed, hidden, features
        self.learning_rate, self.batch_size, self.fraction, self.clip = learning_rate, batch_size, fraction, clip
        self.on_bad = check_on_bad(on_bad)
        self._learner: net.Learner | None = None
        self._states, self._errors = running.start((dim,)), running.start()
        self._updates, self._bad, self._loss = 0, 0, 0.0
        self._turns = Turns()

    @property
    def learner(self) -> net.Learner:
        """The networks, made and put on the device when first needed."""
        if self._learner is None:
            sizes = (self.dim, self.hidden, self.hidden, self.features)
            self._learner = net.to_device(net.start_learner(self.seed, sizes))
        return self._learner

    @in_turn
    def rewards(self, next_states: Any) -> Any:
        """(..., dim) -> (...,): the prediction errors in units of σ."""
        batch, learner = self._read(next_states), self.learner
        rows, size = self._normalised(batch.states), WIDE_BLOCK if net.on_accelerator() else BLOCK
        parts = [rows[i : i + size] for i in range(0, len(rows), size)]
        errors = [net.errors_one(learner.target, learner.predictor, net.pad(p, net.roomy(len(p)))) for p in parts]
        whole = np.concatenate([np.asarray(e) for e in errors] or [np.zeros(0, np.float32)])[: len(rows)]
        return like(next_states, batch.restore(whole / np.float32(self.deviation)))

    @in_turn
    def update(self, next_states: Any) -> None:
        """Statistics, then one pass over the chosen states."""
        batch = self._read(next_states)
        self._states = running.absorb(self._states, batch.states)
        self._bad += batch.bad
        if len(batch.states) == 0:
            return
        learner, found = self.learner, []
        for rows, weights in self._minibatches(batch.states):
            learner, errors = net.distill_one(learner, rows, weights, np.float32(self.learning_rate))
            found.append(np.asarray(errors)[weights > 0])
        self._finish(learner, np.concatenate(found))

    @in_turn
    def metrics(self) -> dict[str, float]:
        """States seen, the last update's mean error before each step, and σ."""
        return {
            "states": float(self._states.seen),
            "updates": float(self._updates),
            "error": self._loss,
            "error_deviation": self.deviation,
            "bad_states": float(self._bad),
        }

    @property
    def deviation(self) -> float:
        """σ, kept above 1 % of the mean error (equal errors have no spread to divide by); 1 before the first update."""
        return max(float(self._errors.deviation), 0.01 * float(self._errors.mean)) or 1.0

    @in_turn
    def state_dict(self) -> State:
        """Networks, Adam, both running statistics and the counters. Minibatches depend on seed and updates only."""
        learner = self.learner
        layers: State = {}
        for name in ("target", "predictor", "first", "second"):
            layers |= net.to_arrays(getattr(learner, name), name)
        counters = {"updates": np.asarray(self._updates, np.int64), "bad": np.asarray(self._bad, np.int64)}
        statistics = running.to_arrays(self._states, "states") | running.to_arrays(self._errors, "errors")
        loss = np.asarray(self._loss, np.float64)
        return {**layers, **statistics, **counters, "steps": np.array(learner.steps), "loss": loss}

    @in_turn
    def load_state_dict(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Take over networks of the same size and all statistics."""
        check_state(state, self.state_dict(), "RND")
        positive = ("states.seen", "states.variance", "errors.seen", "errors.variance", "updates", "bad", "steps")
        for name in positive:
            if np.min(state[name]) < 0:
                raise ValueError(f"{name} must not be negative; got {np.min(state[name])}. Nothing was loaded.")
        layers = {name: net.from_arrays(state, name, 3) for name in ("target", "predictor", "first", "second")}
        self._learner = net.to_device(net.Learner(**layers, steps=np.array(state["steps"])))
        self._states, self._errors = running.from_arrays(state, "states"), running.from_arrays(state, "errors")
        self._updates, self._bad, self._loss = int(state["updates"]), int(state["bad"]), float(state["loss"])

    def _read(self, next_states: Any) -> Batch:
        """In float64, so that an offset common to all states is subtracted before precision is lost."""
        return read(next_states, self.dim, on_bad=self.on_bad, dtype=np.float64)

    def _normalised(self, states: NDArray[np.floating[Any]]) -> NDArray[np.float32]:
        """clip((s − mean) / deviation, ±clip) in float32; (s − 0) / 1 before the first update."""
        return np.clip((states - self._states.mean) / self._scale, -self.clip, self.clip).astype(np.float32)

    @property
    def _scale(self) -> NDArray[np.float64]:
        return np.sqrt(self._states.variance + 1e-8) if self._states.seen else np.ones(self.dim)

    def _minibatches(self, states: NDArray[np.floating[Any]]) -> Minibatches:
        """A random `fraction` of the states, normalised, in pieces; a short piece is filled with rows of weight 0."""
        # Deviation: Burda et al. mask out the rest of each minibatch after computing it; choosing first is cheaper.
        order = np.random.default_rng([self.seed, 2, self._updates]).permutation(len(states))
        chosen = order[: max(1, round(self.fraction * len(states)))]
        size = min(self.batch_size, net.roomy(len(chosen)))
        pieces = [self._normalised(states[chosen[i : i + size]]) for i in range(0, len(chosen), size)]
        return [(net.pad(piece, size), net.pad(np.ones(len(piece), np.float32), size)) for piece in pieces]

    def _finish(self, learner: net.Learner, errors: NDArray[np.float32]) -> None:
        """Keep what an update produced."""
        # Deviation: Burda et al. divide by the deviation of discounted returns, which needs to know the order of time;
        # a bonus is given states in any layout, so it is the deviation of the errors themselves.
        self._errors = running.absorb(self._errors, errors)
        self._learner, self._loss = learner, float(errors.mean())
        self._updates += 1

    def frozen(self) -> Frozen:
        """What pays as it is now; the networks stay where they are."""
        numbers = (self._states.mean, self._scale, self.clip, self.deviation)
        return Frozen(self.learner.target, self.learner.predictor, *(np.asarray(x, np.float32) for x in numbers))

    @staticmethod
    def pay(frozen: Frozen, states: Any) -> Any:
        """(n, dim) -> (n,): rewards of float32 states, inside a program, with the device's usual products."""
        # In TF32 a feature is off by some 4e-4 of its size, far below the errors that RND is paid for; full float32
        # would cost an accelerator several times as much, and this is most of what RND costs.
        import jax.numpy as jnp

        good = jnp.isfinite(states).all(axis=1)
        rows = jnp.clip((states - frozen.mean) / frozen.scale, -frozen.clip, frozen.clip)
        errors = net.prediction_errors(frozen.target, frozen.predictor, jnp.where(good[:, None], rows, 0), net.USUAL)
        return jnp.where(good, errors / frozen.deviation, 0)

    @staticmethod
    def rewards_many(members: Sequence["RND"], batches: NDArray[Any]) -> NDArray[np.float32]:
        """`rewards` of runs side by side in one program: (runs, n, dim) -> (runs, n)."""
        rows = np.stack([m._normalised(m._read(b).states) for m, b in zip(members, batches, strict=True)])
        tree = net.stacked([(m.learner.target, m.learner.predictor) for m in members])
        size, errors = max(1, WIDE_BLOCK * 4 // len(members)), list[NDArray[np.float32]]()
        for i in range(0, rows.shape[1], size):
            errors.append(np.asarray(net.errors_many(*tree, rows[:, i : i + size])))
        deviations = np.array([[m.deviation] for m in members], np.float32)
        return np.concatenate(errors, axis=1) / deviations

    @staticmethod
    def update_many(members: Sequence["RND"], batches: NDArray[Any]) -> None:
        """`update` of runs side by side in one program."""
        rate = np.float32(members[0].learning_rate)
        read_ = [m._read(b).states for m, b in zip(members, batches, strict=True)]
        statistics = [running.absorb(m._states, states) for m, states in zip(members, read_, strict=True)]
        for member, kept in zip(members, statistics, strict=True):
            member._states = kept
        plans = [m._minibatches(states) for m, states in zip(members, read_, strict=True)]
        learner, found = net.stacked([m.learner for m in members]), []
        for step in zip(*plans, strict=True):
            rows, weights = (np.stack(part) for part in zip(*step, strict=True))
            learner, errors = net.distill_many(learner, rows, weights, rate)
            found.append(np.asarray(errors)[:, weights[0] > 0])
        for member, own, errors in zip(
            members, net.unstacked(learner, len(members)), np.concatenate(found, axis=1), strict=True
        ):
            member._finish(own, errors)
