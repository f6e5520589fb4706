"""Maps of the clusters: centers and states on the first two principal components, a few frames of training each."""

import base64
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from voronaut.bonuses.base import has_centers
from voronaut.bonuses.saving import load
from voronaut.clusters import Clusters, weights
from voronaut.report.records import Run
from voronaut.training.watching import snapshots
from voronaut.training.watching.snapshots import Snapshot

Floats = NDArray[np.float64]
Track = tuple[Run, list[Snapshot]]  # what is known of a run's clusters over time
FRAMES, LEAST = 48, 6  # per run
BUDGET = 1000  # frames on a page: a few thousand bytes each
WEIGHED = 4096  # states by which the mass of cells is measured
DOTS = snapshots.STATES
FINE = 65535  # positions and shares are sent as uint16


class Plane(NamedTuple):
    """Two directions through the states of a task, and how much of their spread lies along each."""

    origin: Floats
    axes: Floats  # (d, 2)
    names: tuple[str, str]


def maps(runs: Sequence[Run]) -> tuple[list[dict[str, Any]], list[str]]:
    """A map of every run that left something to draw, and a line for every file that cannot be read."""
    groups: dict[tuple[str, int], list[Track]] = {}  # runs of one task share a plane, so that they can be compared
    troubles = []
    frames = max(LEAST, min(FRAMES, BUDGET // max(sum(run.folder is not None for run in runs), 1)))
    for run in runs:
        found, damage = _frames(run, frames)
        troubles += damage
        if found:
            groups.setdefault((run.task, found[0].states.shape[1]), []).append((run, found))
    return [one for group in groups.values() for one in _drawn(group)], troubles


def _frames(run: Run, count: int) -> tuple[list[Snapshot], list[str]]:
    """At most `count` snapshots, the first and the last among them; without any, the clusters at the end."""
    paths = snapshots.saved(run.folder) if run.folder else []
    chosen = sorted({int(i) for i in np.linspace(0, len(paths) - 1, count).round()}) if paths else []
    found, troubles = [], []
    for index in chosen:
        try:
            found.append(snapshots.read(paths[index]))
        except (ValueError, OSError) as error:
            troubles.append(str(error))
    if paths or run.folder is None or run.kind != "kme":
        return found, troubles
    return _end(run, run.folder / "bonus.npz")


def _end(run: Run, path: Path) -> tuple[list[Snapshot], list[str]]:
    """The clusters that training ended with, for runs that left no snapshots."""
    if not path.exists():
        return [], []
    try:
        bonus: Any = load(path)
    except (ValueError, KeyError, TypeError, OSError) as error:
        return [], [f"{path} cannot be read: {error}"]
    if not has_centers(bonus):  # views of a part of the state each: no map of whole states
        return [], []
    return [Snapshot(len(run.steps), bonus.centers, bonus.counts, np.empty((0, bonus.centers.shape[1])))], []


def plane(states: Floats) -> Plane:
    """The first two principal components; states of one or two coordinates are shown as they are."""
    dim = states.shape[1]
    if dim <= 2:
        return Plane(np.zeros(dim), np.eye(dim, 2), ("state, coordinate 1", f"state, coordinate {dim}"))
    origin = states.mean(axis=0)
    _, lengths, directions = np.linalg.svd(states - origin, full_matrices=False)
    part = lengths**2 / max(float((lengths**2).sum()), 1e-300)
    axes = directions[:2] * np.sign(directions[:2][[0, 1], np.abs(directions[:2]).argmax(axis=1)])[:, None]
    names = [f"component {i + 1} ({part[i]:.0%} of variance)" for i in (0, 1)]
    return Plane(origin, axes.T, (names[0], names[1]))


def _drawn(group: Sequence[Track]) -> list[dict[str, Any]]:
    """All runs of a task on one plane."""
    frames = [frame for _, own in group for frame in own]
    states = np.concatenate([_thin(frame.states, DOTS) for frame in frames])
    everything = states if len(states) > 2 else np.concatenate([frame.centers for frame in frames])
    if len(everything) < 3:
        return []
    view = plane(_thin(everything, 20_000))
    points = np.concatenate([(x - view.origin) @ view.axes for frame in frames for x in (frame.centers, frame.states)])
    low, high = points.min(axis=0), points.max(axis=0)
    room = np.where(high > low, 0.04 * (high - low), 0.5)
    low, high = low - room, high + room
    return [_map(run, own, view, low, high) for run, own in group]


def _map(run: Run, snapshots: Sequence[Snapshot], view: Plane, low: Floats, high: Floats) -> dict[str, Any]:
    seen, before, frames = [], np.zeros(0, np.int64), []
    for frame in snapshots:
        seen.append(frame.states)
        frames.append(
            {
                "rollout": frame.rollout,
                "steps": _steps(run, frame.rollout),
                "centers": _packed(((frame.centers - view.origin) @ view.axes - low) / (high - low)),
                "states": _packed(((_thin(frame.states, DOTS) - view.origin) @ view.axes - low) / (high - low)),
                "mass": _packed(masses(frame, np.concatenate(seen), *balance_at(run, frame.rollout))),
                "visits": _packed(visits(frame.counts, before)),
                "since": int((frame.counts - 1).sum() - (before - 1).sum()),
            }
        )
        before = frame.counts
    return {"task": run.task, "method": run.method, "seed": run.seed, "name": run.name, "axes": view.names,
            "low": low.tolist(), "high": high.tolist(), "frames": frames}  # fmt: skip


def _steps(run: Run, rollout: int) -> int:
    """Environment steps after a rollout; a snapshot may be one ahead of the log."""
    return int(run.steps[min(rollout, len(run.steps)) - 1])


def balance_at(run: Run, rollout: int) -> tuple[float, bool]:
    """κ at that time (the last one logged, where it is not a number), and whether cells are of standardised states."""
    params = run.settings.get("params") or {}
    balance, logged = params.get("balance", "auto"), run.columns.get("kme/balance", np.empty(0))[:rollout]
    standardised = balance == "auto" and "kme/balance" not in run.columns  # which only the rule before views logs
    if not isinstance(balance, int | float):
        balance = logged[np.isfinite(logged)][-1] if np.isfinite(logged).any() else 0.0
    return float(balance), bool(params.get("normalize", standardised))


def masses(frame: Snapshot, states: Floats, balance: float, normalize: bool = False) -> Floats:
    """Share of the states seen so far in each cell, argmin_i ‖s − μ_i‖ + κ n_i, with the clusters as they are now.

    Without states: share of all states absorbed so far, which says less once the clusters have moved.
    """
    if not len(frame.counts) or not len(states):
        return visits(frame.counts, np.zeros(0, np.int64))
    sample = _thin(states, WEIGHED)
    unit = np.where(states.std(axis=0) > 0, states.std(axis=0), 1.0) if normalize else 1.0
    far = _distances(sample / unit, frame.centers / unit) + weights(Clusters(frame.centers, frame.counts), balance)
    return np.asarray(np.bincount(far.argmin(axis=1), minlength=len(frame.counts)) / len(sample))


def _distances(states: Floats, centers: Floats) -> Floats:
    """‖s − μ‖ as one matrix product, √(‖s‖² − 2 s·μ + ‖μ‖²): faster than by differences, and exact enough."""
    middle = centers.mean(axis=0)
    a, b = states - middle, centers - middle
    squares = (a**2).sum(axis=1)[:, None] - 2 * a @ b.T + (b**2).sum(axis=1)
    return np.asarray(np.sqrt(np.maximum(squares, 0.0)))


def visits(counts: NDArray[np.int64], before: NDArray[np.int64]) -> Floats:
    """Share of the states since the frame before that each cluster absorbed; what a cluster lost does not count."""
    absorbed = np.maximum(counts - (before if len(before) == len(counts) else 1), 0)
    return np.asarray(absorbed / max(int(absorbed.sum()), 1), float)


def _thin(states: Floats, most: int) -> Floats:
    """At most this many of the states, evenly chosen."""
    chosen = np.linspace(0, len(states) - 1, min(most, len(states))).astype(int)
    return np.asarray(states[chosen])


def _packed(values: Floats) -> str:
    """Numbers in [0, 1] as uint16, little-endian, in base64; what is not 0 stays above 0."""
    whole = np.ceil(np.clip(values, 0, 1) * FINE)
    return base64.b64encode(whole.astype("<u2").tobytes()).decode()
