"""k-means maximum entropy exploration: a state earns what it adds to the spread of the clusters."""

import math
from collections.abc import Callable, Mapping
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from voronaut.bonuses.kme import frames, jax_program, learned, readout, tensors
from voronaut.bonuses.kme.balanced import Balanced
from voronaut.bonuses.kme.settings import (
    Settings,
    check_features,
    check_whole,
    chosen,
    described,
    fresh_seed,
    without_retired,
)
from voronaut.bonuses.kme.viewed import Viewed
from voronaut.bonuses.reservoir import Reservoir
from voronaut.bonuses.saving import Saved, check_state
from voronaut.bonuses.states import Batch, check_on_bad, like, plain
from voronaut.bonuses.turns import Turns, in_turn
from voronaut.entropy.cells import bound

Floats = NDArray[np.floating[Any]]
Features = Callable[[Any], Any]


class KME(Saved):
    """r(s) = L after absorbing s, less L before (Eq. 2), with small online k-means as the memory.

    `vn.KME(dim)` needs no tuning: units do not matter, and a bonus of 1 is one deviation of what is paid lately.
    `vn.KME(dim, **vn.presets.paper().kme)` is the paper's: one k-means of the whole state as it comes, paid raw.

    Threads may share one: what pays, learns, measures or saves waits until no other does (`voronaut.bonuses.turns`).

    Args:
        dim: length of a state (of a feature vector, with `features`), d.
        views: how many clusterings there are, each of `view_dim` coordinates (`voronaut/views.py`). "auto": one of the
            whole state up to 4 coordinates, and beyond one of each coordinate.
        view_dim: coordinates of a view, m. None: all where there is one view, otherwise 1.
        clusters: of each view, k. None: 300 for the whole state, 64 for pairs, 32 for single coordinates.
        step_size: how far the winning center moves toward a state, α.
        balance: what keeps clusters busy. "auto": crowded clusters are split, and half of what an update absorbs is
            drawn from a fair sample of all states before. A number: the paper's κ, the distance that each absorbed
            state adds to its cluster; the memory is then the paper's.
        normalize_bonus: divide rewards by their running deviation. None: yes, but for the paper's memory.
        seed: of the shuffles, the views and the choice of first centers. None: a fresh one.
        dtype: "float32" (fast) or "float64" (exact). float32 works at any offset and in any unit.
        threads: for `rewards`; the results do not depend on it.
        on_bad: "raise" on states that are not finite, or "drop": pay them 0, learn nothing from them, count them.
        features: function from states to the vectors that are clustered, (..., anything) -> (..., dim).
        init: "data": centers start at distinct random states of the first batch, before which every state earns 0;
            the paper's memory may also start with all centers at 0, "zeros".
        objective: concave function f of the gaps, of the paper's memory: "sqrt", or "log" (Theorem 2's, cut off at
            1e-3 of the mean gap, which is fixed at each update).
        normalize: of the paper's memory: cluster states standardised by running mean and deviation.
    """

    learns = pays = True
    takes_tensors: Literal[True] = True
    frozen = jax_program.frozen
    pay = staticmethod(jax_program.pay)

    def __init__(  # noqa: PLR0913
        self,
        dim: int,
        *,
        views: int | Literal["auto"] = "auto",
        view_dim: int | None = None,
        clusters: int | None = None,
        step_size: float = 0.05,
        balance: float | Literal["auto"] = "auto",
        normalize_bonus: bool | None = None,
        seed: int | None = 0,
        dtype: Literal["float32", "float64"] = "float32",
        threads: int = 1,
        on_bad: Literal["raise", "drop"] = "raise",
        features: Features | None = None,
        init: Literal["zeros", "data"] | None = None,
        objective: Literal["sqrt", "log"] = "sqrt",
        normalize: bool = False,
    ) -> None:
        given: Any = (dim, clusters, step_size, balance, objective, init, fresh_seed(seed), dtype, threads, on_bad)
        rest: Any = (normalize, 0, 0, normalize_bonus)
        self.settings = s = chosen(Settings(*given + rest), views, view_dim)
        self.dim, self.features = dim, check_features(features)
        self._reading = frames.Reading(dim, check_on_bad(on_bad), dtype)
        self._memory = Viewed(s) if s.views else Balanced(s)
        self._frame: frames.Frame = frames.start(dim, normalize or s.views > 0)
        self._reservoir = Reservoir(max(16_384, 32 * s.clusters), dim, dtype, s.seed)
        self._updates = self._bad = self._replayed = 0
        self._device: Any = None  # the clusters on a GPU, while states come from there
        self._turns = Turns()

    def __repr__(self) -> str:
        self._sync()
        seen, updates = self._reservoir.seen, f"{self._updates} update{'s' if self._updates != 1 else ''}"
        known = f"{seen:,} states seen in {updates}" if seen else "nothing seen yet"
        return f"KME(dim={self.dim}): {described(self.settings)}; {known}"

    # What a loop asks for

    @in_turn
    def rewards(self, next_states: Any) -> Any:
        """(..., d) -> (...,): what each state would earn against the clusters as they are. Changes nothing."""
        if tensors.on_device(next_states):
            return self._there(next_states).rewards(tensors.vectors(next_states, self.features, self.dim))
        self._sync()
        batch = self._read(next_states)
        pays = len(batch.states) and not self._empty
        paid = self._memory.rewards(batch.states) if pays else np.zeros(len(batch.states), self.settings.dtype)
        return like(next_states, batch.restore(paid))

    @in_turn
    def update(self, next_states: Any) -> None:
        """One shuffled pass of online k-means over the states (..., d); with views over as many old ones too."""
        if tensors.on_device(next_states):
            self._there(next_states).update(tensors.vectors(next_states, self.features, self.dim))
            return
        states = self._ready(next_states).states
        if not len(states):
            return
        mixed = self._with_replayed(states)
        self._memory.update(mixed, self._order(len(mixed)))
        self._absorbed(states)

    @in_turn
    def step(self, next_states: Any) -> Any:
        """Algorithm 1 in the given order: reward, raw, and absorb state by state, (n, d) -> (n,)."""
        tensors.refuse_device(next_states)
        batch = self._ready(next_states)
        paid = np.zeros(0, self.settings.dtype)
        if len(batch.states):
            paid = self._memory.step(batch.states)
            self._absorbed(batch.states)
        return like(next_states, batch.restore(paid))

    # What it knows

    @property
    @in_turn
    def centers(self) -> NDArray[np.float64]:
        """Cluster centers μ in the states' own coordinates, (k, d)."""
        self._sync()
        check_whole(self.settings, "centers")
        return readout.centers(self._memory, self._frame, 0)

    @property
    @in_turn
    def views(self) -> list[tuple[NDArray[np.int64], NDArray[np.float64]]]:
        """Each view's coordinates (m,) and centers (k, m) in the states' own units; the paper's memory is one view."""
        self._sync()
        known = (self._memory, self._frame)
        return [(own.copy(), readout.centers(*known, view)) for view, own in enumerate(self._memory.columns)]

    @property
    @in_turn
    def counts(self) -> NDArray[np.int64]:
        """States absorbed by each cluster, n (k,); they start at 1.

        With views, whose memory fades: how many of a fair sample of all states are in each cell.
        """
        self._sync()
        check_whole(self.settings, "cells")
        return self._memory.counts.copy() if isinstance(self._memory, Balanced) else self._cells()[1][0]

    @property
    @in_turn
    def gaps(self) -> NDArray[np.float64]:
        """min_{j≠i} ‖μ_i − μ_j‖ + κ (n_j − n_i), raw (k,), of all views in a row. Negative: an empty cell."""
        self._sync()
        return self._memory.gaps().ravel()

    @in_turn
    def objective_value(self) -> float:
        """L_f = Σ_i f(gap_i) (Eq. 3)."""
        self._sync()
        return self._memory.objective_value()

    @in_turn
    def entropy(self) -> float:
        """Entropy in nats of all states absorbed so far, from cell masses and second moments (`entropy.cells`).

        Measured on a fair sample of them against the clusters as they are. NaN before there are states enough.
        """
        self._sync()
        return self._cells()[0]

    @in_turn
    def entropy_bound(self) -> float:
        """(d/k) Σ ln gap_i + ln V_d − d ln 2, Theorem 2 in nats (the paper prints −d). −inf if a gap is ≤ 0.

        NaN with views of a part of the state.
        """
        if self.settings.views > 1:
            return math.nan  # the theorem is about cells of whole states
        return bound(self.gaps, self.dim) + self._frame.log_volume()

    @in_turn
    def metrics(self) -> dict[str, float]:
        """A flat dict of floats for any logger; docs/metrics.md says what each means."""
        gaps, (entropy, masses) = self.gaps, self._cells()
        return {
            "objective": self.objective_value(),
            "entropy": entropy,
            **readout.evenness(gaps, masses),
            "states": float(self._reservoir.seen),
            "bad_states": float(self._bad),
            "updates": float(self._updates),
            **({"entropy_bound": self.entropy_bound()} if self.settings.views < 2 else {}),
            **self._memory.metrics(),
        }

    # Saving

    @property
    def params(self) -> dict[str, Any]:
        """Keyword arguments that make this bonus again, but for `threads`, which belongs to a machine.

        A function cannot be saved: `features` must be given again.
        """
        without = {"threads"} if self.settings.views else {"threads", "views", "view_dim", "normalize_bonus"}
        kept = {name: value for name, value in self.settings._asdict().items() if name not in without}
        return {**kept, "features": None if self.features is None else "give it again"}

    @classmethod
    def from_params(cls, params: Mapping[str, Any]) -> "KME":
        """A fresh KME with the parameters of a saved one."""
        return cls(**without_retired(params))

    @in_turn
    def state_dict(self) -> dict[str, NDArray[Any]]:
        """Everything learned, as named arrays (copies)."""
        self._sync()
        return learned.to_arrays(self)

    @in_turn
    def load_state_dict(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Take over what `state_dict` gave; anything that does not fit is refused and changes nothing."""
        check_state(state, KME(**{**self.params, "features": None}).state_dict(), "KME")
        learned.check(state, self._reservoir.size)
        learned.from_arrays(self, state)

    # Inside

    @property
    def _empty(self) -> bool:
        """Whether there are no clusters yet."""
        return self.settings.init == "data" and self._reservoir.seen == 0

    def _order(self, size: int) -> NDArray[np.int64]:
        """The shuffle of this update, from the seed and the number of updates alone: no random state to save."""
        return np.random.default_rng([self.settings.seed, self._updates]).permutation(size)

    def _vectors(self, states: Any) -> Any:
        """What is clustered of these states."""
        return states if self.features is None else self.features(plain(states))

    def _read(self, states: Any) -> Batch:
        return self._frame.read(self._vectors(states), self._reading)

    def _ready(self, states: Any) -> Batch:
        """Read states to be absorbed, in coordinates that suit them, with clusters to absorb them."""
        self._sync()
        self._device = None  # the host is about to learn: what is there is out of date
        frame, batch = self._frame.refit(self._vectors(states), self._reading, self._reservoir)
        if not frame.same(self._frame):
            self._memory.convert(self._frame, frame)
            self._reservoir.sample[:] = frame.convert(self._reservoir.sample, self._frame)
        self._frame = frame
        self._bad += batch.bad
        if self._empty and len(batch.states):
            self._memory.start(batch.states)
        return batch

    def _with_replayed(self, states: Floats) -> Floats:
        """The states and, with views, rows of the sample (with repetition): half of the whole."""
        share = self._memory.replay
        old = self._reservoir.draw(round(len(states) * share / (1 - share)), [self.settings.seed, self._updates, 2])
        self._replayed += len(old)
        return np.concatenate([states, old]) if len(old) else states

    def _absorbed(self, states: Floats) -> None:
        """Book-keeping after the clusters took in the states."""
        self._reservoir.add(states)
        self._updates += 1

    def _cells(self) -> tuple[float, NDArray[np.int64]]:
        """Entropy of the sample of all states, and how many of it are in each cell of each view, (V, k)."""
        return readout.cells(self._memory, self._frame, self._reservoir.sample)

    def _there(self, states: Any) -> Any:
        """The clusters on the device of these states, brought there if they are elsewhere."""
        if self._device is None or self._device.device != states.device:
            tensors.check_settings(self.settings)
            self._sync()
            self._device = learned.to_device(self, states.device)
        return self._device

    def _sync(self) -> None:
        """Take over what was learned on a device, if the clusters are on one; this waits for the device."""
        if self._device is not None:
            learned.from_device(self, self._device.learned())
