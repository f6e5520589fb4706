"""`vn.train`: an experiment from plain arguments, the same as the command line's."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from voronaut import presets
from voronaut.tasks.factory import choose_backend
from voronaut.tasks.gym_backend import PREFIX
from voronaut.tasks.table import TOYS, check_variant, find
from voronaut.training.config import Config, make_methods

DEFAULT_BONUSES = ("none", "kme")


def configure(
    task: str,
    *,
    bonuses: Sequence[str] = DEFAULT_BONUSES,
    seeds: int | Iterable[int] | None = None,
    steps: float | None = None,
    threshold: str = "release",
    backend: str = "auto",
    envs: int | None = None,
    rollout: int | None = None,
    options: Mapping[str, Mapping[str, Any]] | None = None,
    sweep: Mapping[str, Sequence[Any]] | None = None,
) -> Config:
    """A checked `Config`; what is not given is the paper's."""
    paper = presets.paper()
    check_variant(threshold)
    if not task.startswith(PREFIX) and task not in TOYS:
        find(task)
    steps = paper.steps if steps is None else steps
    envs = paper.ppo["envs"] if envs is None else envs
    rollout = paper.ppo["rollout"] if rollout is None else rollout
    seeds = paper.seeds if seeds is None else seeds
    numbers = tuple(range(seeds) if isinstance(seeds, int) else seeds)
    if not numbers or min(numbers) < 0 or len(set(numbers)) < len(numbers):
        raise ValueError(f"seeds must be a count of at least 1, or distinct numbers of at least 0; got {seeds!r}.")
    for name, number, least in (("envs", envs, 1), ("rollout", rollout, 2)):
        if number < least:
            raise ValueError(f"{name} must be at least {least}; got {number}.")
    if rollout % envs:
        raise ValueError(f"rollout must be a multiple of envs; got rollout={rollout}, envs={envs}.")
    if not steps >= rollout:
        raise ValueError(
            f"steps must be at least one rollout ({rollout}); got {steps:g}. Ask for more, or --rollout less."
        )
    methods = make_methods(bonuses, options or {}, sweep or {})
    chosen = choose_backend(task, backend)
    return Config(task, methods, numbers, int(steps), threshold, chosen, envs, rollout)


def train(
    task: str,
    *,
    out: str | Path,
    resume: bool = False,
    restart: bool = False,
    quiet: bool = False,
    wandb: str | None = None,
    **choices: Any,
) -> list[Path]:
    """Train bonuses × seeds on a task, side by side, and return the folders of the runs.

    Takes what `configure` takes: bonuses=("none", "kme"), seeds=5 (or a list), steps=5e6, threshold="release",
    backend="auto", envs=16, rollout=16384, options={"kme": {"scale": 0.01}}, sweep={"kme.balance": [1e-5, 1e-4]}.
    `resume` goes on with an unfinished experiment in `out`; `restart` moves it aside and begins again.
    `wandb` is the name of a Weights & Biases project to send everything to.
    """
    from voronaut.training import loop
    from voronaut.training.watching import watch

    config, folder = configure(task, **choices), Path(out)
    with watch(config, folder, quiet=quiet, wandb=wandb) as report:
        loop.train(config, folder, resume=resume, restart=restart, report=report)
    return [folder / name for name in config.folders()]
