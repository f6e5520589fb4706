"""The paper's entropy experiments, corrected, and one it lacks: the error in nats. `voronaut reproduce entropy`."""

import argparse
from collections.abc import Callable, Sequence
from pathlib import Path

from voronaut.experiments.common import jobs as small
from voronaut.experiments.common.jobs import Job
from voronaut.experiments.entropy import density as entropy_density
from voronaut.experiments.entropy import errors as entropy_accuracy
from voronaut.experiments.entropy import orders as entropy_orders
from voronaut.experiments.entropy import shift as entropy_shift
from voronaut.experiments.entropy import steps as entropy_steps
from voronaut.experiments.entropy import walks as entropy_walks
from voronaut.experiments.entropy.errors import units as entropy_units

FOLDER = Path("results/entropy")
FIGURES = Path("docs/figures/entropy")
MODULES = (
    entropy_orders, entropy_steps, entropy_shift, entropy_walks, entropy_density, entropy_accuracy, entropy_units,
)  # fmt: skip


def plan(seeds: int | None = None, points: int | None = None) -> list[Job]:
    """All jobs; with fewer seeds or points if asked."""
    given = {name: value for name, value in (("seeds", seeds), ("points", points)) if value is not None}
    return [job for module in MODULES for job in module.jobs(**given)]


def choose(only: Sequence[str], jobs: Sequence[Job]) -> list[Job]:
    """The jobs of some parts ("walks"), or those whose name begins with what is given ("accuracy/ball-2")."""
    for name in only:
        if not any(_named(job, name) for job in jobs):
            parts = ", ".join(dict.fromkeys(job.part for job in jobs))
            raise ValueError(
                f"there is no part or job {name!r}; parts: {parts}, or the start of a job: accuracy/ball-2."
            )
    return [job for job in jobs if not only or any(_named(job, name) for name in only)]


def _named(job: Job, name: str) -> bool:
    return job.part == name or ("/" in name and f"{job.part}/{job.name}".startswith(name))


def reproduce(options: argparse.Namespace, say: Callable[[str], None] = print) -> int:
    """Run what is missing of the chosen jobs, redraw all figures, and say what is there."""
    if options.processes < 1:
        raise ValueError(f"--processes must be 1 or more; got {options.processes}.")
    if options.methods or options.work:
        raise ValueError("the entropy experiments have no --method and no --work: choose jobs with --only.")
    points = None if options.steps is None else int(options.steps)
    chosen = choose(options.only, plan(options.seeds, points))
    folder = options.folder or FOLDER
    if not options.status:
        if not options.draw:
            small.run(chosen, folder, budget=options.budget, processes=options.processes, say=say)
        for path in draw(folder, options.figures or FIGURES):
            say(str(path))
    say(small.status(chosen, folder))
    if old := entropy_accuracy.older(small.collect(chosen, folder)):
        say(f"{len(old)} results are of an older estimator (delete their files to measure again), the first: {old[0]}")
    return 0


def draw(folder: Path = FOLDER, figures: Path = FIGURES) -> list[Path]:
    """All figures, from the result files."""
    from voronaut.experiments.entropy import figures as entropy_figures
    from voronaut.experiments.entropy.errors import figures as entropy_truth_figures

    found = small.collect(plan(), folder)
    return [*entropy_figures.draw(found, figures), *entropy_truth_figures.draw(found, figures)]
