"""What frozen clusters are to each other: gaps, and for each cluster the few others that its move can matter to.

When cluster i moves by m = ‖μ̃_i − μ_i‖, distances from it change by at most m. So only these others count:
    its own gap:  j with D_ij + κ n_j < v + m, where v is the value of one of them after the move;
    intrusions:   j with D_ij − m below the gap that cluster i would have to undercut, h_ij < m;
    its followers, whose nearest cluster it is.
The first two lists are kept sorted and short; a number behind their end tells when they do not suffice.
"""

from typing import Any, NamedTuple

import numpy as np

from voronaut.kernels.compiled import compiled
from voronaut.kernels.cpu.bounds import Layout, slack
from voronaut.kernels.cpu.distances import Floats, Ints, Scratch, scratch, survey_row

LISTED = 8


class Geometry(NamedTuple):
    """Distances, gaps, and who matters to whom."""

    squared: Floats  # (k, width) ‖μ_i − μ_j‖², +inf on the diagonal
    gap: Floats  # (width,) the nearest gap, −inf in the padding
    second: Floats  # (width,) the gap were the nearest cluster not there
    nearest: Ints  # (width,) index of the nearest cluster, −1 in the padding
    followers: Ints  # (k,) clusters ordered by their nearest one ...
    starts: Ints  # (k + 1,) ... those that follow i stand at followers[starts[i]:starts[i + 1]]
    near: Ints  # (k, LISTED) clusters with the least D_ij + κ n_j, without those that another one hides
    near_value: Floats  # (k, LISTED + 1) no more than that from there on, the last one for all that are not listed
    intruded: Ints  # (k, LISTED) clusters with the least h_ij, followers apart
    intruded_value: Floats  # (k, LISTED + 1) no more than that from there on, less what rounding may have added
    shared: Ints  # (k,) 1 if others stand exactly where this one does


@compiled
def shortlist(value: Floats, bits: Ints, order: Ints, places: Ints, values: Ints) -> None:
    """The LISTED least of non-negative numbers and a bound of the rest, about in order. OUT: places, values, value.

    The last bits give way to the place, so that one minimum finds both. What stands in `values`, as bits, is the number
    without them: no more than it or any that comes after it. `bits` are the bytes of `value`.
    """
    whole, room = order.dtype.type, 1
    while room < order.shape[0]:
        room *= 2
    for t in range(values.shape[0]):
        least = whole((bits[0] & whole(-room)) | order[0])
        for j in range(bits.shape[0]):
            key = whole((bits[j] & whole(-room)) | order[j])
            least = key if key < least else least
        place = least & (room - 1)
        values[t], value[place] = least - place, np.inf
        if t < places.shape[0]:
            places[t] = place


@compiled
def hidden(row: Floats, weight: Floats, i: int) -> bool:
    """Whether another cluster stands exactly where i does and weighs less, or the same with a lower index."""
    found = False
    for j in range(row.shape[0]):
        found |= row[j] == 0 and (weight[j] < weight[i] or (weight[j] == weight[i] and j < i))
    return found


@compiled
def list_near(squared: Floats, weight: Floats, room: Scratch, out: Geometry) -> None:
    """For each cluster the others by D_ij + κ n_j. OUT: out.near, out.near_value, out.shared."""
    visible, clusters, values = weight.copy(), squared.shape[0], out.near_value.view(room.order.dtype)
    for i in range(clusters):
        if out.gap[i] <= 0 and hidden(squared[i], weight, i):  # standing on another, which weighs no more
            visible[i] = np.inf
    for i in range(clusters):
        for j in range(weight.shape[0]):
            room.value[j] = np.sqrt(squared[i, j]) + visible[j]
        shortlist(room.value, room.value_bits, room.order, out.near[i], values[i])
        out.shared[i] = 0
        for j in range(clusters):
            out.shared[i] |= int(squared[i, j] == 0)


@compiled
def list_intruded(squared: Floats, weight: Floats, balance: float, give: float, room: Scratch, out: Geometry) -> None:
    """For each cluster the others by h_ij = D_ij − (gap_j + κ (n_j − n_i − 1)). OUT: out.intruded*."""
    of = weight.dtype.type
    zero, less, infinite = of(0), of(give), of(np.inf)
    (clusters, width), values = squared.shape, out.intruded_value.view(room.order.dtype)
    reach, size = np.empty_like(weight), np.empty_like(weight)
    for j in range(width):
        reach[j], size[j] = -infinite, zero
        if j < clusters:
            reach[j], size[j] = out.gap[j] + weight[j], abs(out.gap[j]) + weight[j]
    for i in range(clusters):
        followers = out.followers[out.starts[i] : out.starts[i + 1]]
        lift = of(weight[i] + balance)
        for j in range(width):
            distance = np.sqrt(squared[i, j])
            room.value[j] = max(distance - reach[j] + lift - less * (distance + size[j] + lift), zero)
        room.value[i] = infinite
        for j in followers:
            room.value[j] = infinite
        for j in range(clusters, width):
            room.value[j] = infinite
        shortlist(room.value, room.value_bits, room.order, out.intruded[i], values[i])


@compiled
def survey(centers: Floats, weight: Floats, room: Scratch, out: Geometry) -> None:
    """All gaps from scratch, O(k² d). OUT: out.squared, out.gap, out.second, out.nearest."""
    point, clusters = np.empty_like(centers[:, 0]), out.squared.shape[0]
    for i in range(clusters):
        out.nearest[i], out.gap[i], out.second[i] = survey_row(centers, weight, i, point, out.squared[i], room)
    for i in range(clusters, out.gap.shape[0]):
        out.nearest[i], out.gap[i], out.second[i] = -1, -np.inf, -np.inf


@compiled
def list_followers(nearest: Ints, followers: Ints, starts: Ints) -> None:
    """Clusters by their nearest one. OUT: followers (k,), starts (k + 1,)."""
    starts[:] = 0
    for j in range(followers.shape[0]):
        starts[nearest[j] + 1] += 1
    for i in range(followers.shape[0]):
        starts[i + 1] += starts[i]
    for j in range(followers.shape[0] - 1, -1, -1):
        starts[nearest[j] + 1] -= 1
        followers[starts[nearest[j] + 1]] = j
    for i in range(followers.shape[0]):
        starts[i] = starts[i + 1]
    starts[followers.shape[0]] = followers.shape[0]


@compiled
def survey_all(centers: Floats, rows: Floats, weight: Floats, balance: float, room: Scratch, out: Geometry) -> None:
    """Everything that frozen rewards need to know about the clusters, O(k² d). OUT: out, room."""
    survey(centers, weight, room, out)
    list_followers(out.nearest, out.followers, out.starts)
    list_near(out.squared, weight, room, out)
    list_intruded(out.squared, weight, balance, slack(rows), room, out)


def empty(lead: tuple[int, ...], clusters: int, width: int, dtype: np.dtype[np.floating[Any]]) -> Geometry:
    """Room for it, with further axes in front."""
    floats, long = (clusters, width), (clusters, LISTED + 1)
    squared, gap, second, near_value, intruded_value = (
        np.empty((*lead, *shape), dtype) for shape in (floats, (width,), (width,), long, long)
    )
    ints = ((width,), (clusters,), (clusters + 1,), (clusters, LISTED), (clusters, LISTED), (clusters,))
    nearest, followers, starts, near, intruded, shared = (np.empty((*lead, *shape), np.int64) for shape in ints)
    return Geometry(
        squared, gap, second, nearest, followers, starts, near, near_value, intruded, intruded_value, shared
    )


def geometry(clusters: Layout, balance: float) -> Geometry:
    """`survey_all` of one set of clusters."""
    (width,), dtype = clusters.weight.shape, clusters.weight.dtype
    shape = empty((), len(clusters.rows), width, dtype)
    survey_all(clusters.centers, clusters.rows, clusters.weight, balance, scratch(width, dtype), shape)
    return shape
