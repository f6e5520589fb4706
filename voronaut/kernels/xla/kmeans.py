"""Balanced online k-means for XLA: pure functions of one set of clusters, to be jitted, scanned and vmapped over runs.

For accelerators; on a CPU `voronaut.kernels.cpu` is faster. All distances are formed from differences: the expansion
‖s‖² + ‖μ‖² − 2 s·μ would be one matrix product and, in float32, wrong for states far from the origin.
"""

import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from voronaut.kernels.rules import OBJECTIVES

Array = jax.Array
Number = Any  # a float, or a traced scalar where runs differ in it

CHUNK = 64  # states that an accelerator treats at once


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
def prepare(clusters: Clusters, balance: Number) -> Geometry:
    """All gaps from scratch, O(k² d)."""
    weight = weights(clusters, balance, clusters.counts.min())
    between = jax.vmap(distances, in_axes=(None, 0))(clusters.centers, clusters.centers)
    here = jnp.arange(len(weight))
    adjusted = (between + (weight[None] - weight[:, None])).at[here, here].set(jnp.inf)
    nearest = adjusted.argmin(axis=1)
    return Geometry(adjusted.min(axis=1), adjusted.at[here, nearest].set(jnp.inf).min(axis=1), nearest)


def gaps(clusters: Clusters, balance: Number) -> Array:
    """min_{j≠i} ‖μ_i − μ_j‖ + κ (n_j − n_i), raw (k,). Negative: the cell of cluster i is empty."""
    return jnp.asarray(prepare(clusters, balance).gap)


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
    shape = prepare(clusters, balance)
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
    clusters: Clusters, states: Array, *, step_size: Number, balance: Number, chunk: int | None = None,
    good: Array | None = None,
) -> Clusters:  # fmt: skip
    """Assign, move and count (Eqs. 4 to 6) over (n, d) states in the given order, `chunk` of them at a time.

    The result is the sequence's for every chunk (None: 1 where programs are cheap to start, 64 elsewhere). States that
    are not `good` (n,) are passed over; they must be finite all the same.
    """
    if chunk is None:
        chunk = 1 if jax.default_backend() == "cpu" else CHUNK
    if not isinstance(chunk, int) or isinstance(chunk, bool) or chunk < 1:
        raise ValueError(f"chunk must be a whole number, at least 1; got {chunk}. 1 is fast on a CPU, 64 elsewhere.")
    chunk = min(chunk, max(1, len(states)))
    padding = -len(states) % chunk
    blocks = jnp.pad(states, ((0, padding), (0, 0))).reshape(-1, chunk, states.shape[1])
    taken = jnp.ones(len(states), bool) if good is None else good
    valid = jnp.pad(taken, (0, padding)).reshape(-1, chunk)
    base = clusters.counts.min()
    step = functools.partial(_absorb, base=base, step_size=step_size, balance=balance)
    return jax.lax.scan(lambda old, block: (step(old, *block), None), clusters, (blocks, valid))[0]


class _Guess(NamedTuple):
    """Who wins each state of a chunk, and what the winner becomes."""

    chosen: Array  # (m,) k where the state is passed over
    moved: Array  # (m, d)
    rounds: Array
    settled: Array


def _absorb(
    clusters: Clusters, states: Array, valid: Array, *, base: Array, step_size: Number, balance: Number
) -> Clusters:
    """The clusters after a chunk of states, each of which meets what those before it have left.

    Winners are guessed against the clusters as they are. Then every guess is made again among what the others would
    leave, until nothing changes: that is the sequence. Each round makes at least one more state right.
    """
    k, m, time = len(clusters.counts), len(states), jnp.arange(len(states))
    alpha = jnp.asarray(step_size, clusters.centers.dtype)
    states = states.astype(clusters.centers.dtype)
    apart = jax.vmap(distances, in_axes=(None, 0))
    values = apart(clusters.centers, states) + weights(clusters, balance, base)  # (m, k) while nobody moves

    def again(guess: _Guess) -> _Guess:
        chosen = guess.chosen
        same = (chosen[:, None] == chosen) & (chosen < k)
        before = jnp.where(jnp.tril(same, -1), time, -1).max(axis=1)  # the last state with the same winner
        until = jnp.where(jnp.triu(same, 1), time, m).min(axis=1)  # the next one
        rank = jnp.tril(same).sum(axis=1)
        first = jnp.full(k + 1, m).at[chosen].min(time)[:k]
        old = jnp.where(before[:, None] < 0, clusters.centers[jnp.minimum(chosen, k - 1)], guess.moved[before])
        moved = alpha * states + (1 - alpha) * old
        # State t meets clusters that nobody before it has won, as they were, and the last of what each other became.
        untouched = jnp.where(first < time[:, None], jnp.inf, values)
        lead = Clusters(moved, clusters.counts[jnp.minimum(chosen, k - 1)] + rank.astype(clusters.counts.dtype))
        there = (chosen < k) & (time < time[:, None]) & (until >= time[:, None])
        met = jnp.where(there, apart(moved, states) + weights(lead, balance, base), jnp.inf)
        nearest, near = untouched.argmin(axis=1), met.min(axis=1)
        touched = jnp.where(there & (met == near[:, None]), chosen, k).min(axis=1)
        least = untouched.min(axis=1)
        nearer = (near < least) | ((near == least) & (touched < nearest))  # the lowest index on a tie
        winner = jnp.where(valid, jnp.where(nearer, touched, nearest), k)
        settled = (winner == chosen).all() & (moved == guess.moved).all()
        return _Guess(winner, moved, guess.rounds + 1, settled)

    begun = _Guess(jnp.where(valid, values.argmin(axis=1), k), jnp.zeros_like(states), jnp.array(0), jnp.array(False))
    found = jax.lax.while_loop(lambda guess: ~guess.settled & (guess.rounds < m), again, begun)
    last = ~jnp.triu(found.chosen[:, None] == found.chosen, 1).any(axis=1)
    centers = clusters.centers.at[jnp.where(last, found.chosen, k)].set(found.moved, mode="drop")
    return Clusters(centers, clusters.counts.at[found.chosen].add(1, mode="drop"))
