"""Experiments on disk without training: logs, snapshots and bonuses as `voronaut train` leaves them."""

import json
from pathlib import Path
from typing import Any

import numpy as np

import voronaut as vn
from voronaut.training.watching import snapshots
from voronaut.training.watching.snapshots import Snapshot

ROLLOUT = 100
HEALTHY = {"kme/empty_cells": 0.0, "kme/clamped_gaps": 0.0, "kme/cell_mass_cv": 0.3, "kme/entropy": 1.0,
           "kme/bad_states": 0.0}  # fmt: skip


def row(number: int, seed: int, kind: str, **given: Any) -> dict[str, Any]:
    """A line of a log, made up but smooth."""
    metrics = HEALTHY if kind == "kme" else {}
    return {
        "env_steps": number * ROLLOUT, "extrinsic_return": None if number == 1 else 10.0 * number + seed,
        "max_step_reward": 0.1 * number, "bonus_mean": 0.5, "scale": 0.01, "state_entropy": 3 + seed + 0.01 * number,
        "collect_seconds": 0.4, "bonus_seconds": 0.03, "learn_seconds": 0.2, "method_bonus_seconds": 0.02,
        "policy_loss": 0.1, "value_loss": 0.2, "grad_norm": 0.3, **metrics, **given,
    }  # fmt: skip


def config(
    task: str = "gym:Toy-v0", labels: tuple[str, ...] = ("kme", "none"), seeds: int = 2, rollouts: int = 8
) -> dict[str, Any]:
    """A config.json of the toy experiment."""
    kinds = {label: "kme" if label.startswith("kme") else "none" for label in labels}
    params = {"kme": {"clusters": 6, "balance": 0.001}, "none": {}}
    methods = [{"kind": k, "label": label, "scale": "0.01", "params": params[k]} for label, k in kinds.items()]
    return {"task": task, "methods": methods, "seeds": list(range(seeds)), "steps": rollouts * ROLLOUT,
            "threshold": "release", "backend": "gymnasium", "envs": 2, "rollout": ROLLOUT}  # fmt: skip


def log(path: Path, rows: list[dict[str, Any]]) -> None:
    """Write a progress.jsonl."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


def experiment(folder: Path, done: int | None = None, *, maps: bool = True, **choices: Any) -> Path:
    """An experiment folder, finished unless `done` rollouts are given."""
    chosen = config(**choices)
    rollouts = chosen["steps"] // ROLLOUT
    folder.mkdir(parents=True)
    (folder / "config.json").write_text(json.dumps(chosen))
    for method in chosen["methods"]:
        for seed in chosen["seeds"]:
            run = folder / f"{method['label']}-{seed}"
            log(run / "progress.jsonl", [row(n, seed, method["kind"]) for n in range(1, (done or rollouts) + 1)])
            clusters(run, method["kind"], done or rollouts, seed, maps)
    if done is None:
        (folder / "finished.json").write_text("{}")
    return folder


def clusters(run: Path, kind: str, rollouts: int, seed: int, maps: bool) -> None:
    """A bonus that learned from states of four dimensions, and its snapshots on the way."""
    bonus = vn.KME(dim=4, clusters=6, seed=seed, init="data") if kind == "kme" else vn.NoBonus(dim=4)
    rng = np.random.default_rng(seed)
    for number in range(1, rollouts + 1):
        states = rng.normal(size=(ROLLOUT, 4)) * [5, 2, 1, 0.1]
        bonus.update(states)
        if maps:
            snapshots.take([run], number, [bonus], [states])
    bonus.save(run / "bonus.npz")
    (run / "policy.npz").write_text("not read")


def snapshot(rollout: int, states: Any, centers: Any = None, counts: Any = None) -> Snapshot:
    """A snapshot from lists."""
    states = np.asarray(states, float)
    centers = np.empty((0, states.shape[1])) if centers is None else np.asarray(centers, float)
    return Snapshot(rollout, centers, np.ones(len(centers), np.int64) if counts is None else np.asarray(counts), states)
