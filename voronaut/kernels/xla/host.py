"""The functions of `kernels.cpu` over XLA, NumPy in and NumPy out, for machines with an accelerator or without numba.

`*_runs` treat many sets of clusters of equal size as one program. On an accelerator updates go in frozen chunks of 64
states (see `kmeans.update`); on a CPU state by state.
"""

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


def chunk() -> int:
    """How many states an update absorbs at once on this machine; one is the sequence, frozen or not."""
    return kmeans.default_chunk(frozen=False)


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
    floors = np.array([rules.floor])
    return np.asarray(rewards_runs(prepared.centers[None], prepared.counts[None], states[None], rules, floors)[0])


def update(centers: Floats, counts: Counts, states: Floats, order: Counts, rules: Rules) -> tuple[Floats, Counts]:
    """One pass of online k-means over the states in the given order (Eqs. 4 to 6)."""
    after, totals = update_runs(centers[None], counts[None], states[order][None], rules)
    return after[0], totals[0]


def rewards_runs(centers: Floats, counts: Counts, states: Floats, rules: Rules, floors: Floats) -> Floats:
    """`rewards` for (runs, k, d) centers and (runs, n, d) states; each run has its own floor for "log"."""
    program = functools.partial(_rewards, objective="sqrt" if rules.objective == SQRT else "log")
    clusters = _clusters(centers, counts)
    paid = _call(program, clusters, states, rules.step_size, rules.balance, floors.astype(centers.dtype))
    return np.asarray(paid)


def update_runs(centers: Floats, counts: Counts, states: Floats, rules: Rules) -> tuple[Floats, Counts]:
    """`update` for (runs, k, d) centers and (runs, n, d) states, already in the order of absorption."""
    program = functools.partial(_update, chunk=chunk())
    after = _call(program, _clusters(centers, counts), states, rules.step_size, rules.balance)
    # Counts travel as 32-bit numbers above their minimum, so that a long life does not overflow them.
    return np.array(after.centers), after.counts + counts.min(axis=-1, keepdims=True)


def _clusters(centers: Floats, counts: Counts) -> kmeans.Clusters:
    lead: Any = (counts - counts.min(axis=-1, keepdims=True)).astype(np.int32)
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
def _rewards(clusters: Any, states: Any, step_size: Any, balance: Any, floors: Any, objective: str) -> Any:
    def one(clusters: Any, states: Any, floor: Any) -> Any:
        options = {"step_size": step_size, "balance": balance, "objective": objective, "floor": floor}
        return kmeans.rewards(clusters, states, **options)

    return jax.vmap(one)(clusters, states, floors)


@functools.partial(jax.jit, static_argnames="chunk")
def _update(clusters: Any, states: Any, step_size: Any, balance: Any, chunk: int) -> Any:
    def one(clusters: Any, states: Any) -> Any:
        return kmeans.update(clusters, states, step_size=step_size, balance=balance, chunk=chunk, frozen=True)

    return jax.vmap(one)(clusters, states)
