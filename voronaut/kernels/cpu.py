"""Balanced online k-means on the CPU (numba). Nothing here knows about environments, files or options.

Arrays over clusters are padded (see `loops`); padded clusters weigh +inf and win nothing. Arguments that a kernel
writes come last and are marked OUT.
"""

from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from voronaut.kernels.compiled import inlined, reordered
from voronaut.kernels.full import full_reward, worths
from voronaut.kernels.geometry import LISTED, Geometry, geometry
from voronaut.kernels.loops import Floats, Ints, Scratch, concave, highest, lowest, scratch
from voronaut.kernels.nearest import (
    Layout,
    Pair,
    bounds_pair,
    layout,
    lowest_pair,
    norm,
    norms_of,
    pair,
    products,
    settle,
    slack,
    square,
)
from voronaut.kernels.rules import Rules

Counts = NDArray[np.int64]
# With more followers than this, a vector loop over all clusters is cheaper than a distance for each of them.
MANY = 64


@reordered
def assign_rows(states: Floats, clusters: Layout, room: Pair, chosen: Ints) -> None:
    """The cluster of each state. OUT: chosen (n,), room."""
    centers, rows, norms, weight = clusters
    product, value, bits, next_product, ahead, ahead_bits, order = room
    lengths, last = norms_of(states), states.shape[0] - 1
    for r in range(0, last + 1, 2):
        s = min(r + 1, last)
        products(states, r, s, centers, norms, product, next_product)
        bounds_pair(product, next_product, lengths[r], lengths[s], weight, value, ahead)
        i, alone, j, next_alone = lowest_pair(bits, ahead_bits, order)
        chosen[r], _ = settle(states, r, rows, weight, value, i, alone)
        chosen[s], _ = settle(states, s, rows, weight, ahead, j, next_alone)


@inlined
def absorb(
    x: Floats, r: int, i: int, base: int, rules: Rules,
    centers: Floats, rows: Floats, norms: Floats, weight: Floats, counts: Ints,
) -> None:  # fmt: skip
    """μ_i ← α s + (1 − α) μ_i, n_i ← n_i + 1 (Eqs. 5 and 6). OUT: centers, rows, norms, weight, counts."""
    alpha = rules.step_size
    for p in range(rows.shape[1]):
        rows[i, p] = alpha * x[r, p] + (1 - alpha) * rows[i, p]
        centers[p, i] = rows[i, p]
    counts[i] += 1
    norms[i] = norm(rows, i)
    weight[i] = rules.balance * (counts[i] - base)


@inlined
def nearer(x: Floats, r: int, rows: Floats, weight: Floats, i: int, squared: float, moved: int) -> int:
    """Cluster i, or the one that moved after i was found if that is nearer now, the lower index on a tie."""
    best = np.sqrt(squared) + weight[i]
    value = np.sqrt(square(x, r, rows, moved)) + weight[moved]
    return moved if value < best or (value == best and moved < i) else i


@reordered
def update_rows(states: Floats, rules: Rules, room: Pair, clusters: Layout, counts: Ints) -> None:
    """Assign, move and count, state by state. OUT: clusters, counts, room.

    The second of two states is assigned along with the first, and set right after the first has moved a cluster.
    """
    centers, rows, norms, weight = clusters
    product, value, bits, next_product, ahead, ahead_bits, order = room
    lengths, base, last = norms_of(states), counts.min(), states.shape[0] - 1
    for r in range(0, last + 1, 2):
        s = min(r + 1, last)
        products(states, r, s, centers, norms, product, next_product)
        bounds_pair(product, next_product, lengths[r], lengths[s], weight, value, ahead)
        i, alone, j, next_alone = lowest_pair(bits, ahead_bits, order)
        i, _ = settle(states, r, rows, weight, value, i, alone)
        j, squared = settle(states, s, rows, weight, ahead, j, next_alone)
        absorb(states, r, i, base, rules, centers, rows, norms, weight, counts)
        if r == last:
            return
        if j == i:  # it moved: anyone could be nearest now
            products(states, s, s, centers, norms, product, next_product)
            bounds_pair(product, next_product, lengths[s], lengths[s], weight, value, ahead)
            j, alone, _, _ = lowest_pair(bits, ahead_bits, order)
            j, _ = settle(states, s, rows, weight, value, j, alone)
        else:
            j = nearer(states, s, rows, weight, j, squared, i)
        absorb(states, s, j, base, rules, centers, rows, norms, weight, counts)


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
    i: int, squared: float, lift: float, alpha: float, after: float, product: Floats, between: Floats, weight: Floats,
    reach: Floats, value: Floats, excess: Floats,
) -> None:  # fmt: skip
    """Lower bounds of ‖μ̃ − μ_j‖ + κ n_j for all j, and by how much j's reach exceeds ‖μ̃ − μ_j‖ at most (Stewart).

    ‖μ̃ − μ_j‖² = α‖s − μ_j‖² + (1 − α)‖μ_i − μ_j‖² − α(1 − α)‖s − μ_i‖². OUT: value, excess (width,).
    """
    of = weight.dtype.type  # numbers of the arrays' own precision: a float64 here would quarter float32's speed
    a, b, less, zero = of(alpha), of(1 - alpha), of(1 - 2e-6 if weight.itemsize == 4 else 1 - 4e-15), of(0)
    more, cut, lifted = of(lift), of(alpha * (1 - alpha) * squared), of(after)
    for j in range(weight.shape[0]):
        bound = a * max(product[j] + more, zero) + b * between[i, j]
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
    states: Floats, clusters: Layout, shape: Geometry, rules: Rules, two: Pair, room: Scratch, out: Floats
) -> None:
    """Σ f(gaps after) − Σ f(gaps before) for each state against frozen clusters (Eq. 2). OUT: out (n,), two, room.

    What matters to the winner is in its short lists; where they do not reach, all clusters are screened; and where many
    stand at one point or follow one cluster, `full_reward` is called.
    """
    centers, rows, norms, weight = clusters
    product, value, bits, next_product, ahead, ahead_bits, order = two
    between, gap, second, _, followers, starts, near, near_value, intruded, intruded_value, shared = shape
    bound, bound_bits, excess, excess_bits = room.value, room.value_bits, room.excess, room.excess_bits
    lengths, last, alpha, more = norms_of(states), states.shape[0] - 1, rules.step_size, 1 + slack(rows)
    reach, worth, shift = np.empty_like(weight), np.empty(weight.shape[0]), np.empty_like(rows[0])
    worths(shape, weight, rules, reach, worth)
    i, squared, next_i, next_squared = 0, 0.0, 0, 0.0
    for r in range(last + 1):
        if r % 2 == 0:
            s = min(r + 1, last)
            products(states, r, s, centers, norms, product, next_product)
            bounds_pair(product, next_product, lengths[r], lengths[s], weight, value, ahead)
            i, alone, next_i, next_alone = lowest_pair(bits, ahead_bits, order)
            i, squared = settle(states, r, rows, weight, value, i, alone)
            next_i, next_squared = settle(states, s, rows, weight, ahead, next_i, next_alone)
        else:
            i, squared = next_i, next_squared
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
            of_both = product if r % 2 == 0 else next_product
            screen_all(i, squared, lengths[r], alpha, after, of_both, between, weight, reach, bound, excess)
            for t in range(starts[i], starts[i + 1]):
                excess[followers[t]] = -1  # they were counted above
            j = lowest(bound_bits, order)
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

    @property
    def gaps(self) -> Floats:
        """min_{j≠i} ‖μ_i − μ_j‖ + κ (n_j − n_i), raw (k,)."""
        return self.shape.gap[: len(self.shape.followers)]


def prepare(centers: Floats, counts: Ints, balance: float) -> Prepared:
    """Clusters (k, d) made ready for any number of states; to be made anew after they changed."""
    clusters = layout(centers, counts, balance)
    return Prepared(clusters, geometry(clusters, balance))


def assign(prepared: Prepared, states: Floats) -> Ints:
    """argmin_i ‖s − μ_i‖ + κ n_i for each state (Eq. 4)."""
    chosen = np.empty(len(states), np.int64)
    assign_rows(states, prepared.clusters, pair(*room_of(prepared)), chosen)
    return chosen


def rewards(prepared: Prepared, states: Floats, rules: Rules, threads: int = 1) -> Floats:
    """What each state would earn against the clusters as they are (Eq. 2), the same for any number of threads."""
    out = np.empty(len(states), prepared.clusters.rows.dtype)

    def work(rows: slice) -> None:
        room = room_of(prepared)
        reward_rows(states[rows], *prepared, rules, pair(*room), scratch(*room), out[rows])

    if threads == 1:
        work(slice(None))
        return out
    cuts = np.linspace(0, len(states), threads + 1, dtype=int)
    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(work, map(slice, cuts[:-1], cuts[1:])))
    return out


def room_of(prepared: Prepared) -> tuple[int, np.dtype[np.floating[Any]]]:
    """Width and kind of a thread's room."""
    return prepared.clusters.weight.shape[0], prepared.clusters.weight.dtype


def update(centers: Floats, counts: Counts, states: Floats, order: Ints, rules: Rules) -> tuple[Floats, Counts]:
    """One pass of online k-means over the states in the given order (Eqs. 4 to 6): the centers and counts after it."""
    clusters, counts = layout(centers, counts, rules.balance), counts.copy()
    # Laid out in their order first: fetching rows one by one from all over memory would double the time.
    update_rows(states.take(order, axis=0), rules, pair(len(clusters.weight), clusters.weight.dtype), clusters, counts)
    return clusters.rows, counts
