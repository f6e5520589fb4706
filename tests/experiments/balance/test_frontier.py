"""min ∫ p/λ subject to ∫ p²/λ ≤ 1 + CV²: how little distortion even cells can have for a Gaussian in 2-D, k → ∞.

Where centers have density λ, a cell has area 1/(kλ), mass p/(kλ) and, in two dimensions, squared radius ∝ 1/λ.
Distortion is ∝ ∫ p/λ, the mean squared mass ∝ ∫ p²/λ. The best λ under both is ∝ √(p + t p²): k-means at t = 0,
equal masses as t → ∞.
"""

from typing import NamedTuple

import numpy as np
import pytest

RADIUS = np.linspace(0, 12, 100_001)


class Point(NamedTuple):
    """Cell-mass CV, and the least distortion that goes with it, in those of k-means."""

    cv: float
    distortion: float


def point(t: float) -> Point:
    """The frontier at one trade-off t ≥ 0."""
    density = np.exp(-(RADIUS**2) / 2) / (2 * np.pi)
    area = 2 * np.pi * RADIUS * (RADIUS[1] - RADIUS[0])
    centers = np.sqrt(density + t * density**2)
    centers /= (centers * area).sum()
    distortion, square = (density / centers * area).sum(), (density**2 / centers * area).sum()
    return Point(float(np.sqrt(square - 1)), float(distortion / (8 * np.pi)))  # k-means has λ ∝ √p: 8π


def least_distortion(cv: float) -> float:
    """The least distortion, in those of k-means, of cells with this CV or less."""
    low, high = 0.0, 1e6
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if point(middle).cv > cv else (low, middle)
    return point(high).distortion


def test_even_cells_of_a_plane_gaussian_cost_distortion() -> None:
    """k-means has a CV of 1/√3 there; a CV of 0.25 cannot be had below 1.16 of its distortion."""
    assert point(0.0) == pytest.approx((3**-0.5, 1.0), abs=1e-4)
    assert least_distortion(0.25) == pytest.approx(1.161, abs=1e-3)
    assert least_distortion(0.3) > 1.1
