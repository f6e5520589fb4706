"""Σ f(gaps after) − Σ f(gaps before) for each state against frozen clusters (Eq. 2).

What matters to the winner is in its short lists (`gaps`); where they do not reach, all clusters are looked at by their
bounds; and where many stand at one point or follow one cluster, `stewart` does it.
"""

import threading
from collections.abc import Callable

import numpy as np

from voronaut.helpers.threads import share_out
from voronaut.kernels.compiled import compiled, inlined, reordered
from voronaut.kernels.cpu.assignment import Prepared, room_of, seen_by
from voronaut.kernels.cpu.bounds import (
    Layout,
    Room,
    at_once,
    bits_of,
    least_else,
    measure,
    norms_of,
    products,
    room_for,
    slack,
    square,
    squared,
    weighed,
)
from voronaut.kernels.cpu.dimensions import Projection, columns
from voronaut.kernels.cpu.distances import Floats, Ints, Scratch, concave, highest, lowest, scratch
from voronaut.kernels.cpu.gaps import LISTED, Geometry
from voronaut.kernels.cpu.stewart import bound_moved, stewart_reward
from voronaut.kernels.rules import Rules

# With more followers than this, a vector loop over all clusters is cheaper than a distance for each of them.
MANY = 64
# States for each thread: starting one takes as long as a thousand states, and more while others keep the cores busy.
WORTH_A_THREAD = 4096
LAST = threading.local()  # the room that each thread worked in


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
def bounded_change(
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


@compiled
def worths(shape: Geometry, weight: Floats, rules: Rules, reach: Floats, worth: Floats) -> None:
    """How near a center must come to each cluster to be its nearest, and f(gap) of each. OUT: reach, worth (width,)."""
    reach[:], worth[:] = -np.inf, 0
    for j in shape.followers:  # every cluster once
        reach[j], worth[j] = shape.gap[j] + weight[j], concave(shape.gap[j], rules)


@compiled
def weightless(weight: Floats, clusters: int) -> bool:
    """Whether all clusters weigh 0: there is no balance, or all have absorbed as many states."""
    heavy = 0
    for j in range(clusters):
        heavy += int(weight[j] != 0)
    return heavy == 0


@reordered
def reward_rows(
    states: Floats, narrow: Floats, seen: Projection, clusters: Layout, shape: Geometry, rules: Rules,
    near_by: Room, room: Scratch, out: Floats,
) -> None:  # fmt: skip
    """Σ f(gaps after) − Σ f(gaps before) for each state (Eq. 2). OUT: out (n,), near_by, room."""
    (_, narrowed, norms), (centers, rows, weight) = seen, clusters
    inner, product, value, bits, order = near_by
    between, gap, second, _, followers, starts, near, near_value, intruded, intruded_value, shared = shape
    bound, bound_bits, excess, excess_bits = room.value, room.value_bits, room.excess, room.excess_bits
    lengths, n, alpha, more = norms_of(narrow, rows), states.shape[0], rules.step_size, 1 + slack(rows)
    reach, worth, shift = np.empty_like(weight), np.empty(weight.shape[0]), np.empty_like(rows[0])
    worths(shape, weight, rules, reach, worth)
    block, plain = at_once(narrowed, inner), weightless(weight, rows.shape[0])
    near_all = value if plain else product
    for r in range(n):
        q = r % block
        if q == 0:
            products(narrow, r, min(r + block, n), narrowed, inner)
        if plain:
            i, other = squared(inner, q, lengths[r], norms, weight, order, value)
        else:
            i, other = weighed(inner, q, lengths[r], norms, weight, order, product, value)
        first, far, bounded = i, square(states, r, rows, i), value[i]
        # roots of squares this near may be equal
        limit = weight.dtype.type(far * more) if plain else np.sqrt(far) + weight[i]
        value[i] = np.inf
        if least_else(bits, i, other) <= bits_of(limit):
            i, far = measure(states, r, rows, weight, i, far, limit, value)
        value[first] = bounded  # again
        if shared[i] or starts[i + 1] - starts[i] > MANY:
            out[r] = stewart_reward(states[r], i, centers, weight, shape, rules, reach, worth, room)
            continue
        way, after = more * alpha * np.sqrt(far), weight[i] + rules.balance
        for p in range(shift.shape[0]):
            shift[p] = alpha * (states[r, p] - rows[i, p])
        total = followers_change(i, after, shift, rows, weight, second, followers, starts, worth, rules)
        reached, best = own_value(i, way, shift, rows, weight, near, near_value)
        if reached and intruded_value[i, LISTED] >= way:
            total += listed_change(i, way, after, shift, rows, weight, gap, intruded, intruded_value, worth, rules)
        else:
            cut = alpha * (1 - alpha) * far
            bound_moved(i, cut, alpha, after, near_all, between, weight, reach, bound, excess)
            for t in range(starts[i], starts[i + 1]):
                excess[followers[t]] = -1  # they were counted above
            j = lowest(bound_bits, room.order)
            best = min(best, moved_distance(shift, rows, i, j) + weight[j])
            some = highest(excess_bits) > 0
            best, more_change = bounded_change(
                i, after, best, shift, rows, weight, gap, bound, excess, some, worth, rules
            )
            total += more_change
        out[r] = total + concave(best - after, rules) - worth[i]


def rewards(prepared: Prepared, states: Floats, rules: Rules, threads: int = 1) -> Floats:
    """What each state would earn against the clusters as they are (Eq. 2), the same for any number of threads."""
    out, seen = np.empty(len(states), prepared.clusters.rows.dtype), seen_by(prepared, states)

    def work(part: slice) -> None:
        own, (clusters, shape, _) = states[part], prepared
        reward_rows(own, columns(own, seen.dims), seen, clusters, shape, rules, *rooms(prepared), out[part])

    spread(work, len(states), threads)
    return out


def rooms(prepared: Prepared) -> tuple[Room, Scratch]:
    """Room for this thread's work: what it had last time, if that fits. Fresh room takes as long as 150 states."""
    kind = room_of(prepared)
    if getattr(LAST, "kind", None) != kind:
        LAST.kind, LAST.rooms = kind, (room_for(*kind), scratch(*kind))
    return LAST.rooms  # type: ignore[no-any-return]


def spread(work: Callable[[slice], None], count: int, threads: int) -> None:
    """The work of 0 to count, in as many parts as there are threads; fewer where there is little to do."""
    threads = min(threads, count // WORTH_A_THREAD)
    if threads < 2:
        return work(slice(0, count))
    cuts = np.linspace(0, count, threads + 1, dtype=int)
    share_out("rewards", threads, work, map(slice, cuts[:-1], cuts[1:]))
