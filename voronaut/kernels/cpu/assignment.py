"""argmin_i ‖s − μ_i‖ + κ n_i (Eq. 4): which cluster each state falls to, and the clusters once they have absorbed it.

Arrays over clusters are padded (see `distances`); padded clusters weigh +inf and win nothing. Arguments that a kernel
writes come last and are marked OUT.
"""

from typing import Any, NamedTuple

import numpy as np

from voronaut.kernels.compiled import inlined, reordered
from voronaut.kernels.cpu.bounds import (
    Layout,
    Room,
    at_once,
    bits_of,
    layout,
    least_else,
    measure,
    norms_of,
    products,
    products_again,
    room_for,
    slack,
    square,
    weighed,
)
from voronaut.kernels.cpu.dimensions import TRIED, WORTH, Projection, choose, columns, project
from voronaut.kernels.cpu.distances import Counts, Floats, Ints
from voronaut.kernels.cpu.gaps import Geometry, geometry
from voronaut.kernels.rules import Rules

UPDATED = 16  # states whose products are made at once where clusters move: each move makes those behind it anew


class Prepared(NamedTuple):
    """Clusters laid out for `rewards` and `assign`."""

    clusters: Layout
    shape: Geometry
    seen: Projection  # in all dimensions, or in those that tell them apart for states like those to come

    @property
    def gaps(self) -> Floats:
        """min_{j≠i} ‖μ_i − μ_j‖ + κ (n_j − n_i), raw (k,)."""
        return self.shape.gap[: len(self.shape.followers)]


def prepare(centers: Floats, counts: Ints, balance: float, alike: Floats | None = None) -> Prepared:
    """Clusters (k, d) made ready for any number of states; to be made anew after they changed.

    A few states (n, d) like those to come are worth the trial for many small batches. No result depends on them.
    """
    clusters = layout(centers, counts, balance)
    dims: Ints = np.arange(centers.shape[1])
    if alike is not None:
        dims = choose(clusters.rows, clusters.centers, clusters.weight, alike, TRIED)
    return Prepared(clusters, geometry(clusters, balance), project(clusters.rows, clusters.centers, dims))


@reordered
def assign_rows(states: Floats, narrow: Floats, seen: Projection, clusters: Layout, room: Room, chosen: Ints) -> None:
    """The cluster of each state; `narrow` holds the chosen dimensions. OUT: chosen (n,), room."""
    (_, centers, norms), (_, rows, weight), (inner, product, value, bits, order) = seen, clusters, room
    lengths, block, n = norms_of(narrow, rows), at_once(centers, inner), states.shape[0]
    for r in range(n):
        if r % block == 0:
            products(narrow, r, min(r + block, n), centers, inner)
        i, other = weighed(inner, r % block, lengths[r], norms, weight, order, product, value)
        squared = square(states, r, rows, i)
        limit, value[i] = np.sqrt(squared) + weight[i], np.inf
        if least_else(bits, i, other) <= bits_of(limit):
            i, squared = measure(states, r, rows, weight, i, squared, limit, value)
        chosen[r] = i


def assign(prepared: Prepared, states: Floats) -> Ints:
    """argmin_i ‖s − μ_i‖ + κ n_i for each state (Eq. 4)."""
    chosen, seen = np.empty(len(states), np.int64), seen_by(prepared, states)
    assign_rows(states, columns(states, seen.dims), seen, prepared.clusters, room_for(*room_of(prepared)), chosen)
    return chosen


def seen_by(prepared: Prepared, states: Floats) -> Projection:
    """The clusters in the dimensions that tell them apart for these states."""
    centers, rows, weight = prepared.clusters
    if len(states) < WORTH:
        return prepared.seen
    dims = choose(rows, centers, weight, states)
    return prepared.seen if np.array_equal(dims, prepared.seen.dims) else project(rows, centers, dims)


def room_of(prepared: Prepared) -> tuple[int, np.dtype[np.floating[Any]]]:
    """Width and kind of a thread's room."""
    return prepared.clusters.weight.shape[0], prepared.clusters.weight.dtype


@inlined
def absorb(
    x: Floats, r: int, i: int, base: int, rules: Rules, dims: Ints,
    center: Floats, centers: Floats, norms: Floats, rows: Floats, weight: Floats, counts: Ints,
) -> None:  # fmt: skip
    """μ_i ← α s + (1 − α) μ_i, n_i ← n_i + 1 (Eqs. 5 and 6). OUT: center and all after it.

    `center` (m,) becomes μ_i in the chosen dimensions.
    """
    alpha, total = rules.step_size, norms.dtype.type(0)
    for p in range(rows.shape[1]):
        rows[i, p] = alpha * x[r, p] + (1 - alpha) * rows[i, p]
    for p in range(dims.shape[0]):
        center[p] = rows[i, dims[p]]
        centers[p, i] = center[p]
    for p in range(center.shape[0]):
        total += center[p] * center[p]
    counts[i] += 1
    norms[i] = (1 - slack(rows)) * total
    weight[i] = rules.balance * (counts[i] - base)


@reordered
def update_rows(
    states: Floats,
    narrow: Floats,
    rules: Rules,
    room: Room,
    seen: Projection,
    rows: Floats,
    weight: Floats,
    counts: Ints,
) -> None:
    """Assign, move and count, state by state. OUT: seen, rows, weight, counts, room."""
    (dims, centers, norms), (inner, product, value, bits, order) = seen, room
    lengths, base, n, center = norms_of(narrow, rows), counts.min(), states.shape[0], np.zeros_like(narrow[0])
    block, stop = at_once(centers, inner[:UPDATED]), 0
    for r in range(n):
        q = r % block
        if q == 0:
            stop = min(r + block, n)
            products(narrow, r, stop, centers, inner)
        i, other = weighed(inner, q, lengths[r], norms, weight, order, product, value)
        squared = square(states, r, rows, i)
        limit, value[i] = np.sqrt(squared) + weight[i], np.inf
        if least_else(bits, i, other) <= bits_of(limit):
            i, squared = measure(states, r, rows, weight, i, squared, limit, value)
        absorb(states, r, i, base, rules, dims, center, centers, norms, rows, weight, counts)
        products_again(narrow, r + 1, stop, i, center, q + 1, inner)


def update(centers: Floats, counts: Counts, states: Floats, order: Ints, rules: Rules) -> tuple[Floats, Counts]:
    """One pass of online k-means over the states in the given order (Eqs. 4 to 6): the centers and counts after it."""
    (laid, rows, weight), counts = layout(centers, counts, rules.balance), counts.copy()
    # Laid out in their order first: fetching rows one by one from all over memory would double the time.
    ordered = states.take(order, axis=0)
    seen = project(rows, laid, choose(rows, laid, weight, ordered))
    room = room_for(len(weight), weight.dtype)
    update_rows(ordered, columns(ordered, seen.dims), rules, room, seen, rows, weight, counts)
    return rows, counts
