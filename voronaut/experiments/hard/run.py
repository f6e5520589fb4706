"""Runs of a cell side by side until the budget is spent: collected, evaluated, saved, and written down when done."""

import dataclasses
import itertools
import json
import shutil
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from voronaut.bonuses.networks import on_accelerator
from voronaut.experiments.hard import results, settings
from voronaut.experiments.hard.judge import Evaluations, Judge, judged
from voronaut.experiments.hard.settings import EPISODES, METHODS, Cell, Wanted
from voronaut.helpers import files, machine, npz
from voronaut.tasks.factory import make
from voronaut.training import checkpoint, folder, loop, policy
from voronaut.training.config import Config, Method
from voronaut.training.off_policy import SACTrainer

CHECKPOINTS, PROGRESS, COMPILED = "checkpoints", "progress.json", "compiled"
SAVE_EVERY = 8  # turns: a kill costs a few minutes, and every checkpoint seconds
WRITING = 3e8  # bytes of replay per second, to know when to begin to save
SPARE = 10.0  # seconds for everything else that stopping takes
COUNTS = (1, 100)  # rewarded transitions whose step is kept
SECONDS = ("collect_seconds", "bonus_seconds", "learn_seconds")
Say = Callable[[str], None]
Stop = Callable[[float], bool]  # whether to stop now, if that takes so many seconds


@dataclasses.dataclass
class Book:
    """What is written down while runs train; lists by run."""

    rows: list[list[list[Any]]]
    rewarded: list[dict[str, Any]]  # first and hundredth rewarded transition: step, and who took it
    evaluations: Evaluations
    seconds: dict[str, float]
    notes: list[str]


def groups(cell: Cell, wanted: Sequence[Wanted], there: Mapping[str, Any], numbers: Mapping[str, Any]) -> list[Config]:
    """What is missing of a cell as few experiments: methods that share settings of the learner and seeds are one."""
    together: dict[Any, Config] = {}
    for each in wanted:
        for name in each.methods:
            seeds = [seed for seed in each.seeds if seed not in there.get(name, {})]
            if seeds:
                one = settings.configured(cell, METHODS[name], seeds, numbers)
                key = (one.pair, json.dumps(dict(one.numbers)), one.seeds)
                before = together.get(key, dataclasses.replace(one, methods=()))
                together[key] = dataclasses.replace(one, methods=(*before.methods, *one.methods))
    return list(together.values())


def check_frozen(cell: Cell, configs: Sequence[Config], out: Path) -> None:
    """ValueError if a run would differ from what was frozen in `out`: it could not be reported."""
    fixed = settings.frozen(out)
    for one in (dataclasses.replace(each, methods=(method,)) for each in configs for method in each.methods):
        label, mine = one.methods[0].label, settings.resolved(one)
        wanted = fixed.get(f"{cell.name}/{label}")
        differ = [name for name in mine if wanted is not None and mine[name] != wanted[name]]
        if differ:
            raise ValueError(
                f"{cell.name}:{label} would differ from {out / settings.FROZEN} in {', '.join(differ)}. "
                "Choose other --results for a trial."
            )


def run(
    cell: Cell, configs: Sequence[Config], work: Path, out: Path, *, deadline: float | None = None, say: Say = print
) -> bool:
    """Train all groups of a cell side by side, in a thread each; whether all are done."""
    _remember_programs(work)
    with loop.interrupts() as interrupted, ThreadPoolExecutor(len(configs)) as pool:
        failed: list[bool] = []

        def stop(takes: float) -> bool:
            late = deadline is not None and time.monotonic() + takes > deadline
            return late or interrupted() or bool(failed)

        def one(config: Config) -> bool:
            try:
                return train(cell, config, work / cell.name / _name(config), out, stop, say)
            except BaseException:
                failed.append(True)
                raise

        return all(list(pool.map(one, configs)))


def _remember_programs(work: Path) -> None:
    """Keep what was compiled for an accelerator: the next sitting begins at once."""
    if on_accelerator():
        import jax

        jax.config.update("jax_compilation_cache_dir", str((work / COMPILED).absolute()))  # type: ignore[no-untyped-call]


def _name(config: Config) -> str:
    return f"{'+'.join(method.label for method in config.methods)}_{'+'.join(map(str, config.seeds))}"


def train(cell: Cell, config: Config, work: Path, out: Path, stop: Stop, say: Say) -> bool:
    """Train one group from where it stands; True when it is done and its results are written."""
    seeds = [seed for _, seed in config.runs]
    with folder.locked(work):
        if exported(cell, config, out):  # by another command, while this one waited
            return True
        folder.check(config, work, resume=True, restart=False)
        folder.claim(config, work)
        task = make(config.task, seeds, config.envs, threshold=config.threshold, backend=config.backend)
        try:
            trainer = SACTrainer(config, task)
            folder.check_room(trainer, work)
            book = resume(trainer, work)
            with Judge(config, work) as judge:
                done = _turns(f"{cell.name}:{_name(config)}", trainer, book, judge, work, stop, say)
        finally:
            task.close()
        if done:
            _export(cell, config, book, work, out, say)
            shutil.rmtree(work / CHECKPOINTS, ignore_errors=True)
    return done


def _turns(name: str, trainer: SACTrainer, book: Book, judge: Judge, work: Path, stop: Stop, say: Say) -> bool:
    begun = saved = trainer.done
    longest, ends = 0.0, judged(trainer.total)
    while trainer.done < trainer.total:
        started, before = time.perf_counter(), trainer.rewarded.copy()
        rows = trainer.turn()
        discover(trainer, book, before)
        took = time.perf_counter() - started
        longest = max(longest, took if trainer.done > begun + 1 else 0.0)  # the first turn compiles
        write_down(book, rows, took)
        if trainer.done in ends:
            judge.begin(trainer)
        more = judge.left() + (judge.took if trainer.done + 1 in ends else 0.0)
        late = stop((longest or took) + _saving(trainer, saved) + more)
        if late or trainer.done == trainer.total or trainer.done - saved >= SAVE_EVERY:
            judge.settle(book.evaluations)
            save(trainer, book, work)
            saved = trainer.done
            say(_told(name, trainer, rows, took))
        if late and trainer.done < trainer.total:
            say(f"{name}: stopped after {trainer.done} of {trainer.total} turns; the same command goes on from here")
            return False
    return True


def _told(name: str, trainer: SACTrainer, rows: folder.Rows, took: float) -> str:
    """One line: how far, mean returns by method, and how fast."""
    count = len(trainer.config.seeds)
    known = [[row["extrinsic_return"] for row in rows[i : i + count]] for i in range(0, len(rows), count)]
    ended = [[returns for returns in own if returns is not None] for own in known]
    means = [f"{m.label} {np.mean(x):.1f}" if x else f"{m.label} –"
             for m, x in zip(trainer.config.methods, ended, strict=True)]  # fmt: skip
    speed = trainer.config.rollout * len(rows) / took
    return f"{name}: {trainer.done}/{trainer.total} turns, return {', '.join(means)}, {speed:,.0f} steps/s"


def _saving(trainer: SACTrainer, saved: int) -> float:
    """About the seconds that a checkpoint takes now."""
    return SPARE + trainer.disk * (trainer.done - saved) / trainer.total / WRITING


def write_down(book: Book, rows: folder.Rows, took: float) -> None:
    """A row of every run; the seconds are of all of them side by side."""
    names = ("env_steps", "extrinsic_return", "explorer_return", "rewarded_steps", "max_step_reward")
    for mine, row in zip(book.rows, rows, strict=True):
        mine.append([*(row[name] for name in names), took])
    for name in SECONDS:
        book.seconds[name] += rows[0][name]
    book.seconds["all"] += took


def discover(trainer: SACTrainer, book: Book, before: NDArray[np.int64]) -> None:
    """Write down where the first and the hundredth reward was, if that was in the last turn."""
    start = (trainer.done - 1) * trainer.rows
    explores = trainer.shared_out(np.zeros_like(before))  # it does not change before the hundredth
    for run in range(len(trainer.seeds)):
        for count in COUNTS:
            if before[run] < count <= trainer.rewarded[run]:
                row, env = np.argwhere(trainer.paid[:, run])[count - 1 - before[run]]
                step = int(start + row + 1) * trainer.config.envs
                who = "explorer" if explores[run, env] else "exploiter"
                by = "random actions" if step - trainer.config.envs < trainer.settings.random_steps else who
                book.rewarded[run][str(count)] = {"step": step, "by": by}


def save(trainer: SACTrainer, book: Book, work: Path) -> None:
    """A checkpoint that holds the book too, so that both are of the same moment."""
    place = work / CHECKPOINTS
    told = np.frombuffer(json.dumps(dataclasses.asdict(book)).encode(), np.uint8)
    checkpoint.save(place, trainer.done, {**trainer.state_dict(checkpoint.chunks(place)), "book": told})
    runs = [f"{method.label}-{seed}" for method, seed in trainer.config.runs]
    files.write_text(work / PROGRESS, json.dumps({"runs": runs, "share": trainer.done / trainer.total}) + "\n")


def resume(trainer: SACTrainer, work: Path) -> Book:
    """Go on from the newest checkpoint of `work`, or begin a book."""
    runs = range(len(trainer.seeds))
    fresh = Book([[] for _ in runs], [{} for _ in runs], [], dict.fromkeys((*SECONDS, "all"), 0.0), [])
    found = checkpoint.newest(work / CHECKPOINTS, sys.maxsize, lambda text: folder.say(work, text))
    if found is None:
        if checkpoint.set_aside(work / CHECKPOINTS):
            raise ValueError(
                f"{work / CHECKPOINTS} holds no checkpoint that can be read. Remove {work} to begin again."
            )
        return fresh
    book = Book(**npz.read_json(work / CHECKPOINTS, found["book"]))
    ends = [turn * trainer.config.rollout for turn in judged(trainer.total)]  # of a shorter run they were others
    book.evaluations = [each for each in book.evaluations if each[0] in ends]
    trainer.load_state_dict(found, checkpoint.chunks(work / CHECKPOINTS))
    episodes = "" if trainer.task.resumes_exactly else ", the episodes under way were started anew"
    book.notes.append(f"went on after turn {trainer.done}{episodes}")
    return book


def _export(cell: Cell, config: Config, book: Book, work: Path, out: Path, say: Say) -> None:
    """A result file for every run, and then the best policy of the cell, which may fail without harm."""
    shared = {"episodes": EPISODES, "seconds": {name: round(x, 1) for name, x in book.seconds.items()},
              "runs_side_by_side": len(config.runs), "notes": book.notes, "backend": config.backend,
              "machine": machine.describe()}  # fmt: skip
    told = [
        {"cell": cell.name, "method": method.label, "seed": seed, "settings": _alone(config, method),
         "rewarded": book.rewarded[index],
         "evaluations": [[steps, returns[index]] for steps, returns in book.evaluations], **shared}
        for index, (method, seed) in enumerate(config.runs)
    ]  # fmt: skip
    for about, rows in zip(told, book.rows, strict=True):
        say(str(results.write(out, about, rows)))
    for about, name in zip(told, config.folders(), strict=True):
        try:
            best = results.keep_best(out, cell.name, about, work / name / policy.NAME)
        except (OSError, ValueError) as error:
            say(f"the policy of {name} was not compared with the best so far: {error}")
            continue
        if best is not None:
            say(f"{best}: the best so far, {about['method']}-{about['seed']}")


def _alone(config: Config, method: Method) -> dict[str, Any]:
    """Every number of one method's runs."""
    return settings.resolved(dataclasses.replace(config, methods=(method,)))


def exported(cell: Cell, config: Config, out: Path) -> bool:
    """Whether there are sound results of all these runs."""
    try:
        found = [(results.read(results.path_of(out, cell.name, m.label, seed)), m) for m, seed in config.runs]
    except ValueError:
        return False
    return all(
        one.about["settings"] == _alone(config, m) and one.curve["env_steps"][-1] >= config.steps for one, m in found
    )


def under_way(work: Path, cell: str) -> dict[str, float]:
    """The share of its turns that each unfinished run of a cell has done."""
    told = [json.loads(path.read_text()) for path in sorted((work / cell).glob(f"*/{PROGRESS}"))]
    return {name: each["share"] for each in told for name in each["runs"]}


def estimate(cell: Cell, found: Mapping[str, Mapping[int, results.Result]]) -> float:
    """Seconds of one run: what runs of this cell took, shared by those beside them, or a guess from the table."""
    runs = list(itertools.chain.from_iterable(each.values() for each in found.values()))
    took = [run.about["seconds"]["all"] / run.about["runs_side_by_side"] for run in runs]
    return float(np.median(took)) if took else cell.steps * settings.GUESS[cell.task]
