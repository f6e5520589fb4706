"""`voronaut.views` for XLA: pure functions of all views of one run, to be jitted, scanned and vmapped over runs.

Rewards are exact. An update is a sequence by nature: each state meets the centers that the one before it has left. On
an accelerator a step of it costs what starting its programs costs, however few its numbers. So states are taken in
blocks: those of a block are all decided against the same centers, each winner then moves through its wins, and at most
one crowd is split. A block of 1 is the sequence; one of 8 has an eighth of the steps. On Gaussian states, begun 50
deviations away, the masses of cells vary as much after either: by 0.40 and 0.39 of their mean (32 clusters of one
coordinate), 0.41 and 0.40 (of two), 0.12 and 0.12 (of six).
"""

import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from voronaut.kernels.xla import kmeans
from voronaut.views import BESIDE, CLIP, CROWDED, FADE, RATE

Array = Any  # of JAX, or of NumPy where nothing is traced
Number = Any  # a float, or a traced scalar where runs differ in it
Floats = NDArray[np.floating[Any]]

BLOCK = 8  # states that an accelerator decides at once
NUMBERS = 2**25  # in one array of a run, at most, while views of several coordinates pay: (V, states, k, m)


class Views(NamedTuple):
    """V views of one run. Where m = 1 the centers of each are sorted. k is at least 2."""

    columns: Array  # (V, m) int32: the coordinates of each view
    centers: Array  # μ (V, k, m)
    usage: Array  # u (V, k)
    margin: Array  # (V,)
    seen: Array  # () int32


# ---- rewards ---------------------------------------------------------------------------------------------------------


@jax.jit
def rewards(views: Views, weights: Array, states: Array, step_size: Number) -> Array:
    """Σ_v w_v r_v for (n, d) states against the centers as they are, (n,). A weight of 0 leaves a view out."""
    # Not a product of matrices, which some accelerators round to 10 bits, and in which 0 times a NaN is no 0.
    own = weights[:, None] * each(views, states, step_size)
    return jnp.where(weights[:, None] == 0, 0, own).sum(axis=0)


@jax.jit
def each(views: Views, states: Array, step_size: Number) -> Array:
    """r_v, (V, n): L after the winning center has moved less L before (Eq. 2), for each view by itself."""
    own = _own(views, states.astype(views.centers.dtype))
    if views.centers.shape[2] == 1:
        line = functools.partial(_line_rewards, step_size=step_size)
        return jnp.asarray(jax.vmap(line)(views.centers[..., 0], own[..., 0]))
    k = views.centers.shape[1]
    unweighted = {"balance": 0.0, "objective": "sqrt", "floor": 0.0, "block": max(1, NUMBERS // views.centers.size)}

    def space(centers: Array, own: Array) -> Array:
        clusters = kmeans.Clusters(centers, jnp.zeros(k, jnp.int32))
        return jnp.asarray(kmeans.rewards(clusters, own, step_size=step_size, **unweighted))

    return jnp.asarray(jax.vmap(space)(views.centers, own))


def _own(views: Views, states: Array) -> Array:
    """What each view sees of (n, d) states, (V, n, m)."""
    return states.T[views.columns].swapaxes(1, 2)


def _line_rewards(centers: Array, states: Array, step_size: Number) -> Array:
    """`each` for one view of one coordinate: sorted centers (k,), states (n,). The winner's gap changes, and two more.

    Nothing of size (n, k) is kept: comparisons are counted as they are made, and only neighbours are looked up.
    """
    between = jnp.diff(centers)
    midpoints = centers[:-1] + between / 2
    nearest = (states > midpoints[:, None]).sum(axis=0)  # on a CPU four times as fast as searchsorted
    # Beyond the outermost centers there is nobody near, inf, and no gap of nobody's to change, 0.
    ends = jnp.array([0, jnp.inf], centers.dtype)
    space = jnp.concatenate([ends, between, ends[::-1]])
    before, left, right, after = (space[nearest + i] for i in range(4))  # spaces between i−2, i−1, i, i+1, i+2
    move = step_size * (states - centers[nearest])
    was = jnp.minimum(before, left), jnp.minimum(left, right), jnp.minimum(right, after)
    left, right = left + move, right - move
    now = jnp.minimum(before, left), jnp.minimum(left, right), jnp.minimum(right, after)
    return sum((jnp.sqrt(new) - jnp.sqrt(old) for new, old in zip(now, was, strict=True)), jnp.zeros_like(move))


# ---- updates ---------------------------------------------------------------------------------------------------------


@functools.partial(jax.jit, static_argnames="block")
def update(views: Views, states: Array, count: Number, step_size: Number, block: int) -> Views:
    """`views.absorb` over the first `count` of (n, d) states, in their order, `block` of them at a time.

    The rows after them change nothing, so that programs for different counts can have one shape.
    """
    if not isinstance(block, int) or isinstance(block, bool) or block < 1:
        raise ValueError(f"block must be a whole number, at least 1; got {block}. 1 is the sequence, 8 is faster.")
    n, block = len(states), min(block, max(1, len(states)))
    valid = jnp.arange(n) < count
    real = jnp.where(valid[:, None], states, 0).astype(views.centers.dtype)
    own = jnp.pad(_own(views, real), ((0, 0), (0, -n % block), (0, 0)))
    own = own.reshape(len(own), -1, block, own.shape[2]).swapaxes(0, 1)  # (blocks, V, block, m)
    valid = jnp.pad(valid, (0, -n % block)).reshape(-1, block)

    def step(views: Views, rows: tuple[Array, Array]) -> tuple[Views, None]:
        return _absorb(views, *rows, step_size), None

    after = jax.lax.scan(step, views, (own, valid))[0]
    ordered = jax.vmap(_ordered)(_View(after.centers, after.usage, after.margin))  # who wins does not depend on it
    return Views(after.columns, *ordered, after.seen)


class _View(NamedTuple):
    """One of the views: μ (k, m), u (k,), the margin."""

    centers: Array
    usage: Array
    margin: Array


def _absorb(views: Views, states: Array, valid: Array, step_size: Number) -> Views:
    """All views after one block of states (V, block, m)."""
    seen = views.seen + valid.sum(dtype=views.seen.dtype)
    own = _View(views.centers, views.usage, views.margin)
    after = jax.vmap(_absorb_block, in_axes=(0, 0, None, None, None))(own, states, valid, seen, step_size)
    return Views(views.columns, *after, seen)


def _absorb_block(view: _View, states: Array, valid: Array, seen: Array, step_size: Number) -> _View:
    """Winners move, usage fades and theirs grows, the margin follows, the fullest crowd is split."""
    k, n = len(view.usage), valid.sum(dtype=view.usage.dtype)
    far = jax.vmap(kmeans.distances, in_axes=(None, 0))(view.centers, states)  # (block, k)
    winner, best = far.argmin(axis=1), far.min(axis=1)
    won = (winner[:, None] == jnp.arange(k)) & valid[:, None]
    ahead = jnp.where(won, jnp.inf, far).min(axis=1) - best  # 0 where nobody wins: padding
    moved = _moved(view.centers, states, won, step_size)
    counts = jnp.where(best < view.margin, best / view.margin, best > 0)
    fade = jnp.exp(n * jnp.log1p(-FADE / k))
    usage = fade * view.usage + FADE * (won * counts[:, None]).sum(axis=0)
    margin = _followed(view.margin, ahead, n, seen)
    return _split(_View(moved, usage, margin), states, winner, valid)


def _moved(centers: Array, states: Array, won: Array, step_size: Number) -> Array:
    """μ_i ← μ_i + Σ_r α (1−α)^(w−1−r) (s_r − μ_i) over the w states of a block that i has won, r their rank."""
    later = jnp.cumsum(won[::-1], axis=0)[::-1] - 1
    share = won * (step_size * (1 - step_size) ** later)  # (block, k)
    return jnp.asarray(centers + (share[:, :, None] * (states[:, None] - centers)).sum(axis=0))


def _followed(margin: Array, ahead: Array, n: Array, seen: Array) -> Array:
    """The margin after n steps toward the mean of what n states were ahead; the others of `ahead` are 0."""
    some = jnp.maximum(n, 1)
    old = jnp.where(margin > 0, margin, ahead.sum() / some)
    rate = jnp.minimum(1, n * jnp.maximum(RATE, 1 / jnp.maximum(seen, 1)))
    return old + rate * (jnp.minimum(ahead, CLIP * old).sum() / some - old)


def _split(view: _View, states: Array, winner: Array, valid: Array) -> _View:
    """The most used winner of a block and the least used cluster, where the one is used four times as much."""
    t = jnp.where(valid, view.usage[winner], -1).argmax()
    host, least, index = winner[t], view.usage.argmin(), jnp.arange(len(view.usage))
    crowded = valid[t] & (view.usage[host] > CROWDED * view.usage[least])
    center, shared = view.centers[host], (view.usage[host] + view.usage[least]) / 2
    beside = center + BESIDE * (states[t] - center)
    joins, both = crowded & (index == least), crowded & ((index == least) | (index == host))
    centers = jnp.where(joins[:, None], beside, view.centers)
    return view._replace(centers=centers, usage=jnp.where(both, shared, view.usage))


def _ordered(view: _View) -> _View:
    """The same clusters; those of one coordinate sorted by it, equal ones as they were."""
    if view.centers.shape[1] > 1:
        return view
    order = jnp.argsort(view.centers[:, 0], stable=True)
    return view._replace(centers=view.centers[order], usage=view.usage[order])
