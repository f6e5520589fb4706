"""`voronaut bench train`: seconds per rollout against Stable-Baselines3's PPO, how cost grows, and SAC (see `sac`).

Of PPO everything is Cheetah at the paper's settings (16 environments, rollouts of 16384 states), measured in one run;
"kme" is the paper's, one clustering of 300, and "kme as it is" has the defaults of `vn.KME`: a view of each coordinate.
"""

import resource
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from voronaut.bench import adapters, measure, sac
from voronaut.bench.measure import Cost
from voronaut.tasks.factory import make
from voronaut.training.api import configure
from voronaut.training.on_policy import PPOTrainer

ROUNDS = 4
LONG = 120
SB3 = "SB3 PPO, dm_control, no bonus"


def turner(backend: str = "auto", preset: str | None = "paper", **choices: Any) -> Callable[[], Cost]:
    """A function that does one rollout of a Cheetah trainer of its own and tells where its seconds went."""
    config = configure("cheetah-run", steps=5e6, backend=backend, preset=preset, **choices)
    seeds = [seed for _, seed in config.runs]
    return measure.turner(PPOTrainer(config, make("cheetah-run", seeds, config.envs, backend=config.backend)))


def sb3_turner() -> Callable[[], Cost]:
    """The same of Stable-Baselines3's PPO on the same task with dm_control, without any bonus."""
    made = adapters.model()

    def turn() -> Cost:
        took = adapters.rollout(made)
        parts = {"collect": took["collect"], "learn": took["learn"], "bonus": 0.0}
        return {"seconds": sum(parts.values()), **parts}

    return turn


def measured(plans: dict[str, Callable[[], Cost]], rounds: int) -> dict[str, Cost]:
    """The fastest rollout of each plan; plans take turns, so that all meet the same disturbances."""
    taken = [{name: turn() for name, turn in plans.items()} for _ in range(rounds)]
    return {name: min((each[name] for each in taken), key=lambda cost: cost["seconds"]) for name in plans}


def long_run(rollouts: int = LONG) -> list[dict[str, float]]:
    """Seconds and resident memory over many rollouts of one KME run."""
    turn = turner(bonuses=["kme"], seeds=1)
    return [
        {"rollout": number, "seconds": turn()["seconds"], "memory_mb": resident_mb()}
        for number in range(1, rollouts + 1)
    ]


def resident_mb() -> float:
    """Memory of this process in MB: now, or at most where the system does not tell."""
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
        return pages * resource.getpagesize() / 1e6
    except OSError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1e6 if sys.platform == "darwin" else 1e3)


def plans() -> dict[str, Callable[[], Cost]]:
    """Everything that is compared, ready to take turns."""
    runs = {f"{n} run{'s' if n > 1 else ''}, kme": turner(bonuses=["kme"], seeds=n) for n in (1, 2, 5, 10)}
    sizes = {k: {"kme": {"clusters": k}} for k in (100, 1000, 3000)}
    return {
        SB3: sb3_turner(),
        "1 run, dm_control, none": turner("dm_control", bonuses=["none"], seeds=1),
        "1 run, none": turner(bonuses=["none"], seeds=1),
        **runs,
        "1 run, kme as it is": turner(preset=None, bonuses=["kme"], seeds=1),
        **{f"1 run, kme, k = {k}": turner(bonuses=["kme"], seeds=1, options=o) for k, o in sizes.items()},
    }


def run(folder: Path) -> str:
    """Measure, keep tables and a plot in `folder`, and return the tables."""
    memory = long_run()
    results = measured(plans(), ROUNDS)
    base, one = results[SB3]["seconds"], results["1 run, kme"]["seconds"]
    rows = [
        {"": name, **with_share(took), "SB3 / this": base / took["seconds"], "this / 1 run": took["seconds"] / one}
        for name, took in results.items()
    ]
    pairs = measured({name: sac.turner(*how) for name, how in sac.BONUSES.items()}, ROUNDS)
    shares, steps = [{"": name, **with_share(took)} for name, took in pairs.items()], sac.step_rows()
    result = {"rollouts": rows, "long": memory, "sac": steps, "pair": shares}
    plot(result, folder / "train.png")
    return measure.keep(folder, "train", result, [
        "# Training: seconds per rollout of 16384 states per run, Cheetah, the paper's settings",
        f"The fastest of {ROUNDS} rollouts of each, taken in turn. `seconds` holds the entropy log as well.",
        rows,
        f"## One KME run over {LONG} rollouts",
        [memory[i] for i in np.linspace(0, LONG - 1, 9).astype(int)],
        *sac.parts(steps, shares),
    ])  # fmt: skip


def with_share(took: Cost) -> Cost:
    """Seconds, and the bonus's share of them."""
    return {**took, "bonus %": 100 * took["bonus"] / took["seconds"]}


def plot(result: dict[str, Any], path: Path) -> None:
    """Where the time of a rollout goes, and time and memory over a long run."""
    from voronaut.helpers.plotting import figure

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
