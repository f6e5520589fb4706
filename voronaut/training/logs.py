"""progress.jsonl and TensorBoard files: one line per rollout and run, cut back to the checkpoint on resume."""

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from voronaut.training.board import Board


def jsonable(row: Mapping[str, Any]) -> dict[str, Any]:
    """Numbers that JSON has no name for (NaN, infinities) become null."""
    return {k: None if isinstance(v, float) and not math.isfinite(v) else v for k, v in row.items()}


class RunLog:
    """The log of one run. `kept` lines from before a resume stay; later ones are forgotten."""

    def __init__(self, folder: Path, kept: int) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.path = folder / "progress.jsonl"
        lines = self.path.read_text().splitlines(keepends=True)[:kept] if self.path.exists() else []
        if len(lines) < kept:
            raise ValueError(f"{self.path} has {len(lines)} lines, but the checkpoint was made after {kept}.")
        self.path.write_text("".join(lines))
        self._board = Board(folder, purge=json.loads(lines[-1])["env_steps"] + 1 if lines else 0)

    def write(self, row: Mapping[str, Any]) -> None:
        """Add one rollout."""
        with self.path.open("a") as file:
            file.write(json.dumps(jsonable(row)) + "\n")
        self._board.write(row)

    def close(self) -> None:
        """Flush everything to disk."""
        self._board.close()


def read(path: Path) -> list[dict[str, Any]]:
    """The rows of a progress.jsonl; a half-written last line is left out."""
    rows = []
    for line in path.read_text().splitlines():
        try:
            rows.append(json.loads(line))
        except json.JSONDecodeError:
            break
    return rows
