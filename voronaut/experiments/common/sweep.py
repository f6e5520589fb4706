"""An experiment as data: cells of runs that are trained side by side, what is there of them, and running the rest."""

import argparse
import dataclasses
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from voronaut.experiments.common import results
from voronaut.training import loop
from voronaut.training.api import configure
from voronaut.training.config import Config, Method
from voronaut.training.population import Population
from voronaut.training.watching import logs
from voronaut.training.watching.progress import display, pretty

# Steps per second of all runs together, to estimate what is left: 2 cores with envpool.
SPEED = {"cheetah-run": 40_000, "walker-run": 15_000, "quadruped-run": 13_000, "humanoid-run": 7_000,
         "cartpole-swingup": 40_000, "acrobot-swingup": 40_000}  # fmt: skip
BONUS = {"rnd": 116e-6, "re3": 116e-6}  # seconds per step besides: Walker alone on 2 cores


Say = Callable[[str], None]
Data = dict[str, dict[str, list[results.Result]]]  # by cell and method


class Cell(NamedTuple):
    """Runs of one task that are trained side by side."""

    name: str  # of its folders
    task: str
    choices: Mapping[str, Any]  # what `configure` takes besides seeds and steps
    variants: tuple[Mapping[str, Any], ...] = ()  # parameters that only `population` knows: a method for each of them
    population: type[Population] = Population


class Plan(NamedTuple):
    """Which cells to run, how long, and where."""

    cells: tuple[Cell, ...]
    seeds: int
    steps: int
    folder: Path  # one small file per run
    work: Path  # checkpoints of what is under way
    methods: tuple[str, ...] = ()  # kinds of bonuses; empty: all that the cells have
    speed: Mapping[str, float] = SPEED  # by task


Draw = Callable[[Plan, Path], list[Path]]


class Found(NamedTuple):
    """What there is of a cell: sound results by method and seed, and a line for each file that is not used."""

    runs: dict[str, dict[int, results.Result]]
    troubles: list[str]


def make_plan(plan: Plan, **given: Any) -> Plan:
    """The plan with what is given in place of its own, checked."""
    changed = plan._replace(**given)
    known = dict.fromkeys(method.kind for cell in plan.cells for method in config(plan, cell).methods)
    for method in changed.methods:
        if method not in known:
            raise ValueError(f"there is no method {method!r} in this experiment; it has {', '.join(known)}.")
    return changed._replace(methods=tuple(changed.methods), steps=int(changed.steps))


def choose(only: Sequence[str], plan: Plan) -> Plan:
    """The plan with the cells of some tasks ("cheetah-run") or single cells ("cheetah-run-paper")."""
    for name in only:
        if not any(name in (cell.task, cell.name) for cell in plan.cells):
            known = ", ".join(cell.name for cell in plan.cells)
            raise ValueError(
                f"there is no cell {name!r} in the sweep; cells: {known}, or a task's name for all of its."
            )
    cells = (cell for cell in plan.cells if not only or {cell.task, cell.name} & set(only))
    return plan._replace(cells=tuple(cells))


def config(plan: Plan, cell: Cell) -> Config:
    """The cell as the trainer takes it: the paper's numbers from `presets` but for the cell's own choices."""
    whole = configure(cell.task, seeds=plan.seeds, steps=plan.steps, preset="paper", **cell.choices)
    methods = [vary(m, own) for m in whole.methods for own in cell.variants] or whole.methods
    wanted = tuple(m for m in methods if not plan.methods or m.kind in plan.methods)
    return dataclasses.replace(whole, methods=wanted)


def vary(method: Method, own: Mapping[str, Any]) -> Method:
    """The method with parameters of a variant, labelled as a sweep labels its cells."""
    label = ",".join([method.label, *(f"{key}={value}" for key, value in own.items())])
    return dataclasses.replace(method, label=label, params={**method.params, **own})


def find(plan: Plan, cell: Cell) -> Found:
    """Sound results of the full length, cut to it. What is damaged, too short or another experiment's is named."""
    runs: dict[str, dict[int, results.Result]] = {}
    troubles: list[str] = []
    whole = config(plan, cell)
    for (method, seed), name in zip(whole.runs, whole.folders(), strict=True):
        wanted = results.identity(whole, method, seed)
        mine = runs.setdefault(method.label, {})
        for path in (plan.folder / cell.name / f"{name}{ending}" for ending in (".json.gz", ".json")):
            if path.exists() and seed not in mine:
                try:
                    mine[seed] = _accept(path, wanted, plan.steps)
                except ValueError as error:
                    troubles.append(str(error))
    return Found(runs, troubles)


def _accept(path: Path, wanted: Mapping[str, Any], steps: int) -> results.Result:
    result = results.read(path)
    if differ := results.differences(result, wanted):
        raise ValueError(f"{path} is the result of another experiment: it differs in {', '.join(differ)}")
    if (last := result.curve["env_steps"][-1]) < steps:
        raise ValueError(f"{path} ends after {last:,.0f} of {steps:,} steps")
    return results.cut(result, steps)


def missing(plan: Plan, cell: Cell) -> Config | None:
    """The methods of a cell of which some seed is not done, as the trainer takes them; None if there are none."""
    runs, whole = find(plan, cell).runs, config(plan, cell)
    methods = tuple(m for m in whole.methods if len(runs[m.label]) < plan.seeds)
    return dataclasses.replace(whole, methods=methods) if methods else None


def run(plan: Plan, *, budget: float | None = None, say: Say = print, quiet: bool = False) -> bool:
    """Run what is missing, cell by cell, until all is done (True) or the budget in seconds is spent (False)."""
    deadline = None if budget is None else time.monotonic() + budget
    for cell in plan.cells:
        todo = missing(plan, cell)
        if todo is None:
            continue
        labels = [method.label for method in todo.methods]
        work = plan.work / cell.name / "+".join(labels)
        say(f"{cell.name}: {', '.join(labels)} × {plan.seeds} seeds × {plan.steps:,} steps")
        try:
            with display(todo, quiet=quiet) as report:
                how: dict[str, Any] = {"save_every": 20, "deadline": deadline, "report": report}
                loop.train(todo, work, resume=True, population=cell.population, **how)
        except loop.Stopped as stopped:
            say(f"{cell.name}: {stopped}; the same command goes on from here")
            return False
        there = {f"{label}-{seed}" for label, seeds in find(plan, cell).runs.items() for seed in seeds}
        results.export(todo, work, plan.folder / cell.name, skip=there)  # what was measured first is kept
    return True


def status(plan: Plan) -> str:
    """The grid: seeds done of each cell and method, what is under way, files that are not used, and the time left."""
    lines: list[str] = []
    troubles: list[str] = []
    before: tuple[str, ...] = ()
    left = 0.0
    for cell in plan.cells:
        found = find(plan, cell)
        labels = tuple(found.runs)
        if not labels:
            continue
        if labels != before:
            lines.append(f"{'':<26}" + "".join(_column(label, label) for label in labels))
        marks = {label: _mark(plan, cell, label, len(seeds)) for label, seeds in found.runs.items()}
        lines.append(f"{cell.name:<26}" + "".join(_column(label, mark) for label, (mark, _) in marks.items()))
        left += sum(share * _seconds(plan, cell, label) for label, (_, share) in marks.items())
        troubles, before = [*troubles, *found.troubles], labels
    end = f"about {pretty(left)} left on two cores" if left else "the grid is complete"
    return "\n".join([*lines, *(f"not used: {trouble}" for trouble in troubles), end])


def _seconds(plan: Plan, cell: Cell, label: str) -> float:
    """About what all seeds of a method take."""
    return plan.seeds * plan.steps * (1 / plan.speed[cell.task] + BONUS.get(label.partition(",")[0], 0.0))


def _column(label: str, text: str) -> str:
    return f"{text:>{max(10, len(label) + 2)}}"


def _mark(plan: Plan, cell: Cell, label: str, count: int) -> tuple[str, float]:
    """What the grid says of a method, and the share of its steps that is left."""
    if count == plan.seeds:
        return "done", 0.0
    share = under_way(plan, cell, label)
    return (f"{share:.0%}", 1 - share) if share else (f"{count}/{plan.seeds}", 1 - count / plan.seeds)


def under_way(plan: Plan, cell: Cell, label: str) -> float:
    """The share of its steps that an unfinished run has done."""
    shares = [0.0]
    for log in (plan.work / cell.name).glob(f"*/{label}-0/progress.jsonl"):
        rows = logs.read(log)
        shares += [rows[-1]["env_steps"] / plan.steps] if rows else []
    return min(max(shares), 0.99)


def collect(plan: Plan) -> tuple[Data, list[str]]:
    """Results by cell and method for drawing, and a line for each file that is not used."""
    found = {cell.name: find(plan, cell) for cell in plan.cells}
    runs = {name: {label: list(seeds.values()) for label, seeds in each.runs.items()} for name, each in found.items()}
    return runs, [trouble for each in found.values() for trouble in each.troubles]


def used(plan: Plan, say: Say = print) -> Data:
    """Results by cell and method; files that are not used are named."""
    runs, troubles = collect(plan)
    for trouble in troubles:
        say(f"not used: {trouble}")
    return runs


def reproduce(
    options: argparse.Namespace, plan: Plan, draw: Draw, figures: Path, run: Callable[..., bool] = run
) -> int:
    """Run what is missing of the chosen cells, redraw all figures, also of the other cells, and say what is there."""
    names = ("methods", "seeds", "steps", "folder", "work")
    given = {name: getattr(options, name) for name in names if getattr(options, name) is not None}
    chosen = choose(options.only, make_plan(plan, **given))
    if not options.status:
        if not options.draw:
            run(chosen, budget=options.budget)
        try:
            for path in draw(chosen._replace(cells=plan.cells, methods=plan.methods), options.figures or figures):
                print(path)
        except ImportError as error:
            if options.draw:
                raise
            print(f"no figures: {error}", file=sys.stderr)
    print(status(chosen))
    return 0
