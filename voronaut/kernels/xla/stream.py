"""What a stream of states needs besides its clusters, for XLA: a fair sample, first centers, a reference point.

States come as (n, d) rows with a mask `good` (n,); the others are finite, and passed over.
"""

import jax
import jax.numpy as jnp
import numpy as np

from voronaut.kernels.rules import FAR

Array = jax.Array


def good_rows(states: Array) -> Array:
    """(n,): finite, and small enough for squared lengths not to overflow."""
    limit = (np.finfo(states.dtype).max / (64 * states.shape[1])) ** 0.5
    return jnp.asarray((jnp.abs(states) <= limit).all(axis=1))  # false for NaN


def resample(sample: Array, seen: Array, states: Array, good: Array, chances: Array) -> Array:
    """The fair sample (size, d) of `seen` states, after these as well: Vitter's algorithm R.

    A state comes in with probability size / place, into a random row; `chances` (2, n) in [0, 1) decide on both. Where
    several fall into one row the last stays, found by a maximum: what a scatter does with equal rows is not defined.
    """
    size = len(sample)
    place = seen + jnp.cumsum(good) - 1.0  # a float: whole numbers would overflow; it counts exactly while rows fill
    chance, slot = chances
    row = jnp.where(place < size, place, slot * size).astype(jnp.int32)
    taken = good & ((place < size) | (chance * (place + 1) < size))
    last = jnp.full(size, -1).at[jnp.where(taken, row, size)].max(jnp.arange(len(states)), mode="drop")
    return jnp.where((last >= 0)[:, None], states[last], sample)


def first_centers(states: Array, good: Array, clusters: int, chances: Array) -> Array:
    """`clusters` distinct states (k, d), those with the lowest `chances` (n,); again from the start if too few."""
    usable = good & _first_of_its_kind(states, good)
    order = jnp.argsort(jnp.where(usable, chances, jnp.inf))
    return states[order[jnp.arange(clusters) % jnp.maximum(usable.sum(), 1)]]


def _first_of_its_kind(states: Array, good: Array) -> Array:
    """(n,): whether no row before, good ones first, has its hash. Unequal rows share one with a chance of 2⁻³²."""
    bits = jax.lax.bitcast_convert_type((states + 0.0).astype(jnp.float32), jnp.uint32)  # + 0: −0 and 0 are equal
    hashed = jnp.zeros(len(states), jnp.uint32)
    for column in bits.T:  # FNV-1a over words, with a final mix
        hashed = (hashed ^ column) * jnp.uint32(16777619)
        hashed = hashed ^ (hashed >> 15)
    order = jnp.lexsort((~good, hashed))
    fresh = jnp.concatenate([jnp.ones(1, bool), hashed[order][1:] != hashed[order][:-1]])
    return jnp.zeros(len(states), bool).at[order].set(fresh)


def offset(points: Array, mass: Array) -> Array:
    """Where a reference point would better be, relative to where it is (d,): the mean of (n, d) points, or 0 if near.

    Far is more than 64 spreads. The mean is taken about one of the points: a float32 sum of large numbers would miss.
    """
    total = jnp.maximum(mass.sum(), 1)
    pivot = points[jnp.argmax(mass > 0)]
    mean = pivot + (mass[:, None] * (points - pivot)).sum(axis=0) / total
    spread = (mass[:, None] * (points - mean) ** 2).sum() / total
    return jnp.where((mean**2).sum() > FAR**2 * spread, mean, 0)
