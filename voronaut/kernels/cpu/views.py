"""Many small k-means at once (`voronaut/views.py`, in numba): `prepare`, `assign`, `gaps`, `rewards`, `update`, `step`.

Views of one coordinate are sorted lists (`singles`), those of up to eight are looked at whole (`few`), and those of
more are clusters like any others, without balance: their rewards are `frozen_rewards`'.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from voronaut.kernels.compiled import compiled
from voronaut.kernels.cpu import assignment, crowds, few, singles
from voronaut.kernels.cpu.distances import Counts, Floats, scratch
from voronaut.kernels.cpu.frozen_rewards import rewards as rewards_of
from voronaut.kernels.cpu.frozen_rewards import spread
from voronaut.kernels.rules import Rules

FEW = 8  # coordinates
BLOCK = 512  # states: their columns and what they earn in all views stay in the cache
AHEAD = 128  # states whose places are counted before they come


class Views(NamedTuple):
    """V clusterings of m coordinates each; centers of states' own dtype. m = 1: sorted."""

    columns: Counts  # (V, m)
    centers: Floats  # (V, k, m)
    usage: NDArray[np.float64]  # (V, k)
    margin: NDArray[np.float64]  # (V,)
    seen: int = 0


class Prepared(NamedTuple):
    """Views laid out for `rewards` and `assign`, by how many coordinates they have."""

    columns: Counts
    shape: singles.Sorted | few.Listed | tuple[assignment.Prepared, ...]


def prepare(views: Views) -> Prepared:
    """Views made ready for any number of states; to be made anew after they changed."""
    columns, centers = np.ascontiguousarray(views.columns), views.centers
    if columns.shape[1] == 1:
        return Prepared(columns, singles.lay_out(centers[:, :, 0]))
    if columns.shape[1] <= FEW:
        return Prepared(columns, few.prepare(centers))
    ones = np.ones(centers.shape[1], np.int64)
    return Prepared(columns, tuple(assignment.prepare(np.ascontiguousarray(own), ones, 0.0) for own in centers))


def gaps(views: Views) -> Floats:
    """min_{j≠i} ‖μ_i − μ_j‖ in each view, (V, k)."""
    shape = prepare(views).shape
    if isinstance(shape, singles.Sorted):
        return np.minimum(shape.left, shape.right)
    if isinstance(shape, few.Listed):
        return shape.shape.gap[:, : views.centers.shape[1]]
    return np.stack([own.gaps for own in shape])


def ready(views: Views | Prepared) -> Prepared:
    """Prepared, if not yet."""
    return prepare(views) if isinstance(views, Views) else views


def assign(views: Views | Prepared, states: Floats) -> Counts:
    """argmin_i ‖s − μ_i‖ in each view, (V, n), the lowest index on a tie."""
    (columns, shape), n = ready(views), len(states)
    if not isinstance(shape, singles.Sorted | few.Listed):
        pairs = zip(shape, columns, strict=True)
        return np.stack([assignment.assign(own, part(states, which)) for own, which in pairs])
    chosen = np.empty((len(columns), n), np.int64)
    if isinstance(shape, singles.Sorted):
        singles.assign_rows(shape, columns, np.ascontiguousarray(states.T), chosen)
    else:
        room = np.empty((2, n), states.dtype)
        few.assign_rows(shape.rows, columns, np.ascontiguousarray(states.T), room[0], room[1], chosen)
    return chosen


def part(states: Floats, columns: Counts) -> Floats:
    """The coordinates of one view, (n, m); no copy where that is all of them."""
    if columns.tolist() == list(range(states.shape[1])):
        return np.ascontiguousarray(states)
    return np.ascontiguousarray(states[:, columns])


def paid_blocks(prepared: Prepared, states: Floats, step_size: float) -> Iterator[tuple[slice, Floats]]:
    """Some states after others, and what they earn in each view, (V, some): to be used before the next."""
    columns, shape = prepared
    bits = np.dtype(f"i{states.dtype.itemsize}")
    for start in range(0, len(states), BLOCK):
        here = slice(start, min(start + BLOCK, len(states)))
        block, n = np.ascontiguousarray(states[here].T), here.stop - start
        paid, place = np.empty((len(columns), n), states.dtype), np.empty(n, bits)
        if isinstance(shape, singles.Sorted):
            singles.reward_rows(shape, columns, block, step_size, place, paid)
        elif isinstance(shape, few.Listed):
            rules, room = Rules(float(step_size), 0.0), np.empty((2, n), states.dtype)
            few.reward_rows(shape, columns, block, rules, room[0], place, room[1], paid)
        yield here, paid


def each(views: Views | Prepared, states: Floats, step_size: float, threads: int = 1) -> Floats:
    """r_v of each state against the clusters as they are, view by view, (V, n)."""
    prepared, out = ready(views), np.empty((len(views.columns), len(states)), states.dtype)
    if isinstance(prepared.shape, singles.Sorted | few.Listed):

        def work(mine: slice) -> None:
            for here, paid in paid_blocks(prepared, states[mine], step_size):
                out[:, mine][:, here] = paid

        spread(work, len(states), threads)
        return out
    for v, (own, which) in enumerate(zip(prepared.shape, prepared.columns, strict=True)):
        out[v] = rewards_of(own, part(states, which), Rules(float(step_size), 0.0), threads)
    return out


def rewards(views: Views | Prepared, weights: Floats, states: Floats, step_size: float, threads: int = 1) -> Floats:
    """Σ_v w_v r_v of each state against the clusters as they are, (n,): the same for any number of threads."""
    prepared, out = ready(views), np.zeros(len(states), states.dtype)
    weights = np.asarray(weights, np.float64)
    if not isinstance(prepared.shape, singles.Sorted | few.Listed):
        add_weighted(weights, each(prepared, states, step_size, threads), out)
        return out

    def work(mine: slice) -> None:
        for here, paid in paid_blocks(prepared, states[mine], step_size):
            add_weighted(weights, paid, out[mine][here])

    spread(work, len(states), threads)
    return out


@compiled
def add_weighted(weights: Floats, paid: Floats, out: Floats) -> None:
    """Σ_v w_v r_v, in float64 and in order. OUT: out (n,)."""
    total = np.zeros(out.shape[0])
    for v in range(weights.shape[0]):
        weight = weights[v]
        for r in range(out.shape[0]):
            total[r] += weight * paid[v, r]
    for r in range(out.shape[0]):
        out[r] = total[r]


def update(views: Views, states: Floats, step_size: float) -> Views:
    """Views after they absorbed the states (n, d) in this order."""
    return walk(views, states, step_size, np.empty((len(views.columns), 0), states.dtype))


def step(views: Views, states: Floats, step_size: float) -> tuple[Views, Floats]:
    """Algorithm 1: what each state earns in all views, Σ_v r_v, before it is absorbed, in this order."""
    paid, out = np.empty((len(views.columns), len(states)), states.dtype), np.zeros(len(states), states.dtype)
    after = walk(views, states, step_size, paid)
    add_weighted(np.ones(len(paid)), paid, out)
    return after, out


def walk(views: Views, states: Floats, step_size: float, paid: Floats) -> Views:
    """Views after the states, stretch by stretch, view by view. OUT: paid (V, n), or (V, 0) if nobody asks."""
    walked = walk_singles if views.columns.shape[1] == 1 else walk_few
    for begin in range(0, len(states), crowds.STRETCH):
        stretch = states[begin : begin + crowds.STRETCH]
        now = crowds.pace(step_size, views.seen, len(stretch), views.usage.shape[1])
        out = paid[:, begin : begin + len(stretch)].copy()
        after = walked(views, stretch, now, out)
        paid[:, begin : begin + len(stretch)] = out
        views = after._replace(usage=now.faded * after.usage, seen=views.seen + len(stretch))
    return views


def walk_singles(views: Views, states: Floats, now: crowds.Pace, out: Floats) -> Views:
    """Views of one coordinate after the states, usage not yet faded. OUT: out (V, n) or (V, 0)."""
    ends, columns = ((0, 0), (1, 1)), np.ascontiguousarray(views.columns)
    centers, usage = np.pad(views.centers[..., 0], ends), np.pad(views.usage, ends, constant_values=np.inf)
    centers[:, 0], centers[:, -1] = -np.inf, np.inf
    block, margin, place = np.ascontiguousarray(states.T), views.margin.copy(), np.empty(AHEAD, f"i{states.itemsize}")
    singles.walk_rows(block, columns, now, place, centers, usage, margin, out)
    return views._replace(centers=centers[:, 1:-1, None].copy(), usage=usage[:, 1:-1], margin=margin)


def walk_few(views: Views, states: Floats, now: crowds.Pace, out: Floats) -> Views:
    """Views of more than one coordinate after the states, usage not yet faded. OUT: out (V, n) or (V, 0)."""
    columns, states = np.ascontiguousarray(views.columns), np.ascontiguousarray(states)
    laid, usage, margin = few.lay_out(views.centers), views.usage.copy(), views.margin.copy()
    _, k, m = views.centers.shape
    weight, kept = few.no_weights(k, laid.dtype), few.keep(views.centers) if out.size else None
    room, own = scratch(len(weight), laid.dtype), np.empty((len(states), m), laid.dtype)
    few.walk_views(states, columns, now, weight, room, own, laid, usage, margin, kept, out)
    return views._replace(centers=laid[..., :k].transpose(0, 2, 1).copy(), usage=usage, margin=margin)
