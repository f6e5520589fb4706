"""Experiments as small jobs: one JSON file for each, made once, in any number of sittings."""

import json
import math
import multiprocessing
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from pathlib import Path
from typing import Any, NamedTuple

from voronaut.helpers import files, machine

Values = dict[str, Any]
Results = Mapping[str, Values]  # by "part/name"
Say = Callable[[str], None]


class Job(NamedTuple):
    """A function of plain values, and where its result stands."""

    part: str  # the experiment it belongs to: a folder
    name: str  # of its file
    work: Callable[..., Values]
    given: Mapping[str, Any]  # what `work` is called with; a result of other values is another job's
    seconds: float  # about what it takes on one core: cheap jobs come first


class Found(NamedTuple):
    """A sound result, or what is wrong with the file (both None: there is none)."""

    result: Values | None
    trouble: str | None = None


def path_of(job: Job, folder: Path) -> Path:
    """The file of a job."""
    return folder / job.part / f"{job.name}.json"


def find(job: Job, folder: Path) -> Found:
    """The result of a job if its file is there, whole and about the same values."""
    path = path_of(job, folder)
    try:
        content = json.loads(path.read_text())
        given, result = content["given"], content["result"]
    except FileNotFoundError:
        return Found(None)
    except (ValueError, KeyError, TypeError) as error:
        return Found(None, f"{path} is damaged: {error!r}")
    if given != json.loads(json.dumps(dict(job.given))):
        return Found(None, f"{path} is of another experiment: {given}")
    return Found(result)


def write(job: Job, folder: Path, result: Values, seconds: float) -> Path:
    """Write whole or not at all."""
    path = path_of(job, folder)
    path.parent.mkdir(parents=True, exist_ok=True)
    content = {"given": dict(job.given), "result": result, "seconds": round(seconds, 2), "machine": machine.describe()}
    files.write_text(path, json.dumps(content, separators=(",", ":")) + "\n")
    return path


def missing(jobs: Sequence[Job], folder: Path) -> list[Job]:
    """What is not done, cheapest first."""
    return sorted((job for job in jobs if find(job, folder).result is None), key=lambda job: job.seconds)


def do(job: Job, folder: Path) -> str:
    """Do one job, write its file, and say so."""
    start = time.monotonic()
    result = job.work(**job.given)
    seconds = time.monotonic() - start
    return f"{write(job, folder, result, seconds)}  {seconds:.1f} s"


def run(
    jobs: Sequence[Job], folder: Path, *, budget: float | None = None, processes: int = 1, say: Say = print
) -> bool:
    """Do what is missing until all is done (True) or no time is left to begin another job (False)."""
    end = math.inf if budget is None else time.monotonic() + budget
    todo = missing(jobs, folder)
    done = _side_by_side(todo, folder, end, processes, say) if processes > 1 else _one_by_one(todo, folder, end, say)
    if not done:
        say("the budget is spent; the same command goes on from here")
    return done


def _one_by_one(todo: Sequence[Job], folder: Path, end: float, say: Say) -> bool:
    for job in todo:
        if time.monotonic() >= end:
            return False
        say(do(job, folder))
    return True


def _side_by_side(todo: Sequence[Job], folder: Path, end: float, processes: int, say: Say) -> bool:
    """A few jobs at a time in fresh processes, which inherit no threads."""
    waiting: list[Job] = list(reversed(todo))
    running: set[Future[str]] = set()
    with ProcessPoolExecutor(processes, mp_context=multiprocessing.get_context("spawn")) as pool:
        while running or (waiting and time.monotonic() < end):
            while waiting and len(running) < processes and time.monotonic() < end:
                running.add(pool.submit(do, waiting.pop(), folder))
            ready, running = wait(running, return_when=FIRST_COMPLETED)
            for each in ready:
                say(each.result())
    return not waiting


def choose(jobs: Sequence[Job], only: Sequence[str]) -> list[Job]:
    """The jobs of a part ("walks") or of a method ("pair"), or whose names begin so ("accuracy/ball-2")."""
    for name in only:
        if not any(_is(job, name) for job in jobs):
            parts, one = ", ".join(dict.fromkeys(job.part for job in jobs)), f"{jobs[0].part}/{jobs[0].name}"
            raise ValueError(f"there is no part or job {name!r}; parts: {parts}, or the start of a job: {one}.")
    return [job for job in jobs if not only or any(_is(job, name) for name in only)]


def _is(job: Job, name: str) -> bool:
    return name in (job.part, method_of(job)) or ("/" in name and f"{job.part}/{job.name}".startswith(name))


def method_of(job: Job) -> str:
    """The name without the seed."""
    return job.name.rpartition("-")[0]


def reproduce(
    jobs: Sequence[Job], folder: Path, options: Any, draw: Callable[[], Sequence[Path]], say: Say
) -> list[Job]:
    """Run what is missing of the jobs that --only names, redraw the figures, and say what is there; those jobs."""
    if options.processes < 1:
        raise ValueError(f"--processes must be 1 or more; got {options.processes}.")
    if options.methods or options.work:
        raise ValueError(f"{options.what} has no --method and no --work: choose jobs with --only.")
    chosen = choose(jobs, options.only)
    if not options.status:
        if not options.draw:
            run(chosen, folder, budget=options.budget, processes=options.processes, say=say)
        for path in draw():
            say(str(path))
    say(status(chosen, folder))
    return chosen


def collect(jobs: Sequence[Job], folder: Path) -> dict[str, Values]:
    """Results that are there, by "part/name"."""
    found = {f"{job.part}/{job.name}": find(job, folder).result for job in jobs}
    return {name: result for name, result in found.items() if result is not None}


def status(jobs: Sequence[Job], folder: Path) -> str:
    """Done and wanted of each part, files that are not used, and the time left."""
    lines: list[str] = []
    for part in dict.fromkeys(job.part for job in jobs):
        mine = [job for job in jobs if job.part == part]
        lines.append(f"{part:<12} {len(mine) - len(missing(mine, folder)):>4} of {len(mine)}")
    troubles = [trouble for job in jobs if (trouble := find(job, folder).trouble)]
    left = sum(job.seconds for job in missing(jobs, folder))
    end = f"about {left / 60:.0f} minutes left on one core" if left else "all is done"
    return "\n".join([*lines, *(f"not used: {trouble}" for trouble in troubles), end])
