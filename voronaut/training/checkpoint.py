"""Checkpoints: the whole population in one file, the last two kept, the newest sound one taken."""

import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from voronaut import npz

KEPT = 2
CHUNKS = "chunks"


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
    return sorted(folder.glob("[0-9]*.npz"))


def newest(folder: Path) -> npz.Arrays | None:
    """The newest checkpoint that is whole; None if there is none."""
    for path in reversed(saved(folder)):
        try:
            return npz.read(path)
        except ValueError:
            continue
    return None


def chunks(folder: Path) -> Path:
    """Where a learner may append what is too large to be written anew each time (a replay); it goes when all is done.

    A checkpoint says how much of it counts: what was appended after the checkpoint that is gone on from does not.
    """
    return folder / CHUNKS


def clear(folder: Path) -> None:
    """Remove all checkpoints and what belongs to them."""
    for path in saved(folder):
        path.unlink(missing_ok=True)
    shutil.rmtree(chunks(folder), ignore_errors=True)
    if folder.is_dir() and not any(folder.iterdir()):
        folder.rmdir()
