"""Collecting: all environments of all runs take one rollout of steps with the policies as they are."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from voronaut.learners import networks, ppo
from voronaut.tasks.base import VectorTask

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
