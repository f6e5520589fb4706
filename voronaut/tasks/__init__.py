"""Sparse-reward tasks. Importing this also registers them with Gymnasium, where it is installed."""

import importlib
import importlib.util

from voronaut.tasks.backends.maze import EPISODE_STEPS as TOY_STEPS
from voronaut.tasks.base import Step, VectorTask
from voronaut.tasks.factory import BACKENDS, choose_backend, make
from voronaut.tasks.table import EPISODE_STEPS, TASKS, TOYS, VARIANTS, Task, find

__all__ = [
    "BACKENDS",
    "EPISODE_STEPS",
    "TASKS",
    "TOYS",
    "VARIANTS",
    "Step",
    "Task",
    "VectorTask",
    "choose_backend",
    "find",
    "make",
]


def _register_with_gymnasium() -> None:
    if importlib.util.find_spec("gymnasium") is None:
        return
    gymnasium = importlib.import_module("gymnasium")
    rows = [(task.gym_id, task.name, EPISODE_STEPS) for task in TASKS.values()]
    for gym_id, name, steps in rows + [(gym_id, name, TOY_STEPS) for name, gym_id in TOYS.items()]:
        if gym_id not in gymnasium.registry:
            gymnasium.register(
                gym_id,
                entry_point="voronaut.tasks.gymnasium_envs:SparseEnv",
                vector_entry_point="voronaut.tasks.gymnasium_envs:SparseVectorEnv",
                max_episode_steps=steps,
                kwargs={"task": name},
            )


_register_with_gymnasium()
