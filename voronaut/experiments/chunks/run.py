"""What is run: streams, ways to absorb them, and what is compared."""

import time
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from voronaut.entropy.cells import cell_entropy
from voronaut.experiments.chunks import loops
from voronaut.helpers import machine
from voronaut.kernels import cpu
from voronaut.kernels.cpu.distances import Floats, Ints, padded, scratch
from voronaut.kernels.rules import Rules

FOLDER, FIGURES = Path("results/chunks"), Path("docs/figures/chunks")
STREAMS = ("stationary", "drifting")
CHUNKS = (4, 16, 64, 128, 256, 1024, 4096)
RULES = Rules(step_size=0.05, balance=1e-4)


class Size(NamedTuple):
    """How large the experiment is."""

    rollouts: int = 200
    states: int = 4096
    clusters: int = 300
    dim: int = 17
    looks: int = 20  # rollouts after which runs are compared
    held_out: int = 16_384


class Run(NamedTuple):
    """One way to absorb the stream, and where it has got to."""

    kind: str
    chunk: int
    centers: Floats
    counts: Ints


def draw_states(stream: str, t: int, size: Size, number: int, seed: int) -> Floats:
    """Gaussian states of rollout t; the drifting stream moves its mean and its scales."""
    rng, d = np.random.default_rng([seed, t]), size.dim
    states = rng.normal(size=(number, d))
    if stream == "drifting":
        phase, mean = 2 * np.pi * t / size.rollouts, np.zeros(d)
        mean[0], mean[1 % d] = 4 * t / size.rollouts, 2 * np.sin(2 * phase)
        states = states * (1 + 0.5 * np.sin(np.arange(d) + phase)) + mean
    return states.astype(np.float32)


def absorb(run: Run, states: Floats, rules: Rules = RULES) -> tuple[Run, int]:
    """The run after these states, and how many rounds its chunks took."""
    (k, d), kind = run.centers.shape, run.centers.dtype
    columns, counts, room = np.zeros((d, padded(k)), kind), run.counts.copy(), scratch(padded(k), kind)
    columns[:, :k] = run.centers.T
    rows = loops.exact_rows if run.kind == "exact" else loops.frozen_rows
    rounds = rows(states.astype(kind), run.chunk, rules.step_size, rules.balance, columns, counts, room)
    return run._replace(centers=columns[:, :k].T.copy(), counts=counts), rounds or 0


def look(run: Run, states: Floats) -> dict[str, Any]:
    """Rewards of held-out states, entropy in nats, and how evenly and how far the cells cover them."""
    view = cpu.prepare(run.centers.astype(np.float32), run.counts, RULES.balance)
    cell, k = cpu.assign(view, states).astype(np.int64), len(run.counts)
    masses = np.bincount(cell, minlength=k)
    return {
        "rewards": cpu.rewards(view, states, RULES),
        "entropy": cell_entropy(states, cell, k),
        "balance": float(masses.std() / masses.mean()),
        "coverage": float((masses > 0).mean()),
    }


def compared(found: dict[str, Any], wanted: dict[str, Any]) -> dict[str, float]:
    """Correlation of rewards, and differences of all else."""
    correlation = float(np.corrcoef(found["rewards"], wanted["rewards"])[0, 1])
    return {"correlation": correlation, **{n: found[n] - wanted[n] for n in ("entropy", "balance", "coverage")}}


def begin(stream: str, size: Size) -> list[Run]:
    """The sequential run first, then all others, from random states of the first rollout."""
    centers, counts = draw_states(stream, 0, size, size.clusters, 1), np.ones(size.clusters, np.int64)
    nudged = centers.copy()
    nudged[0, 0] = np.nextafter(nudged[0, 0], np.float32(np.inf))
    chunked = [Run(kind, chunk, centers, counts) for kind in ("frozen", "exact") for chunk in CHUNKS]
    plain = [Run("sequence", 1, centers, counts), *chunked, Run("shuffle", 1, centers, counts)]
    return [*plain, Run("double", 1, centers.astype(np.float64), counts), Run("bit", 1, nudged, counts)]


def order_of(kind: str, t: int, number: int) -> Ints:
    """The shuffle of a rollout: the same for all but one run."""
    return np.random.default_rng([7 + (kind == "shuffle"), t]).permutation(number)


def measure(stream: str, size: Size) -> dict[str, Any]:
    """All runs side by side; what they were at every look."""
    runs, every, started = begin(stream, size), max(1, size.rollouts // size.looks), time.perf_counter()
    rows: list[dict[str, Any]] = [
        {"kind": r.kind, "chunk": r.chunk, "run": [], "rollout": [], "rounds": []} for r in runs
    ]
    absolute = []
    for t in range(size.rollouts):
        states, before = draw_states(stream, t, size, size.states, 2), runs[0]
        orders = {kind: states[order_of(kind, t, len(states))] for kind in ("sequence", "shuffle")}
        after = [absorb(r, orders["shuffle" if r.kind == "shuffle" else "sequence"]) for r in runs]
        runs = [r for r, _ in after]
        for row, (_, rounds) in zip(rows, after, strict=True):
            row["rounds"].append(rounds * row["chunk"] / size.states)
        if (t + 1) % every == 0:
            ahead = draw_states(stream, t, size, size.held_out, 3)
            wanted = look(runs[0], ahead)
            absolute.append({name: wanted[name] for name in ("entropy", "balance", "coverage")})
            for row, r in zip(rows, runs, strict=True):
                fresh = r._replace(centers=before.centers.astype(r.centers.dtype), counts=before.counts)
                single, _ = absorb(fresh, orders["shuffle" if r.kind == "shuffle" else "sequence"])
                row["run"].append(compared(look(r, ahead), wanted))
                row["rollout"].append(compared(look(single, ahead), wanted))
    for row in rows:
        row["rounds"] = float(np.mean(row["rounds"]))
    return {
        "stream": stream, "size": size._asdict(), "machine": machine.describe(),
        "seconds": round(time.perf_counter() - started), "sequence": absolute, "rows": rows[1:],
    }  # fmt: skip
