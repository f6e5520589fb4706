"""Where states come from: fixed laws, places that change, and recordings of a learning agent."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from voronaut.tasks.backends.maze import MazeTask

Floats = NDArray[np.float64]
Rng = np.random.Generator
ROLLOUT, ENVS = 4096, 16  # rows of a rollout go time by time, environment by environment
JUMP, DISTANCE = 12, 25.0  # the rollout at which the stream jumps, and how many deviations


def _sheet(rng: Rng, n: int) -> Floats:
    return np.asarray(np.tanh(rng.normal(size=(n, 5))) @ np.random.default_rng(5).normal(size=(5, 60)))


def _islands(rng: Rng, n: int) -> Floats:
    middles = 8 * np.random.default_rng(6).normal(size=(10, 8))
    return np.asarray(middles[rng.integers(0, 10, n)] + rng.normal(size=(n, 8)))


LAWS: dict[str, Callable[[Rng, int], Floats]] = {
    "Gaussian, d = 2": lambda rng, n: rng.normal(size=(n, 2)),
    "Gaussian, d = 8": lambda rng, n: rng.normal(size=(n, 8)),
    "Gaussian, d = 17": lambda rng, n: rng.normal(size=(n, 17)),
    "Gaussian, d = 64": lambda rng, n: rng.normal(size=(n, 64)),
    "uniform, d = 2": lambda rng, n: rng.random((n, 2)),
    "uniform, d = 8": lambda rng, n: rng.random((n, 8)),
    "Laplace, d = 17": lambda rng, n: rng.laplace(size=(n, 17)),
    "ten islands, d = 8": _islands,
    "5-D sheet in 60-D": lambda rng, n: _sheet(rng, n) + 0.01 * rng.normal(size=(n, 60)),
}


def jump(seed: int, rollouts: int) -> list[Floats]:
    """A Gaussian in 6-D that is elsewhere from the twelfth rollout on."""
    rng, away = np.random.default_rng([seed, 1]), np.eye(6)[0] * DISTANCE
    return [rng.normal(size=(ROLLOUT, 6)) + away * (t >= JUMP) for t in range(rollouts)]


def growing(seed: int, rollouts: int) -> list[Floats]:
    """A Laplace law in 17-D that becomes wider."""
    rng = np.random.default_rng([seed, 1])
    return [rng.laplace(size=(ROLLOUT, 17)) * (1 + t / 4) for t in range(rollouts)]


def walk(seed: int, rollouts: int) -> list[Floats]:
    """Sixteen slow random walks through the maze that are never called back."""
    task, rng = MazeTask([seed], ENVS, episode_steps=1e12), np.random.default_rng([seed, 1])
    task.reset()
    steps = [task.step(rng.normal(size=(ENVS, 2)) / 2).next_states.copy() for _ in range(rollouts * ROLLOUT // ENVS)]
    return list(np.array(steps, np.float64).reshape(rollouts, ROLLOUT, 2))


MADE = {"jump, d = 6": jump, "growing Laplace, d = 17": growing, "slow walk in the maze": walk}
RECORDED = {
    "agent in the maze": "maze",
    "agent, Cheetah": "cheetah-run",
    "agent, Quadruped": "quadruped-run",
    "agent, Humanoid": "humanoid-run",
}
HELD_OUT = {"agent, Walker": "walker-run", "agent, Acrobot": "acrobot-swingup"}  # recorded after the rule was settled


def moving(name: str, seed: int, rollouts: int, folder: Path) -> list[Floats]:
    """A moving stream, rollout by rollout."""
    if name in MADE:
        return MADE[name](seed, rollouts)
    path = folder / f"{(RECORDED | HELD_OUT)[name]}-{seed}.npy"
    if not path.exists():
        raise FileNotFoundError(f"{path} is missing. Record it: voronaut reproduce balance --work {folder}")
    return list(np.load(path)[:rollouts].astype(np.float64))


def units(dim: int, seed: int) -> Floats:
    """Units between 1e-4 and 1e4, another for each coordinate."""
    return np.asarray(10.0 ** np.random.default_rng([seed, 2]).uniform(-4, 4, dim))


# What a learning agent sees: PPO with the paper's KME, the next states of every rollout, one file per seed.
SEEDS, ROLLOUTS = 3, 24


def record(name: str, folder: Path) -> None:
    """FOLDER/<task>-<seed>.npy: (rollouts, 4096, d) float32, in the order in which the agent met them."""
    from voronaut.tasks.factory import make
    from voronaut.training.api import configure
    from voronaut.training.on_policy import PPOTrainer

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


def record_missing(folder: Path) -> None:
    """Record every task that `folder` does not hold whole."""
    for name in (RECORDED | HELD_OUT).values():
        if not all((folder / f"{name}-{seed}.npy").exists() for seed in range(SEEDS)):
            record(name, folder)
