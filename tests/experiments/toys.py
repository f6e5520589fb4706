"""A sweep that takes seconds: two methods, two seeds, four short rollouts of Cheetah with dm_control."""

from pathlib import Path
from typing import Any

from voronaut.experiments.common.sweep import Cell, Plan

CHOICES: dict[str, Any] = {
    "bonuses": ("none", "kme"), "envs": 2, "rollout": 64, "backend": "dm_control", "options": {"kme": {"clusters": 10}},
}  # fmt: skip
CELLS = (Cell("run", "cheetah-run", CHOICES), Cell("swing", "cartpole-swingup", CHOICES))


def plan(folder: Path, **given: Any) -> Plan:
    """The small sweep with everything below `folder`."""
    whole = Plan(CELLS, seeds=2, steps=256, folder=folder / "results", work=folder / "work")
    return whole._replace(**given)
