"""docs/entropy_experiments.md, errors in nats: tables from the result files, in Markdown."""

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from voronaut.entropy.laws import COVERED
from voronaut.experiments.common.drawing import NOT_RUN
from voronaut.experiments.common.jobs import Results, Values
from voronaut.experiments.entropy.errors import run, units
from voronaut.helpers.markdown import table

RIVALS = {"knn": "kNN", "kde": "KDE", "gmm": "GMM", "gaussian": "one Gaussian"}


def accuracy_table(found: Results) -> str:
    """Median and largest absolute error over laws (mean over seeds), seconds per million points."""
    rows = []
    for dim in run.DIMS:
        for method in ("mixture", "moments", "bound"):
            target = run.TARGETS[dim] if method == "mixture" else ""
            sizes, seeds = run.sizes(found, dim, method), _seeds(found, dim, method)
            if not sizes:
                rows.append([dim, method, NOT_RUN, target, "", "", ""])
                continue
            rows.append([dim, method, f"{np.median(list(sizes.values())):.3f}", target, _worst(sizes),
                         f"{len(sizes)} laws, {seeds} seed{'s' if seeds > 1 else ''}",
                         f"{_seconds(found, dim, method):.1f}"])  # fmt: skip
    return table(["d", "method", "median", "target", "largest (law)", "of", "s per 1M points"], rows)


def _worst(sizes: dict[str, float]) -> str:
    law = max(sizes, key=lambda law: sizes[law])
    return f"{sizes[law]:.2f} ({law})".replace("inf", "∞")


def _seeds(found: Results, dim: int, method: str) -> int:
    """The fewest of any law."""
    return min((len(values) for values in run.errors(found, dim, method).values()), default=0)


def _seconds(found: Results, dim: int, method: str) -> float:
    names = [f"accuracy/{law}-{dim}-{method}-{seed}" for law in run.NAMES for seed in range(run.SEEDS)]
    return float(np.median([found[name]["fit_seconds"] for name in names if name in found] or [math.nan]))


def law_table(found: Results) -> str:
    """Mean error with its sign and spread over seeds, law by law, at a million points."""
    rows = []
    for law in run.NAMES:
        told = [run.errors(found, dim).get(law) for dim in run.DIMS]
        rows.append([law, *(f"{np.mean(v):+.3f} ± {np.std(v):.3f}" if v else NOT_RUN for v in told)])
    return table(["law", *(f"d = {dim}" for dim in run.DIMS)], rows)


def worst_table(found: Results) -> str:
    """The largest error from 300,000 points on, over the laws that the estimator is made for, every seed and unit."""
    rows: list[list[Any]] = []
    for dim in units.DIMS:
        row: list[Any] = [dim, units.LIMITS[dim]]
        for points in (units.POINTS, run.POINTS):
            errors = run.errors(found, dim, points=points)
            row.append(_largest({law: max(np.abs(v)) for law, v in errors.items() if law in COVERED}))
        row += [_largest({law: abs(e) for law, e in units.errors(found, dim, way).items()}) for way in units.WAYS]
        rows.append(row)
    head = ["d", "limit", "held-out laws, five seeds, 300,000 points", "the same, 1,000,000 points",
            *(f"all laws, 300,000 points, {label}" for label in units.WAYS.values())]  # fmt: skip
    return table(head, rows)


def _largest(sizes: dict[str, Any]) -> str:
    if not sizes:
        return NOT_RUN
    worst = max(sizes, key=lambda law: sizes[law])
    return f"{sizes[worst]:.3f} ({worst}; of {len(sizes)} laws)"


def data_table(found: Results) -> str:
    """Median absolute error over the ten laws of everybody at the same points; nothing where not all laws were done."""
    rows = []
    for dim in run.DIMS:
        for points in run.CHECKPOINTS:
            medians = [_all_laws(run.sizes(found, dim, method, points)) for method in ("mixture", "moments", *RIVALS)]
            rows.append([dim, f"{points:,}", *medians])
    return table(["d", "points", "`mixture`", "`moments`", *RIVALS.values()], rows)


def _all_laws(sizes: dict[str, float]) -> str:
    return f"{np.median(list(sizes.values())):.3f}" if len(sizes) == len(run.NAMES) else "–"


def rival_table(found: Results) -> str:
    """What the others take at the most points they could, per million points at that size, and with equal memory."""
    rows = []
    for dim in run.DIMS:
        mine = run.sizes(found, dim)
        if mine:
            rows.append([dim, "`mixture`", f"{run.POINTS:,}", f"{_seconds(found, dim, 'mixture'):.1f}",
                         f"{_seconds(found, dim, 'mixture'):.1f}", "all", _all_laws(mine)])  # fmt: skip
        for method, label in RIVALS.items():
            told = [t for law in run.NAMES if (t := run.rival(found, law, dim, method))]
            rows.append([dim, label, *_most(told)])
    head = ["d", "method", "most points", "s at that size", "s per 1M points there", "points its memory allows",
            "median error with these"]  # fmt: skip
    return table(head, rows)


def _most(told: Sequence[Values]) -> list[str]:
    if not told:
        return [NOT_RUN, "", "", "", ""]
    sizes = sorted({t["points"] for t in told})
    points = f"{sizes[0]:,}" if len(sizes) == 1 else f"{sizes[0]:,} to {sizes[-1]:,}"
    kept = told[0]["kept"]
    rates = [t["seconds"] / t["points"] * 1e6 for t in told]
    few = np.median([abs(t["error_kept"]) for t in told if t["error_kept"] is not None])
    return [points, f"{np.median([t['seconds'] for t in told]):.1f}", f"{np.median(rates):,.1f}",
            "all" if kept >= run.POINTS else f"{kept:,}", f"{few:.3f}"]  # fmt: skip


def knn_wins(found: Results) -> str:
    """Laws where nearest neighbours are closer to the truth: at equal data, and against a million in the estimator."""
    rows = []
    for dim in run.DIMS:
        for points in run.CHECKPOINTS:
            theirs = run.sizes(found, dim, "knn", points)
            if len(theirs) == len(run.NAMES):
                rows.append([dim, f"{points:,}", f"{points:,}", *_wins(theirs, run.sizes(found, dim, points=points))])
        told = {law: t for law in run.NAMES if (t := run.rival(found, law, dim, "knn"))}
        most = sorted({t["points"] for t in told.values()})
        if most and most[0] < run.POINTS:
            sizes = {law: abs(t["error"]) for law, t in told.items() if t["error"] is not None}
            rows.append([dim, " to ".join(f"{n:,}" for n in most), f"{run.POINTS:,}",
                         *_wins(sizes, run.sizes(found, dim))])  # fmt: skip
    return table(["d", "points, kNN", "points, here", "laws", "kNN is closer for (its error / ours)"], rows)


def _wins(theirs: dict[str, float], mine: dict[str, float]) -> list[str]:
    wins = [f"{law} ({size:.3f} / {mine[law]:.3f})" for law, size in theirs.items()
            if law in mine and size < mine[law]]  # fmt: skip
    return [f"{len(wins)} of {len(theirs)}", ", ".join(wins) or "none"]


TABLES: dict[str, Callable[[Results], str]] = {
    "accuracy": accuracy_table,
    "laws": law_table,
    "worst": worst_table,
    "data": data_table,
    "rivals": rival_table,
    "knn": knn_wins,
}
