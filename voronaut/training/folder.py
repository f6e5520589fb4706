"""An experiment's folder: whose it is, what is noted and saved in it, and what stays when all is done."""

import itertools
import json
import os
import shutil
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any, Protocol

from numpy.typing import NDArray

try:
    import fcntl
except ImportError:  # not on Windows, where nothing keeps a second process out
    fcntl = None  # type: ignore[assignment]

from voronaut.helpers import files, machine, npz
from voronaut.tasks.base import VectorTask
from voronaut.training import checkpoint, policy
from voronaut.training.config import Config
from voronaut.training.population import Population
from voronaut.training.watching import logs, snapshots

Rows = list[dict[str, Any]]
CONFIG, FINISHED, CHECKPOINTS = "config.json", "finished.json", "checkpoints"
LOCK, BEFORE = ".lock", "before-"
SAID = 2e8  # bytes: smaller needs are not worth a word


class Trainer(Protocol):
    """All that the loop and the folder ask of what trains: a learner, its bonuses and its task, many runs at once."""

    config: Config
    task: VectorTask
    bonuses: Population
    done: int  # turns so far
    total: int  # turns in all
    disk: int  # bytes that files beside the checkpoints grow to until all is done
    said: str  # what is to be known before the start

    @property
    def next_states(self) -> NDArray[Any]:
        """The states of the last turn, (runs, …, d)."""

    def turn(self) -> Rows:
        """Collect and learn once; a row for the log of every run."""

    def state_dict(self, chunks: Path) -> npz.Arrays:
        """Everything that a resume needs; what is too large to be written anew is appended to files in `chunks`."""

    def load_state_dict(self, arrays: Mapping[str, NDArray[Any]], chunks: Path) -> None:
        """Go on from there; `arrays["rollout"]` is how many turns were done."""

    def save_policies(self, folders: list[Path]) -> None:
        """Each run's policy into its folder, for use as it is."""


def check(config: Config, out: Path, *, resume: bool, restart: bool) -> bool:
    """Whether there is something left to train in `out`; ValueError if it is not ours to write in."""
    path = out / CONFIG
    if out.is_file():
        raise ValueError(f"{out} is a file, and a folder is needed. Choose another folder.")
    if not path.exists():
        if out.exists() and any(each.name != LOCK and not _is_leftover(each) for each in out.iterdir()):
            raise ValueError(f"{out} is not empty and holds no experiment of this kind. Choose another folder.")
        return True
    mine, theirs = plain(config), _json(path)
    differ = sorted(key for key in mine | theirs if mine.get(key) != theirs.get(key))
    if differ == ["steps"] and not restart:
        _check_more(config, out, theirs["steps"], resume=resume)
    elif differ and (differ != ["steps"] or (out / FINISHED).exists()):
        raise ValueError(f"{out} holds another experiment (it differs in {', '.join(differ)}). Choose another folder.")
    if finished(config, out):
        if restart:
            raise ValueError(f"{out} holds this experiment, finished. Choose another folder, or remove it.")
        return False
    if not resume and not restart:
        raise ValueError(f"{out} holds an unfinished run of this experiment. Add --resume, or choose another folder.")
    return True


def _check_more(config: Config, out: Path, before: int, *, resume: bool) -> None:
    """ValueError unless what `out` holds, finished or not, is the beginning of this longer experiment."""
    if config.steps < before:
        raise ValueError(f"{out} holds this experiment with {before:,} steps. Ask for more, or choose another folder.")
    if not resume:
        raise ValueError(
            f"{out} holds this experiment with {before:,} steps. Add --resume to go on to {config.steps:,}, or choose "
            "another folder."
        )
    if any(method.scale.startswith("linear") for method in config.methods):
        raise ValueError(
            f"{out} holds this experiment with {before:,} steps, and a weight that changes until the last of them: "
            "with more it would have been another all along. Choose another folder."
        )
    if (out / FINISHED).exists() and not checkpoint.saved(out / CHECKPOINTS):
        raise ValueError(
            f"{out / CHECKPOINTS} has been removed: there is nothing to go on from. Choose another folder."
        )


def finished(config: Config, out: Path) -> bool:
    """Whether all steps of the config are done; those of a shorter one may be."""
    path = out / FINISHED
    return path.exists() and int(_json(path).get("rollouts", 0)) >= config.rollouts


def plain(config: Config) -> dict[str, Any]:
    """The config as config.json gives it back."""
    return dict(json.loads(json.dumps(config.to_json())))


def _json(path: Path) -> dict[str, Any]:
    try:
        return dict(json.loads(path.read_text()))
    except (ValueError, TypeError, RecursionError) as error:
        raise ValueError(f"{path} is damaged: {error}. Repair it, or choose another folder.") from error


@contextmanager
def locked(out: Path) -> Iterator[None]:
    """Keep other processes out of `out`, which is made if need be. The system lets go when this process ends."""
    made = [each for each in (out, *out.parents) if not each.exists()]
    out.mkdir(parents=True, exist_ok=True)
    try:
        with _lock(out / LOCK):
            yield
    finally:
        with suppress(OSError):  # stays if something was written
            for each in made:
                each.rmdir()


@contextmanager
def _lock(path: Path) -> Iterator[None]:
    if fcntl is None:
        yield
        return
    with _locked(path) as file:
        try:
            file.truncate(0)
            file.write(str(os.getpid()))
            file.flush()
            yield
        finally:
            path.unlink(missing_ok=True)  # while it is still ours


def _locked(path: Path) -> IO[str]:
    """The lock's file, held. One that was removed by its last holder since it was opened is no lock: once more."""
    while True:
        file = path.open("a+")
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.seek(0)
            other = file.read()
            file.close()
            raise ValueError(
                f"{path.parent} is in use by process {other or 'unknown'}. Wait for its end, or choose another folder."
            ) from None
        except OSError:  # a file system without locks keeps nobody out
            return file
        with suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(file.fileno()), path.stat()):
                return file
        file.close()


def check_room(trainer: Trainer, out: Path) -> None:
    """Say what the disk must hold until all is done; ValueError if it cannot."""
    there = sum(path.stat().st_size for path in checkpoint.chunks(out / CHECKPOINTS).glob("*.npz"))
    free, need = shutil.disk_usage(out).free, trainer.disk - there
    text = f"{out / CHECKPOINTS} grows to {trainer.disk / 1e9:.1f} GB"
    if need > free:
        raise ValueError(f"{text}, and the disk has {free / 1e9:.1f} GB left. Choose another folder, or fewer steps.")
    if need > SAID:
        print(f"voronaut: {text}; remove it when all is done, if no steps are to be added later", file=sys.stderr)


def claim(config: Config, out: Path) -> None:
    """Make `out` this experiment's folder; a shorter one that it holds is no longer finished."""
    files.write_text(out / CONFIG, json.dumps(plain(config), indent=1) + "\n")
    (out / FINISHED).unlink(missing_ok=True)


def tidy(config: Config, out: Path) -> None:
    """Remove what killed writes left, and an empty folder of checkpoints; of a finished experiment all but one."""
    runs = [out / name for name in config.folders()]
    saved = out / CHECKPOINTS
    for place in (out, saved, checkpoint.chunks(saved), *runs, *(run / snapshots.FOLDER for run in runs)):
        for path in place.glob(".*"):
            if _is_leftover(path):
                path.unlink(missing_ok=True)
    if finished(config, out):
        drop_spare(out)
    checkpoint.tidy(saved)


def drop_spare(out: Path) -> None:
    """Remove the checkpoints that a finished experiment does not need."""
    for path in checkpoint.spare(out / CHECKPOINTS):
        path.unlink(missing_ok=True)


def _is_leftover(path: Path) -> bool:
    return files.is_leftover(path) or path.name == ".config.json"  # as earlier versions wrote it


def go_on(trainer: Trainer, out: Path, *, restart: bool) -> None:
    """Take over the newest checkpoint that fits the logs, or begin. ValueError if that would lose what was saved."""
    paths = [out / name / logs.NAME for name in trainer.config.folders()]
    if restart:
        move_aside(out)
    lines, shortest = min((len(logs.lines(path)), path) for path in paths)
    found = checkpoint.newest(out / CHECKPOINTS, lines, lambda text: say(out, text))
    begin = "Add --restart to begin again from 0; what is there is moved to a folder of its own."
    begin = "Choose another folder." if (out / FINISHED).exists() else begin
    if found is not None:
        try:
            trainer.load_state_dict(found, checkpoint.chunks(out / CHECKPOINTS))
        except FileNotFoundError as error:
            raise ValueError(f"{error.filename} is missing, and the checkpoint needs it. {begin}") from error
        except ValueError as error:
            raise ValueError(f"{error} {begin}") from error
        return
    kept = checkpoint.saved(out / CHECKPOINTS)
    if kept:
        after = int(kept[0].stem)
        raise ValueError(f"{shortest} has {lines} lines, but the oldest checkpoint was made after {after}. {begin}")
    if checkpoint.set_aside(out / CHECKPOINTS) or any((path.parent / policy.NAME).exists() for path in paths):
        raise ValueError(f"{out / CHECKPOINTS} holds no checkpoint that can be read. {begin}")


def move_aside(out: Path) -> None:
    """Everything so far, as an experiment of its own, to before-1, before-2, …"""
    old = [path for path in out.iterdir() if path.name not in (CONFIG, LOCK) and not path.name.startswith(BEFORE)]
    if not old:
        return
    number = next(n for n in itertools.count(1) if not (out / f"{BEFORE}{n}").exists())
    target = out / f"{BEFORE}{number}"
    target.mkdir()
    files.write_text(target / CONFIG, (out / CONFIG).read_text())
    for path in old:
        path.rename(target / path.name)
    say(out, f"what was there has been moved to {target}")


def note(out: Path, text: str) -> None:
    """Add a line to the experiment's notes."""
    with (out / "notes.txt").open("a") as file:
        file.write(text + "\n")


def say(out: Path, text: str) -> None:
    """Add a line to the experiment's notes, and tell whoever is watching."""
    note(out, text)
    print(f"voronaut: {text}", file=sys.stderr)


def say_once(out: Path, text: str) -> None:
    """The same of what every sitting would say again."""
    path = out / "notes.txt"
    if text and not (path.exists() and text in path.read_text()):
        say(out, text)


def settle(out: Path, done: int) -> None:
    """Remember the machine, and note it if the rollouts before were done on another."""
    path, here = out / "machine.txt", machine.brief()
    before = (path.read_text().strip() if path.exists() else "") or here
    if done > 0 and before != here:
        note(out, f"went on after rollout {done} on another machine: {here}; before on {before}")
    files.write_text(path, here + "\n")


def save(trainer: Trainer, out: Path, folders: list[Path]) -> None:
    """A checkpoint of everything, and each run's policy for use as it is."""
    place = out / CHECKPOINTS
    checkpoint.save(place, trainer.done, trainer.state_dict(checkpoint.chunks(place)))
    trainer.save_policies(folders)


def finish(trainer: Trainer, out: Path, folders: list[Path]) -> None:
    """Keep what each bonus learned beside its run, say that all is done, and keep the last checkpoint alone."""
    for bonus, folder in zip(trainer.bonuses.members(), folders, strict=True):
        bonus.save(folder / "bonus.npz")
    files.write_text(out / FINISHED, json.dumps({"rollouts": trainer.done}) + "\n")
    drop_spare(out)
