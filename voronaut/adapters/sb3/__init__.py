"""Stable-Baselines3: `env = BonusVecEnv(env, bonus)` and nothing else."""

from voronaut.adapters.sb3.env import BonusVecEnv  # isort: skip  (first: it says which library is missing)
from voronaut.adapters.sb3.callback import BonusCallback
from voronaut.adapters.sb3.pair import Pair
from voronaut.adapters.sb3.replay import BonusDictReplayBuffer, BonusHerReplayBuffer, BonusReplayBuffer

__all__ = ["BonusCallback", "BonusDictReplayBuffer", "BonusHerReplayBuffer", "BonusReplayBuffer", "BonusVecEnv", "Pair"]
