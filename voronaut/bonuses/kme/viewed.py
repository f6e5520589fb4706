"""A KME's views: what they have learned, what they pay, and in which unit. `voronaut/views.py` is the same in NumPy.

States come in deviations from their mean (`frames.Standardized`), so no number here has a unit. Each view's rewards
are divided by their running deviation, and the sum of all views by its own: what a KME pays has deviation 1.

A coordinate of a few values, such as a flag, is known once each has a center; then what it earns is what rounding
leaves, and in the deviation of that a value that is rare would be paid by the ten thousand. So the deviation of a view
of few values is not below a hundredth of the most that such a view can pay, and that of a sum of these not below 1.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from voronaut import clusters, views
from voronaut.bonuses.kme.frames import CLIP
from voronaut.bonuses.kme.settings import Settings

Floats = NDArray[np.floating[Any]]
MEASURED = 1024  # states of an update whose rewards tell the deviations
RATE = 0.1  # of the deviations per update, once there have been ten
LOOKED, APART, MOST = 64, 1e-4, 100.0  # states that show few values, what tells two apart, and deviations for one
ARRAYS = ("centers", "usage", "margins", "deviations")


class Viewed:
    """V clusterings: centers (V, k, m), usage (V, k), margins (V,) and the deviations of what each pays (V,)."""

    def __init__(self, settings: Settings) -> None:
        self.settings, self.replay = settings, 0.5  # of what a pass absorbs
        v, k, m = settings.views, settings.clusters, settings.view_dim
        self.columns = views.columns(settings.dim, v, m, settings.seed)
        self.centers: Floats = np.zeros((v, k, m), settings.dtype)
        self.usage, self.margins, self.deviations = np.ones((v, k)), np.zeros(v), np.zeros(v)
        self.deviation = 0.0  # of the sum
        self.seen = self.updates = 0  # states absorbed, replayed ones too
        self._prepared: Any = None
        self._weights: NDArray[np.float64] | None = None

    def start(self, states: Floats) -> None:
        """Put the centers at states of a first batch (n, d)."""
        for view, own in enumerate(self.columns):
            first = views.start(states[:, own].astype(np.float64), self.settings.clusters, self.settings.seed)
            self.centers[view] = first.centers
        self._prepared = None

    def rewards(self, states: Floats) -> Floats:
        """(n, d) -> (n,): what each state would earn, in deviations (or raw, without `normalize_bonus`)."""
        s = self.settings
        if self._weights is None:
            self._weights = self.weights()
        paid = kernel().rewards(self.prepared(), self._weights, states, s.step_size, s.threads)
        return np.asarray(paid, s.dtype)

    def update(self, states: Floats, order: NDArray[np.int64]) -> None:
        """Absorb states (n, d) in the given order, and learn in which unit they are paid."""
        states = states[order]
        self.take(kernel().update(self._views(), states, self.settings.step_size))
        self._measure(states)

    def step(self, states: Floats) -> Floats:
        """Algorithm 1 over states (n, d): what each earns, raw; they are absorbed in the given order."""
        after, paid = kernel().step(self._views(), states, self.settings.step_size)
        self.take(after)
        self._measure(states)
        return np.asarray(paid, self.settings.dtype)

    def take(self, after: Any) -> None:
        """Become what a kernel's update gave."""
        self.centers = np.asarray(after.centers, self.settings.dtype)
        self.usage, self.margins = (np.asarray(x, np.float64) for x in (after.usage, after.margin))
        self.seen, self._prepared = int(after.seen), None

    def _measure(self, states: Floats) -> None:
        """Learn deviations from states that have been absorbed, (n, d)."""
        s = self.settings
        few = few_values(states[:LOOKED][:, self.columns], s.clusters)
        self.measure(kernel().each(self.prepared(), states[:MEASURED], s.step_size), few)

    def measure(self, each: Floats, few: NDArray[np.bool_] | bool = False) -> None:
        """Let the deviations follow what some states earn from each view, (V, n); some views may have few values."""
        self.updates, self._weights = self.updates + 1, None
        rate, each = max(RATE, 1 / self.updates), np.asarray(each, np.float64)
        found = self.deviations + rate * (each.std(axis=1) - self.deviations)
        self.deviations = np.where(few & (found > 0), np.maximum(found, least(self.settings.step_size)), found)
        total = (each * self.units()[:, None]).sum(axis=0)
        self.deviation += rate * (float(total.std()) - self.deviation)
        if np.all(few) and self.deviation > 0:
            self.deviation = max(self.deviation, 1.0)

    def units(self) -> NDArray[np.float64]:
        """1/σ of each view, (V,); 0 where it may be rounding, as with a center for every state."""
        return inverse(self.deviations * (self.deviations > views.ROUNDED))

    def weights(self) -> NDArray[np.float64]:
        """What each view's rewards are multiplied by, (V,)."""
        if not self.settings.normalize_bonus:
            return np.ones(len(self.columns))
        return self.units() * inverse(np.array(self.deviation))

    def prepared(self) -> Any:
        """The views as the kernel wants them."""
        if self._prepared is None:
            self._prepared = kernel().prepare(self._views())
        return self._prepared

    def gaps(self) -> NDArray[np.float64]:
        """min_{j≠i} ‖μ_i − μ_j‖ within each view, in deviations of the states, (V, k)."""
        return np.asarray(kernel().gaps(self._views()), np.float64)

    def objective_value(self) -> float:
        """Σ √gap over all clusters of all views."""
        return float(clusters.sqrt(self.gaps()).sum())

    def assign(self, states: Floats) -> NDArray[np.int64]:
        """The cell of each state (n, d) in each view, (V, n)."""
        return np.asarray(kernel().assign(self._views(), states))

    def centers_of(self, view: int) -> Floats:
        """Centers (k, m) of a view."""
        return np.asarray(self.centers[view])

    def metrics(self) -> dict[str, float]:
        """What only this memory tells."""
        return {"bonus_deviation": self.deviation}

    def convert(self, old: Any, new: Any) -> None:
        """Bring the centers along from one frame to the next."""
        self.centers = new.convert(self.centers, old, self.columns[:, None]).astype(self.settings.dtype)
        self._prepared = None

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """Copies of everything learned."""
        arrays = {name: getattr(self, name).copy() for name in ARRAYS}
        return arrays | {"deviation": np.array([self.deviation]), "passes": np.array([self.seen, self.updates])}

    def from_arrays(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Take over what `to_arrays` gave."""
        self.centers, self.usage, self.margins, self.deviations = (arrays[name].copy() for name in ARRAYS)
        self.deviation = float(arrays["deviation"][0])
        self.seen, self.updates = (int(n) for n in arrays["passes"])
        self._prepared = self._weights = None

    def _views(self) -> Any:
        return kernel().Views(self.columns, self.centers, self.usage, self.margins, self.seen)


def few_values(rows: Floats, clusters: int) -> NDArray[np.bool_]:
    """(n, V, m) -> (V,): whether states have so few values in a view that most clusters sit on others.

    Each value comes four times on average, and there are two clusters for each. A weighted sum tells them apart.
    """
    along = np.sort((rows * (1 + 0.618 * np.arange(rows.shape[2]) % 1)).sum(axis=2), axis=0)
    values = 1 + (np.diff(along, axis=0) > APART).sum(axis=0)
    return np.asarray((4 * values <= len(rows)) & (2 * values <= clusters))


def least(step_size: float) -> float:
    """The deviation in which a gap of 0 that a move all across opens, √(2 α CLIP), counts as MOST."""
    return float(np.sqrt(2 * step_size * CLIP)) / MOST


def inverse(deviations: NDArray[np.float64]) -> NDArray[np.float64]:
    """1/σ; 0 where σ is 0, so that what never varies pays nothing."""
    return np.asarray(np.divide(1, deviations, out=np.zeros_like(deviations), where=deviations > 0))


def kernel() -> Any:
    """The views' kernel, imported when it is needed: numba takes a while."""
    from voronaut.kernels.cpu import views as found

    return found
