"""Which row of a full memory is written over: the oldest, and those of episodes that hold a reward last of all.

The rows of an environment are cut into blocks, which are written from their first row to their last. Where a block
begins, each environment takes the one with the oldest rows among those that hold nothing of a rewarded episode or,
if there are none left, among all. While there is room that is the next block: row t holds step t.
"""

from typing import NamedTuple

import jax.numpy as jnp

from voronaut.learners.networks import Array

LAST = 1 << 30  # more steps than there can be


class Slots(NamedTuple):
    """Of one run; a step is a vector step."""

    block: Array  # (envs,) that is written now
    began: Array  # (envs,) the first step of the episode under way
    paid: Array  # (envs,) whether it holds a reward
    started: Array  # (blocks, envs) the step that a block's first row holds; -1: nothing yet
    kept: Array  # (blocks, envs) whether rows of a rewarded episode are in it


def empty(blocks: int, envs: int) -> Slots:
    """Nothing written yet."""
    nobody = jnp.zeros(envs, jnp.int32)
    none = jnp.zeros((blocks, envs), bool)
    return Slots(nobody, nobody, nobody.astype(bool), none - jnp.ones((), jnp.int32), none)


def take(slots: Slots, step: Array, size: int, rewarded: Array, over: Array) -> tuple[Slots, Array]:
    """The row that each environment writes this step to, (envs,), in blocks of `size` rows, and what comes after.

    `rewarded` and `over` (envs,) say whether the step was rewarded and whether it ended the episode.
    """
    envs = jnp.arange(len(slots.block))
    begins = step % size == 0
    oldest = jnp.argmin(slots.started + LAST * slots.kept, axis=0).astype(jnp.int32)
    block = jnp.where(begins, oldest, slots.block)
    started = slots.started.at[block, envs].set(jnp.where(begins, step, slots.started[block, envs]))
    kept = slots.kept.at[block, envs].set(slots.kept[block, envs] & ~begins)
    paid = slots.paid | rewarded
    kept |= paid & (started + size > slots.began) & (started >= 0)
    after = Slots(block, jnp.where(over, step + 1, slots.began), paid & ~over, started, kept)
    return after, block * size + step % size
