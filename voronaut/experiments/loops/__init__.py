"""In the loops people have, on two small tasks with far rewards, with Voronaut and without.

`mountain_car`: Stable-Baselines3's SAC alone and as a `Pair`; `command`: the same task on the command line; `door_key`:
Stable-Baselines3's PPO on MiniGrid's DoorKey, alone and with a `BonusVecEnv`.
Settings were chosen on seeds below 100; what is reported are seeds 100 to 104.
"""

import argparse
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from voronaut.experiments.common import jobs as small
from voronaut.experiments.common.jobs import Job, Results, Say, Values
from voronaut.experiments.loops import command, door_key, mountain_car
from voronaut.helpers.markdown import table
from voronaut.helpers.plotting import COLORS, figure

__all__ = ["computed", "draw", "plan", "reproduce"]

FOLDER, FIGURES = Path("results/loops"), Path("docs/figures")
SEEDS = range(100, 105)
CAR, COMMAND, DOOR = "mountain-car", "mountain-car-command", "door-key"
SOLVED = {CAR: 90.0, COMMAND: 90.0, DOOR: 0.9}
# What is run; where "sac", "none" or "alone" stands there is no bonus. SAC and the pair are given no settings; "same"
# is SAC with what the pair chooses by itself. "uniform" and "quick" are of an earlier pair, which chose nothing;
# "before" is of a bonus that could pay thousands of deviations for a flag.
FOUR: dict[str, Any] = {"envs": 4, "normalize": False, "settings": {}, "steps": 20_000}
SIXTEEN: dict[str, Any] = {"envs": 16, "normalize": False, "settings": {"near_reward": 0.0}, "steps": 200_000}
SETTINGS: dict[str, Any] = {"ent_coef": "auto_0.1", "n_steps": 3, "policy_kwargs": {"net_arch": [64, 64]}}
QUICK: dict[str, Any] = {"envs": 16, "normalize": True, "settings": SETTINGS, "steps": 40_000}
TRAINED: dict[str, Any] = {"steps": 40_960, "rollout": 4096}
DOORS: dict[str, Any] = {"task": "MiniGrid-DoorKey-8x8-v0", "steps": 600_000}
METHODS: dict[str, dict[str, dict[str, Any]]] = {
    CAR: {
        "pair": {"method": "pair", **FOUR},
        "sac": {"method": "sac", **FOUR},
        "sac-same": {"method": "sac", **FOUR, "normalize": True, "settings": mountain_car.SAME},
        "pair-quick": {"method": "pair", **QUICK},
        "pair-uniform": {"method": "pair", **SIXTEEN},
    },
    COMMAND: {"kme": {"bonus": "kme", **TRAINED}, "none": {"bonus": "none", **TRAINED}},
    DOOR: {
        "kme-default": {"scale": "falling:0.1", **DOORS},
        "kme-small": {"scale": 0.001, **DOORS},
        "alone": {"scale": 0.0, **DOORS},
        "kme-before": {"scale": "falling:0.1", **DOORS},
    },
}
OLD = ("pair-quick", "pair-uniform", "kme-before")  # kept, not run again
NAMES = {
    CAR: {
        "pair": "the pair",
        "sac": "SAC alone",
        "sac-same": "SAC alone with what the pair chooses",
        "pair-quick": "an earlier pair, 16 environments, settings of its own",
        "pair-uniform": "an earlier pair, 16 environments, SAC's defaults",
    },
    COMMAND: {"kme": "the pair", "none": "SAC alone"},
    DOOR: {
        "kme-default": "PPO with KME, the default `scale`",
        "kme-small": "PPO with KME, `scale=0.001`",
        "alone": "PPO alone",
        "kme-before": "PPO with an earlier KME, the default `scale`",
    },
}


def plan(seeds: Sequence[int] = SEEDS, steps: int | None = None) -> list[Job]:
    """Every run as a job."""
    work: dict[str, Callable[..., Values]] = {CAR: mountain_car.run, COMMAND: command.run, DOOR: door_key.run}
    return [
        Job(
            part, f"{name}-{seed}", work[part], {**given, "seed": seed, "steps": steps or given["steps"]}, seconds=240.0
        )
        for part, methods in METHODS.items()
        for name, given in methods.items()
        for seed in seeds
    ]


def reproduce(options: argparse.Namespace, say: Say = print) -> int:
    """`voronaut reproduce loops`: run what is missing of what --only names (mountain-car, pair, door-key/kme…)."""
    seeds = SEEDS if options.seeds is None else range(options.seeds)
    every = plan(seeds, None if options.steps is None else int(options.steps))
    today = [job for job in every if small.method_of(job) not in OLD]
    folder = options.folder or FOLDER
    small.reproduce(today, folder, options, lambda: draw(folder, options.figures or FIGURES), say)
    return 0


def draw(folder: Path = FOLDER, figures: Path = FIGURES) -> list[Path]:
    """mountain_car.png and its like, once something of them was run: every seed's return over the steps."""
    found, paths = small.collect(plan(), folder), []
    for part, every in METHODS.items():
        methods = [name for name in every if name not in OLD]
        if not any(runs(found, part, name) for name in methods):
            continue
        paths.append(figures / f"{part.replace('-', '_')}.png")
        with figure(paths[-1], size=(7, 3.6)) as axes:
            for name in methods:
                _lines(axes, runs(found, part, name), name, NAMES[part][name])
            axes.axhline(SOLVED[part], color="0.6", linewidth=0.8, linestyle=":")
            axes.set(xlabel="thousand steps of all environments", ylabel="return of an episode")
            axes.figure.legend(loc="outside lower center", ncols=2, fontsize=9)
    return paths


def _lines(axes: Any, curves: Mapping[int, Any], name: str, label: str) -> None:
    """One thin line for each seed."""
    color = COLORS["none" if name.startswith(("sac", "none", "alone")) else "kme"]
    style = "--" if name.endswith(("same", "default")) else "-"
    for index, result in enumerate(curves.values()):
        points = [each for each in result["curve"] if each["return"] is not None]
        steps, returns = [each["steps"] / 1000 for each in points], [each["return"] for each in points]
        axes.plot(steps, returns, style, color=color, linewidth=1.2, label=None if index else label.replace("`", ""))


def runs(found: Results, part: str, name: str) -> dict[int, Any]:
    """The results of one method by seed."""
    keys = {seed: f"{part}/{name}-{seed}" for seed in SEEDS}
    return {seed: found[key] for seed, key in keys.items() if key in found}


def computed(folder: Path = FOLDER) -> dict[str, str]:
    """A table of each task for the page of Stable-Baselines3."""
    found = small.collect(plan(), folder)
    return {part: _table(found, part, list(methods)) for part, methods in METHODS.items()}


def _table(found: Results, part: str, names: Sequence[str]) -> str:
    heads = ["", "seeds solved", "return at the end, seeds 100 to 104", "solved after steps", "seconds of a run"]
    return table(heads, [[NAMES[part][name], *_row(runs(found, part, name), SOLVED[part])] for name in names])


def _row(results: Mapping[int, Any], solved: float) -> list[str]:
    if not results:
        return ["not run yet", "", "", ""]
    curves = [[each for each in result["curve"] if each["return"] is not None] for result in results.values()]
    ends = [
        result.get("evaluated", curve[-1]["return"]) for result, curve in zip(results.values(), curves, strict=True)
    ]
    after = [next((each["steps"] for each in curve if each["return"] > solved), None) for curve in curves]
    seconds = [result["curve"][-1]["seconds"] for result in results.values()]
    digits = 1 if solved > 1 else 2
    return [
        f"{sum(end > solved for end in ends)} of {len(ends)}",
        ", ".join(f"{end:.{digits}f}" for end in ends),
        ", ".join("never" if steps is None else f"{steps:,}" for steps in after),
        f"{min(seconds):.0f} to {max(seconds):.0f}",
    ]
