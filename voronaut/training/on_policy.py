"""Algorithm 2 with PPO, many runs side by side: collect → pay the bonus → learn → let the bonus learn."""

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from voronaut.bonuses.weight import Weight
from voronaut.entropy.batch import batch_entropy
from voronaut.helpers import npz
from voronaut.learners import networks, ppo
from voronaut.tasks.base import VectorTask
from voronaut.training import checkpoint, policy
from voronaut.training.config import Config
from voronaut.training.folder import Rows
from voronaut.training.population import Population

Floats = NDArray[np.float32]
Flags = NDArray[np.bool_]


class Rollout(NamedTuple):
    """What happened, (runs, time, environments, ...)."""

    observations: Floats
    actions: Floats
    next_states: Floats  # the state each action led to: the true final state where an episode ended
    rewards: Floats
    dense_rewards: Floats
    terminated: Flags
    truncated: Flags


class Running(NamedTuple):
    """What goes on from one rollout to the next."""

    observations: Floats  # (runs, envs, d)
    returns: NDArray[np.float64]  # (runs, envs) extrinsic return of the episodes under way


class Outcome(NamedTuple):
    """What a rollout left behind, besides the agents."""

    paid: NDArray[np.float32]  # raw bonus (runs, t, n)
    scales: NDArray[np.float64]
    finished: list[list[float]]
    stats: ppo.Stats
    seconds: dict[str, float]
    bonus_seconds: NDArray[np.float64]  # by method


class PPOTrainer:
    """A population of runs and all that changes while it trains."""

    def __init__(self, config: Config, task: VectorTask, population: type[Population] = Population) -> None:
        self.config, self.task = config, task
        self.settings = ppo.Settings(envs=config.envs, rollout=config.rollout, **config.numbers)
        self.seeds = [seed for _, seed in config.runs]
        self.bonuses = population(config, task.obs_dim)
        self.unpaid = [Weight("falling:1") for _ in self.seeds if self.settings.entropy_falls]
        self.agent = ppo.init(self._rngs(0, "init"), task.obs_dim, task.action_dim, self.settings, task.choices)
        self.room = empty(len(self.seeds), self.settings, task.obs_dim, task.action_dim)
        self.running: Running | None = None
        self.done, self.total = 0, config.rollouts
        self.disk, self.said = 0, ""  # nothing grows with the steps

    def turn(self) -> Rows:
        """One turn of Algorithm 2 for every run; the log rows of it."""
        started = time.perf_counter()
        if self.running is None:
            self.running = self._start(self.task.reset())
        rngs = self._rngs(self.done, "rollout")
        noise = ppo.draw_noise(rngs, self.task.action_dim, self.settings, self.task.choices)
        self.running, finished = collect(self.task, self.agent.params, noise, self.running, self.room)
        collected = time.perf_counter()
        over = self.room.terminated | self.room.truncated
        self.bonuses.see(self.room.rewards, over)
        for weight, own, ends in zip(self.unpaid, self.room.rewards, over, strict=False):
            weight.see(own, ends)
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

    def state_dict(self, chunks: Path | None = None) -> npz.Arrays:
        """Everything that a resume needs; nothing is so large that it would go to `chunks`."""
        import jax

        assert self.running is not None
        leaves = {str(i): np.asarray(leaf) for i, leaf in enumerate(jax.tree.leaves(self.agent))}
        return {
            **checkpoint.nest("agent", leaves),
            **checkpoint.nest("task", self.task.state_dict()),
            **checkpoint.nest("bonus", self.bonuses.state_dict()),
            "observations": self.running.observations,
            "returns": self.running.returns,
        } | {
            key: value
            for run, weight in enumerate(self.unpaid)
            for key, value in checkpoint.nest(f"unpaid{run}", weight.state_dict()).items()
        }

    def load_state_dict(self, arrays: Mapping[str, NDArray[Any]], chunks: Path | None = None) -> None:
        """Go on from a checkpoint: exactly, or with new episodes where the backend cannot restore one."""
        import jax

        leaves, tree = jax.tree.flatten(self.agent)
        saved = checkpoint.part(arrays, "agent")
        self.agent = jax.tree.unflatten(tree, [saved[str(i)] for i in range(len(leaves))])
        self.bonuses.load_state_dict(checkpoint.part(arrays, "bonus"))
        for run, weight in enumerate(self.unpaid):
            weight.load_state_dict(checkpoint.part(arrays, f"unpaid{run}"))
        observations = self.task.load_state_dict(checkpoint.part(arrays, "task"))
        self.running = self._start(observations)
        if self.task.resumes_exactly:
            self.running = Running(arrays["observations"], arrays["returns"])
        else:
            for weight in (*self.bonuses.weights, *self.unpaid):
                weight.begin_anew()
        self.done = int(arrays["rollout"])

    @property
    def next_states(self) -> Floats:
        """The states of the last turn, (runs, t, n, d)."""
        return self.room.next_states

    def save_policies(self, folders: list[Path]) -> None:
        """Each run's policy for use as it is."""
        for run, folder in enumerate(folders):
            policy.save(folder, self.agent.params, run, self.config, self.task)

    def _start(self, observations: Floats) -> Running:
        shape = (len(self.seeds), self.config.envs)
        return Running(observations.reshape(*shape, -1).copy(), np.zeros(shape))

    def _rngs(self, number: int, use: str) -> list[np.random.Generator]:
        """One generator per run from (seed, rollout, use) alone: no random state to save."""
        tag = {"init": 0, "rollout": 1}[use]
        return [np.random.default_rng([seed, number, tag]) for seed in self.seeds]

    def _learn(self, noise: networks.Floats, bonus: Floats, rngs: networks.Rngs) -> ppo.Stats:
        """The bonus joins the reward before advantages are made of it."""
        room, params = self.room, self.agent.params
        values, next_values = ppo.values(params, room.observations), ppo.values(params, room.next_states)
        advantages, returns = ppo.gae(
            room.rewards + bonus, values, next_values, room.terminated, room.truncated, self.settings
        )
        chosen = self.task.choices > 0
        log_probs = ppo.log_choices(params, room.observations, room.actions) if chosen else ppo.log_probs(params, noise)
        whole = (room.observations, room.actions, log_probs, advantages, returns)
        batch = ppo.Batch(*(x.reshape(len(x), self.config.rollout, *x.shape[3:]) for x in whole))
        orders = ppo.draw_orders(rngs, self.config.rollout, self.settings)
        unpaid = np.array([weight.at(None) for weight in self.unpaid], np.float32) if self.unpaid else None
        self.agent, stats = ppo.learn(self.agent, batch, orders, self.settings, unpaid)
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


def empty(runs: int, settings: ppo.Settings, obs_dim: int, action_dim: int) -> Rollout:
    """Room for one rollout, written anew by each `collect`."""
    lead = (runs, settings.steps, settings.envs)
    observations, actions, next_states = (np.empty((*lead, n), np.float32) for n in (obs_dim, action_dim, obs_dim))
    rewards, dense = np.empty((2, *lead), np.float32)
    terminated, truncated = np.empty((2, *lead), bool)
    return Rollout(observations, actions, next_states, rewards, dense, terminated, truncated)


def collect(
    task: VectorTask, params: ppo.Params, noise: networks.Floats, running: Running, room: Rollout
) -> tuple[Running, list[list[float]]]:
    """Fill `room` with one rollout; returns what goes on, and the returns of each run's finished episodes."""
    observations, returns = running.observations, running.returns.copy()
    finished: list[list[float]] = [[] for _ in observations]
    shape = returns.shape
    for t in range(noise.shape[1]):
        actions = ppo.act(params, observations, noise[:, t])
        taken = actions.reshape(task.num_envs, -1)
        step = task.step(taken + task.action_low if task.choices else taken)
        room.observations[:, t] = observations
        room.actions[:, t] = actions
        room.next_states[:, t] = step.next_states.reshape(*shape, -1)
        for whole, part in zip(room[3:], step[2:], strict=True):
            whole[:, t] = part.reshape(shape)
        returns += step.rewards.reshape(shape)
        if step.terminated.any() or step.truncated.any():
            over = (step.terminated | step.truncated).reshape(shape)
            for run, env in zip(*np.nonzero(over), strict=True):
                finished[run].append(float(returns[run, env]))
            returns[over] = 0.0
        observations = step.obs.reshape(*shape, -1)
    return Running(observations.copy(), returns), finished
