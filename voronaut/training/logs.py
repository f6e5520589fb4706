"""progress.jsonl and TensorBoard files: one line per rollout and run, cut back to the checkpoint on resume."""

import json
import math
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any


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


class Board:
    """TensorBoard scalars, or nothing where tensorboard is not installed."""

    def __init__(self, folder: Path, purge: int) -> None:
        try:
            from tensorboard.compat.proto import event_pb2, summary_pb2
            from tensorboard.summary.writer.event_file_writer import EventFileWriter
        except ImportError:
            self._file = None
            return
        self._event, self._summary = event_pb2.Event, summary_pb2.Summary
        self._file = EventFileWriter(str(folder))
        start = event_pb2.SessionLog(status=event_pb2.SessionLog.START)
        self._file.add_event(self._event(wall_time=time.time(), step=purge, session_log=start))

    def write(self, row: Mapping[str, Any]) -> None:
        """All numbers of a row at its `env_steps`."""
        if self._file is None:
            return
        values = [
            self._summary.Value(tag=_tag(name), simple_value=float(value))
            for name, value in row.items()
            if name != "env_steps" and isinstance(value, int | float) and math.isfinite(value)
        ]
        event = self._event(wall_time=time.time(), step=int(row["env_steps"]), summary=self._summary(value=values))
        self._file.add_event(event)

    def close(self) -> None:
        """Flush."""
        if self._file is not None:
            self._file.close()


GROUPS = {
    "extrinsic_return": "explore", "max_step_reward": "explore", "state_entropy": "explore", "bonus_mean": "explore",
    "scale": "explore", "episodes": "explore", "collect_seconds": "time", "bonus_seconds": "time",
    "learn_seconds": "time", "method_bonus_seconds": "time",
}  # fmt: skip


def _tag(name: str) -> str:
    """What is looked at first stands in the first group."""
    return name if "/" in name else f"{GROUPS.get(name, 'ppo')}/{name}"
