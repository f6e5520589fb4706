"""Learning from all that ever happened: SAC, alone or as a pair of explorer and exploiter, many runs side by side.

Every batch is paid by the bonus as it is when the batch is drawn, in units of the bonus's running deviation: no stored
bonus is stale, and no weight needs to be chosen.

A vector step: act → draw a batch and pay it → begin to simulate, and to learn → keep what happened. So acting lags
learning by one vector step, simulating and learning overlap, and the order of everything is fixed.
"""

import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import jax
import numpy as np
from numpy.typing import NDArray

from voronaut.bonuses import bonus_class
from voronaut.bonuses.base import PaysInPrograms
from voronaut.bonuses.networks import on_accelerator, stacked
from voronaut.entropy.batch import batch_entropy
from voronaut.helpers import npz
from voronaut.tasks.base import Step, StepsInHalves, VectorTask
from voronaut.training import checkpoint, policy, replay
from voronaut.training.config import Config, Method
from voronaut.training.folder import Rows
from voronaut.training.pair import EXPLOITER, EXPLORER, KNOWN, Lane, settings
from voronaut.training.population import Population

Floats = NDArray[np.float32]


class SACTrainer:
    """A population of runs and all that changes while it trains."""

    def __init__(self, config: Config, task: VectorTask, population: type[Population] = Population) -> None:
        if task.choices:
            raise ValueError(f"SAC needs continuous actions; {config.task} has {task.choices} choices: --learner ppo.")
        if not np.isfinite([task.action_low, task.action_high]).all():
            raise ValueError("SAC needs bounded actions, and this task's are not. Rescale them, or use --learner ppo.")
        self.config, self.task, self.settings = config, task, settings(config.numbers)
        self.seeds = [seed for _, seed in config.runs]
        self.bonuses = population(config, task.obs_dim)
        self.rows = config.rollout // config.envs  # vector steps of a turn
        self.said = replay.check_room(self._shape(), self._shape().within(self.settings.memory), len(self.seeds))
        self.lanes = [self._lane(method, seeds) for method, seeds in _grouped(config)]
        for lane, rows in self._lanes():
            lane.inside = self._in_program(rows)
        self._freeze()
        shape = (len(self.seeds), config.envs, task.obs_dim)
        self.observations: Floats | None = None
        self.rewarded = np.zeros(len(self.seeds), np.int64)
        self.paid = np.zeros((self.rows, *shape[:2]), np.bool_)  # which steps of the last turn the task paid
        self.next_states = np.zeros((len(self.seeds), self.rows, *shape[1:]), np.float32)
        self.recent = np.zeros((len(self.seeds), self.settings.absorb_every, *shape[1:]), np.float32)
        self.returns = np.zeros(shape[:2])  # of the episodes under way
        self.explores = self.shared_out(self.rewarded)  # whose they are
        self.done, self.total = 0, config.rollouts
        self.appended = 0  # vector steps that are in files
        self.pending: list[replay.Transition] = []  # those after them
        self.beginner = ThreadPoolExecutor(1)  # begins to learn while the environments are simulated
        self.disk = replay.disk(self._shape()) * len(self.seeds)

    def turn(self) -> Rows:
        """A turn's worth of vector steps; a row for the log of every run."""
        if self.observations is None:
            self.observations = self._shaped(self.task.reset()).copy()
        self.finished: list[dict[int, list[float]]] = [{EXPLOITER: [], EXPLORER: []} for _ in self.seeds]
        self.top = np.full(len(self.seeds), -np.inf)
        self.seconds = dict.fromkeys(("collect_seconds", "bonus_seconds", "learn_seconds"), 0.0)
        for row in range(self.rows):
            self._vector_step(self.done * self.rows + row, row)
        self.done += 1
        return self._rows()

    def _vector_step(self, t: int, row: int) -> None:
        learning = t * self.config.envs >= self.settings.random_steps
        self._weigh(t)
        actions = self._act(t) if learning else self._random(t)
        taken = _scaled(actions, self.task).reshape(self.task.num_envs, -1)
        self._keep(actions, self._simulate_and_learn(taken, t) if learning else self._simulate(taken), row)
        if (t + 1) % self.settings.absorb_every == 0:
            self._absorb(t)

    def _act(self, t: int) -> Floats:
        """Actions of all runs, from the agents as they are; the wait is for the last vector step's learning."""
        with self._timed("learn_seconds"):
            drawn = [
                lane.act(self.observations[rows], self.explores[rows], t)  # type: ignore[index]
                for lane, rows in self._lanes()
            ]
            return np.concatenate([np.asarray(each) for each in drawn])

    def _simulate(self, actions: NDArray[np.float64]) -> Step:
        with self._timed("collect_seconds"):
            return self.task.step(actions)

    def _simulate_and_learn(self, actions: NDArray[np.float64], t: int) -> Step:
        """A step of the environments, and what is learned meanwhile; the order of everything is fixed.

        To hand an accelerator its many small programs takes a while. Environments that run by themselves leave the time
        for it. Beside others it is done in a thread of its own.
        """
        if isinstance(self.task, StepsInHalves):
            with self._timed("collect_seconds"):
                self.task.begin(actions)
            self._learn_outside(t)
            with self._timed("learn_seconds"):
                self._learn_inside(t)
            with self._timed("collect_seconds"):
                return self.task.finish()
        self._learn_outside(t)
        begun = self.beginner.submit(self._learn_inside, t)
        step = self._simulate(actions)
        with self._timed("learn_seconds"):
            begun.result()
        return step

    def _random(self, t: int) -> Floats:
        """Uniform actions, from (seed, vector step) alone."""
        shape = (self.config.envs, self.task.action_dim)
        drawn = [np.random.default_rng([seed, t, 9]).uniform(-1, 1, shape) for seed in self.seeds]
        return np.stack(drawn).astype(np.float32)

    def _weigh(self, t: int) -> None:
        """Tell the lanes what their bonuses weigh after so many vector steps."""
        progress = t / (self.total * self.rows)
        for lane, rows in self._lanes():
            lane.weight = np.array([any(lane.curious) * w.at(progress) for w in self.bonuses.weights[rows]], np.float32)

    def _learn_outside(self, t: int) -> None:
        """Pay what is drawn as the bonus is now, and begin to learn, where the bonus cannot be in the program.

        Everything is drawn and paid before anybody learns: what is drawn later would wait for the learning of others.
        """
        outside = [(lane, rows) for lane, rows in self._lanes() if not lane.inside]
        with self._timed("learn_seconds"):
            drawn = [np.asarray(each) for each in [lane.draw(t) for lane, _ in outside]]
        with self._timed("bonus_seconds"):
            paid = [self.bonuses.rewards(states, rows) for states, (_, rows) in zip(drawn, outside, strict=True)]
        for (lane, _), raw in zip(outside, paid, strict=True):
            lane.learn(raw, t)

    def _learn_inside(self, t: int) -> None:
        """Begin to learn where drawing, paying and learning are one program."""
        for lane in self.lanes:
            if lane.inside:
                lane.draw_and_learn(t)

    def _in_program(self, rows: slice) -> bool:
        """Bonuses that pay nothing or are kept, and on an accelerator those that can: the host would be in the way."""
        [first, *_] = self.bonuses.members()[rows]
        return (
            self._stored
            or not first.pays
            or (on_accelerator() and isinstance(first, PaysInPrograms) and first.frozen() is not None)
        )

    def _keep(self, actions: Floats, step: Step, row: int) -> None:
        """Remember the step, and add up the returns of each policy's episodes."""
        nxt, rewards, terminated, truncated = (
            self._shaped(x) for x in (step.next_states, step.rewards, step.terminated, step.truncated)
        )
        happened = replay.Transition(
            self.observations, actions, nxt, rewards, terminated, truncated, self._paid_now(nxt)
        )
        with self._timed("learn_seconds"):  # it waits where the device is still learning
            for lane, rows in self._lanes():
                lane.keep(jax.tree.map(lambda x, rows=rows: x[rows], happened))
        self.pending.append(jax.tree.map(np.copy, happened))
        t = self.done * self.rows + row
        self.next_states[:, row] = self.recent[:, t % self.settings.absorb_every] = nxt
        self.top = np.maximum(self.top, self._shaped(step.dense_rewards).max(axis=1))
        self.paid[row] = rewards > 0
        self.rewarded += self.paid[row].sum(axis=1)
        self.returns += rewards
        over = terminated | truncated
        mine = ~self.explores  # a weight that falls looks at the exploiter's episodes
        self.bonuses.see(np.where(mine, rewards, 0), over & mine)
        for run, env in zip(*np.nonzero(over), strict=True):
            self.finished[run][int(self.explores[run, env])].append(float(self.returns[run, env]))
        if over.any():
            self.explores = np.where(over, self.shared_out(self.rewarded), self.explores)
        self.returns[over] = 0.0
        self.observations = self._shaped(step.obs).copy()

    def _paid_now(self, next_states: Floats) -> Floats | None:
        """What new states earn, where that is kept instead of being asked for whenever they are drawn."""
        if not self._stored:
            return None
        with self._timed("bonus_seconds"):
            return np.concatenate([self.bonuses.rewards(next_states[rows], rows) for _, rows in self._lanes()])

    def _absorb(self, t: int) -> None:
        with self._timed("bonus_seconds"):
            self.bonuses.absorb(self.recent, t)
        for lane, rows in self._lanes():
            lane.see(self.recent[rows].copy())  # it is written into again while the program may still be reading
        self._freeze()

    def _freeze(self) -> None:
        """Show the lanes the bonuses as they are now."""
        for lane, rows in self._lanes():
            if lane.inside and not self._stored:
                own = [bonus.frozen() for bonus in self.bonuses.members()[rows] if bonus.pays]
                lane.frozen = stacked(own) if own else None

    # What the folder asks for

    def state_dict(self, chunks: Path) -> npz.Arrays:
        """Everything that a resume needs; what the replay has gained is appended to the files in `chunks`."""
        assert self.observations is not None
        if self.pending:
            happened = jax.tree.map(lambda *steps: np.stack(steps, axis=1), *self.pending)
            parts = [jax.tree.map(lambda x, rows=rows: x[rows], happened) for _, rows in self._lanes()]
            replay.append(chunks, parts, self.appended)
            self.appended, self.pending = self.appended + len(self.pending), []
        arrays: npz.Arrays = {
            **checkpoint.nest("task", self.task.state_dict()),
            **checkpoint.nest("bonus", self.bonuses.state_dict()),
            "observations": self.observations,
            "returns": self.returns,
            "explores": self.explores,
            "recent": self.recent,
        }
        for index, lane in enumerate(self.lanes):
            leaves = {str(i): np.asarray(leaf) for i, leaf in enumerate(jax.tree.leaves(lane.run))}
            arrays |= checkpoint.nest(f"lane{index}", leaves)
        return arrays

    def load_state_dict(self, arrays: Mapping[str, NDArray[Any]], chunks: Path) -> None:
        """Go on from a checkpoint: exactly, or with new episodes where the backend cannot restore one."""
        for index, lane in enumerate(self.lanes):
            leaves, tree = jax.tree.flatten(lane.run)
            lane.run = jax.tree.unflatten(tree, _fitting(checkpoint.part(arrays, f"lane{index}"), leaves))
        self.bonuses.load_state_dict(checkpoint.part(arrays, "bonus"))
        self.observations = self._shaped(self.task.load_state_dict(checkpoint.part(arrays, "task"))).copy()
        self.recent, self.done = arrays["recent"].copy(), int(arrays["rollout"])
        self.explores = arrays.get("explores", self.explores).copy()  # shares were constant before there were any
        self._freeze()
        if self.task.resumes_exactly:
            self.observations, self.returns = arrays["observations"].copy(), arrays["returns"].copy()
        else:
            for weight in self.bonuses.weights:
                weight.begin_anew()
        self.appended, self.pending = self.done * self.rows, []
        then = [self.observations[rows] for _, rows in self._lanes()]
        full = replay.restore([lane.replay for lane in self.lanes], chunks, self.appended, then)
        for lane, each in zip(self.lanes, full, strict=True):
            lane.replay = each
        self.rewarded = np.concatenate([np.asarray(lane.replay.rewards) for lane in self.lanes]).astype(np.int64)

    def save_policies(self, folders: list[Path]) -> None:
        """The exploiter of each run (or its only agent) as its policy, the explorer beside it."""
        for lane, rows in self._lanes():
            run = jax.device_get(lane.run)
            for place, folder in enumerate(folders[rows]):
                scale = jax.tree.map(lambda leaf, p=place: leaf[p], run.scale)
                for agent, name in zip(range(len(lane.shares)), (policy.NAME, policy.EXPLORER), strict=False):
                    actor = jax.tree.map(lambda leaf, p=place, a=agent: leaf[p, a], run.agents.actor)
                    policy.save_squashed(folder / name, actor, scale, self.settings.agent, self.config, self.task)

    def shared_out(self, rewarded: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Which environments are the explorer's, the last ones, where runs have met so much reward: (runs, envs)."""
        envs, paired = self.config.envs, [len(lane.shares) > 1 for lane in self.lanes for _ in lane.seeds]
        counts = [self.settings.explorers(envs, int(met)) * pair for met, pair in zip(rewarded, paired, strict=True)]
        return np.arange(envs) >= envs - np.array(counts)[:, None]

    # Inside

    @property
    def _stored(self) -> bool:
        return self.config.pair == "stored"

    def _lane(self, method: Method, seeds: list[int]) -> Lane:
        """A pair, unless there is no bonus or one agent is to have it all."""
        config, pays = self.config, method.kind != "none"
        shape = self._shape().within(self.settings.memory)
        kind = bonus_class(method.kind)
        pay = kind.pay if on_accelerator() and issubclass(kind, PaysInPrograms) else None
        if not (pays and config.pair):
            return Lane(seeds, shape, (config.envs,), (pays,), self.settings, pay)
        explorers = [self.settings.explorers(config.envs, rewarded) for rewarded in (0, KNOWN)]
        most = (config.envs - min(explorers), max(explorers))
        return Lane(seeds, shape, most, (False, True), self.settings, pay)

    def _shape(self) -> replay.Shape:
        """Of all that one run does."""
        rows = self.config.rollouts * self.rows
        return replay.Shape(rows, self.config.envs, self.task.obs_dim, self.task.action_dim, bonus=self._stored)

    def _lanes(self) -> Iterator[tuple[Lane, slice]]:
        """Each lane, and which of all runs are its."""
        start = 0
        for lane in self.lanes:
            yield lane, slice(start, start + len(lane.seeds))
            start += len(lane.seeds)

    def _shaped(self, x: NDArray[Any]) -> NDArray[Any]:
        return x.reshape(len(self.seeds), self.config.envs, *x.shape[1:])

    @contextmanager
    def _timed(self, name: str) -> Iterator[None]:
        """Adds the seconds of a `with` block to a sum."""
        started = time.perf_counter()
        yield
        self.seconds[name] += time.perf_counter() - started

    def _rows(self) -> Rows:
        with self._timed("learn_seconds"):  # reading these waits for learning
            learned = [lane.numbers(place) for lane in self.lanes for place in range(len(lane.seeds))]
        rows, scales = [], np.concatenate([lane.weight for lane in self.lanes])
        for run, numbers in enumerate(learned):
            mine, theirs = (self.finished[run][who] for who in (EXPLOITER, EXPLORER))
            row: dict[str, Any] = {
                "env_steps": self.done * self.config.rollout,
                "extrinsic_return": float(np.mean(mine)) if mine else None,
                "explorer_return": float(np.mean(theirs)) if theirs else None,
                "episodes": len(mine) + len(theirs),
                "rewarded_steps": int(self.rewarded[run]),
                "max_step_reward": float(self.top[run]),
                "state_entropy": batch_entropy(self.next_states[run]),
                "scale": float(scales[run]),
                **self.seconds,
            }
            rows.append(row | numbers)
        return rows


def _grouped(config: Config) -> list[tuple[Method, list[int]]]:
    """Which runs are one program: on an accelerator all of a method, on a CPU each by itself."""
    if on_accelerator():
        return [(method, list(config.seeds)) for method in config.methods]
    return [(method, [seed]) for method, seed in config.runs]


def _fitting(saved: Mapping[str, NDArray[Any]], leaves: list[Any]) -> list[NDArray[Any]]:
    """The saved arrays in the place of these; ValueError where runs were grouped otherwise."""
    found = [saved[str(i)] for i in range(len(leaves)) if str(i) in saved]
    if [each.shape for each in found] != [leaf.shape for leaf in leaves] or len(saved) > len(found):
        raise ValueError(
            "the checkpoint does not fit: on an accelerator all runs of a method are one program, on a CPU each is one "
            "by itself. Go on where it was begun."
        )
    return found


def _scaled(actions: Floats, task: VectorTask) -> NDArray[np.float64]:
    """From [−1, 1] to the task's bounds."""
    low, high = task.action_low, task.action_high
    return np.asarray(low + (actions.astype(np.float64) + 1) / 2 * (high - low))
