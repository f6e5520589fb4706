"""On a small sparse task PPO alone fails and with KME it succeeds.

Measured with the settings below on seeds that had no part in choosing them (20 to 27): the top was reached and held in
8 of 8 runs with KME and in 1 of 8 without (seed 20: without rewards PPO's normalised advantages are noise, which may
climb). With half the steps, on seeds 0 to 19, it was 12 of 20 and 1 of 20. The test repeats seeds 20 to 22.
"""

from typing import Any

import numpy as np
import torch
from stable_baselines3 import PPO
from stable_baselines3.common.callbacks import BaseCallback

import voronaut as vn
from tests.adapters.ladder import RUNGS, Ladder
from voronaut.sb3 import BonusVecEnv

STEPS, ROLLOUT = 122_880, 64
SEEDS = (20, 21, 22)


def height(observations: Any) -> Any:
    """The rung between 0 and 1, (n, 1)."""
    return observations.argmax(axis=1)[:, None] / RUNGS


def on_top(ladder: Ladder) -> bool:
    """Whether 9 in 10 of the last 64 episodes reached the top."""
    return len(ladder.tops) >= 64 and float(np.mean(np.array(ladder.tops[-64:]) == RUNGS)) > 0.9


class StopOnTop(BaseCallback):
    """Saves time."""

    def __init__(self, ladder: Ladder) -> None:
        super().__init__()
        self.ladder = ladder

    def _on_step(self) -> bool:
        return self.n_calls % ROLLOUT != 0 or not on_top(self.ladder)


def solved(seed: int, *, paid: bool) -> bool:
    """Both arms have the same PPO: the defaults but for what stands here."""
    ladder = Ladder(32)
    env: Any = ladder
    if paid:
        kme = vn.KME(dim=1, clusters=32, init="data", seed=seed)
        env = BonusVecEnv(ladder, kme, scale=1.0, update_every=ROLLOUT, features=height)
    model = PPO("MlpPolicy", env, n_steps=ROLLOUT, batch_size=512, learning_rate=1e-3, seed=seed, device="cpu")
    model.learn(STEPS, callback=StopOnTop(ladder))
    return on_top(ladder)


def test_ppo_fails_alone_and_succeeds_with_kme() -> None:
    torch.set_num_threads(1)
    assert sum(solved(seed, paid=True) for seed in SEEDS) == 3
    assert sum(solved(seed, paid=False) for seed in SEEDS) <= 1
