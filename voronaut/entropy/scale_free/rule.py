"""Clusters that do not depend on units, in plain NumPy: κ follows the margins of the decisions, α each cluster's age.

The judge of `kernel.py`, as `voronaut/clusters.py` is of the paper's rule.
"""

from typing import NamedTuple

import numpy as np

from voronaut import clusters as ref

RATE = 1e-3  # of the running margin: about the last thousand states


class Grown(NamedTuple):
    """Clusters, the running margin, and the smallest margin any decision was made by."""

    clusters: ref.Clusters
    margin: float
    closest: float


def absorb(grown: Grown, state: ref.Array, *, eta: float, floor: float) -> Grown:
    """One state: decide with κ = η m, take its margin into m, move the winner by max(floor, 1/n)."""
    clusters, margin, closest = grown
    kappa = eta * margin
    adjusted = np.sqrt(((clusters.centers - state) ** 2).sum(axis=1)) + ref.weights(clusters, kappa)
    best, second = np.sort(adjusted)[:2]
    seen = clusters.counts.sum() - len(clusters.counts)
    alpha = max(floor, 1 / (clusters.counts[int(np.argmin(adjusted))] + 1))
    after = ref.absorb(clusters, state, alpha, kappa)
    return Grown(after, margin + max(RATE, 1 / (seen + 1)) * (second - best - margin), min(closest, second - best))
