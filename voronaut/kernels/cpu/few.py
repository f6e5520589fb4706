"""Views of a few coordinates: the nearest center by plain distances, and what its move matters to from short lists.

Frozen rewards use the lists of `gaps` and, where these do not reach, all clusters; Algorithm 1 the gaps of `online`.
"""

from typing import NamedTuple

import numpy as np

from voronaut.kernels.compiled import compiled
from voronaut.kernels.cpu.bounds import slack
from voronaut.kernels.cpu.crowds import Pace, followed, least_used, share
from voronaut.kernels.cpu.distances import Floats, Ints, Scratch, aligned, least_bits, lowest, padded, scratch
from voronaut.kernels.cpu.frozen_rewards import followers_change, listed_change, moved_distance, own_value
from voronaut.kernels.cpu.gaps import LISTED, Geometry, empty, survey_all
from voronaut.kernels.cpu.online import Gaps, follow_move
from voronaut.kernels.rules import SQRT, Rules
from voronaut.views import BESIDE, CROWDED


class Listed(NamedTuple):
    """Clusters of all views, and who matters to whom in each: every array of `shape` has the views in front."""

    rows: Floats  # (V, k, m)
    weight: Floats  # (width,) 0, +inf in the padding
    worth: Floats  # (V, width) √gap
    shape: Geometry


def lay_out(centers: Floats) -> Floats:
    """(V, k, m) -> (V, m, width), zeros in the padding."""
    laid = aligned((len(centers), centers.shape[2], padded(centers.shape[1])), centers.dtype)
    laid[..., : centers.shape[1]], laid[..., centers.shape[1] :] = centers.transpose(0, 2, 1), 0
    return laid


def no_weights(clusters: int, dtype: np.dtype[np.floating]) -> Floats:
    """Balance 0: weights (width,) that only keep the padding from winning."""
    weight = aligned((padded(clusters),), dtype)
    weight[:clusters], weight[clusters:] = 0, np.inf
    return weight


@compiled
def view_of(shape: Geometry, v: int) -> Geometry:
    """One view's."""
    return Geometry(
        shape.squared[v], shape.gap[v], shape.second[v], shape.nearest[v], shape.followers[v], shape.starts[v],
        shape.near[v], shape.near_value[v], shape.intruded[v], shape.intruded_value[v], shape.shared[v],
    )  # fmt: skip


@compiled
def survey_views(rows: Floats, laid: Floats, weight: Floats, room: Scratch, shape: Geometry) -> None:
    """Everything that frozen rewards need to know, O(V k² m). OUT: shape, room."""
    for v in range(rows.shape[0]):
        survey_all(laid[v], rows[v], weight, 0.0, room, view_of(shape, v))


def prepare(centers: Floats) -> Listed:
    """Clusters (V, k, m) made ready for `reward_rows`."""
    (views, k, _), dtype, width = centers.shape, centers.dtype, padded(centers.shape[1])
    shape = empty((views,), k, width, dtype)
    weight, rows = no_weights(k, dtype), np.ascontiguousarray(centers)
    survey_views(rows, lay_out(centers), weight, scratch(width, dtype), shape)
    return Listed(rows, weight, np.sqrt(np.maximum(shape.gap, 0)), shape)


@compiled
def nearest_rows(rows: Floats, own: Ints, block: Floats, squared: Floats, place: Ints, far: Floats) -> None:
    """argmin_i ‖s − μ_i‖ and its square for states as columns (d, n). OUT: squared, place, far (n,).

    A vector is many states and one center: no minimum across it, and the lowest index wins a tie by itself.
    """
    of, whole = rows.dtype.type, place.dtype.type
    squared[:], place[:], far[:] = np.inf, 0, 0
    for j in range(rows.shape[0]):
        here = whole(j)
        for p in range(rows.shape[1] - 2):
            x, c, keep = block[own[p]], rows[j, p], of(p > 0)
            for r in range(far.shape[0]):
                far[r] = keep * far[r] + (x[r] - c) * (x[r] - c)
        x, y, c, d = block[own[-2]], block[own[-1]], rows[j, -2], rows[j, -1]
        for r in range(far.shape[0]):
            total = far[r] + (x[r] - c) * (x[r] - c) + (y[r] - d) * (y[r] - d)
            place[r] = here if total < squared[r] else place[r]
            squared[r] = total if total < squared[r] else squared[r]


@compiled
def assign_rows(rows: Floats, columns: Ints, block: Floats, squared: Floats, far: Floats, chosen: Ints) -> None:
    """argmin_i ‖s − μ_i‖ for each view and state, of states as columns (d, n). OUT: squared, far, chosen."""
    for v in range(chosen.shape[0]):
        nearest_rows(rows[v], columns[v], block, squared, chosen[v], far)


@compiled
def all_changes(
    i: int, shift: Floats, rows: Floats, gap: Floats, second: Floats, nearest: Ints, worth: Floats
) -> float:
    """Σ √gap after − √gap before over all clusters, each of them measured: where the lists do not reach,
    or where others stand at the same place, which they leave out.
    """
    total, own = 0.0, np.inf
    for j in range(rows.shape[0]):
        if j != i:
            moved = moved_distance(shift, rows, i, j)
            own = min(own, moved)
            rest = second[j] if nearest[j] == i else gap[j]
            if min(rest, moved) != gap[j]:
                total += np.sqrt(min(rest, moved)) - worth[j]
    return float(total + np.sqrt(own) - worth[i])


@compiled
def reward_rows(
    listed: Listed, columns: Ints, block: Floats, rules: Rules, squared: Floats, place: Ints, far: Floats, out: Floats
) -> None:
    """Σ √gap after − √gap before for each view and state, of states as columns (d, n). OUT: out (V, n), and (n,)."""
    every, weight, worths, shape = listed
    alpha, shift = every.dtype.type(rules.step_size), every[0, 0].copy()
    for v in range(out.shape[0]):
        rows, worth, own, mine = every[v], worths[v], columns[v], view_of(shape, v)
        _, gap, second, nearest, followers, starts, near, near_value, intruded, intruded_value, shared = mine
        nearest_rows(rows, own, block, squared, place, far)
        more = alpha * (1 + slack(rows))
        for r in range(out.shape[1]):
            i = place[r]
            for p in range(shift.shape[0]):
                shift[p] = alpha * (block[own[p], r] - rows[i, p])
            way = more * np.sqrt(squared[r])
            reached, best = own_value(i, way, shift, rows, weight, near, near_value)
            if reached and not shared[i] and intruded_value[i, LISTED] >= way:
                total = followers_change(i, 0.0, shift, rows, weight, second, followers, starts, worth, rules)
                total += listed_change(i, way, 0.0, shift, rows, weight, gap, intruded, intruded_value, worth, rules)
                out[v, r] = total + np.sqrt(best) - worth[i]
            else:
                out[v, r] = all_changes(i, shift, rows, gap, second, nearest, worth)


@compiled
def squares(states: Floats, t: int, centers: Floats, weight: Floats, out: Floats) -> None:
    """‖s − μ_j‖² for all j, +inf in the padding; two dimensions, then four at a time. OUT: out (width,)."""
    dim, width = centers.shape
    x, y = states[t, 0], states[t, 1]
    for j in range(width):
        a, b = x - centers[0, j], y - centers[1, j]
        out[j] = weight[j] + a * a + b * b
    whole = dim - (dim - 2) % 4
    for p in range(2, whole, 4):
        x, y, z, w = states[t, p], states[t, p + 1], states[t, p + 2], states[t, p + 3]
        for j in range(width):
            a, b, c, d = x - centers[p, j], y - centers[p + 1, j], z - centers[p + 2, j], w - centers[p + 3, j]
            out[j] = out[j] + a * a + b * b + c * c + d * d
    for p in range(whole, dim):
        x = states[t, p]
        for j in range(width):
            out[j] += (x - centers[p, j]) * (x - centers[p, j])


@compiled
def put(centers: Floats, i: int, near: int, part: float, states: Floats, t: int) -> None:
    """μ_i ← μ_near + part (s − μ_near). OUT: centers (m, width)."""
    of = centers.dtype.type(part)
    for p in range(centers.shape[0]):
        centers[p, i] = centers[p, near] + of * (states[t, p] - centers[p, near])


@compiled
def walk_rows(
    states: Floats, pace: Pace, weight: Floats, rules: Rules, point: Floats, marks: Ints, room: Scratch,
    margin: float, centers: Floats, usage: Floats, kept: Gaps | None, out: Floats,
) -> float:  # fmt: skip
    """`views.absorb` state by state, of one view's (n, m). OUT: room and all after the margin. The margin after it.

    What states are paid goes to `out` (n,), with gaps that are kept up to date for it. Without gaps nobody is paid,
    and what is not needed is not even compiled.
    """
    rate, won, least = pace.rate, pace.won, least_used(usage)
    value, bits, order = room.value, room.value_bits, room.order
    for t in range(states.shape[0]):
        squares(states, t, centers, weight, value)
        i = lowest(bits, order)
        best, value[i] = np.sqrt(value[i]), np.inf
        bits[i] = least_bits(bits)
        ahead = np.sqrt(value[i]) - best
        usage[i] += won[t] * share(best, margin)
        margin = followed(margin, ahead, rate[t])
        put(centers, i, i, pace.step_size, states, t)
        if kept is not None:
            out[t] = follow_move(centers, weight, usage.shape[0], i, rules, point, marks, room, kept)[0]
        if i == least:
            least = least_used(usage)
        if usage[i] > CROWDED * usage[least]:
            put(centers, least, i, BESIDE, states, t)
            usage[i] = usage[least] = (usage[i] + usage[least]) / 2
            if kept is not None:
                follow_move(centers, weight, usage.shape[0], least, rules, point, marks, room, kept)
            least = least_used(usage)
    return margin


def keep(centers: Floats) -> Gaps:
    """Gaps to start a walk from, (V, width)."""
    shape, whole = prepare(centers).shape, f"i{centers.dtype.itemsize}"
    return Gaps(shape.gap, np.minimum(shape.second, np.finfo(centers.dtype).max), shape.nearest.astype(whole))


@compiled
def walk_views(
    states: Floats, columns: Ints, pace: Pace, weight: Floats, room: Scratch, own: Floats,
    centers: Floats, usage: Floats, margin: Floats, kept: Gaps | None, out: Floats,
) -> None:  # fmt: skip
    """`walk_rows` of all views, one after the other. OUT: own (n, m), room, and what follows them."""
    point, marks = np.empty_like(centers[0, :, 0]), np.empty_like(room.order)
    rules = Rules(pace.step_size, 0.0, SQRT, 1.0)
    for v in range(centers.shape[0]):
        for t in range(own.shape[0]):
            for p in range(own.shape[1]):
                own[t, p] = states[t, columns[v, p]]
        mine = None if kept is None else Gaps(kept.gap[v], kept.bound[v], kept.nearest[v])
        margin[v] = walk_rows(
            own, pace, weight, rules, point, marks, room, margin[v], centers[v], usage[v], mine, out[v]
        )
