"""progress.jsonl and TensorBoard files: one line per rollout and run, cut back to the checkpoint on resume."""

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from voronaut.helpers import files
from voronaut.training.watching.board import Board

NAME = "progress.jsonl"
REPAIR = "Repair it, or begin again: --restart."


class RunLog:
    """The log of one run. `kept` lines from before a resume stay; later ones are forgotten."""

    def __init__(self, folder: Path, kept: int, learner: str = "ppo") -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.path = folder / NAME
        first = lines(self.path)[:kept]
        if len(first) < kept:
            raise ValueError(f"{self.path} has {len(first)} lines, but the checkpoint was made after {kept}.")
        rows = [_row(self.path, number, line) for number, line in enumerate(first, 1)]
        if rows and not isinstance(rows[-1].get("env_steps"), int):
            raise ValueError(f"{self.path} is damaged in line {kept}: it has no env_steps. {REPAIR}")
        files.write_text(self.path, "".join(first))
        self._board = Board(folder, rows[-1]["env_steps"] + 1 if rows else 0, learner)

    def write(self, row: Mapping[str, Any]) -> None:
        """Add one rollout; numbers that JSON has no name for (NaN, infinities) become null."""
        plain = {k: None if isinstance(v, float) and not math.isfinite(v) else v for k, v in row.items()}
        with self.path.open("a") as file:
            file.write(json.dumps(plain) + "\n")
        self._board.write(row)

    def close(self) -> None:
        """Flush everything to disk."""
        self._board.close()


def lines(path: Path) -> list[str]:
    """The lines of a log that were written to their end; none if there is no log."""
    whole = path.read_text(errors="replace").splitlines(keepends=True) if path.exists() else []
    return [line for line in whole if line.endswith("\n")]


def _row(path: Path, number: int, line: str) -> dict[str, Any]:
    try:
        return dict(json.loads(line))
    except (ValueError, TypeError, RecursionError) as error:
        what = f"{error.msg} at character {error.pos + 1}" if isinstance(error, json.JSONDecodeError) else error
        raise ValueError(f"{path} is damaged in line {number}: {what}. {REPAIR}") from error


def read(path: Path) -> list[dict[str, Any]]:
    """The rows of a progress.jsonl; a half-written last line is left out."""
    return [_row(path, number, line) for number, line in enumerate(lines(path), 1)]
