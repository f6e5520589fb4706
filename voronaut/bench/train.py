"""`voronaut bench train`: seconds per rollout against Stable-Baselines3's PPO, and how cost grows.

Everything is Cheetah at the paper's settings (16 environments, rollouts of 16384 states), measured in one run.
"""

import resource
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from voronaut import machine
from voronaut.bench import measure
from voronaut.tasks.factory import make
from voronaut.training.api import configure
from voronaut.training.loop import Trainer

ROLLOUTS = 4
LONG = 120


def trainer(backend: str = "auto", **choices: Any) -> Trainer:
    """A Cheetah trainer that has done one rollout, so that everything is compiled."""
    config = configure("cheetah-run", steps=5e6, backend=backend, **choices)
    seeds = [seed for _, seed in config.runs]
    made = Trainer(config, make("cheetah-run", seeds, config.envs, backend=config.backend))
    made.turn()
    made.turn()
    return made


def cost(made: Trainer, rollouts: int = ROLLOUTS) -> dict[str, float]:
    """Seconds per rollout of the whole population, the median of a few, and where they go."""
    parts = [_timed(made.turn) for _ in range(rollouts)]
    names = ("collect_seconds", "learn_seconds", "bonus_seconds")
    middle = sorted(parts, key=lambda pair: pair[0])[len(parts) // 2]
    return {"seconds": middle[0], **{name.split("_")[0]: middle[1][0][name] for name in names}}


def _timed(call: Callable[[], Any]) -> tuple[float, Any]:
    started = time.perf_counter()
    result = call()
    return time.perf_counter() - started, result


def sb3_cost(rollouts: int = ROLLOUTS) -> dict[str, float]:
    """Seconds per rollout of Stable-Baselines3's PPO on the same task with dm_control, without any bonus."""
    import gymnasium
    import stable_baselines3
    import torch
    from stable_baselines3.common.callbacks import BaseCallback
    from stable_baselines3.common.vec_env import DummyVecEnv

    import voronaut.tasks  # registers the environments

    assert voronaut.tasks
    torch.set_num_threads(1)
    marks: list[float] = []

    class Clock(BaseCallback):
        def _on_step(self) -> bool:
            return True

        def _on_rollout_start(self) -> None:
            marks.append(time.perf_counter())

        def _on_rollout_end(self) -> None:
            marks.append(time.perf_counter())

    envs = DummyVecEnv([lambda: gymnasium.make("voronaut/CheetahRunSparse-v0")] * 16)
    model = stable_baselines3.PPO("MlpPolicy", envs, n_steps=1024, batch_size=64, device="cpu", seed=0)
    model.learn((rollouts + 1) * 16_384, callback=Clock())
    marks.append(time.perf_counter())
    spans = np.diff(marks)
    collect, learn = spans[0::2][1:], spans[1::2][1:]
    middle = int(np.argsort(collect + learn)[len(collect) // 2])
    return {
        "seconds": collect[middle] + learn[middle],
        "collect": collect[middle],
        "learn": learn[middle],
        "bonus": 0.0,
    }


def long_run(rollouts: int = LONG) -> list[dict[str, float]]:
    """Seconds and resident memory over many rollouts of one KME run."""
    made = trainer(bonuses=["kme"], seeds=1)
    rows = []
    for number in range(1, rollouts + 1):
        took, _ = _timed(made.turn)
        rows.append({"rollout": number, "seconds": took, "memory_mb": resident_mb()})
    return rows


def resident_mb() -> float:
    """Memory of this process in MB: now, or at most where the system does not tell."""
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
        return pages * resource.getpagesize() / 1e6
    except OSError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1e6 if sys.platform == "darwin" else 1e3)


def run(folder: Path) -> str:
    """Measure, keep tables and a plot in `folder`, and return the tables."""
    plans: dict[str, Callable[[], dict[str, float]]] = {
        "SB3 PPO, dm_control, no bonus": sb3_cost,
        "1 run, dm_control, none": lambda: cost(trainer("dm_control", bonuses=["none"], seeds=1)),
        "1 run, none": lambda: cost(trainer(bonuses=["none"], seeds=1)),
        "1 run, kme": lambda: cost(trainer(bonuses=["kme"], seeds=1)),
        "2 runs, kme": lambda: cost(trainer(bonuses=["kme"], seeds=2)),
        "5 runs, kme": lambda: cost(trainer(bonuses=["kme"], seeds=5)),
        "10 runs, kme": lambda: cost(trainer(bonuses=["kme"], seeds=10)),
        **{f"1 run, kme, k = {k}": _with_clusters(k) for k in (100, 1000, 3000)},
    }
    results = {name: plan() for name, plan in plans.items()}
    base, one = results["SB3 PPO, dm_control, no bonus"]["seconds"], results["1 run, kme"]["seconds"]
    rows = [
        {"": name, **took, "bonus %": 100 * took["bonus"] / took["seconds"], "SB3 / this": base / took["seconds"],
         "this / 1 run": took["seconds"] / one}
        for name, took in results.items()
    ]  # fmt: skip
    memory = long_run()
    text = "\n\n".join([
        "# Training: seconds per rollout of 16384 states per run, Cheetah, the paper's settings",
        measure.table(rows),
        f"## One KME run over {LONG} rollouts",
        measure.table([memory[i] for i in np.linspace(0, LONG - 1, 9).astype(int)]),
    ])  # fmt: skip
    result = {"machine": machine.describe(), "rollouts": rows, "long": memory}
    measure.keep(folder, "train", result, text)
    plot(result, folder / "train.png")
    return text


def _with_clusters(clusters: int) -> Callable[[], dict[str, float]]:
    return lambda: cost(trainer(bonuses=["kme"], seeds=1, options={"kme": {"clusters": clusters}}))


def plot(result: dict[str, Any], path: Path) -> None:
    """Where the time of a rollout goes, and time and memory over a long run."""
    from voronaut.plotting import figure

    with figure(path, 2, (12, 4.4)) as (bars, line):
        rows = result["rollouts"][::-1]
        left = np.zeros(len(rows))
        for name, color in (("collect", "#3b6fb6"), ("learn", "#e08a1e"), ("bonus", "#2a9d62")):
            width = np.array([row[name] for row in rows])
            bars.barh([row[""] for row in rows], width, left=left, color=color, label=name)
            left += width
        bars.set(xlabel="seconds per rollout")
        bars.legend()
        long = result["long"]
        line.plot([r["rollout"] for r in long], [r["memory_mb"] for r in long], color="#2a9d62")
        line.set(xlabel="rollout", ylabel="resident memory (MB)", ylim=(0, None), title="one KME run")
