"""The table of sparse tasks: dm_control's tasks whose rewards below a threshold become 0."""

import difflib
import re
from collections.abc import Mapping
from dataclasses import dataclass

VARIANTS = ("release", "paper", "dense")
EPISODE_STEPS = 1000


@dataclass(frozen=True)
class Task:
    """One row: where the suite keeps the task, what is observed of it, the least reward that counts."""

    name: str
    domain: str
    task: str
    keys: tuple[str, ...]
    release: float = 0.0
    paper: float = 0.0
    camera: int = 0

    @property
    def gym_id(self) -> str:
        """What `gymnasium.make` calls it."""
        return f"voronaut/{''.join(word.capitalize() for word in self.name.split('-'))}Sparse-v0"

    def threshold(self, variant: str) -> float:
        """The least reward that counts in this variant; 0 where the suite's own reward is sparse or is wanted whole."""
        return {"release": self.release, "paper": self.paper, "dense": 0.0}[check_variant(variant)]


def check_variant(variant: str) -> str:
    """The variant, if there is such a one."""
    if variant not in VARIANTS:
        raise ValueError(f"threshold must be one of {', '.join(VARIANTS)}; got {variant!r}.")
    return variant


QUADRUPED = ("egocentric_state", "torso_velocity", "torso_upright", "imu", "force_torque")
HUMANOID = ("joint_angles", "head_height", "extremities", "torso_vertical", "com_velocity", "velocity")
_ROWS = (
    Task("cheetah-run", "cheetah", "run", ("position", "velocity"), 0.25, 0.5),
    Task("walker-run", "walker", "run", ("orientations", "height", "velocity"), 0.25, 0.5),
    Task("quadruped-run", "quadruped", "run", QUADRUPED, 0.7, 0.7, camera=2),
    Task("humanoid-run", "humanoid", "run", HUMANOID, 0.2, 0.2),
    Task("cartpole-swingup", "cartpole", "swingup_sparse", ("position", "velocity")),
    Task("acrobot-swingup", "acrobot", "swingup_sparse", ("orientations", "velocity")),
)
TASKS: Mapping[str, Task] = {row.name: row for row in _ROWS}
TOYS: Mapping[str, str] = {"maze": "voronaut/Maze-v0"}  # worlds without physics, and their Gymnasium ids


def find(name: str) -> Task:
    """The row of that name; the error for an unknown one names the nearest."""
    if name in TASKS:
        return TASKS[name]
    near = difflib.get_close_matches(name.lower(), [*TASKS, *TOYS], n=1, cutoff=0.4) + _in_gymnasium(name)
    hint = f"Did you mean {' or '.join(map(repr, near))}? " if near else ""
    known = ", ".join([*TASKS, *TOYS])
    raise ValueError(f"there is no task {name!r}. {hint}Tasks: {known}, or gym:ID for any Gymnasium environment.")


def _in_gymnasium(name: str) -> list[str]:
    """gym:ID of an environment of (nearly) that name, the newest version; what looks like an id is one."""
    try:
        from gymnasium.envs.registration import registry
    except ImportError:
        registry = {}
    ids = {known.rpartition("-v")[0].lower(): known for known in sorted(registry, key=_version)}
    near = difflib.get_close_matches(name.rpartition("-v")[0].lower() or name.lower(), ids, n=1, cutoff=0.9)
    if name in registry or (not near and re.fullmatch(r".+-v\d+", name)):
        return [f"gym:{name}"]
    return [f"gym:{ids[each]}" for each in near]


def _version(known: str) -> int:
    number = known.rpartition("-v")[2]
    return int(number) if number.isdecimal() else -1
