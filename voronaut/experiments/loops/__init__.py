"""In the loops people have: Stable-Baselines3 on two small tasks with far rewards, with Voronaut and without.

`mountain_car`: SAC alone and as a `Pair`; `door_key`: PPO of MiniGrid's DoorKey, alone and with a `BonusVecEnv`.
Settings were chosen on seeds below 100; what is reported are seeds 100 to 104.
"""

import argparse
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from voronaut.experiments.common import jobs as small
from voronaut.experiments.common.jobs import Job, Results, Say, Values
from voronaut.experiments.loops import door_key, mountain_car
from voronaut.helpers.markdown import table
from voronaut.helpers.plotting import COLORS, figure

__all__ = ["computed", "draw", "plan", "reproduce"]

FOLDER, FIGURES = Path("results/loops"), Path("docs/figures")
SEEDS = range(100, 105)
CAR, DOOR = "mountain-car", "door-key"
SOLVED = {CAR: 90.0, DOOR: 0.9}
# What is run; where "sac" or "alone" stands there is no bonus. "quick" is what our own trainer does too: a temperature
# that begins at 0.1 and not at 1, windows of three steps, observations in deviations; and networks fit for one core.
DEFAULT: dict[str, Any] = {"envs": 16, "normalize": False, "steps": 200_000}
SETTINGS: dict[str, Any] = {"ent_coef": "auto_0.1", "n_steps": 3, "policy_kwargs": {"net_arch": [64, 64]}}
QUICK: dict[str, Any] = {"envs": 16, "normalize": True, "settings": SETTINGS, "steps": 40_000}
FOUR: dict[str, Any] = {**QUICK, "settings": {**SETTINGS, "gradient_steps": 4}}  # as many as our own trainer takes
DOORS: dict[str, Any] = {"task": "MiniGrid-DoorKey-8x8-v0", "steps": 800_000}
METHODS: dict[str, dict[str, dict[str, Any]]] = {
    CAR: {
        "pair-quick": {"method": "pair", **QUICK},
        "sac-quick": {"method": "sac", **QUICK},
        "pair-four": {"method": "pair", **FOUR},
        "sac-four": {"method": "sac", **FOUR},
        "pair-default": {"method": "pair", "settings": {}, **DEFAULT},
        "pair-uniform": {"method": "pair", "settings": {"near_reward": 0.0}, **DEFAULT},
        "sac-default": {"method": "sac", "settings": {}, **DEFAULT},
    },
    DOOR: {"kme": {"scale": 0.01, **DOORS}, "alone": {"scale": 0.0, **DOORS}},
}
NAMES = {
    "pair-quick": "the pair, settings below",
    "sac-quick": "SAC alone, settings below",
    "pair-four": "the pair, settings below, `gradient_steps=4`",
    "sac-four": "SAC alone, settings below, `gradient_steps=4`",
    "pair-default": "the pair, SAC's defaults",
    "pair-uniform": "the pair, SAC's defaults, `near_reward=0`",
    "sac-default": "SAC alone, its defaults",
    "kme": "PPO with KME",
    "alone": "PPO alone",
}


def plan(seeds: Sequence[int] = SEEDS, steps: int | None = None) -> list[Job]:
    """Every run as a job."""
    work: dict[str, Callable[..., Values]] = {CAR: mountain_car.run, DOOR: door_key.run}
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
    seeds = SEEDS if options.seeds is None else options.seeds
    seeds = range(seeds) if isinstance(seeds, int) else seeds
    every = plan(seeds, None if options.steps is None else int(options.steps))
    chosen = [job for job in every if not options.only or any(_is(job, name) for name in options.only)]
    folder = options.folder or FOLDER
    if not options.status:
        if not options.draw:
            small.run(chosen, folder, budget=options.budget, processes=options.processes, say=say)
        for path in draw(folder, options.figures or FIGURES):
            say(str(path))
    say(small.status(chosen, folder))
    return 0


def _is(job: Job, name: str) -> bool:
    method = job.name.rpartition("-")[0]
    return name in (job.part, method, f"{job.part}/{method}")


def draw(folder: Path = FOLDER, figures: Path = FIGURES) -> list[Path]:
    """mountain_car.png and door_key.png, once something of them was run: every seed's return over the steps."""
    found, paths = small.collect(plan(), folder), []
    for part, methods in METHODS.items():
        if not any(runs(found, part, name) for name in methods):
            continue
        paths.append(figures / f"{part.replace('-', '_')}.png")
        with figure(paths[-1], size=(7, 3.6)) as axes:
            for name in methods:
                _lines(axes, runs(found, part, name), name)
            axes.axhline(SOLVED[part], color="0.6", linewidth=0.8, linestyle=":")
            axes.set(xlabel="thousand steps of all environments", ylabel="return of an episode")
            axes.figure.legend(loc="outside lower center", ncols=2, fontsize=9)
    return paths


def _lines(axes: Any, curves: Mapping[int, Any], name: str) -> None:
    """One thin line for each seed."""
    color = COLORS["none" if name.startswith(("sac", "alone")) else "kme"]
    style = "--" if name.endswith(("default", "uniform")) else "-"
    for index, result in enumerate(curves.values()):
        points = [each for each in result["curve"] if each["return"] is not None]
        steps, returns = [each["steps"] / 1000 for each in points], [each["return"] for each in points]
        axes.plot(
            steps, returns, style, color=color, linewidth=1.2, label=None if index else NAMES[name].replace("`", "")
        )


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
    return table(heads, [[NAMES[name], *_row(runs(found, part, name), SOLVED[part])] for name in names])


def _row(results: Mapping[int, Any], solved: float) -> list[str]:
    if not results:
        return ["not run yet", "", "", ""]
    curves = [[each for each in result["curve"] if each["return"] is not None] for result in results.values()]
    ends = [curve[-1]["return"] for curve in curves]
    after = [next((each["steps"] for each in curve if each["return"] > solved), None) for curve in curves]
    seconds = [result["curve"][-1]["seconds"] for result in results.values()]
    digits = 1 if solved > 1 else 2
    return [
        f"{sum(end > solved for end in ends)} of {len(ends)}",
        ", ".join(f"{end:.{digits}f}" for end in ends),
        ", ".join("never" if steps is None else f"{steps:,}" for steps in after),
        f"{min(seconds):.0f} to {max(seconds):.0f}",
    ]
