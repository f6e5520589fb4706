"""Fair timing on a noisy machine, and pages of what came out."""

import json
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from voronaut.helpers import machine, markdown

CHEETAH = "voronaut.tasks:voronaut/CheetahRunSparse-v0"  # for `gymnasium.make`, which imports what is named first
Cost = dict[str, float]
Rows = Iterable[Mapping[str, Any]]


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


class Clock:
    """A function, and the seconds spent in it."""

    def __init__(self, call: Callable[..., Any]) -> None:
        self.seconds, self._call = 0.0, call

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        before = time.perf_counter()
        result = self._call(*args, **kwargs)
        self.seconds += time.perf_counter() - before
        return result


def turner(made: Any) -> Callable[[], Cost]:
    """A function that takes a turn of a trainer and tells where its seconds went; two turns go before, to compile."""
    made.turn()
    made.turn()

    def turn() -> Cost:
        clock = Clock(made.turn)
        row = clock()[0]
        return {"seconds": clock.seconds, **{name: row[f"{name}_seconds"] for name in ("collect", "learn", "bonus")}}

    return turn


def table(rows: Rows) -> str:
    """Rows as a Markdown table that also reads well as plain text."""
    texts = [{key: f"{v:.4g}" if isinstance(v, float) else str(v) for key, v in row.items()} for row in rows]
    columns = list(texts[0])
    widths = {c: max(len(c), *(len(row[c]) for row in texts)) for c in columns}
    head, *lines = [[row[c].rjust(widths[c]) for c in columns] for row in [{c: c for c in columns}, *texts]]
    return markdown.table(head, lines, ["-" * (widths[c] - 1) + ":" for c in columns])


def keep(folder: Path, name: str, result: Mapping[str, Any], parts: Sequence[str | Rows]) -> str:
    """Write the numbers (`name`.json) and the page about them (`name`.md), of texts and of rows; returns the page."""
    text = "\n\n".join(part if isinstance(part, str) else table(part) for part in parts)
    result = {"machine": machine.describe(), **result}
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.json").write_text(json.dumps(result, indent=1) + "\n")
    where = "\n".join(f"- {key}: {value}" for key, value in result["machine"].items())
    (folder / f"{name}.md").write_text(f"{text}\n\nMeasured on:\n\n{where}\n")
    return text
