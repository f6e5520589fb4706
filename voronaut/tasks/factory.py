"""From a task's name to its environments."""

import importlib.util
from collections.abc import Sequence

from voronaut.tasks.backends.dm_control import DmControlTask
from voronaut.tasks.backends.envpool import EnvpoolTask
from voronaut.tasks.backends.gymnasium import PREFIXES, GymTask
from voronaut.tasks.backends.maze import MazeTask
from voronaut.tasks.base import VectorTask
from voronaut.tasks.table import EPISODE_STEPS, TOYS, find

BACKENDS = ("auto", "dm_control", "envpool")


def make(
    name: str,
    seeds: Sequence[int],
    envs_per_seed: int = 16,
    *,
    threshold: str = "release",
    backend: str = "auto",
    threads: int = 0,
    episode_steps: int | None = None,
    render: bool = False,
) -> VectorTask:
    """The environments of every seed's run, side by side.

    backend "auto" takes envpool where it is installed and no pictures are wanted. threads (0: one per core) are
    envpool's. episode_steps is the limit after which an episode is truncated: 1000, or the maze's or Gymnasium task's
    own.
    """
    if name.startswith(PREFIXES):
        return GymTask(name, seeds, envs_per_seed, episode_steps=episode_steps, render=render)
    if name in TOYS:
        return MazeTask(seeds, envs_per_seed, episode_steps=episode_steps)
    task, limit = find(name), episode_steps or EPISODE_STEPS
    if choose_backend(name, backend, render=render) == "envpool":
        return EnvpoolTask(task, seeds, envs_per_seed, threshold=threshold, episode_steps=limit, threads=threads)
    return DmControlTask(task, seeds, envs_per_seed, threshold=threshold, episode_steps=limit, render=render)


def choose_backend(name: str, backend: str = "auto", *, render: bool = False) -> str:
    """The backend that `make` takes for this task: "gymnasium", "numpy", "envpool" or "dm_control"."""
    if backend not in BACKENDS:
        raise ValueError(f"backend must be one of {', '.join(BACKENDS)}; got {backend!r}.")
    if name.startswith(PREFIXES):
        return "gymnasium"
    if name in TOYS:
        return "numpy"
    if backend == "envpool" and render:
        raise ValueError("backend 'envpool' gives no pictures; use backend='dm_control' for them.")
    if backend != "auto":
        return backend
    return "dm_control" if render or importlib.util.find_spec("envpool") is None else "envpool"
