"""One small file per run: the curve, what was run, and on what. Everything drawn is drawn from these."""

import gzip
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from voronaut import machine
from voronaut.training import logs
from voronaut.training.config import Config

CURVES = ("env_steps", "extrinsic_return", "max_step_reward", "bonus_mean", "state_entropy")
SECONDS = ("collect_seconds", "bonus_seconds", "learn_seconds", "method_bonus_seconds")


class Result(NamedTuple):
    """A run that is done."""

    task: str
    threshold: str
    method: str
    seed: int
    curve: dict[str, NDArray[np.float64]]  # by name, one number per rollout, NaN where nothing was known
    about: dict[str, Any]


def export(config: Config, work: Path, folder: Path) -> list[Path]:
    """Write one result file per finished run of `work` into `folder`."""
    folder.mkdir(parents=True, exist_ok=True)
    notes = work / "notes.txt"
    paths = []
    for (method, seed), name in zip(config.runs, config.folders(), strict=True):
        rows = logs.read(work / name / "progress.jsonl")
        content = {
            "task": config.task,
            "threshold": config.threshold,
            "method": method.label,
            "seed": seed,
            "scale": method.scale,
            "params": dict(method.params),
            "steps": config.steps,
            "envs": config.envs,
            "rollout": config.rollout,
            "backend": config.backend,
            "machine": machine.describe(),
            "runs_side_by_side": len(config.runs),
            "seconds": {key: round(sum(row[key] for row in rows), 3) for key in SECONDS},
            "notes": notes.read_text().splitlines() if notes.exists() else [],
            "last_metrics": {key: value for key, value in rows[-1].items() if "/" in key},
            "curve": {key: [_short(row[key]) for row in rows] for key in CURVES},
        }
        paths.append(folder / f"{name}.json.gz")
        write(paths[-1], content)
    return paths


def _short(value: float | None) -> float | None:
    return value if value is None or isinstance(value, int) else float(f"{value:.5g}")


def write(path: Path, content: dict[str, Any]) -> None:
    """JSON, compressed, with no time stamp inside: the same content is the same file."""
    path.write_bytes(gzip.compress(json.dumps(content).encode(), mtime=0))


def read(path: Path) -> Result:
    """A result file; ValueError if it is damaged."""
    try:
        raw = path.read_bytes()
        content = json.loads(gzip.decompress(raw) if path.suffix == ".gz" else raw)
        curve = {key: np.array(content["curve"][key], float) for key in CURVES}
        if len({len(values) for values in curve.values()}) != 1 or not len(curve["env_steps"]):
            raise ValueError("its curves differ in length")
        named = {key: content.pop(key) for key in ("task", "threshold", "method", "seed")}
        return Result(**named, curve=curve, about=content)
    except (OSError, EOFError, KeyError, TypeError, ValueError) as error:
        raise ValueError(f"{path} is not a result file, or it is damaged: {error}") from error


def find(folder: Path) -> tuple[list[Result], list[str]]:
    """All results below `folder`, and a line for each file that cannot be read (it is skipped, never averaged)."""
    results, troubles = [], []
    for path in sorted(_files(folder)):
        try:
            results.append(read(path))
        except ValueError as error:
            troubles.append(str(error))
    return results, troubles


def _files(folder: Path) -> Iterable[Path]:
    return [path for pattern in ("**/*.json", "**/*.json.gz") for path in folder.glob(pattern)]
