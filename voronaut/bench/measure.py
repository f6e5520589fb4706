"""Fair timing on a noisy machine, and tables of what came out."""

import json
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from voronaut.helpers import markdown


def seconds(work: Mapping[str, Callable[[], Any]], *, rounds: int = 7, budget: float = 3.0) -> dict[str, float]:
    """Seconds per call of each piece of work: all of them in turn, round after round, the fastest round of each.

    Taking turns lets every piece meet the same disturbances; the fastest round is the one least disturbed. Rounds stop
    early once `budget` seconds are spent.
    """
    for call in work.values():
        call()
    best = dict.fromkeys(work, np.inf)
    started = time.perf_counter()
    for _ in range(rounds):
        for name, call in work.items():
            before = time.perf_counter()
            call()
            best[name] = min(best[name], time.perf_counter() - before)
        if time.perf_counter() - started > budget:
            break
    return best


def table(rows: Iterable[Mapping[str, Any]]) -> str:
    """Rows as a Markdown table that also reads well as plain text."""
    texts = [{key: f"{v:.4g}" if isinstance(v, float) else str(v) for key, v in row.items()} for row in rows]
    columns = list(texts[0])
    widths = {c: max(len(c), *(len(row[c]) for row in texts)) for c in columns}
    head, *lines = [[row[c].rjust(widths[c]) for c in columns] for row in [{c: c for c in columns}, *texts]]
    return markdown.table(head, lines, ["-" * (widths[c] - 1) + ":" for c in columns])


def keep(folder: Path, name: str, result: Mapping[str, Any], text: str) -> None:
    """Write the numbers (`name`.json) and their tables (`name`.md)."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.json").write_text(json.dumps(result, indent=1) + "\n")
    where = "\n".join(f"- {key}: {value}" for key, value in result["machine"].items())
    (folder / f"{name}.md").write_text(f"{text}\n\nMeasured on:\n\n{where}\n")
