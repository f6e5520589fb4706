"""Balanced online k-means on the CPU (numba). Nothing here knows about environments, files or options.

Arrays over clusters are padded (see `loops`); padded clusters weigh +inf and win nothing. Arguments that a kernel
writes come last and are marked OUT.
"""

from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from voronaut.kernels.compiled import inlined, reordered
from voronaut.kernels.cpu.bounds import (
    Layout,
    Room,
    bits_of,
    bounds,
    layout,
    least_bits,
    measure,
    norms_of,
    product_again,
    products,
    room_for,
    slack,
    square,
)
from voronaut.kernels.cpu.dimensions import Screen, choose, columns, screen
from voronaut.kernels.cpu.distances import Floats, Ints, Scratch, concave, highest, lowest, scratch
from voronaut.kernels.cpu.gaps import LISTED, Geometry, geometry
from voronaut.kernels.cpu.stewart import full_reward, worths
from voronaut.kernels.rules import Rules

Counts = NDArray[np.int64]
# With more followers than this, a vector loop over all clusters is cheaper than a distance for each of them.
MANY = 64


@reordered
def assign_rows(states: Floats, narrow: Floats, seen: Screen, clusters: Layout, room: Room, chosen: Ints) -> None:
    """The cluster of each state; `narrow` holds the dimensions that are screened. OUT: chosen (n,), room."""
    (_, centers, norms, only), (_, rows, weight), (part, product, value, bits, order) = seen, clusters, room
    lengths, last, more = norms_of(narrow), states.shape[0] - 1, 1 + slack(rows)
    before = part if centers.shape[0] > 8 else only
    for r in range(last + 1):
        if r % before.shape[0] == 0 and before.shape[0] > 1:
            products(narrow, r, min(r + 1, last), centers, norms, part)
        i = bounds(narrow, r, lengths[r], centers, before, weight, order, product, value)
        squared = square(states, r, rows, i)
        limit, value[i] = value.dtype.type(more * (np.sqrt(squared) + weight[i])), np.inf
        if least_bits(bits) <= bits_of(limit):
            i, squared = measure(states, r, rows, weight, i, squared, limit, value)
        chosen[r] = i


@inlined
def absorb(
    x: Floats, r: int, i: int, base: int, rules: Rules, dims: Ints,
    center: Floats, centers: Floats, norms: Floats, rows: Floats, weight: Floats, counts: Ints,
) -> None:  # fmt: skip
    """μ_i ← α s + (1 − α) μ_i, n_i ← n_i + 1 (Eqs. 5 and 6). OUT: center and all after it.

    `center` (M,) becomes μ_i in the dimensions that are screened.
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
    states: Floats, narrow: Floats, rules: Rules, room: Room, seen: Screen, rows: Floats, weight: Floats, counts: Ints
) -> None:
    """Assign, move and count, state by state. OUT: seen, rows, weight, counts, room."""
    (dims, centers, norms, only), (part, product, value, bits, order) = seen, room
    lengths, base, last, more = norms_of(narrow), counts.min(), states.shape[0] - 1, 1 + slack(rows)
    before, i, center = part if centers.shape[0] > 8 else only, 0, np.zeros_like(narrow[0])
    for r in range(last + 1):
        if r % before.shape[0]:
            product_again(narrow, r, i, center, norms, part)
        elif before.shape[0] > 1:
            products(narrow, r, min(r + 1, last), centers, norms, part)
        i = bounds(narrow, r, lengths[r], centers, before, weight, order, product, value)
        squared = square(states, r, rows, i)
        limit, value[i] = value.dtype.type(more * (np.sqrt(squared) + weight[i])), np.inf
        if least_bits(bits) <= bits_of(limit):
            i, squared = measure(states, r, rows, weight, i, squared, limit, value)
        absorb(states, r, i, base, rules, dims, center, centers, norms, rows, weight, counts)


@inlined
def moved_distance(shift: Floats, rows: Floats, i: int, j: int) -> float:
    """‖μ_i + shift − μ_j‖, from differences."""
    total = shift.dtype.type(0)
    for p in range(shift.shape[0]):
        difference = shift[p] + (rows[i, p] - rows[j, p])
        total += difference * difference
    return np.sqrt(total)  # type: ignore[no-any-return]


@inlined
def own_value(
    i: int, way: float, shift: Floats, rows: Floats, weight: Floats, near: Ints, near_value: Floats
) -> tuple[bool, float]:
    """Whether the list reaches, and min_j ‖μ_i + shift − μ_j‖ + κ n_j."""
    best, t, keep = np.inf, 0, 1 - slack(rows)
    while t < near.shape[1] and near_value[i, t] * keep - way < best:
        j = near[i, t]
        best = min(best, moved_distance(shift, rows, i, j) + weight[j])
        t += 1
    return near_value[i, t] * keep - way >= best, best


@inlined
def screen_all(
    i: int, squared: float, alpha: float, after: float, product: Floats, between: Floats, weight: Floats,
    reach: Floats, value: Floats, excess: Floats,
) -> None:  # fmt: skip
    """Lower bounds of ‖μ̃ − μ_j‖ + κ n_j for all j, and by how much j's reach exceeds ‖μ̃ − μ_j‖ at most (Stewart).

    ‖μ̃ − μ_j‖² = α‖s − μ_j‖² + (1 − α)‖μ_i − μ_j‖² − α(1 − α)‖s − μ_i‖². OUT: value, excess (width,).
    """
    of = weight.dtype.type  # numbers of the arrays' own precision: a float64 here would quarter float32's speed
    a, b, less, zero = of(alpha), of(1 - alpha), of(1 - 2e-6 if weight.itemsize == 4 else 1 - 4e-15), of(0)
    cut, lifted = of(alpha * (1 - alpha) * squared), of(after)
    for j in range(weight.shape[0]):
        bound = a * max(product[j], zero) + b * between[i, j]
        moved = np.sqrt(max(bound * less - cut, zero))
        value[j] = moved + weight[j]
        excess[j] = reach[j] - lifted - moved


@inlined
def followers_change(
    i: int, after: float, shift: Floats, rows: Floats, weight: Floats, second: Floats, followers: Ints, starts: Ints,
    worth: Floats, rules: Rules,
) -> float:  # fmt: skip
    """Σ f(gap after) − f(gap before) over the clusters whose nearest one is i."""
    total = 0.0
    for t in range(starts[i], starts[i + 1]):
        j = followers[t]
        gap = moved_distance(shift, rows, i, j) + after - weight[j]
        total += concave(min(gap, second[j]), rules) - worth[j]
    return total


@inlined
def listed_change(
    i: int, way: float, after: float, shift: Floats, rows: Floats, weight: Floats, gap: Floats,
    intruded: Ints, intruded_value: Floats, worth: Floats, rules: Rules,
) -> float:  # fmt: skip
    """Σ f(gap after) − f(gap before) over the clusters that i intrudes upon, from its list."""
    total, t = 0.0, 0
    while t < intruded.shape[1] and intruded_value[i, t] < way:
        j = intruded[i, t]
        closer = moved_distance(shift, rows, i, j) + after - weight[j]
        if closer < gap[j]:
            total += concave(closer, rules) - worth[j]
        t += 1
    return total


@inlined
def screened_change(
    i: int, after: float, best: float, shift: Floats, rows: Floats, weight: Floats, gap: Floats,
    bound: Floats, excess: Floats, some: bool, worth: Floats, rules: Rules,
) -> tuple[float, float]:  # fmt: skip
    """min_j ‖μ̃ − μ_j‖ + κ n_j, and what `listed_change` tells, from the bounds of all clusters."""
    total = 0.0
    for j in range(rows.shape[0]):
        if bound[j] < best:
            best = min(best, moved_distance(shift, rows, i, j) + weight[j])
        if some and excess[j] > 0:
            closer = moved_distance(shift, rows, i, j) + after - weight[j]
            if closer < gap[j]:
                total += concave(closer, rules) - worth[j]
    return best, total


@reordered
def reward_rows(
    states: Floats, narrow: Floats, seen: Screen, clusters: Layout, shape: Geometry, rules: Rules,
    two: Room, room: Scratch, out: Floats,
) -> None:  # fmt: skip
    """Σ f(gaps after) − Σ f(gaps before) for each state against frozen clusters (Eq. 2). OUT: out (n,), two, room.

    What matters to the winner is in its short lists; where they do not reach, all clusters are screened; and where many
    stand at one point or follow one cluster, `full_reward` is called.
    """
    (_, screened, norms, only), (centers, rows, weight), (part, product, value, bits, order) = seen, clusters, two
    between, gap, second, _, followers, starts, near, near_value, intruded, intruded_value, shared = shape
    bound, bound_bits, excess, excess_bits = room.value, room.value_bits, room.excess, room.excess_bits
    lengths, last, alpha, more = norms_of(narrow), states.shape[0] - 1, rules.step_size, 1 + slack(rows)
    reach, worth, shift = np.empty_like(weight), np.empty(weight.shape[0]), np.empty_like(rows[0])
    worths(shape, weight, rules, reach, worth)
    before = part if screened.shape[0] > 8 else only
    for r in range(last + 1):
        if r % before.shape[0] == 0 and before.shape[0] > 1:
            products(narrow, r, min(r + 1, last), screened, norms, part)
        i = bounds(narrow, r, lengths[r], screened, before, weight, order, product, value)
        squared = square(states, r, rows, i)
        limit, value[i] = value.dtype.type(more * (np.sqrt(squared) + weight[i])), np.inf
        if least_bits(bits) <= bits_of(limit):
            i, squared = measure(states, r, rows, weight, i, squared, limit, value)
        if shared[i] or starts[i + 1] - starts[i] > MANY:
            out[r] = full_reward(states[r], i, centers, weight, shape, rules, reach, worth, room)
            continue
        way, after = more * alpha * np.sqrt(squared), weight[i] + rules.balance
        for p in range(shift.shape[0]):
            shift[p] = alpha * (states[r, p] - rows[i, p])
        total = followers_change(i, after, shift, rows, weight, second, followers, starts, worth, rules)
        reached, best = own_value(i, way, shift, rows, weight, near, near_value)
        if reached and intruded_value[i, LISTED] >= way:
            total += listed_change(i, way, after, shift, rows, weight, gap, intruded, intruded_value, worth, rules)
        else:
            screen_all(i, squared, alpha, after, product, between, weight, reach, bound, excess)
            for t in range(starts[i], starts[i + 1]):
                excess[followers[t]] = -1  # they were counted above
            j = lowest(bound_bits, room.order)
            best = min(best, moved_distance(shift, rows, i, j) + weight[j])
            some = highest(excess_bits) > 0
            best, more_change = screened_change(
                i, after, best, shift, rows, weight, gap, bound, excess, some, worth, rules
            )
            total += more_change
        out[r] = total + concave(best - after, rules) - worth[i]


class Prepared(NamedTuple):
    """Clusters laid out for `rewards` and `assign`."""

    clusters: Layout
    shape: Geometry
    seen: Screen  # in all dimensions

    @property
    def gaps(self) -> Floats:
        """min_{j≠i} ‖μ_i − μ_j‖ + κ (n_j − n_i), raw (k,)."""
        return self.shape.gap[: len(self.shape.followers)]


def prepare(centers: Floats, counts: Ints, balance: float) -> Prepared:
    """Clusters (k, d) made ready for any number of states; to be made anew after they changed."""
    clusters = layout(centers, counts, balance)
    seen = screen(clusters.rows, clusters.centers, np.arange(centers.shape[1]))
    return Prepared(clusters, geometry(clusters, balance), seen)


def assign(prepared: Prepared, states: Floats) -> Ints:
    """argmin_i ‖s − μ_i‖ + κ n_i for each state (Eq. 4)."""
    chosen, seen = np.empty(len(states), np.int64), seen_by(prepared, states)
    assign_rows(states, columns(states, seen.dims), seen, prepared.clusters, room_for(*room_of(prepared)), chosen)
    return chosen


def rewards(prepared: Prepared, states: Floats, rules: Rules, threads: int = 1) -> Floats:
    """What each state would earn against the clusters as they are (Eq. 2), the same for any number of threads."""
    out, seen = np.empty(len(states), prepared.clusters.rows.dtype), seen_by(prepared, states)

    def work(part: slice) -> None:
        room, own = room_of(prepared), states[part]
        narrow, (clusters, shape, _) = columns(own, seen.dims), prepared
        reward_rows(own, narrow, seen, clusters, shape, rules, room_for(*room), scratch(*room), out[part])

    if threads == 1:
        work(slice(None))
        return out
    cuts = np.linspace(0, len(states), threads + 1, dtype=int)
    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(work, map(slice, cuts[:-1], cuts[1:])))
    return out


def seen_by(prepared: Prepared, states: Floats) -> Screen:
    """The clusters in the dimensions that tell them apart for these states."""
    centers, rows, weight = prepared.clusters
    dims = choose(rows, centers, weight, states)
    return prepared.seen if len(dims) == rows.shape[1] else screen(rows, centers, dims)


def room_of(prepared: Prepared) -> tuple[int, np.dtype[np.floating[Any]]]:
    """Width and kind of a thread's room."""
    return prepared.clusters.weight.shape[0], prepared.clusters.weight.dtype


def update(centers: Floats, counts: Counts, states: Floats, order: Ints, rules: Rules) -> tuple[Floats, Counts]:
    """One pass of online k-means over the states in the given order (Eqs. 4 to 6): the centers and counts after it."""
    (laid, rows, weight), counts = layout(centers, counts, rules.balance), counts.copy()
    # Laid out in their order first: fetching rows one by one from all over memory would double the time.
    ordered = states.take(order, axis=0)
    seen = screen(rows, laid, choose(rows, laid, weight, ordered))
    room = room_for(len(weight), weight.dtype)
    update_rows(ordered, columns(ordered, seen.dims), rules, room, seen, rows, weight, counts)
    return rows, counts
