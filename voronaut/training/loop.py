"""Algorithm 2, many runs side by side: collect → pay the bonus → learn → let the bonus learn."""

import json
import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from voronaut import machine, npz
from voronaut.entropy.batch import batch_entropy
from voronaut.tasks.base import VectorTask
from voronaut.tasks.factory import make
from voronaut.training import checkpoint, logs, policy, ppo, rollout, snapshots
from voronaut.training.config import Config
from voronaut.training.population import Population

Rows = list[dict[str, Any]]
Report = Callable[[int, Rows], None]


class Stopped(Exception):  # noqa: N818 (not an error)
    """Training ended before its last rollout, with everything saved."""


class Outcome(NamedTuple):
    """What a rollout left behind, besides the agents."""

    paid: NDArray[np.float32]  # raw bonus (runs, t, n)
    scales: NDArray[np.float64]
    finished: list[list[float]]
    stats: ppo.Stats
    seconds: dict[str, float]
    bonus_seconds: NDArray[np.float64]  # by method


class Trainer:
    """A population of runs and all that changes while it trains."""

    def __init__(self, config: Config, task: VectorTask, population: type[Population] = Population) -> None:
        self.config, self.task = config, task
        self.settings = ppo.Settings(envs=config.envs, rollout=config.rollout)
        self.seeds = [seed for _, seed in config.runs]
        self.bonuses = population(config, task.obs_dim)
        self.agent = ppo.init(self._rngs(0, "init"), task.obs_dim, task.action_dim, self.settings)
        self.room = rollout.empty(len(self.seeds), self.settings, task.obs_dim, task.action_dim)
        self.running: rollout.Running | None = None
        self.done = 0

    def turn(self) -> Rows:
        """One turn of Algorithm 2 for every run; the log rows of it."""
        started = time.perf_counter()
        if self.running is None:
            self.running = self._start(self.task.reset())
        rngs = self._rngs(self.done, "rollout")
        noise = ppo.draw_noise(rngs, self.task.action_dim, self.settings)
        self.running, finished = rollout.collect(self.task, self.agent.params, noise, self.running, self.room)
        collected = time.perf_counter()
        scales = self.bonuses.scales(self.done)
        paid, pay_seconds = self.bonuses.pay(self.room.next_states, self.done)
        paid_at = time.perf_counter()
        stats = self._learn(noise, paid * scales[:, None, None].astype(np.float32), rngs)
        learned = time.perf_counter()
        update_seconds = self.bonuses.absorb(self.room.next_states, self.done)
        took = {
            "collect_seconds": collected - started,
            "bonus_seconds": paid_at - collected + time.perf_counter() - learned,
            "learn_seconds": learned - paid_at,
        }
        self.done += 1
        return self._rows(Outcome(paid, scales, finished, stats, took, pay_seconds + update_seconds))

    def state_dict(self) -> npz.Arrays:
        """Everything that a resume needs."""
        import jax

        assert self.running is not None
        leaves = {str(i): np.asarray(leaf) for i, leaf in enumerate(jax.tree.leaves(self.agent))}
        return {
            **checkpoint.nest("agent", leaves),
            **checkpoint.nest("task", self.task.state_dict()),
            **checkpoint.nest("bonus", self.bonuses.state_dict()),
            "observations": self.running.observations,
            "returns": self.running.returns,
        }

    def load_state_dict(self, arrays: npz.Arrays) -> None:
        """Go on from a checkpoint: exactly, or with new episodes where the backend cannot restore one."""
        import jax

        leaves, tree = jax.tree.flatten(self.agent)
        saved = checkpoint.part(arrays, "agent")
        self.agent = jax.tree.unflatten(tree, [saved[str(i)] for i in range(len(leaves))])
        self.bonuses.load_state_dict(checkpoint.part(arrays, "bonus"))
        observations = self.task.load_state_dict(checkpoint.part(arrays, "task"))
        self.running = self._start(observations)
        if self.task.resumes_exactly:
            self.running = rollout.Running(arrays["observations"], arrays["returns"])
        self.done = int(arrays["rollout"])

    def _start(self, observations: rollout.Floats) -> rollout.Running:
        shape = (len(self.seeds), self.config.envs)
        return rollout.Running(observations.reshape(*shape, -1).copy(), np.zeros(shape))

    def _rngs(self, number: int, use: str) -> list[np.random.Generator]:
        """One generator per run from (seed, rollout, use) alone: no random state to save."""
        tag = {"init": 0, "rollout": 1}[use]
        return [np.random.default_rng([seed, number, tag]) for seed in self.seeds]

    def _learn(self, noise: ppo.Floats, bonus: rollout.Floats, rngs: ppo.Rngs) -> ppo.Stats:
        """The bonus joins the reward before advantages are made of it."""
        room, params = self.room, self.agent.params
        values, next_values = ppo.values(params, room.observations), ppo.values(params, room.next_states)
        advantages, returns = ppo.gae(
            room.rewards + bonus, values, next_values, room.terminated, room.truncated, self.settings
        )
        whole = (room.observations, room.actions, ppo.log_probs(params, noise), advantages, returns)
        batch = ppo.Batch(*(x.reshape(len(x), self.config.rollout, *x.shape[3:]) for x in whole))
        orders = ppo.draw_orders(rngs, self.config.rollout, self.settings)
        self.agent, stats = ppo.learn(self.agent, batch, orders, self.settings)
        return stats

    def _rows(self, outcome: Outcome) -> Rows:
        rows = []
        for run in range(len(self.seeds)):
            finished = outcome.finished[run]
            row = {
                "env_steps": self.done * self.config.rollout,
                "extrinsic_return": float(np.mean(finished)) if finished else None,
                "episodes": len(finished),
                "max_step_reward": float(self.room.dense_rewards[run].max()),
                "bonus_mean": float(outcome.paid[run].mean()),
                "scale": float(outcome.scales[run]),
                "state_entropy": batch_entropy(self.room.next_states[run]),
                **outcome.seconds,
                "method_bonus_seconds": float(outcome.bonus_seconds[run // len(self.config.seeds)]),
            }
            rows.append({**row, **{k: float(v[run]) for k, v in outcome.stats._asdict().items()}})
        return rows


def train(
    config: Config,
    out: Path,
    *,
    resume: bool = False,
    save_every: int = 10,
    deadline: float | None = None,
    report: Report | None = None,
    population: type[Population] = Population,
) -> bool:
    """Train everything in `config` and write it to `out`; whether there was anything left to do.

    Stops early, saved and with `Stopped`, at the first rollout after an interrupt or after `deadline` (time.monotonic).
    """
    if not check_folder(config, out, resume):
        return False
    task = make(config.task, [seed for _, seed in config.runs], config.envs, **_task_options(config))
    try:
        trainer = Trainer(config, task, population)
        claim(config, out)
        found = checkpoint.newest(out / "checkpoints") if resume else None
        if found is not None:
            trainer.load_state_dict(found)
        _train(trainer, out, save_every, deadline, report)
    finally:
        task.close()
    return True


def _task_options(config: Config) -> dict[str, Any]:
    return {"threshold": config.threshold, "backend": config.backend}


def _train(trainer: Trainer, out: Path, save_every: int, deadline: float | None, report: Report | None) -> None:
    config = trainer.config
    folders = [out / name for name in config.folders()]
    books = [logs.RunLog(folder, trainer.done) for folder in folders]
    for folder in folders:
        snapshots.forget(folder, trainer.done)
    restarted = trainer.done > 0 and not trainer.task.resumes_exactly
    if restarted:
        note(out, f"resumed after rollout {trainer.done}: the episodes under way were started anew")
    settle(out, trainer.done)
    try:
        with interrupts() as interrupted:
            while trainer.done < config.rollouts:
                rows = [row | {"episodes_restarted": True} for row in trainer.turn()] if restarted else trainer.turn()
                restarted = False
                last = trainer.done == config.rollouts
                stop = interrupted() or (deadline is not None and time.monotonic() > deadline)
                if last or stop or trainer.done % save_every == 0:
                    rows = [row | more for row, more in zip(rows, trainer.bonuses.metrics(), strict=True)]
                for book, row in zip(books, rows, strict=True):
                    book.write(row)
                if snapshots.due(trainer.done, config.rollouts):
                    snapshots.take(folders, trainer.done, trainer.bonuses.members(), trainer.room.next_states)
                if last or stop or trainer.done % save_every == 0:
                    save(trainer, out, folders)
                if report is not None:
                    report(trainer.done, rows)
                if stop and not last:
                    raise Stopped(f"stopped after {trainer.done} of {config.rollouts} rollouts")
    finally:
        for book in books:
            book.close()
    finish(trainer, out, folders)


def save(trainer: Trainer, out: Path, folders: list[Path]) -> None:
    """A checkpoint of everything, and each run's policy for use as it is."""
    checkpoint.save(out / "checkpoints", trainer.done, trainer.state_dict())
    for run, folder in enumerate(folders):
        policy.save(folder, trainer.agent.params, run, trainer.config, trainer.task)


def finish(trainer: Trainer, out: Path, folders: list[Path]) -> None:
    """Keep what each bonus learned beside its run, say that all is done, and drop the checkpoints."""
    for bonus, folder in zip(trainer.bonuses.members(), folders, strict=True):
        bonus.save(folder / "bonus.npz")
    (out / "finished.json").write_text(json.dumps({"rollouts": trainer.done}) + "\n")
    checkpoint.clear(out / "checkpoints")


def check_folder(config: Config, out: Path, resume: bool) -> bool:
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
    temporary = out / ".config.json"
    temporary.write_text(json.dumps(plain(config), indent=1) + "\n")
    os.replace(temporary, out / "config.json")


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
    path.write_text(here + "\n")


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
