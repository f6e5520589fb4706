"""Records what a learning agent sees: PPO with the paper's KME, the next states of every rollout, one file per seed."""

from pathlib import Path
from typing import Any

import numpy as np

from voronaut.tasks.factory import make
from voronaut.training.api import configure
from voronaut.training.on_policy import PPOTrainer

TASKS = ("cheetah-run", "quadruped-run", "humanoid-run", "maze", "walker-run", "acrobot-swingup")
SEEDS, ROLLOUT, ROLLOUTS = 3, 4096, 24


def record(name: str, folder: Path) -> None:
    """FOLDER/<task>-<seed>.npy: (rollouts, 4096, d) float32, in the order in which the agent met them."""
    size: dict[str, Any] = {"seeds": SEEDS, "steps": ROLLOUTS * ROLLOUT, "rollout": ROLLOUT}
    config = configure(name, bonuses=["kme"], preset="paper", **size)
    task = make(name, list(config.seeds), config.envs, threshold=config.threshold, backend=config.backend)
    try:
        trainer, rollouts = PPOTrainer(config, task), []
        for _ in range(ROLLOUTS):
            trainer.turn()
            rollouts.append(trainer.next_states.reshape(SEEDS, ROLLOUT, -1).copy())
    finally:
        task.close()
    folder.mkdir(parents=True, exist_ok=True)
    for seed, states in zip(config.seeds, np.stack(rollouts, axis=1), strict=True):
        np.save(folder / f"{name}-{seed}.npy", states)


def missing(folder: Path) -> None:
    """Record every task that `folder` does not hold whole."""
    for name in TASKS:
        if not all((folder / f"{name}-{seed}.npy").exists() for seed in range(SEEDS)):
            record(name, folder)
