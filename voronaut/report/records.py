"""Runs as the page needs them, whatever they were read from."""

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Columns = dict[str, NDArray[np.float64]]


class Experiment(NamedTuple):
    """What was trained together."""

    name: str
    config: dict[str, Any]  # empty where it could not be read
    notes: tuple[str, ...]


class Run(NamedTuple):
    """One run: what it is, how far it came, and its log by column (NaN where nothing is known)."""

    experiment: str
    name: str
    folder: Path | None  # None: a result file, which has no clusters
    task: str
    method: str
    kind: str
    seed: int
    columns: Columns
    state: str  # finished, running, stopped, cut (its log is shorter than what was trained) or unknown
    wanted: int  # rollouts; 0 if unknown
    settings: dict[str, Any]
    shared: dict[str, float]  # median seconds per rollout, as one run's share

    @property
    def steps(self) -> NDArray[np.float64]:
        """Environment steps after each rollout."""
        return self.columns["env_steps"]


class Reading(NamedTuple):
    """Everything that was found, and a line for everything that is missing or damaged."""

    runs: list[Run]
    experiments: list[Experiment]
    troubles: list[str]


def grouped(runs: Iterable[Run], key: Callable[[Run], Any]) -> dict[Any, list[Run]]:
    """Runs by what `key` says of them, in the order in which they came."""
    groups: dict[Any, list[Run]] = {}
    for run in runs:
        groups.setdefault(key(run), []).append(run)
    return groups


def title(config: Mapping[str, Any]) -> str:
    """cheetah-run (paper threshold); Gymnasium's tasks have no threshold, and release is the usual one."""
    usual = str(config["task"]).startswith(("gym:", "env:")) or config.get("threshold", "release") == "release"
    return str(config["task"]) if usual else f"{config['task']} ({config['threshold']} threshold)"


def share(median: Mapping[str, float], together: int, mates: int) -> dict[str, float]:
    """Seconds per rollout: collecting and learning divided by all runs, the bonus by those it was measured for."""
    own = "method_bonus_seconds" in median
    bonus = ("method_bonus_seconds", mates) if own else ("bonus_seconds", together)
    parts = {"collect": ("collect_seconds", together), "bonus": bonus, "learn": ("learn_seconds", together)}
    return {part: median[key] / max(by, 1) for part, (key, by) in parts.items() if key in median}
