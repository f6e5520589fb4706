"""Which dimensions bounds look at: a few that tell clusters apart are enough where the others hardly vary.

A distance over some dimensions is a lower bound of the distance over all. Of a Cheetah's 17 numbers eight, its fastest
joints, leave one cluster in three hundred for most states, and the bounds cost half. Which and how many are enough is
tried on a few states; with data that vary alike in all dimensions it is all of them.
"""

from typing import NamedTuple

import numpy as np

from voronaut.kernels.compiled import compiled
from voronaut.kernels.cpu.bounds import norms_of
from voronaut.kernels.cpu.distances import Floats, Ints, add_weights, aligned, squared_distances

TRIED = 8  # states
WORTH = 2048  # fewer states than this are done sooner than a trial
GROUP = 4  # dimensions that are tried at a time
# What there is to do where bounds leave more than one cluster, in multiply-adds of a product (measured, d = 17).
LOOK = 12  # for each cluster, to see which are left
MEASURE = 40  # for each dimension of one that is left


class Projection(NamedTuple):
    """Clusters in the chosen dimensions, laid out for products."""

    dims: Ints  # (m,)
    centers: Floats  # (m, width)
    norms: Floats  # (width,) (1 − c) ‖μ_j‖² over these dimensions


@compiled
def left_over(
    centers: Floats, weight: Floats, clusters: int, sample: Floats, order: Ints, looks: Ints, measures: Ints
) -> None:
    """How often more than one cluster is left after each group of dimensions, and how many in all. OUT: the last two.

    Left are those whose value over these dimensions is below the true value of the one that is best over them.
    """
    dim, width = centers.shape
    part, whole, value = np.empty_like(weight), np.empty_like(weight), np.empty_like(weight)
    for r in range(sample.shape[0]):
        squared_distances(centers, sample[r], whole)
        part[:] = 0
        for p in range(dim):
            own, row = sample[r, order[p]], centers[order[p]]
            for j in range(width):
                part[j] += (own - row[j]) * (own - row[j])
            if (p + 1) % GROUP and p < dim - 1:
                continue
            add_weights(part, weight, value)
            best = np.argmin(value)
            limit, left = np.sqrt(whole[best]) + weight[best], -1
            for j in range(clusters):
                left += int(value[j] <= limit)
            looks[p // GROUP] += int(left > 0)
            measures[p // GROUP] += left


def choose(rows: Floats, centers: Floats, weight: Floats, states: Floats, worth: int = WORTH) -> Ints:
    """The dimensions to look at for these states: as many of those that vary most as make the least work.

    All of them where there are fewer states than `worth`.
    """
    clusters, dim = rows.shape
    everything = np.arange(dim)
    if len(states) < worth or dim <= GROUP:
        return everything
    order = np.argsort(-rows.var(axis=0), kind="stable")
    looks, measures = np.zeros((2, -(-dim // GROUP)), np.int64)
    sample = states[:: len(states) // TRIED][:TRIED]
    left_over(centers, weight, clusters, sample, order, looks, measures)
    many = np.minimum(GROUP * (1 + np.arange(len(looks))), dim)
    work = TRIED * many * clusters + LOOK * looks * clusters + MEASURE * measures * dim
    least = int(many[np.argmin(work)])
    return order[:least] if least < dim else everything


def project(rows: Floats, centers: Floats, dims: Ints) -> Projection:
    """Clusters (k, d), also laid out (d, width), in these dimensions. Copies."""
    width, dtype = centers.shape[1], centers.dtype
    laid, norms = aligned((len(dims), width), dtype), aligned((width,), dtype)
    laid[:] = centers[dims]
    norms[: len(rows)], norms[len(rows) :] = norms_of(columns(rows, dims), rows), 0
    return Projection(dims, laid, norms)


@compiled
def pick(states: Floats, dims: Ints, out: Floats) -> None:
    """`states[:, dims]`, several times as fast. OUT: out (n, m)."""
    for r in range(out.shape[0]):
        for p in range(dims.shape[0]):
            out[r, p] = states[r, dims[p]]


def columns(states: Floats, dims: Ints) -> Floats:
    """(n, d) -> (n, m): the chosen dimensions in a row; no copy where that is what is given."""
    if len(dims) == states.shape[1]:
        return np.ascontiguousarray(states)
    out = np.empty((len(states), len(dims)), states.dtype)
    pick(states, dims, out)
    return out
