"""RLlib's off-policy algorithms: the replay in the driver pays every step that is drawn from it, as it is worth now.

RLlib lets no class of replay buffer but its own into a config, so the buffer of a built algorithm gets the bonus: what
is added to it is learned from, what is sampled from it is paid.
"""

import copy
from typing import Any

import numpy as np
from numpy.typing import NDArray
from ray.rllib.utils.replay_buffers.episode_replay_buffer import (  # type: ignore[import-not-found, unused-ignore]
    EpisodeReplayBuffer,
)

from voronaut.adapters.observations import Features, Reader
from voronaut.adapters.payer import Payer, fitting

SPACES = "__env_single__"  # RLlib's name of one environment's spaces


class ReplayBonus:
    """Rewards r + scale · b(s) in the episodes that are sampled from an algorithm's replay; those stored keep r."""

    def __init__(
        self, algorithm: Any, bonus: Any, keys: Any = None, features: Features | None = None, **options: Any
    ) -> None:
        _check(algorithm)
        space = algorithm.env_runner_group.get_spaces()[SPACES][0]
        self.reader = Reader(space, keys, features)
        self.payer = Payer(fitting(copy.deepcopy(bonus), self.reader.dim), **options)
        self._met: dict[str, bool] = {}  # whether episodes under way have been paid by the task
        self.metrics, buffer = algorithm.metrics, algorithm.local_replay_buffer
        self._plain_add, self._plain_sample = buffer.add, buffer.sample
        buffer.add, buffer.sample = self._add, self._sample  # of this buffer alone
        algorithm.replay_bonus = self

    def _add(self, episodes: Any, *args: Any, **kwargs: Any) -> None:
        """New steps: the replay keeps them as they are, the bonus learns from where they led."""
        self._plain_add(episodes, *args, **kwargs)
        before, pieces = self.payer.updates, episodes if isinstance(episodes, list) else [episodes]
        for state in self._states(pieces):
            self.payer.keep(state[None])
        self._see(pieces)
        if self.payer.updates != before:
            self._log(self.payer.bonus.metrics())

    def _see(self, pieces: list[Any]) -> None:
        """Let a falling weight know which episodes were paid by the task; they come in pieces."""
        for piece in pieces:
            met = self._met.pop(piece.id_, False) or float(np.max(piece.get_rewards(), initial=0)) > 0
            if piece.is_done:
                self.payer.see(np.array([float(met)]), np.array([True]))
            else:
                self._met[piece.id_] = met

    def _sample(self, *args: Any, **kwargs: Any) -> Any:
        """Episodes of one step each, paid."""
        episodes = self._plain_sample(*args, **kwargs)
        if any(len(episode) != 1 for episode in episodes):
            raise ValueError("the bonus pays single steps; a module with a state draws sequences. Use one without.")
        paid = self.payer.pay(self._states(episodes))
        for episode, bonus in zip(episodes, paid.tolist(), strict=True):
            [own] = episode.get_rewards()
            episode.set_rewards(new_data=[np.float32(own + bonus)], at_indices=slice(0, 1))
        self._log({"paid": float(paid.mean())})
        return episodes

    def _states(self, episodes: list[Any]) -> NDArray[Any]:
        """Where the actions led, (n, d), an episode's true final state among them."""
        from voronaut.adapters.rllib import joined

        parts = [episode.get_observations(slice(1, len(episode) + 1)) for episode in episodes if len(episode)]
        return self.reader(joined([_batch(part) for part in parts])) if parts else np.zeros((0, self.reader.dim or 0))

    def _log(self, values: dict[str, float]) -> None:
        for name, value in values.items():
            self.metrics.log_value(("bonus", name), float(value), window=1)


def _batch(observations: Any) -> Any:
    """A list of observations as a batch; of Dict observations a dict of batches comes already."""
    if isinstance(observations, list) and observations and isinstance(observations[0], dict):
        return {key: np.stack([each[key] for each in observations]) for key in observations[0]}
    return observations


def _check(algorithm: Any) -> None:
    buffer, config = algorithm.local_replay_buffer, algorithm.config
    if not isinstance(buffer, EpisodeReplayBuffer):
        raise TypeError(f"the bonus needs RLlib's EpisodeReplayBuffer; the algorithm has {type(buffer).__name__}.")
    if config.is_multi_agent:
        raise TypeError("the bonus is for one agent. Give each agent an algorithm of its own.")
    if config.n_step != 1:
        raise ValueError(
            f"n_step={config.n_step}: RLlib adds up the rewards of a window when it draws it and drops the states "
            "between, which could not be paid. Set n_step=1."
        )
