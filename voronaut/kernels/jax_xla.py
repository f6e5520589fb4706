"""Balanced online k-means for XLA: pure functions of one set of clusters, to be jitted, scanned and vmapped over runs.

For accelerators; on a CPU `voronaut.kernels.cpu` is faster. All distances are formed from differences: the expansion
‖s‖² + ‖μ‖² − 2 s·μ would be one matrix product and, in float32, wrong for states far from the origin.
"""

import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

Array = jax.Array
Number = Any  # a float, or a traced scalar where runs differ in it

OBJECTIVES = ("sqrt", "log")


class Clusters(NamedTuple):
    """Centers μ (k, d) and the number of states each has absorbed, n (k,), integers."""

    centers: Array
    counts: Array


class Geometry(NamedTuple):
    """What frozen clusters are to each other, (k,) each."""

    gap: Array  # min_{j≠i} ‖μ_i − μ_j‖ + κ (n_j − n_i)
    second: Array  # the gap were the nearest cluster not there; +inf for k = 2
    nearest: Array  # index of the nearest cluster


def weights(clusters: Clusters, balance: Number, base: Array) -> Array:
    """κ (n_i − base) (Eq. 6, negated, up to a constant): integers are subtracted before anything is rounded."""
    return jnp.asarray(balance * (clusters.counts - base).astype(clusters.centers.dtype))


def distances(centers: Array, point: Array) -> Array:
    """‖μ_i − x‖ for all i, (k,)."""
    return jnp.sqrt(((centers - point) ** 2).sum(axis=1))


def assign(clusters: Clusters, weight: Array, state: Array) -> Array:
    """argmin_i ‖s − μ_i‖ + κ n_i, the lowest index on a tie (Eq. 4)."""
    return jnp.argmin(distances(clusters.centers, state) + weight)


@jax.jit
def survey(clusters: Clusters, balance: Number) -> Geometry:
    """All gaps from scratch, O(k² d)."""
    weight = weights(clusters, balance, clusters.counts.min())
    between = jax.vmap(distances, in_axes=(None, 0))(clusters.centers, clusters.centers)
    here = jnp.arange(len(weight))
    adjusted = (between + (weight[None] - weight[:, None])).at[here, here].set(jnp.inf)
    nearest = adjusted.argmin(axis=1)
    return Geometry(adjusted.min(axis=1), adjusted.at[here, nearest].set(jnp.inf).min(axis=1), nearest)


def gaps(clusters: Clusters, balance: Number) -> Array:
    """min_{j≠i} ‖μ_i − μ_j‖ + κ (n_j − n_i), raw (k,). Negative: the cell of cluster i is empty."""
    return jnp.asarray(survey(clusters, balance).gap)


def concave(gap: Array, objective: str, floor: Number) -> Array:
    """f(x) = √max(x, 0) or log max(x, floor)."""
    return jnp.sqrt(jnp.maximum(gap, 0)) if objective == "sqrt" else jnp.log(jnp.maximum(gap, floor))


@functools.partial(jax.jit, static_argnames=("objective", "block"))
def rewards(
    clusters: Clusters, states: Array, *, step_size: Number, balance: Number, objective: str, floor: Number,
    block: int = 4096,
) -> Array:  # fmt: skip
    """Σ f(gaps after) − Σ f(gaps before) for each of (n, d) states against the clusters as they are (Eq. 2), (n,).

    Exact: a cluster that loses its nearest one falls back on its second. `block` states are treated at once, so
    memory is O(block · k). The moved center is measured directly; Stewart's identity would save one of two passes
    over d and cancel in float32 where centers are close.
    """
    if objective not in OBJECTIVES:
        raise ValueError(f"objective must be one of {', '.join(OBJECTIVES)}; got {objective!r}. Use objective='sqrt'.")
    weight = weights(clusters, balance, clusters.counts.min())
    shape = survey(clusters, balance)
    before = concave(shape.gap, objective, floor)
    index = jnp.arange(len(weight))

    def reward(state: Array) -> Array:
        i = assign(clusters, weight, state)
        center = clusters.centers[i]
        moved = distances(clusters.centers - center, step_size * (state - center))  # the winner as origin
        lead = weight - (weight[i] + balance)  # κ (n_j − n_i) with the state counted
        own = jnp.where(index == i, jnp.inf, moved + lead).min()
        others = jnp.minimum(jnp.where(shape.nearest == i, shape.second, shape.gap), moved - lead)
        after = concave(jnp.where(index == i, own, others), objective, floor)
        return (after - before).sum()

    return jnp.asarray(jax.lax.map(reward, states, batch_size=block))


@functools.partial(jax.jit, static_argnames="chunk")
def update(
    clusters: Clusters, states: Array, *, step_size: Number, balance: Number, chunk: int, good: Array | None = None
) -> Clusters:
    """Assign, move and count (Eqs. 4 to 6) over (n, d) states in the given order, `chunk` states at a time.

    The states of a chunk are assigned to the clusters as they were before it and then absorbed in order; a chunk of 1
    is the exact sequence. States that are not `good` (n,) are passed over; they must be finite all the same.
    """
    # Deviation: in a larger chunk an assignment does not see the moves and counts of up to chunk − 1 states before it.
    if chunk < 1:
        raise ValueError(f"chunk must be at least 1; got {chunk}. 1 is the exact sequence, 64 is fast on a GPU.")
    padding = -len(states) % chunk
    blocks = jnp.pad(states, ((0, padding), (0, 0))).reshape(-1, chunk, states.shape[1])
    taken = jnp.ones(len(states), bool) if good is None else good
    valid = jnp.pad(taken, (0, padding)).reshape(-1, chunk)
    base = clusters.counts.min()
    step = functools.partial(_absorb, base=base, step_size=step_size, balance=balance)
    return jax.lax.scan(lambda old, block: (step(old, *block), None), clusters, (blocks, valid))[0]


def _absorb(
    clusters: Clusters, states: Array, valid: Array, *, base: Array, step_size: Number, balance: Number
) -> Clusters:
    """μ_i ← (1−α)^m μ_i + Σ_r α (1−α)^(m−1−r) s_r over the m states of a chunk that chose i, r their rank."""
    k, weight = len(clusters.counts), weights(clusters, balance, base)
    alpha = jnp.asarray(step_size, clusters.centers.dtype)
    chosen = jax.vmap(assign, in_axes=(None, None, 0))(clusters, weight, states)
    chosen = jnp.where(valid, chosen, k)  # the padding of the last chunk chooses nobody
    mine = chosen == jnp.arange(k)[:, None]  # (k, chunk)
    later = jnp.triu(chosen[:, None] == chosen, 1).sum(axis=1)  # m − 1 − r
    share = mine * (alpha * (1 - alpha) ** later)
    arrivals = mine.sum(axis=1, dtype=clusters.counts.dtype)
    # A product with zeros, not a scatter: deterministic on a GPU. "highest": no rounding of states to 10 bits there.
    moved = ((1 - alpha) ** arrivals)[:, None] * clusters.centers + jnp.matmul(share, states, precision="highest")
    return Clusters(moved, clusters.counts + arrivals)
