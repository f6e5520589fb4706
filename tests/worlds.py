"""Clusters and states for the tests: ordinary ones and awkward ones."""

from typing import Any, NamedTuple

import numpy as np
from hypothesis import strategies as st
from numpy.typing import NDArray

from voronaut import clusters as ref


class World(NamedTuple):
    clusters: ref.Clusters
    states: NDArray[np.float64]
    step_size: float
    balance: float


@st.composite
def worlds(draw: Any, max_states: int = 40) -> World:
    """k ≥ 2, d ≥ 1, κ from 0 to 10, α in (0, 1); duplicates, constant dimensions, coinciding centers, one state."""
    k, d, n = draw(st.integers(2, 40)), draw(st.integers(1, 9)), draw(st.integers(1, max_states))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    centers, states = rng.normal(size=(k, d)), rng.normal(size=(n, d)) * 10 ** rng.uniform(-2, 2)
    if draw(st.booleans()):
        centers[:] = 0  # the paper's start
    if draw(st.booleans()):
        states = states[rng.integers(0, max(n // 4, 1), n)]  # few distinct states
    if draw(st.booleans()):
        states[:, 0], centers[:, 0] = 3.0, 3.0
    counts = 1 + rng.integers(0, draw(st.sampled_from([1, 5, 1000])), k)
    step_size = draw(st.sampled_from([1e-4, 0.01, 0.05, 0.5, 0.99])) * rng.uniform(0.9, 1.0)
    balance = draw(st.sampled_from([0.0, 1e-6, 1e-4, 0.01, 1.0, 10.0])) * rng.uniform(0.9, 1.0)
    return World(ref.Clusters(centers, counts), states, step_size, balance)


def ambiguous(world: World, clusters: ref.Clusters, state: NDArray[np.float64]) -> bool:
    """Decided by rounding alone: nearly tied, or tied with a center that has moved, whose last bit is anybody's.

    An exact tie of centers that lie where they began is not: it must fall to the lowest index.
    """
    weights = ref.weights(clusters, world.balance)
    scale = 1 + np.abs(state).max() + np.abs(clusters.centers).max() + weights.max()
    values = np.sqrt(((clusters.centers - state) ** 2).sum(axis=1)) + weights
    near, moved = values < values.min() + 1e-12 * scale, clusters.counts != world.clusters.counts
    return bool((near & (values > values.min())).any() or (near.sum() > 1 and moved[near].any()))


def near_zero(world: World, clusters: ref.Clusters, state: NDArray[np.float64]) -> bool:
    """Whether a gap before or after is so small that √ magnifies rounding."""
    after = ref.absorb(clusters, state, world.step_size, world.balance)
    gaps = np.concatenate([ref.gaps(clusters, world.balance), ref.gaps(after, world.balance)])
    scale = 1 + np.abs(state).max() + np.abs(clusters.centers).max() + ref.weights(clusters, world.balance).max()
    return bool(np.abs(gaps).min() < 1e-3 * scale)
