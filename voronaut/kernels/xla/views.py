"""The rewards of `voronaut.views` for XLA: pure functions of all views of one run, to be jitted and vmapped."""

import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from voronaut.kernels.xla import kmeans

Array = Any  # of JAX, or of NumPy where nothing is traced
Number = Any  # a float, or a traced scalar where runs differ in it

NUMBERS = 2**25  # in one array of a run, at most, while views of several coordinates pay: (V, states, k, m)


class Views(NamedTuple):
    """V views of one run. Where m = 1 the centers of each are sorted. k is at least 2."""

    columns: Array  # (V, m) int32: the coordinates of each view
    centers: Array  # μ (V, k, m)


@jax.jit
def rewards(views: Views, weights: Array, states: Array, step_size: Number) -> Array:
    """Σ_v w_v r_v for (n, d) states against the centers as they are, (n,). A weight of 0 leaves a view out."""
    # Not a product of matrices, which some accelerators round to 10 bits, and in which 0 times a NaN is no 0.
    own = weights[:, None] * each(views, states, step_size)
    return jnp.where(weights[:, None] == 0, 0, own).sum(axis=0)


@jax.jit
def each(views: Views, states: Array, step_size: Number) -> Array:
    """r_v, (V, n): L after the winning center has moved less L before (Eq. 2), for each view by itself."""
    own = states.astype(views.centers.dtype).T[views.columns].swapaxes(1, 2)  # what each view sees, (V, n, m)
    if views.centers.shape[2] == 1:
        line = functools.partial(_line_rewards, step_size=step_size)
        return jnp.asarray(jax.vmap(line)(views.centers[..., 0], own[..., 0]))
    k = views.centers.shape[1]
    unweighted = {"balance": 0.0, "objective": "sqrt", "floor": 0.0, "block": max(1, NUMBERS // views.centers.size)}

    def space(centers: Array, own: Array) -> Array:
        clusters = kmeans.Clusters(centers, jnp.zeros(k, jnp.int32))
        return jnp.asarray(kmeans.rewards(clusters, own, step_size=step_size, **unweighted))

    return jnp.asarray(jax.vmap(space)(views.centers, own))


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
