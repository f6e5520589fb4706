"""The coordinates that clusters live in: relative to a point near the states, or standardised as the states come.

A frame is frozen. `read` brings states (..., d) into it, `to_states` brings rows of it back. `refit` gives the frame
that suits the next states, and them in it. Unless it is the `same` as before, `convert` brings rows of the older frame
along: (..., d), or with `own` coordinates alone. `log_volume` is what the coordinates take from an entropy in nats.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from voronaut.bonuses import running
from voronaut.bonuses.reservoir import Reservoir
from voronaut.bonuses.running import Running
from voronaut.bonuses.states import Batch, OnBad, flatten, largest, read
from voronaut.kernels.rules import FAR

Floats = NDArray[np.float64]
State = dict[str, NDArray[Any]]

CLIP = 10.0  # deviations: what is farther out counts as that far
ALL = slice(None)  # coordinates
GROWTH = 1.1  # mean and deviation are refreshed when this many times as many states have been seen


class Reading(NamedTuple):
    """How states are read."""

    dim: int
    on_bad: OnBad
    dtype: str


class Shifted(NamedTuple):
    """x ↦ x − origin: a point near the states, so that float32 works at any offset."""

    origin: Floats

    def read(self, vectors: Any, how: Reading) -> Batch:
        """The origin is subtracted in the vectors' own precision."""
        return read(vectors, how.dim, on_bad=how.on_bad, dtype=how.dtype, shift=self.origin)

    def refit(self, vectors: Any, how: Reading, before: Reservoir) -> tuple["Shifted", Batch]:
        """Another origin if the states are far from this one. Looked at when the number of states seen doubles."""
        batch, seen = self.read(vectors, how), before.seen
        due = seen == 0 or (seen + len(batch.states)).bit_length() > seen.bit_length()
        if how.dtype != "float32" or not due or not len(batch.states):
            return self, batch
        sample = batch.states if seen == 0 else before.sample
        mean = sample.mean(axis=0, dtype=np.float64)
        if np.linalg.norm(mean) <= FAR * np.linalg.norm(sample.std(axis=0, dtype=np.float64)):
            return self, batch
        # The point is a float32 one, so that states of any precision can subtract it without rounding it first.
        moved = Shifted((self.origin + mean).astype(np.float32).astype(np.float64))
        return moved, moved.read(vectors, how)

    def same(self, old: Any) -> bool:
        return self is old

    def convert(self, rows: NDArray[Any], old: Any, own: Any = ALL) -> NDArray[Any]:
        return np.asarray(rows - (self.origin - old.origin)[own])

    def to_states(self, rows: NDArray[Any]) -> Floats:
        return np.asarray(rows + self.origin)

    def log_volume(self) -> float:
        return 0.0

    def to_arrays(self) -> State:
        return {"origin": self.origin.copy()}

    def from_arrays(self, state: Mapping[str, NDArray[Any]]) -> "Shifted":
        return Shifted(state["origin"].copy())


class Standardized(NamedTuple):
    """x ↦ (x − mean) / deviation per coordinate, clipped, with statistics frozen between refreshes."""

    seen: Running  # of all states so far
    mean: Floats
    deviation: Floats  # 0 for a coordinate that has not changed so far: it counts for nothing
    fixed: int  # states seen when mean and deviation were refreshed

    def read(self, vectors: Any, how: Reading) -> Batch:
        """Standardised in float64, so that neither offset nor unit costs precision."""
        (flat, shape), limit = flatten(vectors, how.dim), largest(how.dim, np.float64)
        states = kernel().standardised(flat, self.mean, self.deviation, CLIP, limit, how.dtype)
        if states is not None:
            return Batch(states, None, shape)
        raw = read(vectors, how.dim, on_bad=how.on_bad, dtype=np.float64)  # some are bad
        return raw._replace(states=self.from_states(raw.states).astype(how.dtype))

    def refit(self, vectors: Any, how: Reading, before: Reservoir) -> tuple["Standardized", Batch]:
        """The states are among those seen; mean and deviation are refreshed if it is time."""
        seen = running.absorb(self.seen, read(vectors, how.dim, on_bad=how.on_bad, dtype=np.float64).states)
        frame = self._replace(seen=seen)
        if seen.seen >= max(GROWTH * self.fixed, 1):
            rounding = 64 * np.finfo(np.float64).eps * np.abs(seen.mean)
            frame = Standardized(seen, seen.mean, np.where(seen.deviation > rounding, seen.deviation, 0.0), seen.seen)
        return frame, frame.read(vectors, how)

    def from_states(self, points: NDArray[Any], own: Any = ALL) -> Floats:
        """Points in the states' own coordinates -> these."""
        mean, deviation = self.mean[own], self.deviation[own]
        scaled = np.where(deviation > 0, (points - mean) / np.where(deviation > 0, deviation, 1.0), 0.0)
        return np.clip(scaled, -CLIP, CLIP)

    def same(self, old: Any) -> bool:
        """Where nothing was refreshed; the zeros of a first start stay zeros."""
        return old.fixed in (0, self.fixed)

    def convert(self, rows: NDArray[Any], old: Any, own: Any = ALL) -> NDArray[Any]:
        return self.from_states(old.to_states(rows, own), own)

    def to_states(self, rows: NDArray[Any], own: Any = ALL) -> Floats:
        return np.asarray(rows * self.deviation[own] + self.mean[own])

    def log_volume(self) -> float:
        """Σ ln deviation; −inf if a coordinate has not changed."""
        with np.errstate(divide="ignore"):
            return float(np.log(self.deviation).sum())

    def to_arrays(self) -> State:
        frozen = {"frame.mean": self.mean.copy(), "frame.deviation": self.deviation.copy()}
        return {**running.to_arrays(self.seen, "frame.states"), **frozen, "frame.fixed": np.array([self.fixed])}

    def from_arrays(self, state: Mapping[str, NDArray[Any]]) -> "Standardized":
        mean, deviation = state["frame.mean"].copy(), state["frame.deviation"].copy()
        return Standardized(running.from_arrays(state, "frame.states"), mean, deviation, int(state["frame.fixed"][0]))


Frame = Shifted | Standardized


def start(dim: int, normalize: bool) -> Frame:
    """Before any state: coordinates as they are."""
    zeros = np.zeros(dim)
    return Standardized(running.start((dim,)), zeros, np.ones(dim), 0) if normalize else Shifted(zeros)


def kernel() -> Any:
    """The kernel, imported when it is needed: numba takes a while."""
    from voronaut.kernels.cpu import standard as found

    return found
