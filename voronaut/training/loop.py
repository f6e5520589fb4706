"""Turn after turn until all is done, logged and saved on the way, whatever the learner."""

import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from voronaut.tasks.base import VectorTask
from voronaut.tasks.factory import make
from voronaut.training import checkpoint, folder
from voronaut.training.config import Config
from voronaut.training.folder import Rows, Trainer
from voronaut.training.population import Population
from voronaut.training.watching import logs, snapshots

Report = Callable[[int, Rows], None]


class Stopped(Exception):  # noqa: N818 (not an error)
    """Training ended before its last turn, with everything saved."""


def train(
    config: Config,
    out: Path,
    *,
    resume: bool = False,
    restart: bool = False,
    save_every: int = 10,
    deadline: float | None = None,
    report: Report | None = None,
    population: type[Population] = Population,
) -> bool:
    """Train everything in `config` and write it to `out`; whether there was anything left to do.

    `resume` goes on with what `out` holds of this experiment, or of one that differs in having fewer steps; `restart`
    moves that aside and begins again.
    Stops early, saved and with `Stopped`, at the first rollout after an interrupt or after `deadline` (time.monotonic).
    """
    begin = {"resume": resume, "restart": restart}
    if not folder.check(config, out, **begin):  # before anything is touched
        if checkpoint.spare(out / folder.CHECKPOINTS):  # killed in its last moment
            with folder.locked(out):
                folder.tidy(config, out)
        return False
    with folder.locked(out):
        if not folder.check(config, out, **begin):  # once more, now that nobody else can be in it
            return False
        seeds = [seed for _, seed in config.runs]
        task = make(config.task, seeds, config.envs, threshold=config.threshold, backend=config.backend)
        try:
            trainer = make_trainer(config, task, population)
            folder.check_room(trainer, out)
            folder.tidy(config, out)
            folder.go_on(trainer, out, restart=restart)
            folder.claim(config, out)  # a shorter experiment stays as it is if it cannot be gone on with
            folder.say_once(out, trainer.said)
            run(trainer, out, save_every=save_every, deadline=deadline, report=report)
        finally:
            task.close()
            folder.tidy(config, out)
    return True


def make_trainer(config: Config, task: VectorTask, population: type[Population] = Population) -> Trainer:
    """The trainer of the config's learner."""
    if config.learner == "sac":
        from voronaut.training.off_policy import SACTrainer

        return SACTrainer(config, task, population)
    from voronaut.training.on_policy import PPOTrainer

    return PPOTrainer(config, task, population)


def run(trainer: Trainer, out: Path, *, save_every: int, deadline: float | None, report: Report | None) -> None:
    """Take the turns that are left, in a folder that is ours."""
    folders = [out / name for name in trainer.config.folders()]
    books = [logs.RunLog(each, trainer.done, trainer.config.learner) for each in folders]
    for each in folders:
        snapshots.forget(each, trainer.done)
    restarted = trainer.done > 0 and not trainer.task.resumes_exactly
    if restarted:
        folder.say(out, f"resumed after rollout {trainer.done}: the episodes under way were started anew")
    folder.settle(out, trainer.done)
    try:
        with interrupts() as interrupted:
            while trainer.done < trainer.total:
                rows = trainer.turn()
                if restarted:
                    rows, restarted = [row | {"episodes_restarted": True} for row in rows], False
                last = trainer.done == trainer.total
                stop = interrupted() or (deadline is not None and time.monotonic() > deadline)
                save = last or stop or trainer.done % save_every == 0
                if save:
                    rows = [row | more for row, more in zip(rows, trainer.bonuses.metrics(), strict=True)]
                for book, row in zip(books, rows, strict=True):
                    book.write(row)
                if snapshots.due(trainer.done, trainer.total):
                    snapshots.take(folders, trainer.done, trainer.bonuses.members(), trainer.next_states)
                if save:
                    folder.save(trainer, out, folders)
                if report is not None:
                    report(trainer.done, rows)
                if stop and not last:
                    raise Stopped(f"stopped after {trainer.done} of {trainer.total} rollouts")
    finally:
        for book in books:
            book.close()
    folder.finish(trainer, out, folders)


@contextmanager
def interrupts() -> Iterator[Callable[[], bool]]:
    """Whether Ctrl-C (or a TERM) has come. The first lets the rollout finish and be saved; a second stops at once."""
    seen: list[int] = []

    def handle(number: int, frame: Any) -> None:
        if seen:
            raise KeyboardInterrupt
        seen.append(number)

    try:
        before = {number: signal.signal(number, handle) for number in (signal.SIGINT, signal.SIGTERM)}
    except ValueError:  # not in the main thread: whoever runs this handles signals
        yield lambda: False
        return
    try:
        yield lambda: bool(seen)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
