"""z = (x − centre) / scale, column by column in float64, and which columns can be used at all.

A constant column, or one that is a linear function of columns before it, makes the entropy −∞: it is dropped and named.
A column with repeated values (atoms) does too: it is blurred by a Gaussian of a stated width, its resolution.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

ATOMS = 0.005  # share of values that occur OFTEN or more times above which a column has atoms
OFTEN = 4  # two or three equal values happen by chance where digits are few
LINEAR = 1e-7  # residual of a linear function, in standard deviations
FAR = 3e6  # scales: a row farther out counts as that far, or it alone would decide everything
EPS = float(np.finfo(np.float64).eps)


class Columns(NamedTuple):
    """What the first rows told about each column. Arrays are over the kept columns."""

    kept: NDArray[np.int64]
    centre: Floats
    scale: Floats
    resolution: Floats  # standard deviation of the blur in the column's own unit; 0 where there are no atoms
    dropped: dict[int, str]  # column -> why
    recipes: dict[int, tuple[Floats, float, float]]  # column -> coefficients, constant, tolerance: how to make it again

    def standardise(self, rows: Floats, blur: np.random.Generator | None = None) -> Floats:
        """(n, all) -> (n, kept); `blur` draws the noise for columns with atoms, None leaves them as they are."""
        z = self.distances(rows)
        if blur is not None and self.resolution.any():
            z += blur.normal(size=z.shape) * (self.resolution / self.scale)
        return np.clip(z, -FAR, FAR)

    def distances(self, rows: Floats) -> Floats:
        """Distances to the centre in scales, however far: (n, all) -> (n, kept)."""
        with np.errstate(over="ignore"):
            return np.asarray((rows[:, self.kept] - self.centre) / self.scale)

    @property
    def log_volume(self) -> float:
        """Σ ln scale: what the entropy of x has over that of z."""
        return float(np.log(self.scale).sum())

    def revived(self, rows: Floats) -> list[int]:
        """Dropped columns that these rows show not to be what they were dropped for."""
        found = []
        for column, (coefficients, constant, tolerance) in self.recipes.items():
            miss = rows[:, column] - (rows[:, self.kept] @ coefficients + constant)
            if np.abs(miss).max(initial=0.0) > tolerance:
                found.append(column)
        return found


def study(first: Floats, resolution: float) -> Columns:
    """Learn the columns from the first rows (n, d); `resolution` is the blur of atoms, in units of the scale."""
    low, high, centre, scale = _spread(first)
    varies = high - low > 8 * EPS * np.maximum(np.abs(low), np.abs(high))
    dropped = {int(j): "constant" for j in np.flatnonzero(~varies)}
    kept = np.flatnonzero(varies)
    dropped |= _functions(first, kept, centre, scale)
    kept = np.array([j for j in kept if j not in dropped], np.int64)
    atoms = np.array([_repeats(first[:, j]) > ATOMS for j in kept], bool)
    recipes = {j: _recipe(first, j, kept, centre, scale) for j in dropped}
    return Columns(kept, centre[kept], scale[kept], np.where(atoms, resolution * scale[kept], 0.0), dropped, recipes)


def _spread(first: Floats) -> tuple[Floats, Floats, Floats, Floats]:
    """Least, greatest, median, and half the distance of the 16 % and 84 % quantiles (the deviation where that is 0)."""
    low, sixteen, centre, most, high = np.quantile(first, [0, 0.16, 0.5, 0.84, 1], axis=0)
    reach = np.maximum(np.maximum(np.abs(high - centre), np.abs(low - centre)), np.finfo(np.float64).tiny)
    deviation = reach * ((first - centre) / reach).std(axis=0)
    scale = (most - sixteen) / 2
    return low, high, centre, np.where(scale > 8 * EPS * np.abs(centre), scale, np.where(deviation > 0, deviation, 1.0))


def _repeats(column: Floats) -> float:
    """Share of the column that consists of values which occur often."""
    times = np.unique(column, return_counts=True)[1]
    return float(times[times >= OFTEN].sum() / len(column))


def _functions(first: Floats, columns: NDArray[np.int64], centre: Floats, scale: Floats) -> dict[int, str]:
    """Columns that are linear functions of those before them (Gram–Schmidt, twice for rounding)."""
    with np.errstate(over="ignore"):
        z = (first[:, columns] - centre[columns]) / scale[columns]
    near = (np.abs(z) <= FAR).all(axis=1)  # by one that is far out in all columns, all are copies of each other
    first, z = first[near], z[near]
    if len(first) < 2 * len(columns) + 5:
        return {}
    z = z - z.mean(axis=0)
    deviation = np.sqrt((z**2).mean(axis=0))
    z = z / np.where(deviation > 0, deviation, 1.0)
    basis = np.empty((len(z), 0))
    found: dict[int, str] = {}
    kept: list[int] = []
    for i, j in enumerate(columns):
        if deviation[i] == 0:  # it varies in far rows alone
            continue
        residual = z[:, i]
        for _ in range(2):
            residual = residual - basis @ (basis.T @ residual)
        length = float(np.linalg.norm(residual))
        rounding = LINEAR + 64 * EPS * float(np.abs(first[:, j]).max()) / scale[j]  # of the column itself
        if length / np.sqrt(len(z)) <= rounding * max(1, len(kept)):
            found[int(j)] = _name(z[:, i], z[:, kept], columns[kept])
        else:
            basis = np.concatenate([basis, (residual / length)[:, None]], axis=1)
            kept.append(i)
    return found


def _name(column: Floats, others: Floats, names: NDArray[np.int64]) -> str:
    """ "a copy of column 3", or "a linear function of columns 1, 3"."""
    weights = np.abs(np.linalg.lstsq(others, column, rcond=None)[0])
    which = names[weights > 1e-5 * weights.max()]
    if len(which) == 1:
        return f"a copy of column {which[0]} (scaled or shifted)"
    return f"a linear function of columns {', '.join(str(j) for j in which)}"


def _recipe(
    first: Floats, j: int, kept: NDArray[np.int64], centre: Floats, scale: Floats
) -> tuple[Floats, float, float]:
    """Coefficients on the kept columns, constant, and the largest miss that is still rounding."""
    if not len(kept) or np.ptp(first[:, j]) <= 8 * EPS * np.abs(first[:, j]).max():
        return np.zeros(len(kept)), float(first[0, j]), 16 * EPS * float(np.abs(first[:, j]).max())
    z = np.concatenate([(first[:, kept] - centre[kept]) / scale[kept], np.ones((len(first), 1))], axis=1)
    solution = np.linalg.lstsq(z, first[:, j], rcond=None)[0]
    coefficients = solution[:-1] / scale[kept]
    constant = float(solution[-1] - coefficients @ centre[kept])
    miss = float(np.abs(first[:, j] - first[:, kept] @ coefficients - constant).max())
    return coefficients, constant, 10 * miss + 1e-5 * float(scale[j])


def drop_bad(rows: NDArray[Any], on_bad: str) -> tuple[Floats, int]:
    """Rows in float64 and how many were left out for not being finite; with "raise" that is an error."""
    rows = np.asarray(rows, np.float64)
    good = np.isfinite(rows).all(axis=1)
    bad = len(rows) - int(good.sum())
    if bad and on_bad == "raise":
        row = int(np.argmin(good))
        column = int(np.argmin(np.isfinite(rows[row])))
        value = rows[row, column]
        raise ValueError(
            f"Input contains NaN or infinity: column {column} of row {row} of these {len(rows)} is {value} ({bad} such "
            'rows). Remove them, or leave them out: on_bad="drop", or --drop-bad on the command line.'
        )
    return (rows[good] if bad else rows), bad
