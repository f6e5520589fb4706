"""`Pair`: an explorer and an exploiter that share one replay, for off-policy algorithms in Stable-Baselines3's style.

The exploiter is paid by the task alone, the explorer by the task and the bonus. Each drives its share of the
environments, and both learn from everything that happened. Both are plain models of the algorithm.
"""

import importlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from stable_baselines3.common.logger import Logger
from stable_baselines3.common.utils import should_collect_more_steps

from voronaut.adapters import files
from voronaut.adapters.observations import Features, Reader
from voronaut.adapters.payer import Payer, fitting
from voronaut.adapters.sb3.drivers import Drivers
from voronaut.adapters.sb3.models import two_models
from voronaut.adapters.sb3.near_reward import Memory, NearReward
from voronaut.adapters.sb3.replay import PaidReplay, check_replay
from voronaut.adapters.sb3.standardised import Statistics

ABSORB = 1024  # steps of all environments together after which the bonus learns what is new


class Pair:
    """Two models on one environment and one replay: rewards r for the exploiter, r + b/σ for the explorer.

    b is what the bonus pays for the state that the action led to, as it is when a batch is sampled; σ its running
    deviation over such batches. There is no weight to choose. The bonus sees observations as the replay keeps them,
    that is before VecNormalize.

    Args:
        algorithm: SAC, TD3, DQN, TQC, CrossQ or another off-policy class.
        policy: the policy of both, such as "MlpPolicy".
        env: a VecEnv, a Gymnasium environment or its name, without a bonus.
        bonus: such as `vn.KME(dim=17)`, or a class such as `vn.KME`, which is then made for the observations.
        near_reward: share of every batch that lies less than 40 steps before a reward above 0, once there is one: rare
            rewards are learned from more often. 0: all batches are uniform, as SB3's own.
        explorer_share: of the environments; with one environment, of the steps, taking turns by episodes.
        standardise: networks see observations in their running deviations, as in `voronaut train`. For vectors with the
            usual policies; not where VecNormalize does it or an extractor was chosen.
        update_every: vector steps between updates of the bonus; None: as many as make about 1024 steps.
        features: function from a batch of observations to the vectors (n, dim) that the bonus sees.
        keys: of Dict observations, to be joined to one vector.
        seed: of the exploiter and of the environments; the explorer gets one of its own.
        model: further keywords of `algorithm`, for both. Where the algorithm has them, `ent_coef` is "auto_0.1" and
            `n_steps` 3 unless given.
    """

    def __init__(
        self,
        algorithm: Any,
        policy: Any,
        env: Any,
        bonus: Any,
        *,
        explorer_share: float = 0.5,
        near_reward: float = 0.25,
        standardise: bool = True,
        update_every: int | None = None,
        features: Features | None = None,
        keys: Sequence[str] | None = None,
        seed: int | None = None,
        **model: Any,
    ) -> None:
        exploiter, explorer = two_models(algorithm, policy, env, model, seed, standardise)
        self._join(exploiter, explorer, bonus, explorer_share, near_reward, update_every, features, keys)

    def _join(
        self,
        exploiter: Any,
        explorer: Any,
        bonus: Any,
        share: float,
        near_reward: float,
        every: int | None,
        features: Any,
        keys: Any,
    ) -> None:
        check_replay(exploiter.replay_buffer)
        self.exploiter, self.explorer = exploiter, explorer
        self.reader = Reader(exploiter.observation_space, keys, features)
        bonus = fitting(bonus, self.reader.dim)
        self.payer = Payer(bonus, scale=1.0, update_every=every or max(1, ABSORB // exploiter.n_envs))
        replay = exploiter.replay_buffer
        self.near = NearReward(replay, near_reward)
        self.memory = Memory(replay, self.near)
        self.paid = explorer.replay_buffer = PaidReplay(replay, self.near, self.payer, self.reader)
        self.drivers = Drivers(exploiter.n_envs, share)
        self.explorer_share = self.drivers.share
        self.statistics = Statistics((exploiter, explorer))

    @property
    def bonus(self) -> Any:
        """The bonus in force."""
        return self.payer.bonus

    def learn(
        self,
        total_timesteps: int,
        callback: Any = None,
        log_interval: int = 4,
        tb_log_name: str = "Pair",
        reset_num_timesteps: bool = True,
        progress_bar: bool = False,
    ) -> "Pair":
        """Let both act and learn for so many steps of all environments. Callbacks are given the exploiter."""
        lead = self.exploiter
        total_timesteps, callback = lead._setup_learn(
            total_timesteps, callback, reset_num_timesteps, tb_log_name, progress_bar
        )
        self._set_up_explorer(reset_num_timesteps)
        callback.on_training_start(locals(), globals())
        while lead.num_timesteps < total_timesteps:
            steps = self._collect(callback, log_interval)
            if steps is None:
                break
            if lead.num_timesteps > lead.learning_starts:
                self._train(lead.gradient_steps if lead.gradient_steps >= 0 else steps)
        callback.on_training_end()
        return self

    def save(self, folder: Any) -> None:
        """Write both models, the replay and the bonus: exploiter.zip, explorer.zip, replay.pkl and pair.npz."""
        where = Path(folder)
        where.mkdir(parents=True, exist_ok=True)
        self.exploiter.save(where / "exploiter.zip")
        self.explorer.save(where / "explorer.zip")
        self.exploiter.save_replay_buffer(where / "replay.pkl")
        kind = type(self.exploiter)
        more = {"algorithm": f"{kind.__module__}:{kind.__qualname__}", "explorer_share": self.explorer_share}
        more["near_reward"] = self.near.share
        state = {"units": self.paid.units, "turns": self.drivers.state(), "statistics": self.statistics.state()}
        files.save(where / "pair.npz", "Pair", self.payer, self.reader, state, **more)

    @classmethod
    def load(
        cls,
        folder: Any,
        env: Any = None,
        *,
        bonus: Any = None,
        features: Any = None,
        device: Any = "auto",
        **model: Any,
    ) -> "Pair":
        """The pair saved in `folder`, to go on in `env`; what a file cannot hold is given again. Uses SB3's pickles."""
        where = Path(folder)
        kept = files.SavedAdapter(where / "pair.npz", "Pair", bonus=bonus, features=features)
        module, name = kept.settings["algorithm"].split(":")
        algorithm = getattr(importlib.import_module(module), name)
        exploiter = algorithm.load(where / "exploiter.zip", env=env, device=device, **model)
        exploiter.load_replay_buffer(where / "replay.pkl")
        alone = {**model, "replay_buffer": exploiter.replay_buffer}  # so that it makes none of its own
        explorer = algorithm.load(where / "explorer.zip", env=exploiter.env, device=device, **alone)
        pair = cls.__new__(cls)
        names = ("bonus", "explorer_share", "near_reward", "update_every", "features", "keys")
        pair._join(exploiter, explorer, *({"near_reward": 0.0, **kept.settings}[name] for name in names))
        state = kept.restore(pair.payer)
        pair.paid.units = state["units"]
        pair.drivers.restore(state["turns"])
        if "statistics" in state:  # not in files from before
            pair.statistics.restore(state["statistics"])
        return pair

    # What learn does

    def _set_up_explorer(self, fresh: bool) -> None:
        """As the exploiter was set up, without resetting the environments once more."""
        lead, other = self.exploiter, self.explorer
        other._last_obs, other.num_timesteps = lead._last_obs, lead._num_timesteps_at_start
        if fresh:
            other.ep_info_buffer, other._episode_num = None, 0
        other._setup_learn(lead._total_timesteps - lead._num_timesteps_at_start, None, False)
        other._logger = _ExplorerLogger(lead.logger)

    def _collect(self, callback: Any, log_interval: int | None) -> int | None:
        """Steps until it is time to train, as SB3's `collect_rollouts` takes them; None: a callback said stop."""
        lead, env = self.exploiter, self.exploiter.env
        steps = episodes = 0
        for model in (self.exploiter, self.explorer):
            model.policy.set_training_mode(False)
        callback.on_rollout_start()
        while should_collect_more_steps(lead.train_freq, steps, episodes):
            actions, buffer_actions = self._act(steps)
            new_obs, rewards, dones, infos = env.step(actions)
            lead.num_timesteps += env.num_envs
            steps += 1
            callback.update_locals(locals())
            if not callback.on_step():
                return None
            self._count(infos, dones)
            lead._store_transition(lead.replay_buffer, buffer_actions, new_obs, rewards, dones, infos)
            self._after_step()
            episodes += self._end_episodes(dones, log_interval)
        callback.on_rollout_end()
        return steps * int(env.num_envs)

    def _act(self, steps: int) -> tuple[NDArray[Any], NDArray[Any]]:
        """Actions of all environments, each its driver's, and the same as the replay keeps them."""
        drawn = []
        for model in (self.exploiter, self.explorer):
            every = model.sde_sample_freq
            if model.use_sde and (steps == 0 or (every > 0 and steps % every == 0)):
                model.actor.reset_noise(model.n_envs)
            drawn.append(model._sample_action(model.learning_starts, model.action_noise, model.n_envs))
        own, other = drawn
        return self.drivers.choose(own[0], other[0]), self.drivers.choose(own[1], other[1])

    def _count(self, infos: Sequence[dict[str, Any]], dones: NDArray[Any]) -> None:
        """Each episode's return in its driver's statistics."""
        for model, rows in ((self.exploiter, ~self.drivers.explorers), (self.explorer, self.drivers.explorers)):
            chosen = np.flatnonzero(rows)
            model._update_info_buffer([infos[i] for i in chosen.tolist()], dones[chosen])

    def _after_step(self) -> None:
        lead, other = self.exploiter, self.explorer
        other._last_obs, other.num_timesteps = lead._last_obs, lead.num_timesteps
        for model in (lead, other):
            model._update_current_progress_remaining(lead.num_timesteps, lead._total_timesteps)
            model._on_step()  # DQN's target network
        updates = self.payer.updates
        self.near.note()
        self.statistics.see(self.paid.newest_seen())
        self.payer.keep(self.paid.newest())
        if self.payer.updates != updates:
            self._log_bonus()

    def _end_episodes(self, dones: NDArray[Any], log_interval: int | None) -> int:
        lead = self.exploiter
        for i in np.flatnonzero(dones).tolist():
            lead._episode_num += 1
            for model in (self.exploiter, self.explorer):
                if model.action_noise is not None:
                    model.action_noise.reset(**({"indices": [i]} if model.n_envs > 1 else {}))
            if log_interval is not None and lead._episode_num % log_interval == 0:
                self._log_explorer()
                lead.dump_logs()
        self.drivers.step(dones)
        return int(dones.sum())

    def _train(self, gradient_steps: int) -> None:
        if gradient_steps > 0:
            lead, replay = self.exploiter, self.exploiter.replay_buffer
            lead.replay_buffer = self.memory  # for this once: whoever saves the model finds its replay
            try:
                lead.train(batch_size=lead.batch_size, gradient_steps=gradient_steps)
            finally:
                lead.replay_buffer = replay
            self.explorer.train(batch_size=self.explorer.batch_size, gradient_steps=gradient_steps)
            self.exploiter.logger.record_mean("bonus/paid", self.paid.last_bonus)

    def _log_bonus(self) -> None:
        for name, value in self.bonus.metrics().items():
            if not np.isnan(value):
                self.exploiter.logger.record(f"bonus/{name}", value)

    def _log_explorer(self) -> None:
        returns = [each["r"] for each in self.explorer.ep_info_buffer]
        if returns:
            self.exploiter.logger.record("explorer/ep_rew_mean", float(np.mean(returns)))


class _ExplorerLogger(Logger):
    """A logger that passes on what the explorer records, as explorer/…, to the exploiter's."""

    def __init__(self, other: Logger) -> None:
        super().__init__(None, [])
        self._other = other

    def record(self, key: str, value: Any, exclude: Any = None) -> None:
        self._other.record(f"explorer/{key.rpartition('/')[2]}", value, exclude)
