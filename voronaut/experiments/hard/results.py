"""One small file per run: a line about it, then a line for every ten thousand steps. Everything is drawn from these."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from voronaut.experiments.common import stats
from voronaut.experiments.hard import settings
from voronaut.experiments.hard.settings import CELLS, EVERY, METHODS, NEW, PLANS, Cell, Wanted
from voronaut.helpers import files, npz

COLUMNS = ("env_steps", "exploiter_return", "explorer_return", "rewarded_steps", "top_dense_reward", "seconds")
POLICIES = "policies"  # in the folder of results: the best of every cell


class Result(NamedTuple):
    """A run that is done."""

    cell: str
    method: str
    seed: int
    curve: dict[str, NDArray[np.float64]]  # by column, one number per turn, NaN where nothing was known
    about: dict[str, Any]


class Found(NamedTuple):
    """Sound results by cell, method and seed, and a line for each file that is not used."""

    runs: dict[str, dict[str, dict[int, Result]]]
    troubles: list[str]


def path_of(folder: Path, cell: str, method: str, seed: int) -> Path:
    """The file of a run."""
    return folder / cell / f"{method}-{seed}.jsonl"


def write(folder: Path, about: Mapping[str, Any], rows: Sequence[Sequence[float | None]]) -> Path:
    """Write whole or not at all."""
    path = path_of(folder, about["cell"], about["method"], about["seed"])
    path.parent.mkdir(parents=True, exist_ok=True)
    lines: list[Any] = [{**about, "columns": COLUMNS}, *([_short(value) for value in row] for row in rows)]
    files.write_text(path, "".join(json.dumps(line) + "\n" for line in lines))
    return path


def _short(value: float | None) -> float | None:
    return value if value is None or isinstance(value, int) else float(f"{value:.4g}")


def read(path: Path) -> Result:
    """A result file; ValueError if it is damaged."""
    try:
        about, *rows = [json.loads(line) for line in path.read_text().splitlines()]
        values = np.array(rows, float)
        curve = {name: values[:, place] for place, name in enumerate(about.pop("columns"))}
        if not (np.diff(curve["env_steps"], prepend=0) > 0).all() or not set(COLUMNS) <= set(curve):
            raise ValueError("its columns are not as they should be")
        named = {name: about.pop(name) for name in ("cell", "method", "seed")}
        return Result(**named, curve=curve, about=about)
    except (OSError, KeyError, TypeError, ValueError, IndexError, AttributeError) as error:
        raise ValueError(f"{path} is not a result file, or it is damaged: {error!r}") from error


def find(
    folder: Path,
    plan: Sequence[Wanted] = PLANS,
    cells: Mapping[str, Cell] = MappingProxyType(EVERY),
    numbers: Mapping[str, Any] | None = None,
) -> Found:
    """What there is of a plan. Files that are damaged, or of runs with other settings, are named and left out.

    `numbers` of the learner are those of a trial, which has nothing to do with what was frozen.
    """
    runs: dict[str, dict[str, dict[int, Result]]] = {cell: {} for cell in cells}
    troubles: list[str] = []
    fixed = {} if numbers else settings.frozen(folder)
    for wanted in plan:
        for method in wanted.methods:
            mine = runs[wanted.cell].setdefault(method, {})
            for seed in wanted.seeds:
                path = path_of(folder, wanted.cell, method, seed)
                if path.exists():
                    try:
                        mine[seed] = _accepted(path, _wanted(fixed, cells[wanted.cell], method, numbers or {}))
                    except ValueError as error:
                        troubles.append(str(error))
    return Found(runs, troubles)


def _wanted(
    fixed: Mapping[str, Mapping[str, Any]], cell: Cell, method: str, numbers: Mapping[str, Any]
) -> dict[str, Any]:
    """The settings that a result must have: what was frozen, or else what the defaults are now."""
    given = fixed.get(f"{cell.name}/{method}")
    if given is not None and given["steps"] == cell.steps:
        return {name: value for name, value in given.items() if name != "seeds"}
    return settings.resolved(settings.configured(cell, METHODS[method], [0], numbers))


def _accepted(path: Path, wanted: Mapping[str, Any]) -> Result:
    result = read(path)
    mine = settings.of_today(result.about["settings"])
    if differ := sorted(key for key in {**mine, **wanted} if mine.get(key) != wanted.get(key)):
        raise ValueError(f"{path} was run with other settings: it differs in {', '.join(differ)}")
    if (last := result.curve["env_steps"][-1]) < wanted["steps"]:
        raise ValueError(f"{path} ends after {last:,.0f} of {wanted['steps']:,} steps")
    return result


def score(result: Result) -> float:
    """Mean return over the evaluations of the exploiter's mean action in the last tenth of the run."""
    return float(np.mean([returns for _, returns in result.about["evaluations"]]))


def first(result: Result, count: int = 1) -> float:
    """The step of the `count`-th rewarded transition; infinity if it never came."""
    place = result.about["rewarded"].get(str(count))
    return float("inf") if place is None else float(place["step"])


def final(result: Result) -> float:
    """Mean return of the acting exploiter in the last tenth of the steps."""
    return stats.final(result.curve["env_steps"], result.curve["exploiter_return"], settings.LAST)


def half(result: Result) -> float:
    """The step from which on the acting exploiter has had half of its final return; infinity if that is under 1."""
    reached = np.flatnonzero(stats.carried(result.curve["exploiter_return"]) >= final(result) / 2)
    return float(result.curve["env_steps"][reached[0]]) if final(result) >= 1 and len(reached) else float("inf")


def keep_best(folder: Path, cell: str, about: Mapping[str, Any], policy: Path) -> Path | None:
    """Put a run's policy in place of the cell's best if its last evaluation is better than that one's was.

    Only SAC alone and the pair with KME take part, which are run on every cell. Weights are kept in half precision:
    finer than the bfloat16 that large networks learn in, and enough to act by.
    """
    if about["method"] not in settings.MAIN:
        return None
    path = folder / POLICIES / f"{cell}.npz"
    last = float(np.mean(about["evaluations"][-1][1]))
    with files.alone_in(path.parent):
        if path.exists() and npz.read_json(path, npz.read(path)["about"])["run"]["return"] >= last:
            return None
        arrays = {name: _halved(array) for name, array in npz.read(policy).items()}
        told = npz.read_json(policy, arrays["about"])
        told["run"] = {"cell": cell, "method": about["method"], "seed": about["seed"], "return": last}
        npz.write(path, {**arrays, "about": np.frombuffer(json.dumps(told).encode(), np.uint8)})
    return path


def _halved(array: NDArray[Any]) -> NDArray[Any]:
    return array.astype(np.float16) if array.ndim > 1 and array.dtype == np.float32 else array


def best_policy(name: str, folder: Path) -> Path:
    """The file of a cell's best policy, by the cell's name or by that of its task (then its first cell's)."""
    cells = [cell for cell in EVERY.values() if name in (cell.name, cell.task)]
    paths = [path for cell in cells if (path := folder / POLICIES / f"{cell.name}.npz").exists()]
    if not cells:
        names = dict.fromkeys([*CELLS, *NEW, *(cell.task for cell in CELLS.values())])
        raise ValueError(f"there is no hard/{name}; there are {', '.join(f'hard/{each}' for each in names)}.")
    if not paths:
        raise ValueError(f"{folder / POLICIES} holds no policy of {name} yet.")
    return paths[0]
