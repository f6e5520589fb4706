"""Stable-Baselines3: `env = BonusVecEnv(env, bonus)` and nothing else."""

from voronaut.adapters.sb3_env import BonusVecEnv  # isort: skip  (first: it says which library is missing)
from voronaut.adapters.sb3_callback import BonusCallback
from voronaut.adapters.sb3_replay import BonusDictReplayBuffer, BonusReplayBuffer

__all__ = ["BonusCallback", "BonusDictReplayBuffer", "BonusReplayBuffer", "BonusVecEnv"]
