"""`vn.train`: an experiment from plain arguments, the same as the command line's."""

import dataclasses
import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from numbers import Integral, Real
from pathlib import Path
from typing import Any, NamedTuple

from voronaut import presets
from voronaut.tasks.backends.gymnasium import PREFIXES, name_of
from voronaut.tasks.factory import choose_backend
from voronaut.tasks.table import TOYS, check_variant, find
from voronaut.training.config import Config, check_numbers, defaults_of, make_methods
from voronaut.training.population import ABSORB, ONLINE

LEARNERS = ("ppo", "sac")
PAIRS = (True, False, "stored")  # stored: states keep what they earned when they were met, for comparison
DEFAULT_BONUSES = ("none", "kme")
SEEDS = 10_000  # at most: they are trained side by side


def configure(  # noqa: PLR0913
    task: str | Callable[..., Any],
    *,
    learner: str = "ppo",
    pair: bool | str = True,
    bonuses: str | Sequence[str] = DEFAULT_BONUSES,
    seeds: int | Iterable[int] | None = None,
    steps: float | None = None,
    threshold: str = "release",
    backend: str = "auto",
    envs: int | None = None,
    rollout: int | None = None,
    options: Mapping[str, Mapping[str, Any]] | None = None,
    sweep: Mapping[str, Sequence[Any]] | None = None,
    preset: str | None = None,
) -> Config:
    """A checked `Config`; what is not given is each bonus's and learner's own.

    PPO's own are the paper's. `preset="paper"` takes the paper's numbers for KME too.
    """
    check_variant(threshold)
    task = _task_name(task)
    seeds = tuple(seeds) if isinstance(seeds, Iterator) else seeds
    _check_types(bonuses, seeds, options, sweep, steps=steps, envs=envs, rollout=rollout)
    usual = _usual(learner, preset)
    steps = usual.steps if steps is None else steps
    envs = int(usual.envs if envs is None else envs)
    rollout = int(usual.rollout if rollout is None else rollout)
    seeds = presets.paper().seeds if seeds is None else seeds
    several = seeds if isinstance(seeds, Iterable) else range(min(seeds, SEEDS + 1))
    numbers = tuple(map(int, several))
    if not 0 < len(numbers) <= SEEDS or min(numbers) < 0 or max(numbers) >= 2**32 or len(set(numbers)) < len(numbers):
        raise ValueError(
            f"seeds must be a count from 1 to {SEEDS}, or distinct numbers from 0 to {2**32 - 1}; got {seeds!r}."
        )
    for name, number, least in (("envs", envs, 1), ("rollout", rollout, 2)):
        if number < least:
            raise ValueError(f"{name} must be at least {least}; got {number}.")
    if rollout % envs:
        raise ValueError(f"rollout must be a multiple of envs; got rollout={rollout}, envs={envs}.")
    if not math.isfinite(steps):
        raise ValueError(f"steps must be a finite number; got {steps}.")
    if steps < rollout:
        raise ValueError(
            f"steps must be at least one rollout ({rollout}); got {steps:g}. Ask for more, or --rollout less."
        )
    names = (bonuses,) if isinstance(bonuses, str) else tuple(bonuses)
    _check_pair(pair, learner, names, envs)
    others = {name: given for name, given in (options or {}).items() if name not in LEARNERS}
    for name in set(options or {}) & set(LEARNERS) - {learner}:
        raise ValueError(f"options are given for {name}, but the learner is {learner}. Add --learner {name}.")
    methods = make_methods(names, others, sweep or {}, usual.bonuses)
    if learner == "sac" and any(ABSORB in method.params for method in methods):
        raise ValueError(
            f"{ABSORB}={ONLINE} pays a rollout as it is absorbed; SAC pays batches of its replay. Leave it out."
        )
    chosen = check_numbers(learner, (options or {}).get(learner, {}), usual.names)
    usual.check(chosen)
    backend = choose_backend(task, backend)
    return Config(task, methods, numbers, int(steps), threshold, backend, envs, rollout, learner, pair, chosen)


def _check_pair(pair: bool | str, learner: str, names: Sequence[str], envs: int) -> None:
    if pair not in PAIRS:
        raise ValueError(f"pair must be one of {', '.join(map(repr, PAIRS))}; got {pair!r}.")
    if learner == "sac" and pair and envs < 2 and set(names) != {"none"}:
        raise ValueError(f"a pair shares out its environments and needs at least 2; got envs={envs}. Or: --pair off.")
    if learner != "sac" and pair is not True:
        raise ValueError(f"pair={pair!r} says how SAC's agents share a memory; {learner} has one agent. Leave it out.")
    if learner != "sac" and "zero" in names:
        raise ValueError("zero is a pair without a bonus, and only --learner sac has pairs. PPO alone is --bonus none.")


def _task_name(task: Any) -> str:
    """The name of a task, or of the function or class that makes it."""
    if callable(task):
        return name_of(task)
    if not isinstance(task, str):
        raise ValueError(
            "task must be a name such as cheetah-run or gym:Pendulum-v1, or a function or class that makes a Gymnasium "
            f"environment; got {task!r}. Many environments are run side by side, so one alone does not do."
        )
    if not task.startswith(PREFIXES) and task not in TOYS:
        find(task)
    return task


def _check_types(bonuses: Any, seeds: Any, options: Any, sweep: Any, **numbers: Any) -> None:
    """ValueError for what is of another kind than it must be; None is not given."""
    for name, given in numbers.items():
        if given is not None and not _is(given, Real if name == "steps" else Integral):
            raise ValueError(f"{name} must be a {'' if name == 'steps' else 'whole '}number; got {given!r}.")
    if not _is(bonuses, str) and not _all_are(bonuses, str):
        raise ValueError(f"bonuses must be a name such as 'kme', or a list of names; got {bonuses!r}.")
    if seeds is not None and not _is(seeds, Integral) and not _all_are(seeds, Integral):
        raise ValueError(f"seeds must be a count, or a list of whole numbers; got {seeds!r}.")
    if options and not (_is(options, Mapping) and _all_are(options.values(), Mapping)):
        raise ValueError(f'options must look like {{"kme": {{"scale": 0.01}}}}; got {options!r}.')
    if sweep and not (_is(sweep, Mapping) and _all_are(sweep.values(), (list, tuple))):
        raise ValueError(f'sweep must look like {{"kme.balance": [1e-5, 1e-4]}}; got {sweep!r}.')


def _is(given: Any, kind: Any) -> bool:
    return isinstance(given, kind) and not isinstance(given, bool)


def _all_are(given: Any, kind: Any) -> bool:
    return isinstance(given, Collection) and not isinstance(given, str) and all(_is(one, kind) for one in given)


class Usual(NamedTuple):
    """What a learner takes where nothing is said, and what can be said of it."""

    steps: int
    envs: int
    rollout: int
    bonuses: Mapping[str, Mapping[str, Any]]  # parameters and weights
    names: Sequence[str]  # of its numbers
    check: Callable[[Mapping[str, Any]], Any]


def _usual(learner: str, preset: str | None) -> Usual:
    if learner not in LEARNERS:
        raise ValueError(f"learner must be {' or '.join(LEARNERS)}; got {learner!r}.")
    if learner == "ppo":
        from voronaut.learners import ppo

        paper = presets.paper()
        names = [each.name for each in dataclasses.fields(ppo.Settings) if each.name not in ("envs", "rollout")]
        return Usual(
            paper.steps, paper.ppo["envs"], paper.ppo["rollout"], defaults_of(preset), names,
            lambda chosen: ppo.Settings(**chosen),
        )  # fmt: skip
    from voronaut.training import pair

    bonuses = {name: {**(own if preset else {}), "scale": 1} for name, own in defaults_of(preset).items()}
    return Usual(1_000_000, 16, 10_240, bonuses, pair.NAMES, pair.settings)


def train(
    task: str | Callable[..., Any],
    *,
    out: str | Path,
    resume: bool = False,
    restart: bool = False,
    quiet: bool = False,
    wandb: str | None = None,
    **choices: Any,
) -> list[Path]:
    """Train bonuses × seeds on a task, side by side, and return the folders of the runs.

    A task is a name ("cheetah-run", "gym:Pendulum-v1"), or a function or class that makes a Gymnasium environment.
    Takes what `configure` takes: learner="ppo" (or "sac"), bonuses=("none", "kme"), seeds=5 (or a list), steps=5e6 (of
    sac 1e6), threshold="release", backend="auto", envs=16, rollout=16384 (of sac 10240),
    options={"kme": {"scale": 0.01}, "sac": {"size": "small"}}, sweep={"kme.balance": [1e-5, 1e-4]},
    preset=None ("paper": the paper's KME).
    `resume` goes on with an unfinished experiment in `out`, or with one that had fewer steps; `restart` moves it aside
    and begins again.
    `wandb` is the name of a Weights & Biases project to send everything to.
    """
    from voronaut.training import loop
    from voronaut.training.watching import watch

    config, folder = configure(task, **choices), Path(out)
    with watch(config, folder, quiet=quiet, wandb=wandb) as report:
        loop.train(config, folder, resume=resume, restart=restart, report=report)
    return [folder / name for name in config.folders()]
