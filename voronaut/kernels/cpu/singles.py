"""Views of one coordinate: sorted centers, where a state lies between two and a move matters to two neighbours.

With c_e the center that moves by δ, a and b the ways to its neighbours, L and R the ways from these to theirs,
    r = √min(a + δ, b − δ) + √min(L, a + δ) + √min(R, b − δ) − the same with δ = 0.
Of several centers at one place that one is moved which has room on its side: the same numbers, no crossing.
"""

from typing import NamedTuple

import numpy as np

from voronaut.kernels.compiled import compiled, inlined
from voronaut.kernels.cpu.crowds import Pace, followed, least_used, share
from voronaut.kernels.cpu.distances import Floats, Ints
from voronaut.views import BESIDE, CROWDED


class Sorted(NamedTuple):
    """For each view and cluster what a move of that one changes, all (V, k)."""

    centers: Floats
    middle: Floats  # (V, k − 1) up to where a center is the nearest
    left: Floats  # a, +inf for the first
    right: Floats  # b, +inf for the last
    before: Floats  # √L, 0 for the first
    behind: Floats  # √R, 0 for the last
    worth: Floats  # √ of the three gaps as they are
    first: Ints  # index of the first center at the same place


def lay_out(centers: Floats) -> Sorted:
    """Centers (V, k), sorted."""
    (views, k), dtype = centers.shape, centers.dtype
    edge = np.full((views, 1), np.inf, dtype)
    ways = np.concatenate([edge, np.diff(centers, axis=1), edge], axis=1)
    left, right, none = ways[:, :-1], ways[:, 1:], np.zeros((views, 1), dtype)
    before, behind = np.sqrt(np.hstack([none, left[:, :-1]])), np.sqrt(np.hstack([right[:, 1:], none]))
    a, b = np.sqrt(left), np.sqrt(right)
    worth = np.minimum(a, b) + np.minimum(before, a) + np.minimum(behind, b)
    first = np.maximum.accumulate(np.where(left > 0, np.arange(k), 0), axis=1)
    middle = centers[:, :-1] + np.diff(centers, axis=1) / 2
    parts = (centers, middle, left, right, before, behind, worth, first)
    return Sorted(*map(np.ascontiguousarray, parts))


@compiled
def count_below(values: Floats, x: Floats, out: Ints) -> None:
    """How many of the values are less than x, for each x: sooner done than a search, x by x. OUT: out (n,)."""
    one, zero, whole = out.dtype.type(1), out.dtype.type(0), values.shape[0] - values.shape[0] % 4
    out[:] = 0
    for j in range(0, whole, 4):
        a, b, c, d = values[j], values[j + 1], values[j + 2], values[j + 3]
        for r in range(x.shape[0]):
            low, high = (one if a < x[r] else zero) + (one if b < x[r] else zero), one if c < x[r] else zero
            out[r] += low + high + (one if d < x[r] else zero)
    for j in range(whole, values.shape[0]):
        a = values[j]
        for r in range(x.shape[0]):
            out[r] += one if a < x[r] else zero


@compiled
def assign_rows(shape: Sorted, columns: Ints, block: Floats, chosen: Ints) -> None:
    """argmin_i |s − μ_i| for each view and state, of states as columns (d, n). OUT: chosen (V, n)."""
    for v in range(chosen.shape[0]):
        count_below(shape.middle[v], block[columns[v, 0]], chosen[v])
        for r in range(chosen.shape[1]):
            chosen[v, r] = shape.first[v, chosen[v, r]]


@compiled
def reward_rows(shape: Sorted, columns: Ints, block: Floats, step_size: float, place: Ints, out: Floats) -> None:
    """r of each view and state, of states as columns (d, n). OUT: out (V, n), place (n,)."""
    centers, middle, left, right, before, behind, worth, _ = shape
    alpha = worth.dtype.type(step_size)
    for v in range(out.shape[0]):
        own = columns[v, 0]
        count_below(middle[v], block[own], place)
        for r in range(out.shape[1]):
            e = np.uint32(place[r])
            way = alpha * (block[own, r] - centers[v, e])
            a, b = np.sqrt(left[v, e] + way), np.sqrt(right[v, e] - way)
            out[v, r] = min(a, b) + min(before[v, e], a) + min(behind[v, e], b) - worth[v, e]


@inlined
def find(centers: Floats, guess: int, x: float) -> int:
    """The last of the sorted centers that is not beyond x, from a guess; −inf and +inf stand at the ends."""
    while centers[guess + 1] <= x:
        guess += 1
    while centers[guess] > x:
        guess -= 1
    return guess


@compiled
def sort(centers: Floats, usage: Floats) -> None:
    """Sorted again where one or two have moved; equal ones stay as they were. OUT: centers, usage (k + 2,)."""
    for i in range(2, centers.shape[0] - 1):
        center, used, j = centers[i], usage[i], i
        while centers[j - 1] > center:
            centers[j], usage[j] = centers[j - 1], usage[j - 1]
            j -= 1
        centers[j], usage[j] = center, used


@compiled
def reward(centers: Floats, e: int, way: float) -> float:
    """√min(a + δ, b − δ) + √min(L, a + δ) + √min(R, b − δ), less the same with δ = 0."""
    last, a, b = centers.shape[0] - 2, centers[e] - centers[e - 1], centers[e + 1] - centers[e]
    total = np.sqrt(min(a + way, b - way)) - np.sqrt(min(a, b))
    if e > 1:
        rest = centers[e - 1] - centers[e - 2]
        total += np.sqrt(min(rest, a + way)) - np.sqrt(min(rest, a))
    if e < last:
        rest = centers[e + 2] - centers[e + 1]
        total += np.sqrt(min(rest, b - way)) - np.sqrt(min(rest, b))
    return float(total)


@compiled
def walk_rows(
    block: Floats, columns: Ints, pace: Pace, place: Ints,
    centers: Floats, usage: Floats, margin: Floats, out: Floats,
) -> None:  # fmt: skip
    """`views.absorb` state by state, of states as columns (d, n), view by view. OUT: the last four, place.

    Centers and usage are (V, k + 2): −inf and +inf stand at the ends of centers, +inf at those of usage. What states
    are paid goes to `out` (V, n); (V, 0) if nobody asks. Where a state lies is counted before the walk, for many, and
    put right when it comes: few centers have moved past it. One loop, as a function of its half would double its time.
    """
    of, rate, won = centers.dtype.type, pace.rate, pace.won
    alpha, beside = of(pace.step_size), of(BESIDE)
    for v in range(centers.shape[0]):
        c, u, x, m, least = centers[v], usage[v], block[columns[v, 0]], margin[v], least_used(usage[v])
        for start in range(0, x.shape[0], place.shape[0]):
            count_below(c, x[start : start + place.shape[0]], place)
            for t in range(start, min(start + place.shape[0], x.shape[0])):
                left = find(c, place[t - start] - 1, x[t])
                i = left + int(x[t] - c[left] > c[left + 1] - x[t])  # no branch: half would be guessed wrong
                if out.shape[1] > 0:
                    out[v, t] = reward(c, i, alpha * (x[t] - c[i]))
                while c[i - 1] == c[i]:
                    i -= 1
                best = abs(x[t] - c[i])
                ahead = min(abs(x[t] - c[i - 1]), abs(x[t] - c[i + 1])) - best
                u[i] += won[t] * share(best, m)
                c[i] += alpha * (x[t] - c[i])
                if i == least:
                    least = least_used(u)
                crowded = u[i] > CROWDED * u[least]
                if crowded:
                    c[least] = c[i] + beside * (x[t] - c[i])
                    u[i] = u[least] = (u[i] + u[least]) / 2
                if crowded or c[i] > c[i + 1]:
                    sort(c, u)
                    least = least_used(u)
                m = followed(m, ahead, rate[t])
        margin[v] = m
