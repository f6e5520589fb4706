"""`voronaut bench adapters`: what `BonusVecEnv` costs, as a share of Stable-Baselines3's own time.

PPO on Cheetah at the paper's settings (16 environments, rollouts of 16384 states). The time spent in the wrapper itself
(step_wait less the environments' own step_wait, updates included) is taken within the run whose total it is compared
to; rollouts with and without the bonus take turns and confirm it as far as the noise of the machine allows.
"""

import time
from pathlib import Path
from typing import Any

import numpy as np

from voronaut.bench import measure
from voronaut.bench.measure import CHEETAH, Clock, Cost

ENVS, STEPS, ROUNDS = 16, 1024, 3


def model(bonus: Any = None) -> Any:
    """PPO on 16 Cheetahs in one process, with a bonus or without, that has done one rollout to compile and settle."""
    import gymnasium
    import stable_baselines3
    import torch
    from stable_baselines3.common.logger import Logger
    from stable_baselines3.common.vec_env import DummyVecEnv

    from voronaut.sb3 import BonusVecEnv

    torch.set_num_threads(1)
    envs: Any = DummyVecEnv([lambda: gymnasium.make(CHEETAH)] * ENVS)
    if bonus is not None:
        envs = BonusVecEnv(envs, bonus, update_every=STEPS)
    made = stable_baselines3.PPO("MlpPolicy", envs, n_steps=STEPS, batch_size=64, device="cpu", seed=0)
    made.set_logger(Logger(None, []))
    rollout(made)
    return made


def rollout(made: Any) -> Cost:
    """Seconds of one rollout and of learning from it; `wrapper`: of them in BonusVecEnv itself."""
    owners = [made.env, made.env.venv] if hasattr(made.env, "venv") else []
    for owner in owners:
        owner.step_wait = Clock(owner.step_wait)
    started = time.perf_counter()
    _, callback = made._setup_learn(ENVS * STEPS, None, reset_num_timesteps=False)
    made.collect_rollouts(made.env, callback, made.rollout_buffer, STEPS)
    collected = time.perf_counter()
    made.train()
    learned = time.perf_counter()
    wrapper = owners[0].step_wait.seconds - owners[1].step_wait.seconds if owners else 0.0
    for owner in owners:
        del owner.step_wait
    return {"collect": collected - started, "learn": learned - collected, "wrapper": wrapper}


def row(name: str, taken: list[Cost]) -> dict[str, Any]:
    """A line of the table, from medians: the wrapper in microseconds per vector step, and as a share of the rest."""
    took = {key: float(np.median([each[key] for each in taken])) for key in taken[0]}
    own = took["collect"] - took["wrapper"]
    return {
        "bonus": name,
        **{f"{key} s": value for key, value in took.items()},
        "µs per vector step": took["wrapper"] / STEPS * 1e6,
        "% of collecting": 100 * took["wrapper"] / own,
        "% of SB3's step": 100 * took["wrapper"] / (own + took["learn"]),
    }


def run(folder: Path) -> str:
    """Measure rollouts in turn, keep the table in `folder`, and return it."""
    import voronaut as vn

    made = {"none": model(), "kme": model(vn.KME(dim=17)), "kme, k = 1000": model(vn.KME(dim=17, clusters=1000))}
    taken = [{name: rollout(one) for name, one in made.items()} for _ in range(ROUNDS)]
    rows = [row(name, [each[name] for each in taken]) for name in made]
    return measure.keep(folder, "adapters", {"rows": rows}, [
        "# Adapters: what BonusVecEnv adds to Stable-Baselines3",
        f"PPO on Cheetah, {ENVS} environments, seconds per rollout of {ENVS * STEPS} states, one thread. "
        "SB3's step is acting, simulating and learning. Aim: under 5 %.",
        rows,
    ])  # fmt: skip
