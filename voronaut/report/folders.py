"""What lies in the folders that were named: experiments of `voronaut train`, result files of `voronaut reproduce`."""

import os
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

LOG, CONFIG, RESULT = "progress.jsonl", "config.json", ".json.gz"


class Place(NamedTuple):
    """A folder with runs or result files, and the short name that the page gives it."""

    folder: Path
    name: str
    runs: tuple[str, ...]  # folders that hold a log
    results: tuple[str, ...]  # result files
    whole: bool  # whether the folder itself was asked for, and not one run of it


def find(asked: Iterable[Path]) -> tuple[list[Place], list[str]]:
    """Everything in and below the folders, each once, and a line for each folder that cannot be opened.

    Names are short, or whole paths where two are the same.
    """
    places: dict[Path, Place] = {}
    troubles: list[str] = []
    for path in asked:
        for place in _one_run(path) or _walk(path, troubles):
            places.setdefault(place.folder.resolve() / ("" if place.whole else place.runs[0]), place)
    names = [place.name for place in places.values()]
    short = [p if names.count(p.name) == 1 else p._replace(name=str(p.folder)) for p in places.values()]
    return short, troubles


def _one_run(path: Path) -> list[Place]:
    """A run's own folder, or one result file."""
    if (path / LOG).is_file():
        absolute = path.resolve()
        return [Place(absolute.parent, absolute.parent.name, (absolute.name,), (), False)]
    if path.is_file() and path.name.endswith(RESULT):
        return [Place(path.parent, path.resolve().parent.name, (), (path.name,), True)]
    if not path.is_dir():
        wrong = "is not a folder" if path.exists() else "does not exist"
        raise ValueError(f"{path} {wrong}. Name folders that voronaut train or voronaut reproduce wrote.")
    return []


def _walk(top: Path, troubles: list[str]) -> list[Place]:
    """Folders at and below `top` that hold runs, a config or results."""
    logs: dict[Path, list[str]] = {}
    results: dict[Path, list[str]] = {}

    def closed(error: OSError) -> None:
        if Path(error.filename) == top:
            raise ValueError(f"{top} cannot be read: {error.strerror}. Check its permissions.")
        troubles.append(f"{error.filename} cannot be read: {error.strerror}.")

    for root, folders, files in os.walk(top, onerror=closed):
        folders[:] = sorted(name for name in folders if not name.startswith(".") and name != "checkpoints")
        here = Path(root)
        if LOG in files:
            logs.setdefault(here.parent, []).append(here.name)
        if CONFIG in files:
            logs.setdefault(here, [])
        found = sorted(name for name in files if name.endswith(RESULT) and not name.startswith("."))
        if found:
            results[here] = found
    base = top.resolve().name
    return [
        Place(folder, os.path.normpath(Path(base) / folder.relative_to(top)), tuple(logs.get(folder, ())),
              tuple(results.get(folder, ())), True)
        for folder in sorted({*logs, *results})
    ]  # fmt: skip
