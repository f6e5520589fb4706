"""What happened, on the device that learns: one run's transitions, and windows of n steps drawn from them.

Row t holds what all environments of a run did at vector step t, so that a window is n rows of one column. The state
that an action led to is kept beside the state acted on: a window may stop anywhere and go on from there.
"""

import itertools
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from voronaut import npz
from voronaut.learners.networks import Array
from voronaut.training.checkpoint import part

REMEMBERED = 1 << 16  # places of rewarded steps that are kept, the newest


BEFORE = 40  # steps ahead of a rewarded one that may start a window drawn for it


class Shape(NamedTuple):
    """How much is remembered of one run."""

    rows: int  # vector steps
    envs: int
    obs_dim: int
    action_dim: int


class Transition(NamedTuple):
    """One vector step, (envs, …)."""

    observations: Array
    actions: Array  # in [−1, 1]
    next_states: Array  # the true final state where an episode ended
    rewards: Array
    terminated: Array
    truncated: Array


class Replay(NamedTuple):
    """Transitions (rows, envs, …), how many rows are filled, and where reward was."""

    rows: Transition
    filled: Array  # ()
    rewarded: Array  # (REMEMBERED, 2) row and environment, a ring
    rewards: Array  # () rewarded steps so far


class Windows(NamedTuple):
    """(…, n) steps each; a window is over where `alive` ends."""

    observations: Array  # (…, d) of the first step
    actions: Array  # (…, a)
    next_states: Array  # (…, n, d)
    rewards: Array  # (…, n)
    alive: Array  # (…, n) whether step i belongs to the window
    terminated: Array  # (…,) whether its last step ended the episode for good


def empty(runs: int, shape: Shape) -> Replay:
    """Room for so many runs, stacked."""
    lead = (runs, shape.rows, shape.envs)
    observations, actions, next_states = (
        jnp.zeros((*lead, n), jnp.float32) for n in (shape.obs_dim, shape.action_dim, shape.obs_dim)
    )
    rewards, terminated, truncated = (jnp.zeros(lead, kind) for kind in (jnp.float32, bool, bool))
    rows = Transition(observations, actions, next_states, rewards, terminated, truncated)
    filled, count = (jnp.zeros(runs, jnp.int32) for _ in range(2))
    return Replay(rows, filled, jnp.zeros((runs, REMEMBERED, 2), jnp.int32), count)


def insert(replay: Replay, step: Transition) -> Replay:
    """The replay with one more row."""
    rows = jax.tree.map(lambda whole, row: whole.at[replay.filled].set(row), replay.rows, step)
    paid = step.rewards > 0
    rank = replay.rewards + jnp.cumsum(paid) - 1
    places = jnp.stack([jnp.full(paid.shape, replay.filled), jnp.arange(len(paid))], axis=-1)
    slots = jnp.where(paid, rank % REMEMBERED, REMEMBERED)
    rewarded = replay.rewarded.at[slots].set(places, mode="drop")
    return Replay(rows, replay.filled + 1, rewarded, replay.rewards + paid.sum(dtype=jnp.int32))


def draw(replay: Replay, key: Array, *, shape: tuple[int, ...], steps: int, near_reward: float) -> Windows:
    """Windows that start anywhere, each row and environment as likely; a share of them shortly before a reward.

    `near_reward` of a batch (its last axis) start less than 40 steps ahead of a rewarded step, once there is one.
    """
    keys = jax.random.split(key, 4)
    envs = replay.rows.rewards.shape[1]
    t = jax.random.randint(keys[0], shape, 0, replay.filled)
    e = jax.random.randint(keys[1], shape, 0, envs)
    if near_reward:
        known = jnp.clip(replay.rewards, 1, REMEMBERED)
        place = replay.rewarded[jax.random.randint(keys[2], shape, 0, known)]
        ahead = jax.random.randint(keys[3], shape, 0, BEFORE)
        chosen = (jnp.arange(shape[-1]) < near_reward * shape[-1]) & (replay.rewards > 0)
        t = jnp.where(chosen, jnp.maximum(place[..., 0] - ahead, 0), t)
        e = jnp.where(chosen, place[..., 1], e)
    return _windows(replay, t, e, steps)


def _windows(replay: Replay, t: Array, e: Array, steps: int) -> Windows:
    rows = replay.rows
    ahead = t[..., None] + jnp.arange(steps)
    place = (jnp.minimum(ahead, replay.filled - 1), e[..., None])
    over = rows.terminated[place] | rows.truncated[place]
    going = jnp.cumprod(~over[..., :-1], axis=-1, dtype=jnp.int32).astype(bool)
    alive = jnp.concatenate([jnp.ones_like(over[..., :1]), going], axis=-1) & (ahead < replay.filled)
    terminated = (rows.terminated[place] & alive).any(axis=-1)
    return Windows(rows.observations[t, e], rows.actions[t, e], rows.next_states[place], rows.rewards[place], alive,
                   terminated)  # fmt: skip


def returns(windows: Windows, rewards: Array, discount: float) -> Array:
    """Σ γⁱ rᵢ over the steps of each window, for (…, n) rewards."""
    powers = discount ** np.arange(rewards.shape[-1])
    return (rewards * windows.alive * powers.astype(np.float32)).sum(axis=-1)


def ends(windows: Windows, discount: float) -> tuple[Array, Array]:
    """The state each window goes on from, and γⁿ (0 after a termination)."""
    count = windows.alive.sum(axis=-1)
    last = jnp.take_along_axis(windows.next_states, (count - 1)[..., None, None], axis=-2)[..., 0, :]
    return last, jnp.where(windows.terminated, 0.0, jnp.float32(discount) ** count)


def append(folder: Path, replays: Sequence[Replay], start: int) -> int:
    """Write the rows from `start` on to a file of their own in `folder`; returns up to which row there are files.

    The state that an action led to is the next row's, but where an episode ended and in the last row.
    """
    end = int(np.asarray(replays[0].filled)[0])
    if end > start:
        parts = [jax.tree.map(lambda leaf: np.asarray(leaf[:, start:end]), each.rows) for each in replays]
        arrays = [{f"{i}/{k}": v for k, v in _packed(part).items()} for i, part in enumerate(parts)]
        folder.mkdir(parents=True, exist_ok=True)
        npz.write(folder / f"{start:09d}.npz", dict(itertools.chain.from_iterable(each.items() for each in arrays)))
    return end


def disk(shape: Shape) -> int:
    """Bytes of a whole run's files: observation, action and reward in float32 and two flags for every step."""
    return shape.rows * shape.envs * (4 * (shape.obs_dim + shape.action_dim + 1) + 2)


def _packed(rows: Transition) -> npz.Arrays:
    over = rows.terminated | rows.truncated
    small = {name: value for name, value in rows._asdict().items() if name != "next_states"}
    return {**small, "finals": rows.next_states[over], "last": rows.next_states[:, -1]}


def restore(replays: Sequence[Replay], folder: Path, end: int) -> list[Replay]:
    """The replays with their first `end` rows read from the files of `folder`."""
    filled, files = 0, []
    while filled < end:
        arrays = npz.read(folder / f"{filled:09d}.npz")
        files.append([_unpacked(part(arrays, str(i))) for i in range(len(replays))])
        filled += files[-1][0].rewards.shape[1]
    if filled != end:
        raise ValueError(f"{folder} holds {filled} rows, but the checkpoint was made after {end}. Nothing was loaded.")
    whole = [jax.tree.map(lambda *x: np.concatenate(x, axis=1), *each) for each in zip(*files, strict=True)]
    return [_refilled(replay, rows) for replay, rows in zip(replays, whole, strict=True)] if whole else list(replays)


def _unpacked(arrays: npz.Arrays) -> Transition:
    observations = arrays["observations"]
    next_states = np.concatenate([observations[:, 1:], arrays["last"][:, None]], axis=1)
    next_states[arrays["terminated"] | arrays["truncated"]] = arrays["finals"]
    return Transition(**{name: next_states if name == "next_states" else arrays[name] for name in Transition._fields})


def _refilled(replay: Replay, rows: Transition) -> Replay:
    """As if the rows had been inserted one by one."""
    end = rows.rewards.shape[1]
    rewarded = np.zeros(replay.rewarded.shape, np.int32)
    counts = (rows.rewards > 0).sum(axis=(1, 2)).astype(np.int32)
    for run, own in enumerate(rows.rewards):
        places = np.argwhere(own > 0)
        kept = np.arange(len(places))[-REMEMBERED:]
        rewarded[run, kept % REMEMBERED] = places[kept]
    filled = jax.tree.map(lambda whole, new: whole.at[:, :end].set(new), replay.rows, rows)
    return Replay(filled, jnp.full_like(replay.filled, end), jnp.asarray(rewarded), jnp.asarray(counts))
