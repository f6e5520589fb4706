"""Weights & Biases, for those who ask for it: one run there per run here, with the numbers of progress.jsonl."""

import os
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

from voronaut.helpers import files
from voronaut.helpers.missing import require
from voronaut.training.config import Config
from voronaut.training.watching.board import scalars
from voronaut.training.watching.progress import Report, Rows

IDENTITY = "wandb_id.txt"


@contextmanager
def send(config: Config, out: Path, project: str) -> Iterator[Report]:
    """A function to be called after each rollout with its number and rows. The runs begin with the first call."""
    wandb, runs = require("wandb", "wandb"), list[Any]()

    def report(done: int, rows: Rows) -> None:
        if not runs:
            runs.extend(_begin(wandb, config, out, project))
        for run, row in zip(runs, rows, strict=True):
            # Rollouts that were sent before a kill come again after it; W&B keeps the first of each step.
            run.log({**scalars(row), "env_steps": row["env_steps"]}, step=done)

    failed = True
    try:
        yield report
        failed = False
    finally:
        for run in runs:
            run.finish(exit_code=int(failed))


def _begin(wandb: ModuleType, config: Config, out: Path, project: str) -> list[Any]:
    """A run of the project for each of ours, in one group; those of a run that is resumed go on."""
    runs: list[Any] = []
    offline = os.environ.get("WANDB_MODE") in ("offline", "dryrun")
    for (method, seed), name in zip(config.runs, config.folders(), strict=True):
        about = {**config.to_json(), "methods": None, "seeds": None, "method": method.kind, "scale": method.scale}
        try:
            run = wandb.init(
                project=project,
                group=out.name,
                name=name,
                id=identity(out / name),
                resume=None if offline else "allow",  # there is nobody to ask; equal ids meet when they are synced
                reinit="create_new",
                dir=out / name,
                config={**about, "params": dict(method.params), "seed": seed},
                settings=wandb.Settings(silent=True, console="off"),
            )
        except wandb.Error as error:
            way = "Mend that, or set WANDB_MODE=offline; then give the same command with --resume."
            raise ValueError(f"Weights & Biases cannot be used: {error} {way}") from error
        run.define_metric("*", step_metric="env_steps")
        runs.append(run)
    return runs


def identity(folder: Path) -> str:
    """The id under which a run is known to Weights & Biases: drawn once, then kept beside the run."""
    path = folder / IDENTITY
    if not path.exists():
        files.write_text(path, uuid.uuid4().hex[:12] + "\n")
    return path.read_text().strip()
