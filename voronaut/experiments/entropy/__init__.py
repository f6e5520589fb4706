"""The paper's entropy experiments, corrected, and one it lacks: the error in nats. `voronaut reproduce entropy`.

Every part has `jobs`, and, from what they found, `computed`: its tables, and `draw`: its figures.
"""

import argparse
from collections.abc import Callable
from pathlib import Path

from voronaut.experiments.common import jobs as small
from voronaut.experiments.common.jobs import Job
from voronaut.experiments.entropy import density, errors, orders, shift, steps, walks
from voronaut.experiments.entropy.errors.run import older

__all__ = ["computed", "draw", "reproduce"]
FOLDER = Path("results/entropy")
FIGURES = Path("docs/figures/entropy")
PARTS = (orders, steps, shift, walks, density, errors)


def plan(seeds: int | None = None, points: int | None = None) -> list[Job]:
    """All jobs; with fewer seeds or points if asked."""
    given = {name: value for name, value in (("seeds", seeds), ("points", points)) if value is not None}
    return [job for part in PARTS for job in part.jobs(**given)]


def reproduce(options: argparse.Namespace, say: Callable[[str], None] = print) -> int:
    """Run what is missing of the chosen jobs, redraw all figures, and say what is there."""
    points = None if options.steps is None else int(options.steps)
    folder, jobs = options.folder or FOLDER, plan(options.seeds, points)
    chosen = small.reproduce(jobs, folder, options, lambda: draw(folder, options.figures or FIGURES), say)
    if old := older(small.collect(chosen, folder)):
        say(f"{len(old)} results are of an older estimator (delete their files to measure again), the first: {old[0]}")
    return 0


def draw(folder: Path = FOLDER, figures: Path = FIGURES) -> list[Path]:
    """All figures, from the result files."""
    found = small.collect(plan(), folder)
    return [path for part in PARTS for path in part.draw(found, figures)]


def computed(folder: Path = FOLDER) -> dict[str, str]:
    """All tables, from the result files, and what is missing of these."""
    jobs = plan()
    found = small.collect(jobs, folder)
    parts: dict[str, list[bool]] = {}
    for job in jobs:
        parts.setdefault(job.part, []).append(f"{job.part}/{job.name}" in found)
    done = ", ".join(f"{part} {sum(mine)} of {len(mine)}" for part, mine in parts.items())
    return {"missing": f"Jobs done: {done}.", **{n: text for part in PARTS for n, text in part.computed(found).items()}}
