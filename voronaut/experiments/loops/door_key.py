"""MiniGrid's DoorKey with PPO of Stable-Baselines3, alone and with KME: one run, its curve in plain values.

A room with a key, a locked door and the goal behind it, laid out anew in every episode. Reward comes at the goal alone
(1, less for a late arrival). The agent sees 7×7 cells in front of it, and the bonus sees what the agent sees.
"""

import time
from typing import Any

import numpy as np

from voronaut.experiments.common.jobs import Values

ENVS, ROLLOUT = 16, 128  # and vector steps
EACH = 16  # rollouts between two points of the curve
PPO_SETTINGS: dict[str, Any] = {"n_steps": ROLLOUT, "batch_size": 256, "n_epochs": 4, "ent_coef": 0.01}


def run(task: str, scale: float | str, seed: int, steps: int) -> Values:
    """Train PPO with so much of the bonus (0: none): now and then the mean return of the episodes since then."""
    import torch
    from stable_baselines3 import PPO
    from stable_baselines3.common.env_util import make_vec_env

    import voronaut as vn
    from voronaut.sb3 import BonusVecEnv

    torch.set_num_threads(1)
    env = make_vec_env(lambda: make(task), n_envs=ENVS, seed=seed)
    if scale:
        env = BonusVecEnv(env, vn.KME, scale=scale, update_every=ROLLOUT)
    recorder = _recorder()
    PPO("MlpPolicy", env, seed=seed, device="cpu", **PPO_SETTINGS).learn(steps, callback=recorder)
    return {"curve": recorder.curve}


def make(task: str) -> Any:
    """The task with its image alone, 147 small whole numbers in a row."""
    import gymnasium
    import minigrid  # type: ignore[import-not-found, import-untyped, unused-ignore]
    from minigrid.wrappers import ImgObsWrapper  # type: ignore[import-not-found, import-untyped, unused-ignore]

    assert minigrid  # registers the tasks
    image: Any = ImgObsWrapper
    return gymnasium.wrappers.FlattenObservation(image(gymnasium.make(task)))


def _recorder() -> Any:
    from stable_baselines3.common.callbacks import BaseCallback

    class Recorder(BaseCallback):
        def __init__(self) -> None:
            super().__init__()
            self.curve: list[dict[str, Any]] = []
            self.returns: list[float] = []
            self.began, self.rollouts = time.monotonic(), 0

        def _on_step(self) -> bool:
            self.returns += [info["episode"]["r"] for info in self.locals["infos"] if "episode" in info]
            return True

        def _on_rollout_end(self) -> None:
            self.rollouts += 1
            if self.rollouts % EACH == 0:
                mean = round(float(np.mean(self.returns)), 4) if self.returns else None
                seconds = round(time.monotonic() - self.began, 1)
                self.curve.append({"steps": self.num_timesteps, "seconds": seconds, "return": mean})
                self.returns = []

    return Recorder()
