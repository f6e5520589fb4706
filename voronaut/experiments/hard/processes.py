"""Groups of runs in processes of their own: an accelerator that learns small networks is filled by several, not by one.

Each has its share of the cores. Under NVIDIA's MPS (`nvidia-cuda-mps-control -d`) their programs run at the same time.
What is long begins first, and has the odd cores. Nobody has a priority of MPS's: with three groups of Humanoid before
them, four groups of other tasks had a sixth of the steps that all seven took, and all seven no more than the three.
"""

import dataclasses
import math
import multiprocessing
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from multiprocessing.connection import wait
from pathlib import Path
from typing import Any, NamedTuple

from voronaut.experiments.hard.settings import Cell
from voronaut.training import loop
from voronaut.training.config import Config

MOST = 6_000_000  # steps of a group's runs together, where they are more than one: nobody waits long for the last
STOPPED = 3  # exit status of a group that ended at a checkpoint
BEGINNING = 60.0  # seconds that a group takes to begin: with less left no further one is begun
Say = Callable[[str], None]
Train = Callable[[Cell, Config, Path, Path, float], bool]


class Group(NamedTuple):
    """Runs that are trained side by side in one process."""

    cell: Cell
    config: Config

    @property
    def name(self) -> str:
        """walker-0.5:kme, seeds 100, 101"""
        methods = "+".join(method.label for method in self.config.methods)
        return f"{self.cell.name}:{methods}, seeds {', '.join(map(str, self.config.seeds))}"

    @property
    def steps(self) -> int:
        """Of all its runs together."""
        return self.cell.steps * len(self.config.runs)


class Running(NamedTuple):
    """A group in its process, and which share of the cores it has."""

    process: multiprocessing.process.BaseProcess
    slot: int
    group: Group


def split(cell: Cell, config: Config) -> list[Group]:
    """A group for every method, and of long runs for every few: programs of several processes overlap anyway."""
    size = max(1, MOST // cell.steps)
    return [
        Group(cell, dataclasses.replace(config, methods=(method,), seeds=config.seeds[start : start + size]))
        for method in config.methods for start in range(0, len(config.seeds), size)
    ]  # fmt: skip


def train(cell: Cell, config: Config, work: Path, out: Path, seconds: float) -> bool:
    """Train one group for so long at the most; whether it is done."""
    from voronaut.experiments.hard import run

    deadline = time.monotonic() + seconds
    return run.run(cell, [config], work, out, deadline=deadline, say=lambda text: print(text, flush=True))


def run(
    groups: Sequence[Group], work: Path, out: Path, processes: int, *,
    deadline: float | None = None, say: Say = print, train: Train = train,
) -> bool:  # fmt: skip
    """Train all groups, so many at a time; True when all are done, False when the time was up or Ctrl-C came.

    A group that fails leaves the others alone; an error names it at the end.
    """
    waiting = sorted(groups, key=lambda group: (group.cell.steps, group.steps))
    free = list(range(processes))
    running: dict[Any, Running] = {}
    failed, stopped, told, begun = [], False, False, 0  # whether no more are begun, and whether all were told to stop

    def left() -> float:
        return math.inf if deadline is None else deadline - time.monotonic()

    with loop.interrupts() as interrupted, _nobody_after(running):
        while running or (waiting and not stopped):
            if not told and (interrupted() or left() <= 0):
                stopped = told = True
                for each in running.values():
                    each.process.terminate()  # it stops at a checkpoint
            stopped |= bool(waiting) and begun >= processes and left() < BEGINNING
            while free and waiting and not stopped:
                slot, group, begun = free.pop(0), waiting.pop(), begun + 1
                ends = time.time() + left()
                given = (train, group, work, out, ends, share(slot, processes))
                process = multiprocessing.get_context("spawn").Process(target=_begin, args=given)
                process.start()
                running[process.sentinel] = Running(process, slot, group)
            for ended in [running.pop(sentinel) for sentinel in wait(list(running), timeout=1.0)]:
                ended.process.join()
                free = sorted([*free, ended.slot])
                if ended.process.exitcode not in (0, STOPPED, *([-signal.SIGTERM] if stopped else [])):
                    failed.append(f"{ended.group.name} (exit status {ended.process.exitcode})")
                    say(f"{failed[-1]} failed; the others go on")
                stopped |= ended.process.exitcode == STOPPED
    if failed:
        raise ChildProcessError(f"failed: {', '.join(failed)}. What is done is kept; the same command tries again.")
    return not (waiting or stopped)


@contextmanager
def _nobody_after(running: Mapping[Any, Running]) -> Iterator[None]:
    """Whatever goes wrong, no group is left behind."""
    try:
        yield
    finally:
        for each in running.values():
            each.process.kill()


def share(slot: int, processes: int) -> list[int]:
    """The cores of one of so many processes, none of which has another's unless there are more of them than cores."""
    cores = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else list(range(os.cpu_count() or 1))
    each, odd = divmod(len(cores), processes)
    start = slot * each + min(slot, odd)
    return cores[start : start + each + (slot < odd)] or [cores[slot % len(cores)]]


def _begin(train: Train, group: Group, work: Path, out: Path, ends: float, cores: list[int]) -> None:
    """In the process of a group: signals come from its parent alone, and nothing has touched a device yet."""
    if hasattr(os, "setpgrp"):
        os.setpgrp()
    threading.Thread(target=_end_with_parent, daemon=True).start()
    if hasattr(os, "sched_setaffinity"):
        for thread in _threads():
            os.sched_setaffinity(thread, cores)
    os.environ["XLA_PYTHON_CLIENT_PREALLOCATE"] = "false"
    sys.exit(0 if train(group.cell, group.config, work, out, ends - time.time()) else STOPPED)


def _threads() -> list[int]:
    """Of this process: NumPy may have begun some, which keep the cores that they were begun with."""
    folder = Path("/proc/self/task")
    return [int(each.name) for each in folder.iterdir()] if folder.exists() else [0]


def _end_with_parent() -> None:
    """Stop at a checkpoint when whoever began this is gone, however that came: nobody would know of it any more."""
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os.kill(os.getpid(), signal.SIGTERM)
