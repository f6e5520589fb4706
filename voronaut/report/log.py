"""A run's progress.jsonl by column, from whatever can be read of it."""

import json
import math
from pathlib import Path

import numpy as np

from voronaut.report.records import Columns


def read(path: Path) -> tuple[Columns, list[str]]:
    """A progress.jsonl by column. A half-written last line is a run under way; any other bad line is named."""
    try:
        text = path.read_text(errors="replace")
    except OSError as error:
        missing = "is missing" if isinstance(error, FileNotFoundError) else f"cannot be read ({error.strerror})"
        return _columns([]), [f"{path} {missing}."]
    whole, _, last = text.rpartition("\n")
    rows, bad, reached = [], [], -math.inf
    for number, line in enumerate([*whole.split("\n"), last], 1):
        row = _row(line)
        if row and row["env_steps"] > reached:
            rows.append(row)
            reached = row["env_steps"]
        elif line and not (line is last and not row):
            bad.append(number)
    return _columns(rows), _bad_lines(path, bad)


def _bad_lines(path: Path, bad: list[int]) -> list[str]:
    if not bad:
        return []
    some = ", ".join(map(str, bad[:5])) + (", …" if len(bad) > 5 else "")
    return [f"{path} is damaged: {len(bad)} of its lines cannot be used and are left out (line {some})."]


def _row(line: str) -> dict[str, float] | None:
    """The numbers of a line; None unless it has at least `env_steps`."""
    try:
        parsed = json.loads(line)
        row = {str(k): float(v) for k, v in parsed.items() if isinstance(v, int | float)}
        return row if math.isfinite(row["env_steps"]) else None
    except (ValueError, AttributeError, KeyError, OverflowError, RecursionError):
        return None


def _columns(rows: list[dict[str, float]]) -> Columns:
    names = dict.fromkeys(["env_steps", *(name for row in rows for name in row)])
    columns = {name: np.array([row.get(name, math.nan) for row in rows], float) for name in names}
    return {name: np.where(np.isfinite(values), values, math.nan) for name, values in columns.items()}
