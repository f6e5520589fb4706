"""The entropy in nats of a stream of vectors, in memory that does not grow with it. NumPy, SciPy and numba only."""

import math
import warnings
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray

from voronaut.entropy.cellmeter import BoundMeter, CellMeter
from voronaut.entropy.columns import FAR, Columns, drop_bad, study
from voronaut.entropy.mixture.meter import MixtureMeter

Floats = NDArray[np.float64]
Method = Literal["mixture", "moments", "bound"]

ESTIMATOR_VERSION = 1  # raise it by one when the numbers change: kept results carry the one they came from
FIRST = 32  # rows per cluster that are kept before anything is decided
LEAST = 2048  # but at least so many
BATCH = 4096  # rows worked on at a time
TOLD = {"mixture": FAR, "moments": 100.0, "bound": 100.0}  # scales from the centre, beyond which one row can decide
CLIP = 10.0  # for the effective dimension: a few far rows should not decide it


class Reading(NamedTuple):
    """What is known so far."""

    entropy: float  # nats
    std: float  # standard error of the entropy, for the sampling alone
    rows: int
    bad: int  # rows left out for not being finite
    far: int  # rows so far from the others that one of them can decide the entropy
    effective_dim: float  # (Σλ)² / Σλ² of the correlation matrix's eigenvalues λ
    dropped: dict[int, str]  # column -> why it was dropped
    resolution: dict[int, float]  # column with atoms -> width of the blur, in the column's unit
    model: str  # what gave the number


class EntropyStream:
    """Rows in, entropy out: `update` absorbs (n, d) rows, `read` tells the entropy so far."""

    def __init__(
        self,
        clusters: int = 300,
        method: Method = "mixture",
        *,
        gaussianize: bool = True,
        resolution: float = 1e-3,
        on_bad: Literal["raise", "drop"] = "raise",
        seed: int = 0,
    ) -> None:
        check(clusters, method, resolution, on_bad)
        self.clusters, self.method, self.gaussianize = clusters, method, gaussianize
        self.resolution, self.on_bad, self.seed = resolution, on_bad, seed
        self.rows = self.bad = self._far = 0
        self._first: list[Floats] = []
        self._columns: Columns | None = None
        self._meter: Any = None
        self._blur = np.random.default_rng([seed, 3])
        self._moment: Floats | None = None
        self._warned: set[str] = set()

    def update(self, rows: NDArray[Any]) -> None:
        """Score and learn rows (n, d)."""
        rows, bad = drop_bad(rows, self.on_bad)
        self.bad += bad
        self.rows += len(rows)
        if not self._first and self._columns is None and len(rows) == 0:
            return
        rows = self._fill(rows)
        for start in range(0, len(rows), BATCH):
            self._absorb(rows[start : start + BATCH])

    def _fill(self, rows: Floats) -> Floats:
        """Keep the first rows until there are enough to start; gives those that are left over."""
        if self._columns is not None and not self._first:
            return rows
        held = sum(len(part) for part in self._first)
        room = max(FIRST * self.clusters, LEAST) - held
        self._first.append(rows[:room].copy())
        self._columns, self._meter = None, None
        if len(rows) >= room:
            self._start()
            self._first = []
            return rows[room:]
        return rows[:0]

    def _start(self) -> None:
        """Columns and models from the rows kept so far."""
        first = np.concatenate(self._first)
        if len(first) < 2:
            raise ValueError(f"an entropy needs 2 rows at least; got {len(first)} sample.")
        self._columns = study(first, self.resolution)
        self._warn(self._columns)
        z = self._columns.standardise(first, np.random.default_rng([self.seed, 4]))
        self._moment = _moment(z)
        self._far = self._count_far(first)
        if z.shape[1]:
            self._meter = self._make(z)

    def _make(self, z: Floats) -> Any:
        if self.method == "mixture":
            return MixtureMeter(z, self.clusters, self.gaussianize, self.seed)
        return {"moments": CellMeter, "bound": BoundMeter}[self.method](z, self.clusters, self.seed)

    def _absorb(self, rows: Floats) -> None:
        assert self._columns is not None and self._moment is not None
        for column in self._columns.revived(rows):
            why = self._columns.dropped[column]
            self._tell(f"column {column} was dropped as {why} and is not any more: shuffle the rows, and fit again.")
        if self._meter is None:
            return
        z = self._columns.standardise(rows, self._blur)
        self._moment += _moment(z)
        self._far += self._count_far(rows)
        self._meter.absorb(z)

    def _ready(self) -> Columns:
        if self._columns is None:
            if not self._first:
                raise ValueError("no rows yet: an entropy needs 2 rows at least.")
            self._start()
        assert self._columns is not None
        return self._columns

    def read(self) -> Reading:
        """The entropy so far. −inf if no column varies, NaN while there are too few rows."""
        columns = self._ready()
        entropy, error = self._measure(len(columns.kept))
        atoms = {int(j): float(w) for j, w in zip(columns.kept, columns.resolution, strict=True) if w > 0}
        return Reading(
            entropy=entropy + columns.log_volume,
            std=error,
            rows=self.rows,
            bad=self.bad,
            far=self._far,
            effective_dim=self._effective_dim(),
            dropped=dict(columns.dropped),
            resolution=atoms,
            model="" if self._meter is None else self._meter.expert,
        )

    def _measure(self, dim: int) -> tuple[float, float]:
        if self._meter is None:
            return -math.inf, math.nan
        if self.rows < fewest(dim):
            self._tell(too_few(self.rows, dim))
            return math.nan, math.nan
        return self._meter.read()  # type: ignore[no-any-return]

    def log_density(self, rows: NDArray[Any]) -> Floats:
        """ln p of rows (n, d) in the kept columns' own units; inf where no column varies."""
        columns = self._ready()
        rows, _ = drop_bad(rows, "raise")
        if self._meter is None:
            return np.full(len(rows), np.inf)
        return np.asarray(self._meter.log_density(columns.standardise(rows)) - columns.log_volume)

    def _count_far(self, rows: Floats) -> int:
        """How many rows are far from the others; the first is told."""
        assert self._columns is not None
        distances = np.abs(self._columns.distances(rows))
        far = distances > TOLD[self.method]
        if far.any():
            row, column = np.argwhere(far)[0]
            name = self._columns.kept[column]
            self._tell(
                f"a row is {distances[row, column]:.2g} scales from the others (column {name}: {rows[row, name]:g}). "
                f"One such row can decide the entropy, and those beyond {FAR:.0e} count as if they were there. Remove "
                "such rows if they are mistakes.",
                "far",
            )
        return int(far.any(axis=1).sum())

    def _effective_dim(self) -> float:
        """(Σλ)² / Σλ²: d where columns are uncorrelated, 1 where all say the same."""
        assert self._moment is not None
        if len(self._moment) < 2:
            return 0.0
        mean = self._moment[-1] / self._moment[-1, -1]
        covariance = (self._moment / self._moment[-1, -1] - np.outer(mean, mean))[:-1, :-1]
        deviation = np.sqrt(np.maximum(np.diag(covariance), 1e-300))
        correlation = covariance / np.outer(deviation, deviation)
        return float(np.trace(correlation) ** 2 / (correlation**2).sum())

    def _warn(self, columns: Columns) -> None:
        for column, why in columns.dropped.items():
            self._tell(f"column {column} is {why}: it is left out, with it the entropy would be -inf.")
        atoms = columns.kept[columns.resolution > 0]
        if len(atoms):
            width = columns.resolution.max() if len(atoms) > 1 else columns.resolution[columns.resolution > 0][0]
            self._tell(
                f"repeated values in column {', '.join(str(j) for j in atoms)}: the entropy is -inf there; reported is "
                f"that of the rows blurred by up to {width:.3g} ({self.resolution:g} of each column's scale)."
            )

    def _tell(self, message: str, kind: str = "") -> None:
        """Warn, once for each message, or for each kind."""
        if (kind or message) not in self._warned:
            self._warned.add(kind or message)
            warnings.warn(message, UserWarning, stacklevel=5)


def fewest(dim: int) -> int:
    """Rows from which there is a number: three quarters of them, which the others are held against, span a volume."""
    return 2 * (dim + 2)


def too_few(rows: int, dim: int) -> str:
    """What is said of fewer."""
    return (
        f"{rows} rows are too few for {dim} column{'s' if dim != 1 else ''}: there is no entropy below {fewest(dim)}, "
        "and none to trust below a hundred rows per column."
    )


def _moment(z: Floats) -> Floats:
    """Σ [z, 1][z, 1]ᵀ of clipped rows."""
    wide = np.concatenate([np.clip(z, -CLIP, CLIP), np.ones((len(z), 1))], axis=1)
    return np.asarray(wide.T @ wide)


def check(clusters: Any, method: Any, resolution: Any, on_bad: Any) -> None:
    """Refuse settings that make no sense."""
    if isinstance(clusters, bool) or not isinstance(clusters, (int, np.integer)) or clusters < 1:
        raise ValueError(f"clusters must be a whole number of at least 1; got {clusters!r}.")
    if method not in get_args(Method):
        raise ValueError(f"method must be one of {', '.join(get_args(Method))}; got {method!r}.")
    if not (isinstance(resolution, (int, float)) and 0 < resolution < 1):
        raise ValueError(f"resolution must be between 0 and 1, a share of each column's scale; got {resolution!r}.")
    if on_bad not in ("raise", "drop"):
        raise ValueError(f'on_bad must be "raise" or "drop"; got {on_bad!r}.')
