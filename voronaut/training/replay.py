"""What happened, on the device that learns: one run's transitions, and windows of n steps drawn from them.

Row t holds what all environments of a run did at vector step t, so that a window is n rows of one column; once the
rows are full, each environment writes over its own (see `slots`). The state that an action led to is kept beside the
state acted on: a window may stop anywhere and go on from there.
"""

import functools
import itertools
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from voronaut.bonuses.networks import on_accelerator
from voronaut.helpers import machine, npz
from voronaut.learners.networks import Array
from voronaut.training import slots
from voronaut.training.checkpoint import part

REMEMBERED = 1 << 16  # places of rewarded steps that are kept, the newest, and no more than there are steps
TRIES = 16  # places that are tried where steps are forgotten
BLOCK = 128  # rows that are written over together
BEFORE = 40  # steps ahead of a rewarded one that may start a window drawn for it


class Shape(NamedTuple):
    """How much is remembered of one run: all its steps, or the rows of some blocks."""

    rows: int  # vector steps
    envs: int
    obs_dim: int
    action_dim: int
    block: int = BLOCK
    bonus: bool = False  # whether what the bonus paid is kept

    def within(self, memory: int) -> "Shape":
        """Cut to so many transitions, in whole blocks and at least two; 0 for all."""
        blocks = max(2, -(-memory // (self.envs * self.block)))
        return self._replace(rows=min(self.rows, blocks * self.block)) if memory else self


class Transition(NamedTuple):
    """One vector step, (envs, …)."""

    observations: Array
    actions: Array  # in [−1, 1]
    next_states: Array  # the true final state where an episode ended
    rewards: Array
    terminated: Array
    truncated: Array
    bonus: Any = None  # what the bonus paid then, if that is kept


class Replay(NamedTuple):
    """Transitions (rows, envs, …), when they were, and where reward was."""

    rows: Transition
    times: Array  # (rows, envs) vector step; -1: nothing yet
    steps: Array  # () vector steps so far, of which those that fit are remembered
    slots: slots.Slots
    rewarded: Array  # (REMEMBERED or fewer, 2) row and environment, a ring
    rewards: Array  # () rewarded steps so far


class Windows(NamedTuple):
    """(…, n) steps each; a window is over where `alive` ends."""

    observations: Array  # (…, d) of the first step
    actions: Array  # (…, a)
    next_states: Array  # (…, n, d)
    rewards: Array  # (…, n)
    alive: Array  # (…, n) whether step i belongs to the window
    terminated: Array  # (…,) whether its last step ended the episode for good
    bonus: Any = None  # (…, n) as it was kept


def empty(runs: int, shape: Shape) -> Replay:
    """Room for so many runs, stacked."""
    lead = (runs, shape.rows, shape.envs)
    observations, actions, next_states = (
        jnp.zeros((*lead, n), jnp.float32) for n in (shape.obs_dim, shape.action_dim, shape.obs_dim)
    )
    rewards, terminated, truncated = (jnp.zeros(lead, kind) for kind in (jnp.float32, bool, bool))
    bonus = jnp.zeros(lead, jnp.float32) if shape.bonus else None
    rows = Transition(observations, actions, next_states, rewards, terminated, truncated, bonus)
    count, steps = (jnp.zeros(runs, jnp.int32) for _ in range(2))
    blocks = slots.empty(-(-shape.rows // shape.block), shape.envs)
    blocks = jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (runs, *leaf.shape)), blocks)
    ring = min(REMEMBERED, shape.rows * shape.envs)
    times, places = jnp.full(lead, -1, jnp.int32), jnp.zeros((runs, ring, 2), jnp.int32)
    return Replay(rows, times, steps, blocks, places, count)


def insert(replay: Replay, step: Transition) -> Replay:
    """The replay with what all environments did in one more vector step."""
    paid, envs = step.rewards > 0, jnp.arange(len(step.rewards))
    after, row = slots.take(replay.slots, replay.steps, _size(replay), paid, step.terminated | step.truncated)
    rows = jax.tree.map(lambda whole, new: whole.at[row, envs].set(new), replay.rows, step)
    times = replay.times.at[row, envs].set(replay.steps)
    rank = replay.rewards + jnp.cumsum(paid) - 1
    size = replay.rewarded.shape[-2]
    ring = jnp.where(paid, rank % size, size)
    rewarded = replay.rewarded.at[ring].set(jnp.stack([row, envs], axis=-1), mode="drop")
    return Replay(rows, times, replay.steps + 1, after, rewarded, replay.rewards + paid.sum(dtype=jnp.int32))


def _size(replay: Replay) -> int:
    """Rows of a block."""
    rows, blocks = replay.times.shape[-2], replay.slots.kept.shape[-2]
    return int(-(-rows // blocks))


def draw(
    replay: Replay, key: Array, *, shape: tuple[int, ...], steps: int, near_reward: float, tries: int = 1
) -> Windows:
    """Windows that start anywhere, each row and environment as likely; a share of them shortly before a reward.

    `near_reward` of a batch (its last axis) start less than 40 steps ahead of a rewarded step, once there is one, or at
    it where those steps are forgotten. Where steps are forgotten, the first of `tries` places that is not counts.
    """
    keys = jax.random.split(key, 4)
    envs = replay.rows.rewards.shape[1]
    t = jax.random.randint(keys[0], shape, 0, _filled(replay))
    e = jax.random.randint(keys[1], shape, 0, envs)
    if near_reward:
        known = jnp.clip(replay.rewards, 1, len(replay.rewarded))
        places = replay.rewarded[jax.random.randint(keys[2], (*shape, tries), 0, known)]
        ahead = jax.random.randint(keys[3], shape, 0, BEFORE)
        there = replay.rows.rewards[places[..., 0], places[..., 1]] > 0  # or it was written over
        place = jnp.take_along_axis(places, there.argmax(axis=-1)[..., None, None], axis=-2)[..., 0, :]
        chosen = (jnp.arange(shape[-1]) < near_reward * shape[-1]) & (replay.rewards > 0) & there.any(axis=-1)
        paid, env = place[..., 0], place[..., 1]
        early = jnp.maximum(paid - ahead, 0)
        there = replay.times[early, env] == replay.times[paid, env] - (paid - early)
        t = jnp.where(chosen, jnp.where(there, early, paid), t)
        e = jnp.where(chosen, env, e)
    return _windows(replay, t, e, steps)


def _filled(replay: Replay) -> Array:
    """Rows that hold something."""
    return jnp.minimum(replay.steps, replay.times.shape[-2])


def _windows(replay: Replay, t: Array, e: Array, steps: int) -> Windows:
    rows = replay.rows
    ahead = t[..., None] + jnp.arange(steps)
    place = (jnp.minimum(ahead, _filled(replay) - 1), e[..., None])
    over = rows.terminated[place] | rows.truncated[place]
    follows = replay.times[place] == replay.times[t, e][..., None] + jnp.arange(steps)
    going = jnp.cumprod(~over[..., :-1] & follows[..., 1:], axis=-1, dtype=jnp.int32).astype(bool)
    alive = jnp.concatenate([jnp.ones_like(over[..., :1]), going], axis=-1)
    terminated = (rows.terminated[place] & alive).any(axis=-1)
    return Windows(rows.observations[t, e], rows.actions[t, e], rows.next_states[place], rows.rewards[place], alive,
                   terminated, None if rows.bonus is None else rows.bonus[place])  # fmt: skip


def returns(windows: Windows, rewards: Array, discount: float) -> Array:
    """Σ γⁱ rᵢ over the steps of each window, for (…, n) rewards."""
    powers = discount ** np.arange(rewards.shape[-1])
    return (rewards * windows.alive * powers.astype(np.float32)).sum(axis=-1)


def ends(windows: Windows, discount: float) -> tuple[Array, Array]:
    """The state each window goes on from, and γⁿ (0 after a termination)."""
    count = windows.alive.sum(axis=-1)
    last = jnp.take_along_axis(windows.next_states, (count - 1)[..., None, None], axis=-2)[..., 0, :]
    return last, jnp.where(windows.terminated, 0.0, jnp.float32(discount) ** count)


def memory(shape: Shape) -> int:
    """Bytes of one run's replay where it learns."""
    return shape.rows * shape.envs * (4 * (2 * shape.obs_dim + shape.action_dim + 2 + shape.bonus) + 2)


def disk(shape: Shape) -> int:
    """Bytes of a whole run's files: observation, action and reward in float32 and two flags for every step."""
    return shape.rows * shape.envs * (4 * (shape.obs_dim + shape.action_dim + 1 + shape.bonus) + 2)


def check_room(whole: Shape, kept: Shape, runs: int) -> str:
    """What is to be said of replays that do not hold everything; ValueError where there is no room for them."""
    need, there = memory(kept) * runs, device_memory()
    if need > there:
        fits = f"{0.8 * there / need * kept.rows * kept.envs:.2g}".replace("e+0", "e")
        raise ValueError(
            f"all replays together take {need / 1e9:.1f} GB, and there are {there / 1e9:.1f} GB of memory. "
            f"Remember less: --sac.memory {fits} (transitions of each run)."
        )
    if kept.rows == whole.rows:
        return ""
    return (
        f"each run remembers {kept.rows * kept.envs:,} of its {whole.rows * whole.envs:,} steps: the oldest go, "
        "those of episodes that hold a reward last of all"
    )


def device_memory() -> float:
    """Bytes of the device that learns; infinite where it does not tell."""
    if on_accelerator():
        return float((jax.devices()[0].memory_stats() or {}).get("bytes_limit", np.inf))
    return machine.memory()


def append(folder: Path, happened: Sequence[Transition], start: int) -> None:
    """Write vector steps (runs, steps, envs, …) from `start` on, of every lane, to a file of their own in `folder`.

    The state that an action led to is the next step's, but where an episode ended and in the last one.
    """
    arrays = [{f"{i}/{k}": v for k, v in _packed(part).items()} for i, part in enumerate(happened)]
    folder.mkdir(parents=True, exist_ok=True)
    npz.write(folder / f"{start:09d}.npz", dict(itertools.chain.from_iterable(each.items() for each in arrays)))


def _packed(rows: Transition) -> npz.Arrays:
    over = rows.terminated | rows.truncated
    small = {name: value for name, value in rows._asdict().items() if name != "next_states" and value is not None}
    return {**small, "finals": rows.next_states[over], "last": rows.next_states[:, -1]}


def restore(replays: Sequence[Replay], folder: Path, end: int, then: Sequence[Array]) -> list[Replay]:
    """Empty replays after the first `end` vector steps in the files of `folder`, as if inserted one by one.

    `then` are the observations that acting goes on from, (runs, envs, d) of each: where an episode was begun anew
    instead, here or at an earlier resume, its last step is the end of it.
    """
    for parts, following in _followed(_files(folder, len(replays), end), then):
        whole = [_ended(part, first) for part, first in zip(parts, following, strict=True)]
        replays = [_inserted(each, part) for each, part in zip(replays, whole, strict=True)]
    return list(replays)


def _followed(
    files: Iterator[list[Transition]], then: Sequence[Array]
) -> Iterator[tuple[list[Transition], Sequence[Array]]]:
    """What each file holds, and the observations after it."""
    before: list[Transition] = []
    for parts in files:
        if before:
            yield before, [part.observations[:, 0] for part in parts]
        before = parts
    if before:
        yield before, then


def _ended(happened: Transition, then: Array) -> Transition:
    """The steps (runs, steps, envs, …), with the last one cut off where the episode does not go on with `then`."""
    over = happened.terminated[:, -1] | happened.truncated[:, -1]
    lost = ~over & (happened.next_states[:, -1] != then).any(axis=-1)
    truncated = happened.truncated.copy()
    truncated[:, -1] |= lost
    return happened._replace(truncated=truncated)


def _files(folder: Path, lanes: int, end: int) -> Iterator[list[Transition]]:
    done = 0
    while done < end:
        arrays = npz.read(folder / f"{done:09d}.npz")
        parts = [_unpacked(part(arrays, str(i))) for i in range(lanes)]
        done += parts[0].rewards.shape[1]
        if done > end:
            raise ValueError(f"{folder} holds {done} rows; the checkpoint was made after {end}. Nothing was loaded.")
        yield parts


def _unpacked(arrays: npz.Arrays) -> Transition:
    observations = arrays["observations"]
    next_states = np.concatenate([observations[:, 1:], arrays["last"][:, None]], axis=1)
    next_states[arrays["terminated"] | arrays["truncated"]] = arrays["finals"]
    return Transition(**{name: arrays.get(name) for name in Transition._fields} | {"next_states": next_states})


@functools.partial(jax.jit, donate_argnums=0)
def _inserted(replay: Replay, happened: Transition) -> Replay:
    """The replay with (runs, steps, envs, …) more, `insert` by `insert`."""

    def one(replay: Replay, happened: Transition) -> Replay:
        return jax.lax.scan(lambda now, step: (insert(now, step), None), replay, happened)[0]

    return jax.vmap(one)(replay, happened)
