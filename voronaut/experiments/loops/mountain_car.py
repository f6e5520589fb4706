"""MountainCarContinuous with SAC of Stable-Baselines3, alone and as a pair: one run, its curve in plain values.

Every push costs and the goal is far: it pays to stand still (a return of 0), and whoever has found the goal gets over
90. SAC has its default settings but for what `settings` names. The goal of a run is the exploiter's return.
"""

import copy
import time
from typing import Any

from voronaut.experiments.common.jobs import Values

TASK = "MountainCarContinuous-v0"
EVERY, EPISODES = 2_500, 10  # steps between evaluations, episodes of each
SAME: dict[str, Any] = {"ent_coef": "auto_0.1", "n_steps": 3}  # the pair's own choices; with observations in deviations
GOAL = 50.0  # a step that is paid more has reached the flag


def run(method: str, seed: int, steps: int, envs: int, normalize: bool, settings: dict[str, Any]) -> Values:
    """Train one run and tell how it went: `pair` with KME as it is, or `sac`, one agent paid by the task alone."""
    import torch
    from stable_baselines3 import SAC

    import voronaut as vn
    from voronaut.sb3 import Pair

    torch.set_num_threads(1)
    env, test = _environments(seed, envs, normalize)
    judge = _judge(test)
    options: dict[str, Any] = {"seed": seed, "device": "cpu", **copy.deepcopy(settings)}  # SB3 writes into them
    if method == "pair":
        Pair(SAC, "MlpPolicy", env, vn.KME, **options).learn(steps, callback=judge)
    else:
        SAC("MlpPolicy", env, **options).learn(steps, callback=judge)
    return {"curve": judge.curve, "first_goal": judge.first, "goals": judge.goals}


def _environments(seed: int, envs: int, normalize: bool) -> tuple[Any, Any]:
    """To train in and to evaluate in; if asked, both with observations in the same running deviations."""
    from stable_baselines3.common.env_util import make_vec_env
    from stable_baselines3.common.vec_env import VecNormalize

    env, test = make_vec_env(TASK, n_envs=envs, seed=seed), make_vec_env(TASK, n_envs=EPISODES, seed=10_000 + seed)
    if not normalize:
        return env, test
    env, test = VecNormalize(env, norm_reward=False), VecNormalize(test, training=False, norm_reward=False)
    test.obs_rms = env.obs_rms
    return env, test


def _judge(test: Any) -> Any:
    """A callback that evaluates the model now and then, and counts how often the flag was reached in training."""
    from stable_baselines3.common.callbacks import BaseCallback
    from stable_baselines3.common.evaluation import evaluate_policy

    class Judge(BaseCallback):
        def __init__(self) -> None:
            super().__init__()
            self.curve: list[dict[str, Any]] = []
            self.first: int | None = None
            self.goals, self.began = 0, time.monotonic()

        def _on_step(self) -> bool:
            reached = int((self.locals["rewards"] > GOAL).sum())
            self.goals += reached
            if reached and self.first is None:
                self.first = self.num_timesteps
            if self.num_timesteps >= EVERY * (len(self.curve) + 1):
                returned: Any = evaluate_policy(self.model, test, EPISODES)[0]
                seconds = round(time.monotonic() - self.began, 1)
                self.curve.append(
                    {"steps": self.num_timesteps, "seconds": seconds, "return": round(float(returned), 2)}
                )
            return True

    return Judge()
