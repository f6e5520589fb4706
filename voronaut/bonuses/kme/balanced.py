"""The paper's memory: one k-means of whole states, balanced by counts. `voronaut/clusters.py` is the same in NumPy."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from voronaut import clusters
from voronaut.bonuses.kme.settings import Settings
from voronaut.kernels.rules import LOG_FLOOR, OBJECTIVES, Rules

Floats = NDArray[np.floating[Any]]
Counts = NDArray[np.int64]
ALIKE = 8  # states that tell the kernel what is to come
KEPT = ("kept_gap", "kept_bound", "kept_nearest")


class Balanced:
    """Centers (k, d), the states that each has absorbed (k,), and where "log" is cut off."""

    def __init__(self, settings: Settings) -> None:
        self.settings, self.replay = settings, 0.0  # a pass absorbs what comes
        self.columns = np.arange(settings.dim)[None]
        self.centers: Floats = np.zeros((settings.clusters, settings.dim), settings.dtype)
        self.counts: Counts = np.ones(settings.clusters, np.int64)
        self.floor = 1.0
        self.grown = self.recomputed = 0  # gaps, on the walks of `step`
        self._prepared: Any = None  # the clusters as the kernel wants them, made when needed
        self._alike: Floats | None = None  # a few of the states absorbed last
        self._kept: Any = None  # gaps that follow `step`

    @property
    def rules(self) -> Rules:
        """What the kernels are told besides clusters and states."""
        s = self.settings
        return Rules(float(s.step_size), float(s.balance), OBJECTIVES[s.objective], self.floor)

    def start(self, states: Floats) -> None:
        """Put the centers at states of a first batch (n, d)."""
        self.centers = clusters.first_centers(states, self.settings.clusters, self.settings.seed)
        self._prepared = None

    def rewards(self, states: Floats) -> Floats:
        """(n, d) -> (n,): what each state would earn."""
        return np.asarray(kernel().rewards(self.prepared(), states, self.rules, self.settings.threads))

    def update(self, states: Floats, order: Counts) -> None:
        """Absorb states (n, d) in the given order."""
        self._alike = states[:: max(1, len(states) // ALIKE)].copy()
        self.take(*kernel().update(self.centers, self.counts, states, order, self.rules))

    def step(self, states: Floats) -> Floats:
        """Algorithm 1 over states (n, d): the gaps it keeps up to date serve the next walk too."""
        from voronaut.kernels import cpu

        kept = self._kept or cpu.keep(self.prepared())
        done = cpu.step(self.centers, self.counts, cpu.Gaps(*kept), states, self.rules)
        self.grown += done.grown
        self.recomputed += done.recomputed
        self.take(done.centers, done.counts, done.kept)
        return done.rewards

    def take(self, centers: Floats, counts: Counts, kept: Any = None) -> None:
        """Become what a kernel's update gave."""
        self.centers, self.counts, self._prepared, self._kept = centers, counts, None, kept
        mean_gap = float(np.maximum(self.gaps(), 0).mean())  # prepares the next rewards too
        self.floor = LOG_FLOOR * mean_gap if mean_gap > 0 else 1.0

    def prepared(self) -> Any:
        """The clusters as the kernel wants them."""
        if self._prepared is None:
            self._prepared = kernel().prepare(self.centers, self.counts, self.rules.balance, self._alike)
        return self._prepared

    def gaps(self) -> NDArray[np.float64]:
        """min_{j≠i} ‖μ_i − μ_j‖ + κ (n_j − n_i), raw (k,)."""
        return np.asarray(self._kept[0] if self._kept else self.prepared().gaps, np.float64)

    def objective_value(self) -> float:
        """Σ_i f(gap_i)."""
        gaps = self.gaps()
        paid = clusters.sqrt(gaps) if self.settings.objective == "sqrt" else clusters.log(gaps, self.floor)
        return float(paid.sum())

    def assign(self, states: Floats) -> Counts:
        """The cell of each state (n, d), (1, n)."""
        return np.asarray(kernel().assign(self.prepared(), states))[None]

    def centers_of(self, view: int) -> Floats:
        """Centers (k, d) of the one view there is."""
        return self.centers

    def convert(self, old: Any, new: Any) -> None:
        """Bring the centers along from one frame to the next."""
        self.centers = new.convert(self.centers, old).astype(self.settings.dtype)
        self._prepared = self._kept = self._alike = None

    def metrics(self) -> dict[str, float]:
        """What only this memory tells."""
        return {
            "count_cv": float(self.counts.std() / self.counts.mean()),
            "grown_gaps": float(self.grown),
            "recomputed_gaps": float(self.recomputed),
        }

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """Copies of everything learned."""
        none = np.zeros(0, self.settings.dtype)
        kept = self._kept or (none, none, np.zeros(0, np.int64))
        arrays = {"centers": self.centers.copy(), "counts": self.counts.copy(), "floor": np.array([self.floor])}
        return arrays | {name: array.copy() for name, array in zip(KEPT, kept, strict=True)}

    def from_arrays(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Take over what `to_arrays` gave."""
        self.centers, self.counts = arrays["centers"].copy(), arrays["counts"].copy()
        self.floor = float(arrays["floor"].reshape(-1)[0])
        kept = tuple(arrays[name].copy() for name in KEPT) if KEPT[0] in arrays else ((),)
        self._prepared, self._kept = None, kept if len(kept[0]) else None


def kernel() -> Any:
    """The kernel, imported when it is needed: numba takes a while."""
    from voronaut.kernels import cpu as found

    return found
