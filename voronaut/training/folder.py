"""An experiment's folder: whose it is, what is noted and saved in it, and what stays when all is done."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

from numpy.typing import NDArray

from voronaut import files, machine, npz
from voronaut.tasks.base import VectorTask
from voronaut.training import checkpoint
from voronaut.training.config import Config
from voronaut.training.population import Population

Rows = list[dict[str, Any]]


class Trainer(Protocol):
    """All that the loop and the folder ask of what trains: a learner, its bonuses and its task, many runs at once."""

    config: Config
    task: VectorTask
    bonuses: Population
    done: int  # turns so far
    total: int  # turns in all

    @property
    def next_states(self) -> NDArray[Any]:
        """The states of the last turn, (runs, …, d)."""

    def turn(self) -> Rows:
        """Collect and learn once; a row for the log of every run."""

    def state_dict(self) -> npz.Arrays:
        """Everything that a resume needs, but for what is appended to `checkpoint.chunks`."""

    def load_state_dict(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Go on from there; `arrays["rollout"]` is how many turns were done."""

    def save_policies(self, folders: list[Path]) -> None:
        """Each run's policy into its folder, for use as it is."""


def check(config: Config, out: Path, resume: bool) -> bool:
    """Whether there is something left to train in `out`; ValueError if it is not ours to write in."""
    path = out / "config.json"
    if not path.exists():
        if out.exists() and any(out.iterdir()):
            raise ValueError(f"{out} is not empty and holds no experiment of this kind. Choose another --out.")
        return True
    mine, theirs = plain(config), json.loads(path.read_text())
    if theirs != mine:
        differ = sorted(key for key in mine | theirs if mine.get(key) != theirs.get(key))
        raise ValueError(f"{out} holds another experiment (it differs in {', '.join(differ)}). Choose another --out.")
    if (out / "finished.json").exists():
        return False
    if not resume:
        raise ValueError(f"{out} holds an unfinished run of this experiment. Add --resume, or choose another --out.")
    return True


def plain(config: Config) -> dict[str, Any]:
    """The config as config.json gives it back."""
    return dict(json.loads(json.dumps(config.to_json())))


def claim(config: Config, out: Path) -> None:
    """Make `out` this experiment's folder."""
    out.mkdir(parents=True, exist_ok=True)
    files.write_text(out / "config.json", json.dumps(plain(config), indent=1) + "\n")


def note(out: Path, text: str) -> None:
    """Add a line to the experiment's notes."""
    with (out / "notes.txt").open("a") as file:
        file.write(text + "\n")


def settle(out: Path, done: int) -> None:
    """Remember the machine, and note it if the rollouts before were done on another."""
    path, here = out / "machine.txt", machine.brief()
    before = (path.read_text().strip() if path.exists() else "") or here
    if done > 0 and before != here:
        note(out, f"went on after rollout {done} on another machine: {here}; before on {before}")
    files.write_text(path, here + "\n")


def save(trainer: Trainer, out: Path, folders: list[Path]) -> None:
    """A checkpoint of everything, and each run's policy for use as it is."""
    checkpoint.save(out / "checkpoints", trainer.done, trainer.state_dict())
    trainer.save_policies(folders)


def finish(trainer: Trainer, out: Path, folders: list[Path]) -> None:
    """Keep what each bonus learned beside its run, say that all is done, and drop the checkpoints."""
    for bonus, folder in zip(trainer.bonuses.members(), folders, strict=True):
        bonus.save(folder / "bonus.npz")
    files.write_text(out / "finished.json", json.dumps({"rollouts": trainer.done}) + "\n")
    checkpoint.clear(out / "checkpoints")
