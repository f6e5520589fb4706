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
from voronaut.helpers import machine

ENVS, STEPS = 16, 1024
ROUNDS = 3


def model(bonus: Any = None) -> Any:
    """PPO on 16 Cheetahs in one process, with a bonus or without."""
    import gymnasium
    import stable_baselines3
    import torch
    from stable_baselines3.common.vec_env import DummyVecEnv

    import voronaut.tasks  # registers the environments
    from voronaut.sb3 import BonusVecEnv

    assert voronaut.tasks
    torch.set_num_threads(1)
    envs: Any = DummyVecEnv([lambda: gymnasium.make("voronaut/CheetahRunSparse-v0")] * ENVS)
    if bonus is not None:
        envs = BonusVecEnv(envs, bonus, update_every=STEPS)
    return stable_baselines3.PPO("MlpPolicy", envs, n_steps=STEPS, batch_size=64, device="cpu", seed=0)


class Clock:
    """Adds up the seconds spent in a method of one object."""

    def __init__(self, owner: Any, name: str) -> None:
        self.seconds, self._call = 0.0, getattr(owner, name)
        setattr(owner, name, self)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        before = time.perf_counter()
        result = self._call(*args, **kwargs)
        self.seconds += time.perf_counter() - before
        return result


def rollout(made: Any) -> dict[str, float]:
    """Seconds of one rollout and of learning from it; `wrapper`: of them in BonusVecEnv itself."""
    owners = [made.env, made.env.venv] if hasattr(made.env, "venv") else []
    clocks = [Clock(owner, "step_wait") for owner in owners]
    started = time.perf_counter()
    _, callback = made._setup_learn(ENVS * STEPS, None, reset_num_timesteps=False)
    made.collect_rollouts(made.env, callback, made.rollout_buffer, STEPS)
    collected = time.perf_counter()
    made.train()
    learned = time.perf_counter()
    for owner in owners:
        del owner.step_wait
    wrapper = clocks[0].seconds - clocks[1].seconds if clocks else 0.0
    return {"collect": collected - started, "learn": learned - collected, "wrapper": wrapper}


def costs(rounds: int = ROUNDS) -> dict[str, dict[str, float]]:
    """Rollouts in turn, after one of each to compile and settle; the median of each number."""
    from stable_baselines3.common.logger import configure

    import voronaut as vn

    made = {"none": model(), "kme": model(vn.KME(dim=17)), "kme, k = 1000": model(vn.KME(dim=17, clusters=1000))}
    for one in made.values():
        one.set_logger(configure(None, []))
        rollout(one)
    taken = [{name: rollout(one) for name, one in made.items()} for _ in range(rounds)]
    keys = ("collect", "learn", "wrapper")
    return {name: {key: float(np.median([t[name][key] for t in taken])) for key in keys} for name in made}


def row(name: str, took: dict[str, float]) -> dict[str, Any]:
    """A line of the table: the wrapper in microseconds per vector step, and as a share of all the rest."""
    own = took["collect"] - took["wrapper"]
    return {
        "bonus": name,
        **{f"{key} s": value for key, value in took.items()},
        "µs per vector step": took["wrapper"] / STEPS * 1e6,
        "% of collecting": 100 * took["wrapper"] / own,
        "% of SB3's step": 100 * took["wrapper"] / (own + took["learn"]),
    }


def run(folder: Path) -> str:
    """Measure, keep the table in `folder`, and return it."""
    rows = [row(name, took) for name, took in costs().items()]
    text = "\n\n".join(
        [
            "# Adapters: what BonusVecEnv adds to Stable-Baselines3",
            f"PPO on Cheetah, {ENVS} environments, seconds per rollout of {ENVS * STEPS} states, one thread. "
            "SB3's step is acting, simulating and learning. Aim: under 5 %.",
            measure.table(rows),
        ]
    )
    measure.keep(folder, "adapters", {"machine": machine.describe(), "rows": rows}, text)
    return text
