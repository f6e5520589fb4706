"""Sparse-reward tasks. Importing this also registers them with Gymnasium, where it is installed."""

import importlib
import importlib.util

from voronaut.tasks.base import Step, VectorTask
from voronaut.tasks.factory import BACKENDS, choose_backend, make
from voronaut.tasks.table import EPISODE_STEPS, TASKS, VARIANTS, Task, find

__all__ = [
    "BACKENDS",
    "EPISODE_STEPS",
    "TASKS",
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
    for task in TASKS.values():
        if task.gym_id not in gymnasium.registry:
            gymnasium.register(
                task.gym_id,
                entry_point="voronaut.tasks.gymnasium_envs:SparseEnv",
                vector_entry_point="voronaut.tasks.gymnasium_envs:SparseVectorEnv",
                max_episode_steps=EPISODE_STEPS,
                kwargs={"task": task.name},
            )


_register_with_gymnasium()
