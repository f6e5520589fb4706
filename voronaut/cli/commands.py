"""What each command of the command line does with its options: one call each."""

import argparse
from collections.abc import Sequence
from typing import Any


def bonus_options(rest: Sequence[str]) -> dict[str, dict[str, str]]:
    """["--kme.scale", "0.01", "--kme.balance=1e-4"] -> {"kme": {"scale": "0.01", "balance": "1e-4"}}."""
    options: dict[str, dict[str, str]] = {}
    words = [word for text in rest for word in (text.split("=", 1) if text.startswith("--") else [text])]
    while words:
        word = words.pop(0)
        name, dot, key = word.removeprefix("--").partition(".")
        if not word.startswith("--") or not dot or not words or words[0].startswith("--"):
            raise ValueError(f"what is {word!r}? A bonus's parameters are given as --kme.scale 0.01. See --help.")
        options.setdefault(name, {})[key] = words.pop(0)
    return options


def sweep_options(texts: Sequence[str]) -> dict[str, list[str]]:
    """["kme.balance=1e-5,1e-4"] -> {"kme.balance": ["1e-5", "1e-4"]}."""
    sweep: dict[str, list[str]] = {}
    for text in texts:
        key, equals, values = text.partition("=")
        if not equals or not values or "." not in key:
            raise ValueError(f"{text!r} is no sweep; write it as kme.balance=1e-5,1e-4.")
        if key in sweep:
            raise ValueError(f"--sweep names {key} more than once. Write all its values in one, as {key}=1,2.")
        sweep[key] = values.split(",")
    return sweep


def train_config(options: argparse.Namespace) -> Any:
    """The `Config` of what was typed behind `voronaut train`."""
    from voronaut.training.api import configure

    names = ("learner", "pair", "bonuses", "seeds", "steps", "threshold", "backend", "envs", "rollout", "preset")
    given = {name: getattr(options, name) for name in names if getattr(options, name) is not None}
    return configure(
        options.task, **given, options=bonus_options(options.rest), sweep=sweep_options(options.sweep or [])
    )


def run_train(options: argparse.Namespace) -> int:
    """`voronaut train`."""
    from voronaut.training.command import train

    begin = {"resume": options.resume, "restart": options.restart}
    return train(train_config(options), options.out, **begin, quiet=options.quiet, wandb=options.wandb)


def run_reproduce(options: argparse.Namespace) -> int:
    """`voronaut reproduce`."""
    import importlib

    hard = options.what == "hard"
    if not hard and (options.rest or options.cells or options.freeze or isinstance(options.seeds, list)):
        raise ValueError("--cells, --freeze, a list of --seeds and --sac.… are for reproduce hard.")
    if hard and isinstance(options.seeds, int):
        raise ValueError("the seeds of hard are numbered: write --seeds 100-104, or a list such as 100,102.")
    given = bonus_options(options.rest)
    if set(given) - {"sac"}:
        raise ValueError(f"only --sac.… can be chosen here; got {', '.join(given)}.")
    options.numbers = given.get("sac", {})
    return int(importlib.import_module(f"voronaut.experiments.{options.what}").reproduce(options))


def run_eval(options: argparse.Namespace) -> int:
    """`voronaut eval`."""
    from voronaut.training.command import evaluate

    if options.folder.parts[:1] == ("hard",) and not options.folder.exists():
        from voronaut.experiments import hard

        options.folder = hard.best_policy("/".join(options.folder.parts[1:]))
    return evaluate(options.folder, options.episodes, options.seed, options.video)


def run_report(options: argparse.Namespace) -> int:
    """`voronaut report`."""
    from voronaut.report import report

    print(report(options.folders, options.out))
    return 0


def run_demo(options: argparse.Namespace) -> int:
    """`voronaut demo`."""
    from voronaut import demo

    given = {name: getattr(options, name) for name in ("seed", "steps") if getattr(options, name) is not None}
    return demo.run(options.out, **given)


def run_entropy(options: argparse.Namespace) -> int:
    """`voronaut entropy`."""
    from voronaut.entropy.command import entropy

    names = ("method", "clusters", "resolution", "on_bad", "seed")
    given = {name: getattr(options, name) for name in names if getattr(options, name) is not None}
    wanted = {"key": options.key, "columns": options.columns, "plot": options.plot, "as_json": options.json}
    return entropy(options.file, **wanted, **given)


def run_bench(options: argparse.Namespace) -> int:
    """`voronaut bench`."""
    import importlib

    module = importlib.import_module(f"voronaut.bench.{options.what}")
    if options.draw and not hasattr(module, "redraw"):
        raise ValueError(f"--draw is for bench gpu; bench {options.what} measures and draws in one go.")
    print(module.redraw(options.out) if options.draw else module.run(options.out))
    return 0
