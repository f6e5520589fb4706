"""Checkpoints: the whole population in one file, the last two kept, the newest usable one taken."""

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from voronaut.helpers import npz

KEPT = 2
CHUNKS = "chunks"
ASIDE = ".aside"  # behind the name of a checkpoint that cannot be used


def nest(prefix: str, arrays: Mapping[str, NDArray[Any]]) -> npz.Arrays:
    """Put a prefix in front of every name."""
    return {f"{prefix}/{name}": array for name, array in arrays.items()}


def part(arrays: Mapping[str, NDArray[Any]], prefix: str) -> npz.Arrays:
    """The arrays that `nest` gave this prefix, under their own names."""
    start = f"{prefix}/"
    return {name.removeprefix(start): array for name, array in arrays.items() if name.startswith(start)}


def save(folder: Path, rollout: int, arrays: Mapping[str, NDArray[Any]]) -> None:
    """Write the checkpoint after `rollout` rollouts, then forget all but the last two."""
    folder.mkdir(parents=True, exist_ok=True)
    npz.write(folder / f"{rollout:06d}.npz", {**arrays, "rollout": np.array(rollout)})
    for old in saved(folder)[:-KEPT]:
        old.unlink(missing_ok=True)


def saved(folder: Path) -> list[Path]:
    """Checkpoints from the oldest to the newest."""
    return sorted((path for path in folder.glob("*.npz") if path.stem.isdigit()), key=lambda path: int(path.stem))


def newest(folder: Path, lines: int, say: Callable[[str], None]) -> npz.Arrays | None:
    """The newest checkpoint that is whole and not ahead of logs of `lines` lines; None if there is none.

    Damaged ones, and those ahead of it, get another name: as the newest by number they would outlive what comes now.
    """
    ahead: list[Path] = []
    for path in reversed(saved(folder)):
        try:
            arrays = npz.read(path)
        except ValueError as error:
            say(f"a checkpoint was set aside as {_set_aside(path)}: {error}")
            continue
        if int(path.stem) <= lines:
            for each in ahead:
                say(f"a checkpoint was set aside as {_set_aside(each)}: the log has only {lines} lines")
            return arrays
        ahead.append(path)
    return None


def _set_aside(path: Path) -> Path:
    target = path.with_name(path.name + ASIDE)
    os.replace(path, target)
    return target


def set_aside(folder: Path) -> list[Path]:
    """The checkpoints that were set aside."""
    return sorted(folder.glob(f"*.npz{ASIDE}"))


def chunks(folder: Path) -> Path:
    """Where a learner may append what is too large to be written anew each time: a replay.

    A checkpoint says how much of it counts: what was appended after the checkpoint that is gone on from does not.
    """
    return folder / CHUNKS


def spare(folder: Path) -> list[Path]:
    """What nobody needs once all is done: with the newest checkpoint, and its chunks, more steps can be added."""
    return saved(folder)[:-1] + set_aside(folder)


def size(folder: Path) -> int:
    """Bytes of the checkpoints and of what belongs to them."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def tidy(folder: Path) -> None:
    """Remove the folder if it is empty."""
    if folder.is_dir() and not any(folder.iterdir()):
        folder.rmdir()
