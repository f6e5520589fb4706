"""Experiments of `voronaut train`: finished, under way or cut off."""

import json
import math
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from voronaut.experiments.common.results import SECONDS
from voronaut.report.folders import CONFIG, LOG, Place
from voronaut.report.records import Columns, Experiment, Reading, Run, share, title

PATIENCE = 20  # rollouts' time without a new line until a run is taken to have stopped
LEAST_PATIENCE = 300.0  # seconds
GUESSED = "tasks and methods are guessed from the names of the folders."


def read(place: Place, now: float, whole: Reading) -> None:
    config, trouble = _config(place.folder / CONFIG)
    if not config and not trouble:
        if not place.runs:
            return  # some other project's config.json
        trouble = [f"{place.folder / CONFIG} does not describe an experiment: {GUESSED}"]
    whole.troubles.extend(trouble)
    known = _known(config)
    expected = list(known) if place.whole else []
    runs = []
    for name in dict.fromkeys([*expected, *place.runs]):
        path = place.folder / name / LOG
        columns, damage = read_log(path)
        whole.troubles.extend(damage)
        if not len(columns["env_steps"]):
            if not damage:
                whole.troubles.append(f"{path} holds no rollout yet.")
            continue
        runs.append(_run(place, name, config, known, columns, now))
    whole.runs.extend(_with_shares(runs, config))
    whole.experiments.append(Experiment(place.name, config, tuple(_notes(place.folder / "notes.txt", whole.troubles))))
    whole.troubles.extend(_missing(place, runs))


def _run(
    place: Place, name: str, config: Mapping[str, Any], known: Mapping[str, Any], columns: Columns, now: float
) -> Run:
    found = re.fullmatch(r"(.+)-(\d+)", name)
    label, seed = (found[1], int(found[2])) if found else (name, 0)
    method = known.get(name, {"label": label, "kind": label.partition(",")[0]})
    wanted = math.ceil(config["steps"] / config["rollout"]) if config else 0
    return Run(
        experiment=place.name, name=f"{place.name}/{name}", folder=place.folder / name,
        task=title(config) if config else place.name, method=str(method["label"]), kind=str(method["kind"]), seed=seed,
        columns=columns, state=_state(place.folder, name, wanted, columns, now), wanted=wanted,
        settings=_settings(method, config), shared={},
    )  # fmt: skip


def _settings(method: Mapping[str, Any], config: Mapping[str, Any]) -> dict[str, Any]:
    """What runs of one method have in common; a learner is named where it is not PPO as it is."""
    usual = {k: method.get(k) for k in ("scale", "params")} | {k: config.get(k) for k in ("envs", "rollout")}
    return usual | {k: config[k] for k in ("learner", "pair", "numbers") if k in config}


def _known(config: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Methods by the folder of their runs."""
    return {f"{m['label']}-{seed}": m for m in config.get("methods", ()) for seed in config.get("seeds", ())}


def _config(path: Path) -> tuple[dict[str, Any], list[str]]:
    """The experiment's config, or nothing and why."""
    try:
        config = json.loads(path.read_text())
        if "methods" in config:
            _known(config), title(config), config["steps"] / config["rollout"]  # all that is used must be there
            return dict(config), []
        return {}, []
    except FileNotFoundError:
        return {}, [f"{path} is missing: {GUESSED}"]
    except (OSError, ValueError, TypeError, KeyError, AttributeError, ZeroDivisionError, RecursionError) as error:
        return {}, [f"{path} is damaged ({error!r}): {GUESSED}"]


def read_log(path: Path) -> tuple[Columns, list[str]]:
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


def _state(folder: Path, name: str, wanted: int, columns: Columns, now: float) -> str:
    done = len(columns["env_steps"])
    if not wanted:
        return "unknown"
    if done >= wanted:
        return "finished"
    if (folder / "finished.json").exists():
        return "cut"
    usual = sum(float(np.nanmedian(columns[key])) for key in SECONDS[:3] if key in columns)
    age = now - (folder / name / LOG).stat().st_mtime
    return "running" if age < max(LEAST_PATIENCE, PATIENCE * usual) else "stopped"


def _with_shares(runs: list[Run], config: Mapping[str, Any]) -> list[Run]:
    """One run's share of the seconds of a rollout, in which all runs are collected and learn side by side."""
    seeds = len(config.get("seeds", ()))
    together = seeds * len(config.get("methods", ())) or len(runs)
    out = []
    for run in runs:
        mates = seeds or sum(other.method == run.method for other in runs)
        known = {k: run.columns[k] for k in SECONDS if np.isfinite(run.columns.get(k, np.nan)).any()}
        median = {k: float(np.nanmedian(values)) for k, values in known.items()}
        out.append(run._replace(shared=share(median, together, mates)))
    return out


def _notes(path: Path, troubles: list[str]) -> list[str]:
    try:
        return path.read_text(errors="replace").splitlines() if path.exists() else []
    except OSError as error:
        troubles.append(f"{path} cannot be read ({error.strerror}).")
        return []


def _missing(place: Place, runs: list[Run]) -> list[str]:
    """Files that a finished experiment should have left."""
    if not (place.folder / "finished.json").exists():
        return []
    wanted = [run.folder / name for run in runs if run.folder for name in ("policy.npz", "bonus.npz")]
    return [f"{path} is missing, although the experiment is finished." for path in wanted if not path.exists()]
