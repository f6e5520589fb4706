"""Result files of `voronaut reproduce`: a curve each, and what was run."""

import math
from typing import Any

import numpy as np

from voronaut.experiments.common import results
from voronaut.report.folders import RESULT, Place
from voronaut.report.records import Experiment, Reading, Run, share, title


def read(place: Place, whole: Reading) -> None:
    """Result files: a curve each, and what was run."""
    found = []
    for name in place.results:
        try:
            found.append((name, results.read(place.folder / name)))
        except ValueError as error:
            whole.troubles.append(str(error))
    for name, result in found:
        mates = sum(_population(other) == _population(result) for _, other in found)
        whole.runs.append(_from_result(place, name, result, mates))
    for _, result in found[:1]:
        machine = {k: result.about.get(k) for k in ("steps", "envs", "rollout", "backend", "machine")}
        config = {"task": result.task, "threshold": result.threshold} | machine
        config["methods"] = list({r.method: _method(r) for _, r in found}.values())
        config["seeds"] = sorted({r.seed for _, r in found})
        notes = dict.fromkeys(note for _, r in found for note in r.about.get("notes", ()))
        whole.experiments.append(Experiment(place.name, config, tuple(map(str, notes))))


def _population(result: results.Result) -> tuple[Any, ...]:
    """Runs with the very same seconds of the bonus were measured together."""
    return result.method, result.about.get("seconds", {}).get("method_bonus_seconds")


def _method(result: results.Result) -> dict[str, Any]:
    kind = result.method.partition(",")[0]
    return {"kind": kind, "label": result.method} | {k: result.about.get(k) for k in ("scale", "params")}


def _from_result(place: Place, name: str, result: results.Result, mates: int) -> Run:
    about, done = result.about, len(result.curve["env_steps"])
    columns = dict(result.curve)
    for key, value in about.get("last_metrics", {}).items():
        columns[key] = np.append(np.full(done - 1, math.nan), float(value) if value is not None else math.nan)
    wanted = math.ceil(about["steps"] / about["rollout"]) if about.get("steps") and about.get("rollout") else 0
    return Run(
        experiment=place.name, name=f"{place.name}/{name.removesuffix(RESULT)}", folder=None,
        task=title({"task": result.task, "threshold": result.threshold}), method=result.method,
        kind=result.method.partition(",")[0], seed=result.seed, columns=columns,
        state="finished" if done >= wanted else "cut", wanted=wanted,
        settings={k: about.get(k) for k in ("scale", "params", "envs", "rollout")},
        shared=share(about.get("median_seconds", {}), int(about.get("runs_side_by_side", 1)), mates),
    )  # fmt: skip
