"""`voronaut.adapters.sb3` under a shorter name."""

from voronaut.adapters.sb3 import BonusCallback, BonusDictReplayBuffer, BonusReplayBuffer, BonusVecEnv, Pair

__all__ = ["BonusCallback", "BonusDictReplayBuffer", "BonusReplayBuffer", "BonusVecEnv", "Pair"]
