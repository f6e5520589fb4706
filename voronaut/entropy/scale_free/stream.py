"""Clusters of a stream in any unit, with its entropy: the rule of `rule.py`, in constant memory."""

import math
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from voronaut import clusters as ref
from voronaut.bonuses.kme import frames
from voronaut.bonuses.reservoir import Reservoir
from voronaut.entropy.cells import bound, cell_entropy
from voronaut.entropy.clustering import ETA, FLOOR
from voronaut.entropy.scale_free import kernel

Floats = NDArray[np.float64]
ETA_REPLAYING = 0.003  # ETA with replay: where streams mix slowly a strong κ would chase the latest states


class ScaleFree:
    """k-means of a stream whose unit does not matter: κ = η m, m the running margin, and α = max(0.01, 1/n).

    For laws that stay what they are: every state ever absorbed counts for good (docs/scale_free.md).

    Args:
        dim: length of a state, d.
        clusters: k.
        replay: this share of what an update absorbs is drawn from a fair sample of all states before; η is then 0.003
            and not 0.03.
        seed: of the shuffles and the choice of first centers.
        dtype: "float32" (fast) or "float64" (exact). float32 works at any offset.
    """

    def __init__(
        self, dim: int, clusters: int = 300, *, replay: float = 0.0, seed: int = 0,
        dtype: Literal["float32", "float64"] = "float32",
    ) -> None:  # fmt: skip
        self.dim, self.clusters, self.replay, self.seed = dim, clusters, replay, seed
        self.eta = ETA_REPLAYING if replay else ETA
        self._reading = frames.Reading(dim, "raise", dtype)
        self._frame: frames.Frame = frames.start(dim, normalize=False)
        self._reservoir = Reservoir(max(16_384, 32 * clusters), dim, dtype, seed)
        self._centers: NDArray[Any] = np.zeros((clusters, dim), dtype)
        self._counts: NDArray[np.int64] = np.ones(clusters, np.int64)
        self._margin, self._updates = 0.0, 0

    def update(self, states: Any) -> None:
        """One shuffled pass over the states (..., d). Centers start at distinct states of the first batch."""
        fresh = self._read(states)
        if not len(fresh):
            return
        if not self._reservoir.seen:
            self._centers = ref.first_centers(fresh, self.clusters, self.seed)
        old = self._reservoir.draw(round(len(fresh) * self.replay / (1 - self.replay)), [self.seed, self._updates, 2])
        mixed = np.concatenate([fresh, old])
        order = np.random.default_rng([self.seed, self._updates]).permutation(len(mixed))
        now = (self._centers, self._counts, self._margin)
        self._centers, self._counts, self._margin = kernel.update(*now, mixed, order, eta=self.eta, floor=FLOOR)
        self._reservoir.add(fresh)
        self._updates += 1

    @property
    def centers(self) -> Floats:
        """Cluster centers μ in the states' own coordinates, (k, d)."""
        return self._frame.to_states(self._centers)

    @property
    def counts(self) -> NDArray[np.int64]:
        """States absorbed by each cluster, n (k,); they start at 1."""
        return self._counts.copy()

    @property
    def balance(self) -> float:
        """κ as it is now, in the states' unit."""
        return self.eta * self._margin

    @property
    def gaps(self) -> Floats:
        """min_{j≠i} ‖μ_i − μ_j‖ + κ (n_j − n_i), (k,)."""
        return np.asarray(self._prepared().gaps, np.float64)

    def objective_value(self) -> float:
        """Σ √gap."""
        return float(ref.sqrt(self.gaps).sum())

    def entropy(self) -> float:
        """Entropy in nats of all states so far, by their cells, from a fair sample; NaN before there are enough."""
        sample = self._reservoir.sample
        return cell_entropy(sample, self._cells(), self.clusters) if len(sample) else math.nan

    def entropy_bound(self) -> float:
        """Theorem 2's, in nats (`entropy.cells.bound`)."""
        return bound(self.gaps, self.dim)

    def metrics(self) -> dict[str, float]:
        """The read-outs by name; docs/metrics.md says what each means."""
        cells = np.bincount(self._cells(), minlength=self.clusters)
        return {
            "objective": self.objective_value(),
            "entropy": self.entropy(),
            "entropy_bound": self.entropy_bound(),
            "cell_mass_cv": float(cells.std() / np.maximum(cells.mean(), 1e-12)),
            "balance": self.balance,
        }

    def _read(self, states: Any) -> NDArray[Any]:
        """States in coordinates that suit them; what is known comes along."""
        frame, batch = self._frame.refit(states, self._reading, self._reservoir)
        if not frame.same(self._frame):
            self._centers = frame.convert(self._centers, self._frame).astype(self._centers.dtype)
            self._reservoir.sample[:] = frame.convert(self._reservoir.sample, self._frame)
        self._frame = frame
        return batch.states

    def _prepared(self) -> Any:
        from voronaut.kernels import cpu

        return cpu.prepare(self._centers, self._counts, self.balance)

    def _cells(self) -> NDArray[np.int64]:
        from voronaut.kernels import cpu

        return np.asarray(cpu.assign(self._prepared(), self._reservoir.sample), np.int64)
