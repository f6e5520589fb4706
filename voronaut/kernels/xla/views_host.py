"""`kernels.cpu.views` by XLA, NumPy in and NumPy out: for machines without numba. One run at a time."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from voronaut.kernels.xla import views as kernel
from voronaut.kernels.xla.views import BLOCK, Views

Floats = NDArray[np.floating[Any]]


def prepare(views: Views) -> Views:
    """Nothing is to be prepared."""
    return views


def rewards(views: Views, weights: Floats, states: Floats, step_size: float, threads: int = 1) -> Floats:
    """Σ_v w_v r_v for states (n, d), (n,). XLA takes the threads it wants."""
    weighted = np.asarray(weights, views.centers.dtype)[None]
    return np.asarray(kernel.rewards_runs(_one(views), weighted, states[None], step_size)[0])


def each(views: Views, states: Floats, step_size: float) -> Floats:
    """r_v for states (n, d), (V, n)."""
    return np.asarray(kernel.each_runs(_one(views), states[None], step_size)[0])


def update(views: Views, states: Floats, step_size: float) -> Views:
    """The views after states (n, d), in blocks."""
    after = kernel.update_runs(_one(views), states[None], np.array([len(states)]), step_size, BLOCK)
    return Views(*(leaf[0] for leaf in after))


def assign(views: Views, states: Floats) -> NDArray[np.int64]:
    """The cell of each state (n, d) in each view, (V, n)."""
    return np.stack(
        [_nearest(states[:, own], centers) for own, centers in zip(views.columns, views.centers, strict=True)]
    )


def gaps(views: Views) -> NDArray[np.float64]:
    """min_{j≠i} ‖μ_i − μ_j‖ within each view, (V, k)."""
    return np.stack([_gaps(centers.astype(np.float64)) for centers in np.asarray(views.centers)])


def _one(views: Views) -> Views:
    """A run by itself."""
    return Views(*(np.asarray(leaf)[None] for leaf in views))


def _nearest(rows: Floats, centers: Floats) -> NDArray[np.int64]:
    # ‖x‖² is the same for all centers, and left out.
    return np.asarray(((centers**2).sum(axis=1) - 2 * rows @ centers.T).argmin(axis=1))


def _gaps(centers: NDArray[np.float64]) -> NDArray[np.float64]:
    apart = np.sqrt(((centers[:, None] - centers[None]) ** 2).sum(axis=2))
    np.fill_diagonal(apart, np.inf)
    return np.asarray(apart.min(axis=1))
