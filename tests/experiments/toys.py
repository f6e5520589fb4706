"""A sweep that takes seconds: two methods, two seeds, four short rollouts of Cheetah with dm_control.

And a group of the hard tasks that takes none: what it is called says how it ends.
"""

import json
import os
import signal
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


def trained(cell: Any, config: Any, work: Path, out: Path, seconds: float) -> bool:
    """Leaves a file that tells of its process; groups called fails, dies and stops do that, and waits for a signal."""
    name = config.methods[0].label
    if name == "waits":
        with (out / "pipe").open("w") as pipe:  # opened where it is read, closed when this process ends
            pipe.write("begun\n")
            pipe.flush()
            signal.pause()
    threads = [os.sched_getaffinity(int(name)) for name in os.listdir("/proc/self/task")]
    told = {"cores": sorted(set.union(*threads)), "pid": os.getpid(), "seconds": seconds}
    (out / f"{cell.name}-{name}.json").write_text(json.dumps(told))
    if name == "fails":
        raise ValueError("as it is called")
    if name == "dies":
        os.kill(os.getpid(), signal.SIGKILL)
    return name != "stops"
