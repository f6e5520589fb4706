"""What the parts of the experiment share: numbers for JSON, curves over the points, and whether they keep an order."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from voronaut.experiments.common.jobs import Results


def finite(value: float) -> Any:
    """A number for JSON, which has no infinity: None."""
    return round(value, 5) if math.isfinite(value) else None


def curves(found: Results, names: Sequence[str], key: str) -> tuple[Any, Any] | None:
    """(points, (seeds, points) values) of the results that are there, NaN for what was not finite."""
    there = [found[name] for name in names if name in found]
    if not there:
        return None
    values = [[np.nan if v is None else v for v in result[key]] for result in there]
    return np.array(there[0]["points"]), np.array(values, float)


def falling(found: Results, names: Sequence[str], key: str) -> dict[int, bool] | None:
    """Whether the curves of these results stand in falling order, at each checkpoint; None if a result is missing."""
    curve = curves(found, names, key)
    if curve is None or len(curve[1]) < len(names):
        return None
    holds = np.all(np.diff(curve[1], axis=0) < 0, axis=0)
    return {int(at): bool(right) for at, right in zip(curve[0], holds, strict=True)}


def edges(grid: Any, dims: Sequence[int], xlabel: str) -> None:
    """A column of panels for each dimension: its title above the first row, what runs along it below the last."""
    for axes, dim in zip(grid[0], dims, strict=True):
        axes.set_title(f"d = {dim}")
    for axes in grid[-1]:
        axes.set_xlabel(xlabel)


def line(axes: Any, curve: tuple[Any, Any] | None, color: str, label: str, divide: float = 1.0) -> None:
    """Mean over seeds, and their range."""
    if curve is None:
        return
    points, values = curve[0], curve[1] / divide
    axes.plot(points, values.mean(axis=0), "-o", color=color, linewidth=1.5, markersize=3, label=label)
    if len(values) > 1:
        axes.fill_between(points, values.min(axis=0), values.max(axis=0), color=color, alpha=0.15, linewidth=0)
