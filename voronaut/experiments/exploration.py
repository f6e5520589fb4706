"""The exploration experiment: six sparse tasks, PPO alone and with KME, RND and RE3, five seeds, five million steps."""

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from voronaut import presets
from voronaut.experiments import results
from voronaut.training import logs, loop
from voronaut.training.api import configure
from voronaut.training.config import Config
from voronaut.training.progress import display, pretty

METHODS = ("none", "kme", "rnd", "re3")
RESULTS, WORK = Path("results/exploration"), Path("runs/exploration")


class Cell(NamedTuple):
    """One panel of the figure."""

    task: str
    threshold: str

    @property
    def name(self) -> str:
        """The name of its folders."""
        return f"{self.task}-{self.threshold}"


SWEEP = (
    Cell("cheetah-run", "release"),
    Cell("quadruped-run", "release"),
    Cell("walker-run", "release"),
    Cell("cartpole-swingup", "release"),
    Cell("acrobot-swingup", "release"),
    Cell("humanoid-run", "release"),
    Cell("cheetah-run", "paper"),
    Cell("walker-run", "paper"),
)
# Steps per second of all runs together, to estimate what is left: 2 cores with envpool, Cheetah 1.
SPEED = {"cheetah-run": 40_000, "walker-run": 15_000, "quadruped-run": 13_000, "humanoid-run": 7_000,
         "cartpole-swingup": 40_000, "acrobot-swingup": 40_000}  # fmt: skip


class Plan(NamedTuple):
    """Which part of the sweep to run, and where."""

    cells: tuple[Cell, ...] = SWEEP
    methods: tuple[str, ...] = METHODS
    seeds: int = presets.paper().seeds
    steps: int = presets.paper().steps
    folder: Path = RESULTS
    work: Path = WORK


def make_plan(**given: Any) -> Plan:
    """A checked plan; what is not given is the paper's."""
    plan = Plan(**given)
    for method in plan.methods:
        if method not in METHODS:
            raise ValueError(f"there is no method {method!r} in this experiment; it has {', '.join(METHODS)}.")
    return plan._replace(methods=tuple(m for m in METHODS if m in plan.methods), steps=int(plan.steps))


def choose(only: Sequence[str], plan: Plan) -> Plan:
    """The plan with the cells of some tasks ("cheetah-run") or single cells ("cheetah-run-paper")."""
    for name in only:
        if not any(name in (cell.task, cell.name) for cell in plan.cells):
            known = ", ".join(cell.name for cell in SWEEP)
            raise ValueError(
                f"there is no cell {name!r} in the sweep; cells: {known}, or a task's name for all of its."
            )
    cells = tuple(cell for cell in plan.cells if not only or {cell.task, cell.name} & set(only))
    return plan._replace(cells=cells)


def done(plan: Plan, cell: Cell, method: str) -> list[int]:
    """Seeds of which there is a sound result of the full length."""
    return [
        seed for seed in range(plan.seeds) if _is_done(plan.folder / cell.name / f"{method}-{seed}.json", plan.steps)
    ]


def _is_done(path: Path, steps: int) -> bool:
    for candidate in (path, path.with_suffix(".json.gz")):
        try:
            if results.read(candidate).curve["env_steps"][-1] >= steps:
                return True
        except ValueError:  # not there, or damaged: to be run again
            continue
    return False


def missing(plan: Plan, cell: Cell) -> tuple[str, ...]:
    """Methods of a cell of which some seed is not done."""
    return tuple(method for method in plan.methods if len(done(plan, cell, method)) < plan.seeds)


def experiment(plan: Plan, cell: Cell, methods: Sequence[str]) -> Config:
    """The paper's numbers from `presets`, nothing tuned per task."""
    return configure(cell.task, bonuses=methods, seeds=plan.seeds, steps=plan.steps, threshold=cell.threshold)


def run(plan: Plan, *, budget: float | None = None, say: Callable[[str], None] = print) -> bool:
    """Run what is missing, cell by cell, until all is done (True) or the budget in seconds is spent (False)."""
    deadline = None if budget is None else time.monotonic() + budget
    for cell in plan.cells:
        methods = missing(plan, cell)
        if not methods:
            continue
        config = experiment(plan, cell, methods)
        work = plan.work / cell.name / "+".join(methods)
        say(f"{cell.name}: {', '.join(methods)} × {plan.seeds} seeds × {plan.steps:,} steps")
        try:
            with display(config) as report:
                loop.train(config, work, resume=True, save_every=20, deadline=deadline, report=report)
        except loop.Stopped as stopped:
            say(f"{cell.name}: {stopped}; the same command goes on from here")
            return False
        results.export(config, work, plan.folder / cell.name)
    return True


def status(plan: Plan) -> str:
    """The grid: seeds done of each cell and method, what is under way, and the time that is left on two cores."""
    lines, left = [f"{'':<26}" + "".join(f"{method:>10}" for method in plan.methods)], 0.0
    for cell in plan.cells:
        marks = []
        for method in plan.methods:
            count = len(done(plan, cell, method))
            share = 0.0 if count == plan.seeds else under_way(plan, cell, method)
            left += (plan.seeds - count) * plan.steps * (1 - share) / SPEED[cell.task]
            marks.append("done" if count == plan.seeds else f"{share:.0%}" if share else f"{count}/{plan.seeds}")
        lines.append(f"{cell.name:<26}" + "".join(f"{mark:>10}" for mark in marks))
    return "\n".join([*lines, f"about {pretty(left)} left on two cores" if left else "the grid is complete"])


def under_way(plan: Plan, cell: Cell, method: str) -> float:
    """The share of its steps that an unfinished run has done."""
    shares = [0.0]
    for log in (plan.work / cell.name).glob(f"*/{method}-0/progress.jsonl"):
        rows = logs.read(log)
        shares += [rows[-1]["env_steps"] / plan.steps] if rows else []
    return min(max(shares), 0.99)
