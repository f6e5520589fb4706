"""Algorithm 1 on the CPU: reward and absorb state by state, with gaps that are kept up to date as centers move.

The paper recomputes a cluster's gap whenever its nearest cluster moves away. A lower bound on the second-nearest gap
is kept beside each gap here, and only a cluster whose nearest moved beyond that bound is recomputed.
"""

from typing import NamedTuple

import numpy as np

from voronaut.kernels.compiled import compiled
from voronaut.kernels.cpu.assignment import Prepared
from voronaut.kernels.cpu.distances import (
    LANES,
    Counts,
    Floats,
    Ints,
    Scratch,
    concave,
    lay_out,
    move,
    scratch,
    set_weights,
    survey_row,
    winner,
)
from voronaut.kernels.rules import Rules


class Gaps(NamedTuple):
    """Gaps that follow the centers. All (k,); inside a walk (width,)."""

    gap: Floats  # the nearest gap
    bound: Floats  # no more than the gap were the nearest cluster not there
    nearest: Ints  # index of the nearest cluster


class Stepped(NamedTuple):
    """What a walk over states leaves behind."""

    rewards: Floats  # (n,)
    centers: Floats  # (k, d)
    counts: Counts  # (k,)
    kept: Gaps
    grown: int  # gaps that grew because the nearest cluster left: the paper recomputes each of these
    recomputed: int  # gaps that had to be recomputed here


def keep(prepared: Prepared) -> Gaps:
    """Gaps to start a walk from."""
    shape, k = prepared.shape, len(prepared.gaps)
    finite = np.minimum(shape.second[:k], np.finfo(shape.gap.dtype).max)
    return Gaps(shape.gap[:k].copy(), finite, shape.nearest[:k].copy())


def pad(kept: Gaps, width: int) -> Gaps:
    """A copy as wide as the centers, its integers as wide as its floats, so that loops over both are vector loops."""
    more, dtype = (0, width - len(kept.gap)), kept.gap.dtype
    nearest = np.pad(kept.nearest.astype(f"i{dtype.itemsize}"), more, constant_values=-1)
    gap, bound = (np.pad(array, more, constant_values=-np.inf) for array in (kept.gap, kept.bound))
    return Gaps(gap, bound, nearest)


def trim(kept: Gaps, clusters: int) -> Gaps:
    """The inverse of `pad`."""
    return Gaps(kept.gap[:clusters], kept.bound[:clusters], kept.nearest[:clusters].astype(np.int64))


@compiled
def flag_changes(weight: Floats, kept: Gaps, i: int, room: Scratch) -> None:
    """Gap candidates of all clusters after cluster i moved; a mark where i was or could become (second) nearest.

    OUT: room.moved (candidates), room.value_bits (marks).
    """
    lifted = weight[i]
    for j in range(weight.shape[0]):
        room.moved[j] = np.sqrt(room.squared[j]) + (lifted - weight[j])
    one, zero, follows = room.order[1], room.order[0], room.order[i]
    for j in range(weight.shape[0]):
        room.value_bits[j] = one if room.moved[j] < kept.bound[j] or kept.nearest[j] == follows else zero


@compiled
def gather(flags: Ints, clusters: int, marks: Ints) -> int:
    """How many of the first `clusters` flags are set, and where. OUT: marks (width,). Blocks are tested whole."""
    found = 0
    for start in range(0, flags.shape[0], LANES):
        some = flags[start]
        for j in range(start + 1, start + LANES):
            some |= flags[j]
        if some:
            for j in range(start, min(start + LANES, clusters)):
                marks[found] = j
                found += flags[j]
    return found


@compiled
def settle(
    centers: Floats, weight: Floats, i: int, j: int, point: Floats, room: Scratch, kept: Gaps
) -> tuple[int, int]:
    """Bring cluster j's gap up to date after cluster i moved. OUT: kept. Tells if it grew, and if it was recomputed."""
    candidate = room.moved[j]
    if kept.nearest[j] != i:
        if candidate < kept.gap[j]:
            kept.bound[j], kept.gap[j], kept.nearest[j] = kept.gap[j], candidate, i
        else:
            kept.bound[j] = candidate
        return 0, 0
    grew = candidate > kept.gap[j]
    if candidate <= kept.bound[j]:
        kept.gap[j] = candidate
        return int(grew), 0
    kept.nearest[j], kept.gap[j], kept.bound[j] = survey_row(centers, weight, j, point, room.excess, room)
    return int(grew), 1


@compiled
def follow_move(
    centers: Floats, weight: Floats, clusters: int, i: int, rules: Rules,
    point: Floats, marks: Ints, room: Scratch, kept: Gaps,
) -> tuple[float, int, int]:  # fmt: skip
    """Gaps after cluster i moved. OUT: kept, point (d,), marks, room. What Σ f(gap) grew by, and sums of `settle`."""
    grown, recomputed, before = 0, 0, concave(kept.gap[i], rules)
    kept.nearest[i], kept.gap[i], kept.bound[i] = survey_row(centers, weight, i, point, room.squared, room)
    total = concave(kept.gap[i], rules) - before
    flag_changes(weight, kept, i, room)
    for n in range(gather(room.value_bits, clusters, marks)):
        j = np.int64(marks[n])
        if j != i:
            before = concave(kept.gap[j], rules)
            grew, again = settle(centers, weight, i, j, point, room, kept)  # type: ignore[arg-type]
            total += concave(kept.gap[j], rules) - before
            grown, recomputed = grown + grew, recomputed + again
    return total, grown, recomputed


@compiled
def step_rows(
    states: Floats, rules: Rules, room: Scratch, marks: Ints,
    centers: Floats, counts: Ints, weight: Floats, kept: Gaps, out: Floats,
) -> tuple[int, int]:  # fmt: skip
    """Algorithm 1 in the given order. OUT: centers, counts, weight, kept, out. Sums of what `settle` tells."""
    point, grown, recomputed = np.empty_like(centers[:, 0]), 0, 0
    base = counts.min()
    set_weights(counts, rules.balance, base, weight)
    for r in range(states.shape[0]):
        i = winner(centers, states[r], weight, room)
        move(states[r], i, rules.step_size, centers)
        counts[i] += 1
        weight[i] = rules.balance * (counts[i] - base)
        out[r], grew, again = follow_move(centers, weight, counts.shape[0], i, rules, point, marks, room, kept)
        grown, recomputed = grown + grew, recomputed + again
    return grown, recomputed


def step(centers: Floats, counts: Counts, kept: Gaps, states: Floats, rules: Rules) -> Stepped:
    """Algorithm 1: reward and absorb state by state, in the given order. The arguments stay as they are."""
    laid, counts = lay_out(centers), counts.copy()
    width, dtype = laid.shape[1], laid.dtype
    kept = pad(kept, width)
    out, weight, marks = np.empty(len(states), dtype), np.empty(width, dtype), np.empty_like(kept.nearest)
    grown, recomputed = step_rows(states, rules, scratch(width, dtype), marks, laid, counts, weight, kept, out)
    after = np.ascontiguousarray(laid[:, : len(counts)].T)
    return Stepped(out, after, counts, trim(kept, len(counts)), grown, recomputed)
