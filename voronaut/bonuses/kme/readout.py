"""What a KME's clusters tell: centers in the states' own units, cells, entropy, and how even they are."""

import math

import numpy as np
from numpy.typing import NDArray

from voronaut.bonuses.kme.balanced import Balanced
from voronaut.bonuses.kme.frames import Frame
from voronaut.bonuses.kme.viewed import Viewed
from voronaut.entropy.batch import batch_entropy
from voronaut.entropy.cells import cell_entropy

Floats = NDArray[np.float64]
Counts = NDArray[np.int64]


def centers(memory: Balanced | Viewed, frame: Frame, view: int) -> Floats:
    """The centers of a view, (k, m)."""
    rows, own = np.zeros((memory.settings.clusters, memory.settings.dim)), memory.columns[view]
    rows[:, own] = memory.centers_of(view)
    return np.asarray(frame.to_states(rows)[:, own])


def cells(memory: Balanced | Viewed, frame: Frame, sample: NDArray[np.floating]) -> tuple[float, Counts]:
    """Entropy of the sample (n, d), and how many of its states are in each cell of each view, (V, k)."""
    k = memory.settings.clusters
    if not len(sample):
        return math.nan, np.zeros((1, k), np.int64)
    chosen = memory.assign(sample)
    masses = np.stack([np.bincount(own, minlength=k) for own in chosen])
    if len(chosen) > 1:  # no cells of whole states: the entropy has its own
        return batch_entropy(frame.to_states(sample)), masses
    return cell_entropy(sample, chosen[0], k) + frame.log_volume(), masses


def evenness(gaps: Floats, masses: Counts) -> dict[str, float]:
    """Metrics of the gaps, of all views in a row, and of the masses of the cells (V, k)."""
    even = masses.std(axis=1) / np.maximum(masses.mean(axis=1), 1e-12)
    return {
        "gap_mean": float(gaps.mean()),
        "gap_min": float(gaps.min()),
        "clamped_gaps": float((gaps < 0).sum()),
        "empty_cells": float((masses == 0).mean()),
        "cell_mass_cv": float(even.mean()),
    }
