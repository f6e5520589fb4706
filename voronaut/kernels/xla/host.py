"""The functions of `kernels.cpu` over XLA, NumPy in and NumPy out."""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import numpy as np
from numpy.typing import NDArray

from voronaut.kernels.rules import SQRT, Rules
from voronaut.kernels.xla import kmeans

Floats = NDArray[np.floating[Any]]
Counts = NDArray[np.int64]


class Prepared(NamedTuple):
    """Clusters as `rewards` and `assign` want them."""

    centers: Floats  # (k, d)
    counts: Counts
    gaps: Floats  # (k,)
    balance: float


def prepare(centers: Floats, counts: Counts, balance: float) -> Prepared:
    """Clusters (k, d) with their gaps."""
    gaps = _call(_gaps, _clusters(centers, counts), balance)
    return Prepared(centers, counts, gaps, balance)


def assign(prepared: Prepared, states: Floats) -> Counts:
    """argmin_i ‖s − μ_i‖ + κ n_i for each state (Eq. 4)."""
    chosen = _call(_assign, _clusters(prepared.centers, prepared.counts), states, prepared.balance)
    return np.asarray(chosen, np.int64)


def rewards(prepared: Prepared, states: Floats, rules: Rules, threads: int = 1) -> Floats:
    """What each state would earn against the clusters as they are (Eq. 2)."""
    program = functools.partial(_rewards, objective="sqrt" if rules.objective == SQRT else "log")
    clusters, floor = _clusters(prepared.centers, prepared.counts), prepared.centers.dtype.type(rules.floor)
    return np.asarray(_call(program, clusters, states, rules.step_size, rules.balance, floor))


def update(centers: Floats, counts: Counts, states: Floats, order: Counts, rules: Rules) -> tuple[Floats, Counts]:
    """One pass of online k-means over the states in the given order (Eqs. 4 to 6)."""
    after = _call(_update, _clusters(centers, counts), states[order], rules.step_size, rules.balance)
    # Counts travel as 32-bit numbers above their minimum, so that a long life does not overflow them.
    return np.array(after.centers), after.counts + counts.min()


def _clusters(centers: Floats, counts: Counts) -> kmeans.Clusters:
    lead: Any = (counts - counts.min()).astype(np.int32)
    return kmeans.Clusters(centers, lead)  # type: ignore[arg-type]


def _call(program: Callable[..., Any], clusters: kmeans.Clusters, *rest: Any) -> Any:
    """Run in the precision of the centers and bring the result back as NumPy."""
    with jax.enable_x64(np.asarray(clusters.centers).dtype == np.float64):
        return jax.device_get(program(clusters, *rest))


@jax.jit
def _gaps(clusters: kmeans.Clusters, balance: Any) -> Any:
    return kmeans.gaps(clusters, balance)


@jax.jit
def _assign(clusters: kmeans.Clusters, states: Any, balance: Any) -> Any:
    weight = kmeans.weights(clusters, balance, clusters.counts.min())
    return jax.lax.map(lambda state: kmeans.assign(clusters, weight, state), states, batch_size=4096)


@functools.partial(jax.jit, static_argnames="objective")
def _rewards(clusters: Any, states: Any, step_size: Any, balance: Any, floor: Any, objective: str) -> Any:
    options = {"step_size": step_size, "balance": balance, "objective": objective, "floor": floor}
    return kmeans.rewards(clusters, states, **options)


@jax.jit
def _update(clusters: Any, states: Any, step_size: Any, balance: Any) -> Any:
    chunk = kmeans.default_chunk(frozen=False)
    return kmeans.update(clusters, states, step_size=step_size, balance=balance, chunk=chunk)
