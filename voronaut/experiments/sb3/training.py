"""One run of Stable-Baselines3's own PPO, told in the rows of our trainer."""

import time
from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np
from numpy.typing import NDArray

from voronaut.sb3 import BonusVecEnv  # isort: skip  (first: it says which library is missing)
import torch
from stable_baselines3 import PPO
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.monitor import Monitor
from stable_baselines3.common.vec_env import DummyVecEnv, VecEnv

from voronaut import tasks
from voronaut.bonuses import bonus_class
from voronaut.entropy.batch import batch_entropy
from voronaut.training.config import Config

Rows = list[dict[str, Any]]


def train(config: Config, report: Callable[[int, Rows], None] | None = None) -> Rows:
    """Train the one run of `config` with Stable-Baselines3's defaults but for the rollout; one row per rollout."""
    torch.set_num_threads(1)
    ((_, seed),) = config.runs
    env = environments(config)
    recorder = Recorder(env, report)
    model = PPO("MlpPolicy", env, n_steps=config.rollout // config.envs, device="cpu", seed=seed)
    env.seed(seed * config.envs)  # each environment's own: the model's seeds 0 and 1 would share fifteen of sixteen
    model.learn(config.rollouts * config.rollout, callback=recorder)
    env.close()
    return recorder.rows


def environments(config: Config) -> VecEnv:
    """The task as a user of Stable-Baselines3 makes it; with a bonus it is wrapped once more, and that is all."""
    ((method, seed),) = config.runs
    gym_id = tasks.find(config.task).gym_id
    # Not make_vec_env, which prepares every environment for pictures.
    env: VecEnv = DummyVecEnv([lambda: Monitor(gymnasium.make(gym_id, threshold=config.threshold))] * config.envs)
    if method.kind == "none":
        return env
    bonus = bonus_class(method.kind)(dim=env.observation_space.shape[0], seed=seed, **method.params)  # type: ignore[index]
    steps = config.rollout // config.envs
    return BonusVecEnv(env, bonus, scale=float(method.scale), update_every=steps, warmup=steps)


class Recorder(BaseCallback):
    """Keeps of every rollout what our trainer logs. Its seconds of collecting hold those of the bonus."""

    def __init__(self, env: VecEnv, report: Callable[[int, Rows], None] | None = None) -> None:
        super().__init__()
        self.env, self.report, self.rows = env, report, list[dict[str, Any]]()
        self._states: list[NDArray[Any]] = []
        self._infos: list[dict[str, Any]] = []
        self._started = self._collected = 0.0

    def _on_rollout_start(self) -> None:
        self._learned()
        self._states, self._infos = [], []
        self._started = time.perf_counter()

    def _on_step(self) -> bool:
        infos = self.locals["infos"]
        states = np.array(self.locals["new_obs"])
        for index in np.flatnonzero(self.locals["dones"]):
            states[index] = infos[index]["terminal_observation"]
        self._states.append(states)
        self._infos += infos
        return True

    def _on_rollout_end(self) -> None:
        self._collected = time.perf_counter()
        finished = [info["episode"]["r"] for info in self._infos if "episode" in info]
        scale = self.env.payer.weight() if isinstance(self.env, BonusVecEnv) else 1.0
        self.rows.append(
            {
                "env_steps": self.num_timesteps,
                "extrinsic_return": float(np.mean(finished)) if finished else None,
                "max_step_reward": max(info["dense_reward"] for info in self._infos),
                "bonus_mean": float(np.mean([info.get("bonus", 0.0) for info in self._infos])) / scale,
                "state_entropy": batch_entropy(np.stack(self._states)),
                "collect_seconds": self._collected - self._started,
            }
        )

    def _on_training_end(self) -> None:
        self._learned()
        if isinstance(self.env, BonusVecEnv):
            kind = type(self.env.bonus).__name__.lower()
            self.rows[-1] |= {f"{kind}/{name}": value for name, value in self.env.bonus.metrics().items()}

    def _learned(self) -> None:
        """The learning that followed the last rollout is over."""
        if self.rows:
            self.rows[-1]["learn_seconds"] = time.perf_counter() - self._collected
            if self.report is not None:
                self.report(len(self.rows), self.rows[-1:])
