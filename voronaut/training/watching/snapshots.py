"""Where the clusters were during training: a small file for at most about 50 rollouts of a run, for the report's map.

A snapshot is a function of the run alone (rollout number, clusters, states): a resumed run leaves the same files.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from voronaut.bonuses.base import has_centers
from voronaut.helpers import npz

FOLDER = "clusters"
EVEN = 40  # snapshots at even distances; the first few rollouts, where centers spread out, get some more
STATES = 256  # of the rollout, kept with each snapshot
STEPS = 32767  # of a coordinate's half range: what int16 can tell apart


class Snapshot(NamedTuple):
    """The clusters after a rollout, and some of the states of that rollout."""

    rollout: int
    centers: NDArray[np.float64]  # (k, d)
    counts: NDArray[np.int64]  # (k,)
    states: NDArray[np.float64]  # (n, d)


def due(rollout: int, rollouts: int) -> bool:
    """Whether a run of `rollouts` rollouts is looked at after this one: 1, 2, 4, … and then at even distances."""
    every = -(-rollouts // EVEN)
    early = rollout < every and rollout & (rollout - 1) == 0
    return early or rollout % every == 0 or rollout == rollouts


def take(folders: Iterable[Path], rollout: int, bonuses: Iterable[Any], next_states: Iterable[NDArray[Any]]) -> None:
    """A snapshot of every run; where a bonus has no centers, of the states alone."""
    for folder, bonus, states in zip(folders, bonuses, next_states, strict=True):
        some = _some(states, rollout)
        nothing = np.empty((0, some.shape[1])), np.empty(0, np.int64)
        centers, counts = (bonus.centers, bonus.counts) if has_centers(bonus) else nothing
        write(folder / FOLDER, Snapshot(rollout, centers, counts, some))


def write(folder: Path, snapshot: Snapshot) -> None:
    """One file, checked on reading. Not forced to disk: after a crash of the machine a map lacks a frame, no more."""
    folder.mkdir(exist_ok=True)
    arrays = {"counts": np.asarray(snapshot.counts), **_pack("centers", snapshot.centers)}
    arrays |= _pack("states", snapshot.states)
    npz.write(folder / f"{snapshot.rollout:06d}.npz", arrays, durable=False)


def forget(folder: Path, after: int) -> None:
    """Remove the snapshots of a run that were made after the checkpoint it goes on from."""
    for path in saved(folder):
        if int(path.stem) > after:
            path.unlink()


def saved(folder: Path) -> list[Path]:
    """The snapshots of a run, from the first to the last."""
    return sorted((path for path in (folder / FOLDER).glob("*.npz") if path.stem.isdigit()), key=lambda p: int(p.stem))


def read(path: Path) -> Snapshot:
    """A snapshot; ValueError for a file that is damaged or something else."""
    arrays = npz.read(path)
    with npz.refusing(path):
        centers, states, counts = _unpack("centers", arrays), _unpack("states", arrays), arrays["counts"]
        if states.ndim != 2 or counts.ndim != 1 or centers.shape != (len(counts), states.shape[1]):
            raise ValueError("it is not a snapshot of clusters whose arrays fit each other")
        if counts.dtype.kind != "i" or not abs(counts).sum(dtype=float) < 2**62:  # a float does not wrap around
            raise ValueError("its counts are not whole numbers, or too large")
        if not (np.isfinite(centers).all() and np.isfinite(states).all()):
            raise ValueError("its centers or states are not finite")
        return Snapshot(int(path.stem), centers, counts, states)


def _some(states: NDArray[Any], rollout: int) -> NDArray[Any]:
    """A few states of the rollout, each as likely as any other; those that are not finite are left out."""
    flat = np.asarray(states).reshape(-1, states.shape[-1])
    chosen = flat[np.random.default_rng(rollout).integers(len(flat), size=STATES)]
    return np.asarray(chosen[np.isfinite(chosen).all(axis=1)])


def _pack(name: str, values: NDArray[Any]) -> npz.Arrays:
    """Each coordinate in steps of its range / 65534: half the size of float32, and finer than a picture shows."""
    values = np.asarray(values, np.float64)
    low, high = (values.min(axis=0), values.max(axis=0)) if len(values) else np.zeros((2, values.shape[1]))
    middle, half = low / 2 + high / 2, high / 2 - low / 2
    steps = np.clip(np.rint((values - middle) / np.where(half > 0, half, 1) * STEPS), -STEPS, STEPS)
    return {name: steps.astype(np.int16), f"{name}_middle": middle, f"{name}_half": half}


def _unpack(name: str, arrays: npz.Arrays) -> NDArray[np.float64]:
    return np.asarray(arrays[f"{name}_middle"] + arrays[name] / STEPS * arrays[f"{name}_half"])
