"""How much survives noise: the small pair on Cheetah, its 17 coordinates as they are and with 20 of pure noise behind.

`voronaut reproduce noise --processes N`: one job for each seed and memory, a few minutes on one core each. The table
is on docs/trials.md.
"""

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from voronaut import presets
from voronaut.experiments.common import jobs as small
from voronaut.experiments.common.jobs import Job
from voronaut.experiments.noise.task import Noisy
from voronaut.helpers.markdown import table
from voronaut.tasks.factory import make
from voronaut.training.api import configure

__all__ = ["computed", "reproduce"]
FOLDER = Path("results/noise")
TASK, STEPS = "cheetah-run", 150_000
EXTRA = (0, 20)
MEMORIES: dict[str, dict[str, Any]] = {
    "views": {},
    "whole": {"views": 1},
    "paper": {**presets.paper().kme, "init": "data"},
}
TITLES = {
    "views": "each coordinate by itself (the default)",
    "whole": "the whole state, `views=1`",
    "paper": 'the paper\'s clusters, `init="data"`',
}
SEEDS = 5
COLUMNS = ("env_steps", "extrinsic_return", "explorer_return", "rewarded_steps", "max_step_reward", "state_entropy")


def train(memory: str, extra: int, seed: int, steps: int) -> dict[str, Any]:
    """The curves of one small pair: a list for each of `COLUMNS`."""
    from voronaut.training.loop import make_trainer

    # 3e-4 was the small learner's rate when these were run
    options = {"sac": {"size": "small", "learning_rate": 3e-4}, "kme": MEMORIES[memory]}
    config = configure(TASK, learner="sac", bonuses="kme", seeds=[seed], steps=steps, options=options)
    task = make(TASK, [seed], config.envs, backend=config.backend, threads=1)
    trainer = make_trainer(config, Noisy(task, extra, [seed]) if extra else task)
    try:
        rows = [row for _ in range(trainer.total) for row in trainer.turn()]
    finally:
        task.close()
    return {name: [_short(row[name]) for row in rows] for name in COLUMNS}


def _short(number: float | None) -> float | None:
    return None if number is None else float(f"{number:.6g}")


def plan(seeds: int | None = None, steps: float | None = None) -> list[Job]:
    """Every memory, with and without noise, with every seed."""
    length = STEPS if steps is None else int(steps)
    return [
        Job(f"noise-{extra}", f"{memory}-{seed}", train,
            {"memory": memory, "extra": extra, "seed": seed, "steps": length}, 300 + seed)
        for extra in EXTRA for memory in MEMORIES for seed in range(seeds or SEEDS)
    ]  # fmt: skip


def reproduce(options: argparse.Namespace, say: Callable[[str], None] = print) -> int:
    """Train what is missing and print the table."""
    if options.draw:
        raise ValueError("noise has no --draw: its table is drawn every time.")
    folder = options.folder or FOLDER
    small.reproduce(plan(options.seeds, options.steps), folder, options, lambda: [], say)
    say(computed(folder)["noise"])
    return 0


def computed(folder: Path = FOLDER) -> dict[str, str]:
    """docs/trials.md: exploiters' returns at two thirds and at the end, seed by seed, and rewarded steps."""
    found, rows = small.collect(plan(), folder), []
    for memory, title in TITLES.items():
        for extra in EXTRA:
            runs = [run for name, run in found.items() if name.startswith(f"noise-{extra}/{memory}-")]
            if runs:
                late, end = (", ".join(f"{_at(run, share):.0f}" for run in runs) for share in (2 / 3, 1))
                paid = ", ".join(f"{run['rewarded_steps'][-1]:,.0f}" for run in runs)
                rows.append([title, extra, late, end, paid])
    return {"noise": table(["clusters of", "noise", "return at 100k steps", "at 150k", "rewarded steps"], rows)}


def _at(run: dict[str, Any], share: float) -> float:
    """The mean of three turns around a share of the steps; a turn in which no episode ended counts for nothing."""
    turns = np.array([np.nan if each is None else each for each in run["extrinsic_return"]])
    last = max(1, round(share * len(turns)))
    return float(np.nan_to_num(np.nanmean(turns[max(0, last - 3) : last])))
