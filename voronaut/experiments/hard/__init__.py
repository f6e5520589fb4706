"""The hard tasks with SAC alone and with a pair of explorer and exploiter: what it scores, and what of it is KME.

voronaut reproduce hard --cells cheetah-0.25:kme+none,cartpole --seeds 100-104 --budget 560 --processes 4
"""

import argparse
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from voronaut.experiments.hard import results, settings
from voronaut.experiments.hard.figures import FIGURES, draw
from voronaut.experiments.hard.settings import CELLS, DENSE, EVERY, FOLDER, METHODS, NEW, PLANS, WORK, Cell, Wanted
from voronaut.experiments.hard.tables import brief, computed, dense
from voronaut.training.config import Config, check_numbers

__all__ = ["best_policy", "brief", "choose", "computed", "dense", "draw", "reproduce"]


def reproduce(options: argparse.Namespace) -> int:
    """`voronaut reproduce hard`."""
    deadline = None if options.budget is None else time.monotonic() + options.budget
    folder, work = options.folder or FOLDER, options.work or WORK
    for place in (folder, work):
        if place.exists() and not place.is_dir():
            raise ValueError(f"{place} is a file; a folder is needed.")
    if options.numbers:  # wrong ones are one complaint, not one for every run
        from voronaut.training import pair

        pair.settings(check_numbers("sac", options.numbers, pair.NAMES))
    if options.freeze:
        print(settings.freeze(folder))
        return 0
    cells = {name: cell._replace(steps=int(options.steps or cell.steps)) for name, cell in EVERY.items()}
    plan = choose(options)
    if not options.draw and not options.status:
        run_missing(plan, cells, folder, work, deadline, options.numbers, options.processes)
    if not options.status:
        try:
            for path in draw(folder, options.figures or FIGURES):
                print(path)
        except ImportError as error:
            if options.draw:
                raise
            print(f"no figures: {error}", file=sys.stderr)
    print(status(plan, cells, folder, work, options.numbers))
    return 0


def choose(options: argparse.Namespace) -> list[Wanted]:
    """What of the plan is asked for: --cells CELL:METHOD+METHOD,…, or --only and --method; and --seeds."""
    texts = [text for part in [*(options.cells or []), *options.only] for text in part.split(",") if text]
    methods = options.methods or ()
    if options.cells and not texts:
        raise ValueError(f"--cells names no cell; cells: {', '.join(EVERY)}.")
    everything = CELLS if methods else (*CELLS, *DENSE, *NEW)
    asked = [_asked(text, methods) for text in texts] or [(name, methods) for name in everything]
    runs = [wanted for cell, methods in asked for wanted in _wanted(cell, tuple(methods), options.seeds)]
    return list(dict.fromkeys(runs))  # what is asked for twice is meant once


def _asked(text: str, methods: Sequence[str]) -> tuple[str, Sequence[str]]:
    cell, colon, names = text.partition(":")
    if cell not in EVERY:
        raise ValueError(f"there is no cell {cell!r}; cells: {', '.join(EVERY)}. Write it as cheetah-0.25:kme+none.")
    return cell, names.split("+") if colon else methods


def _wanted(cell: str, methods: Sequence[str], seeds: Sequence[int] | None) -> list[Wanted]:
    """The plan's runs of a cell, or those of some methods; with other seeds than the plan's if they are given."""
    planned = {name: each.seeds for each in PLANS if each.cell == cell for name in each.methods}
    for name in methods:
        if name not in METHODS:
            raise ValueError(f"there is no method {name!r}; methods: {', '.join(METHODS)}.")
        if name not in planned and seeds is None:
            raise ValueError(f"{name} is not planned on {cell}. Give --seeds to run it all the same.")
    return [Wanted(cell, (name,), tuple(seeds or planned[name])) for name in methods or planned]


def run_missing(
    plan: Sequence[Wanted], cells: Mapping[str, Cell], folder: Path, work: Path, deadline: float | None,
    numbers: Mapping[str, Any], at_once: int = 1,
) -> bool:  # fmt: skip
    """Run what is missing, cell by cell or in processes at once, until all is done (True) or the deadline has come."""
    from voronaut.experiments.hard import processes, run

    if at_once < 1:
        raise ValueError(f"--processes must be 1 or more; got {at_once}.")
    missing: dict[str, list[Config]] = {}
    for name in dict.fromkeys(wanted.cell for wanted in plan):
        mine = [wanted for wanted in plan if wanted.cell == name]
        missing[name] = run.groups(cells[name], mine, results.find(folder, mine, cells, numbers).runs[name], numbers)
        run.check_frozen(cells[name], missing[name], folder)
    if at_once > 1:
        groups = [each for name, some in missing.items() for one in some for each in processes.split(cells[name], one)]
        return processes.run(groups, work, folder, at_once, deadline=deadline)
    return all(run.run(cells[name], some, work, folder, deadline=deadline) for name, some in missing.items() if some)


def status(
    plan: Sequence[Wanted], cells: Mapping[str, Cell], folder: Path, work: Path, numbers: Mapping[str, Any]
) -> str:
    """Runs done, under way and missing by cell and method, files that are not used, and what the rest will take."""
    from voronaut.experiments.hard import run

    found, lines = results.find(folder, plan, cells, numbers), []
    left = {"one H200 with 16 cores": 0.0, "two cores": 0.0}
    for name in dict.fromkeys(wanted.cell for wanted in plan):
        begun, marks = run.under_way(work, name), []
        where = "two cores" if name in NEW else "one H200 with 16 cores"
        seconds = run.estimate(cells[name], found.runs[name])
        for wanted in (each for each in plan if each.cell == name):
            for method in wanted.methods:
                missing = [seed for seed in wanted.seeds if seed not in found.runs[name][method]]
                shares = [begun.get(f"{method}-{seed}", 0.0) for seed in missing]
                left[where] += seconds * sum(1 - share for share in shares)
                at = f" ({max(shares):.0%})" if any(shares) else ""
                marks.append(f"{method} {len(wanted.seeds) - len(missing)}/{len(wanted.seeds)}{at}")
        lines.append(f"{name:<14} {', '.join(marks)}")
    took = [f"{seconds / 60:.0f} minutes left on {where}" for where, seconds in left.items() if seconds]
    end = f"about {' and '.join(took)}" if took else "the grid is complete"
    fixed = "" if settings.frozen(folder) else "nothing is frozen yet (--freeze): runs made now are trials"
    return "\n".join([*lines, *(f"not used: {trouble}" for trouble in found.troubles), *filter(None, [fixed]), end])


def best_policy(name: str) -> Path:
    """The file behind `voronaut eval hard/NAME`: in this folder's results, or in those beside the package."""
    beside = Path(__file__).parents[3] / FOLDER
    return results.best_policy(name, FOLDER if (FOLDER / results.POLICIES).exists() else beside)
