"""A share of every batch from shortly before a reward: what is rare is seen often, as in `voronaut train`."""

import copy
from array import array
from typing import Any

import numpy as np
import torch

from voronaut.adapters.observations import mapped

AHEAD = 40  # steps: so long before a reward a drawn step may lie


class NearReward:
    """Where a replay (t, env) has rewards above 0, and steps drawn from before them.

    What is drawn is a small replay of the same class, made of the chosen steps (windows, with `n_steps`), so that
    Dict observations and n-step returns need nothing of their own.

    Args:
        replay: of Stable-Baselines3.
        share: of a batch, once there is a reward.
    """

    def __init__(self, replay: Any, share: float) -> None:
        if not 0 <= share < 1:
            raise ValueError(f"near_reward must be at least 0 and below 1; got {share}. The default is 0.25.")
        self.replay, self.share = replay, float(share)
        self._places = array("q")  # t · environments + env
        self._find()

    def note(self) -> None:
        """The replay has got one more row."""
        row = (self.replay.pos - 1) % self.replay.buffer_size
        rewarded = np.flatnonzero(self.replay.rewards[row] > 0)
        self._places.extend((row * self.replay.n_envs + rewarded).tolist())
        if len(self._places) > self.replay.buffer_size * self.replay.n_envs:
            self._find()  # rows were overwritten

    def count(self, batch: int) -> int:
        """How many of a batch are drawn from here."""
        return round(self.share * batch) if len(self._places) else 0

    def drawn(self, count: int) -> Any:
        """A replay of so many steps, one for each of its environments, to be sampled at time 0."""
        replay, length = self.replay, int(getattr(self.replay, "n_steps", 1))
        draw = np.random.randint  # as SB3's replays do: its seed decides about all of them
        rewarded, env = np.divmod(np.asarray(self._places)[draw(0, len(self._places), count)], replay.n_envs)
        first = rewarded - draw(length - 1, length - 1 + AHEAD, count)
        first = first % replay.buffer_size if replay.full else np.maximum(first, 0)
        rows = (first + np.arange(length)[:, None]) % replay.buffer_size
        view = copy.copy(replay)
        for name in ("observations", "next_observations", "actions", "rewards", "dones", "timeouts"):
            setattr(view, name, mapped(lambda array: array[rows, env], getattr(replay, name)))
        view.n_envs, view.buffer_size, view.pos, view.full = count, length, length, True
        return view

    def _find(self) -> None:
        rows = self.replay.buffer_size if self.replay.full else self.replay.pos
        self._places = array("q", np.flatnonzero(self.replay.rewards[:rows] > 0).tolist())


class Memory:
    """What a model is trained from: its replay, with a share of every batch from before rewards."""

    def __init__(self, replay: Any, near: NearReward) -> None:
        self.replay, self.near = replay, near

    def sample(self, batch_size: int, env: Any = None) -> Any:
        """A batch as the replay itself would give it."""
        return joined(self.parts(batch_size, env))

    def parts(self, batch_size: int, env: Any) -> list[Any]:
        """Uniform steps, and those before rewards."""
        count = self.near.count(batch_size)
        parts = [self.uniform(batch_size - count, env)]
        if count:
            parts.append(self.chosen(self.near.drawn(count), env))
        return parts

    def uniform(self, count: int, env: Any) -> Any:
        """So many steps of the whole replay."""
        return self.replay.sample(count, env)

    def chosen(self, drawn: Any, env: Any) -> Any:
        """All that was drawn."""
        return drawn._get_samples(np.zeros(drawn.n_envs, np.int64), env)


def joined(parts: list[Any]) -> Any:
    """Samples one after the other, in the order of a batch that no model looks at."""
    if len(parts) == 1:
        return parts[0]
    fields = zip(*parts, strict=True)
    return type(parts[0])(*(mapped(lambda *each: None if each[0] is None else torch.cat(each), *own) for own in fields))
