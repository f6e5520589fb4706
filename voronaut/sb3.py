"""`voronaut.adapters.sb3` under a shorter name."""

from voronaut.adapters.sb3 import (
    BonusCallback,
    BonusDictReplayBuffer,
    BonusHerReplayBuffer,
    BonusReplayBuffer,
    BonusVecEnv,
    Pair,
)

__all__ = ["BonusCallback", "BonusDictReplayBuffer", "BonusHerReplayBuffer", "BonusReplayBuffer", "BonusVecEnv", "Pair"]
