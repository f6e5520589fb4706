"""`voronaut bench bonuses`: seconds per rollout of 16384 states for every bonus, one thread, in one run."""

import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from voronaut import presets
from voronaut.bench import measure
from voronaut.bonuses import BONUSES, bonus_class

DIM = 17
BATCHES = (1024, 4096, 16_384)
AIMS = {"rnd": 50, "re3": 20}


def one_thread() -> None:
    """Stay on one core: XLA on a CPU heeds neither OMP_NUM_THREADS nor a flag for all of its pools."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})


def cost(size: int, budget: float) -> dict[str, dict[str, float]]:
    """Seconds of `rewards` and `update` of every bonus on a batch that resembles what it has seen."""
    states = np.random.default_rng(0).normal(size=(size, DIM)).astype(np.float32)
    work: dict[str, Callable[[], Any]] = {}
    for name in BONUSES:
        bonus = bonus_class(name)(dim=DIM, seed=0, **getattr(presets.paper(), name, {}))
        bonus.update(states)
        work[f"{name} rewards"] = partial(bonus.rewards, states)
        work[f"{name} update"] = partial(bonus.update, states)
    took = measure.seconds(work, rounds=3, budget=budget)
    return {name: {part: took[f"{name} {part}"] for part in ("rewards", "update")} for name in BONUSES}


def run(folder: Path) -> str:
    """Measure, keep the tables in `folder`, and return them."""
    one_thread()
    costs = {size: cost(size, 30.0) for size in BATCHES}
    kme = sum(costs[BATCHES[-1]]["kme"].values())
    rows = [
        {"bonus": name, **parts, "both": sum(parts.values()), "times KME": sum(parts.values()) / kme,
         "aim": f"{AIMS[name]}" if name in AIMS else ""}
        for name, parts in costs[BATCHES[-1]].items()
    ]  # fmt: skip
    growth = [{"bonus": n, **{str(s): sum(costs[s][n].values()) for s in BATCHES}} for n in BONUSES]
    return measure.keep(folder, "bonuses", {"rollout": rows, "growth": growth}, [
        f"# Bonuses: seconds per rollout of {BATCHES[-1]} states, d = {DIM}, the paper's numbers, one CPU thread",
        rows,
        "## Growth with the batch (rewards and update together)",
        growth,
    ])  # fmt: skip
