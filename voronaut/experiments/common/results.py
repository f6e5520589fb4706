"""One small file per run: the curve, what was run, and on what. Everything drawn is drawn from these."""

import gzip
import json
import zlib
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from voronaut.helpers import files, machine
from voronaut.training.config import Config, Method
from voronaut.training.watching import logs

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


def identity(config: Config, method: Method, seed: int) -> dict[str, Any]:
    """What makes two runs the same run: a result that differs in any of it belongs to another experiment."""
    return {
        "task": config.task,
        "threshold": config.threshold,
        "method": method.label,
        "seed": seed,
        "scale": method.scale,
        "params": dict(method.params),
        "envs": config.envs,
        "rollout": config.rollout,
    }


def export(config: Config, work: Path, folder: Path, *, skip: Collection[str] = ()) -> list[Path]:
    """Write one result file per finished run of `work` into `folder`, but for the runs named in `skip`."""
    folder.mkdir(parents=True, exist_ok=True)
    about = {
        "steps": config.steps,
        "backend": config.backend,
        "machine": machine.describe(),
        "runs_side_by_side": len(config.runs),
        "notes": notes.read_text().splitlines() if (notes := work / "notes.txt").exists() else [],
    }
    paths = []
    for (method, seed), name in zip(config.runs, config.folders(), strict=True):
        if name not in skip:
            rows = logs.read(work / name / "progress.jsonl")
            paths.append(folder / f"{name}.json.gz")
            write(paths[-1], identity(config, method, seed) | about | measured(rows))
    return paths


def measured(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """What a result file keeps of a run's rows, one per rollout; seconds as far as they were taken."""
    timed = [key for key in SECONDS if key in rows[0]]
    return {
        "seconds": {key: round(sum(row[key] for row in rows), 3) for key in timed},
        # The sums hold the compiling of the first rollout; the median does not.
        "median_seconds": {key: round(float(np.median([row[key] for row in rows])), 6) for key in timed},
        "last_metrics": {key: value for key, value in rows[-1].items() if "/" in key},
        "curve": {key: [short(row[key]) for row in rows] for key in CURVES},
    }


def short(value: float | None) -> float | None:
    return value if value is None or isinstance(value, int) else float(f"{value:.5g}")


def write(path: Path, content: dict[str, Any]) -> None:
    """JSON, compressed, written whole or not at all. No time stamp inside: the same content is the same file."""
    with files.replacing(path) as file:
        file.write(gzip.compress(json.dumps(content).encode(), mtime=0))


def read(path: Path) -> Result:
    """A result file; ValueError if it is damaged."""
    try:
        raw = path.read_bytes()
        content = json.loads(gzip.decompress(raw) if path.suffix == ".gz" else raw)
        curve = {key: np.array(content["curve"][key], float) for key in CURVES}
        _check(curve)
        named = {key: content.pop(key) for key in ("task", "threshold", "method", "seed")}
        return Result(**named, curve=curve, about=content)
    except (OSError, EOFError, KeyError, TypeError, ValueError, AttributeError, RecursionError, zlib.error) as error:
        raise ValueError(f"{path} is not a result file, or it is damaged: {error!r}") from error


def _check(curve: Mapping[str, NDArray[np.float64]]) -> None:
    steps = curve["env_steps"]
    if len({values.shape for values in curve.values()}) != 1 or steps.ndim != 1 or not len(steps):
        raise ValueError("its curves differ in length")
    if not (np.diff(steps, prepend=0) > 0).all():
        raise ValueError("its steps do not increase")


def differences(result: Result, wanted: Mapping[str, Any]) -> list[str]:
    """The names of what is not as `identity` wants it."""
    mine = result.about | result._asdict()
    return [key for key, value in wanted.items() if mine.get(key) != value]


def cut(result: Result, steps: int) -> Result:
    """The result as it was at the first rollout that reached `steps`."""
    count = int(np.searchsorted(result.curve["env_steps"], steps)) + 1
    return result._replace(curve={key: values[:count] for key, values in result.curve.items()})
