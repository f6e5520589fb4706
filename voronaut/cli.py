"""The command line: parses, calls one function, prints. No defaults of its own."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from voronaut.version import __version__

BENCHES = {
    "kernels": "microseconds per state against a bare distance loop",
    "bonuses": "seconds per rollout of every bonus on one thread",
    "adapters": "what BonusVecEnv adds to a step of Stable-Baselines3",
    "rllib": "steps per second of RLlib with one and two learners",
    "train": "seconds per rollout against Stable-Baselines3, and how cost grows",
}
EXPERIMENTS = {
    "exploration": "six sparse tasks, PPO alone and with KME, RND and RE3",
    "scale": "the weight of each bonus on Cheetah",
    "parameters": "KME's parameters on Cheetah, one at a time",
}
TRAIN_HELP = """\
Trains bonuses × seeds side by side and writes DIR/config.json and, per run, DIR/<bonus>-<seed>/ with progress.jsonl
(one line per rollout), TensorBoard files, policy.npz and bonus.npz.

examples:
  voronaut train cheetah-run --out runs/cheetah
  voronaut train cheetah-run --bonus kme --bonus none --seeds 5 --steps 2e6 --out runs/cheetah
  voronaut train cheetah-run --bonus kme --kme.scale linear:0.01:0 --kme.balance 1e-3 --out runs/schedule
  voronaut train cheetah-run --bonus kme --sweep kme.balance=1e-5,1e-4,1e-3 --out runs/sweep
  voronaut train gym:Pendulum-v1 --bonus kme --steps 1e5 --out runs/pendulum
  voronaut train cheetah-run --out runs/cheetah --resume"""


def parser() -> argparse.ArgumentParser:
    """All commands and their help."""
    top = argparse.ArgumentParser(prog="voronaut", description="k-means maximum entropy exploration.")
    top.add_argument("--version", action="version", version=f"voronaut {__version__}")
    commands = top.add_subparsers(dest="command", required=True, metavar="COMMAND")
    _add_train(commands)
    _add_eval(commands)
    _add_reproduce(commands)
    bench = commands.add_parser("bench", help="measure what things cost, as ratios to something run beside them")
    texts = "; ".join(f"{name}: {text}" for name, text in BENCHES.items())
    bench.add_argument("what", choices=BENCHES, help=texts)
    bench.add_argument("--out", type=Path, default=Path("benchmarks"), help="folder for tables and plots (%(default)s)")
    bench.set_defaults(run=run_bench)
    return top


def _add_train(commands: Any) -> None:
    train = commands.add_parser(
        "train",
        help="train an agent with a bonus on a sparse task",
        description=TRAIN_HELP,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = train.add_argument
    add("task", metavar="TASK", help="cheetah-run, walker-run, quadruped-run, humanoid-run, cartpole-swingup, "
        "acrobot-swingup, or gym:ID for a Gymnasium environment with flat Box observations and actions")  # fmt: skip
    add("--bonus", action="append", dest="bonuses", metavar="NAME", help="none, kme, rnd, re3 or hash; repeatable "
        "(none and kme)")  # fmt: skip
    add("--seeds", type=_seeds, metavar="N", help="this many seeds from 0, or a list such as 3,4,7 (5)")
    add("--steps", type=_number, metavar="N", help="environment steps per run, such as 2e6 (5e6)")
    add("--out", type=Path, required=True, metavar="DIR", help="folder for everything that is written")
    add("--threshold", metavar="release|paper", help="below which reward is 0 (release)")
    add("--backend", metavar="auto|dm_control|envpool", help="simulator (auto: envpool where it is installed)")
    add("--envs", type=int, metavar="N", help="environments per run (16)")
    add("--rollout", type=int, metavar="N", help="steps per rollout of a run, all its environments together (16384)")
    add("--sweep", action="append", metavar="kme.balance=1e-5,1e-4", help="train every value of a bonus's parameter "
        "side by side; repeat for a grid")  # fmt: skip
    add("--resume", action="store_true", help="go on from the last checkpoint in DIR, if there is one")
    add("--quiet", action="store_true", help="show no progress")
    train.epilog = "A bonus's own parameters: --kme.clusters 300, --rnd.scale 1e-5, --kme.scale linear:0.01:0, ..."
    train.set_defaults(run=run_train)


def _add_eval(commands: Any) -> None:
    command = commands.add_parser("eval", help="returns of a trained policy, and a video of it")
    command.add_argument("folder", type=Path, metavar="DIR/kme-0", help="the folder of one run")
    command.add_argument("--episodes", type=int, default=10, help="episodes of each kind (%(default)s)")
    command.add_argument("--seed", type=int, default=1_000_000, help="of the episodes (%(default)s)")
    command.add_argument("--video", type=Path, metavar="out.mp4", help="film one episode with the mean action")
    command.set_defaults(run=run_eval)


def _add_reproduce(commands: Any) -> None:
    command = commands.add_parser(
        "reproduce",
        help="run the paper's experiments, in any number of sittings",
        description="Runs what is missing of an experiment, keeps one small file per run in --results and redraws its "
        "figures. Stops cleanly when the budget is spent; the same command goes on. Results of several machines merge "
        "by copying folders.",
    )
    add = command.add_argument
    add("what", choices=EXPERIMENTS, help="; ".join(f"{name}: {text}" for name, text in EXPERIMENTS.items()))
    add(
        "--only",
        action="append",
        default=[],
        metavar="TASK",
        help="a task or a cell such as cheetah-run-paper; repeatable",
    )
    add("--method", action="append", dest="methods", metavar="NAME", help="none, kme, rnd or re3; repeatable (all)")
    add("--seeds", type=int, metavar="N", help="seeds per cell (exploration: 5, else 3)")
    add("--steps", type=_number, metavar="N", help="steps per run (exploration: 5e6, else 2e6)")
    add("--budget", type=_duration, metavar="25m", help="stop at a checkpoint after this time, such as 90s, 25m or 2h")
    add("--results", type=Path, dest="folder", metavar="DIR", help="one file per run (results/WHAT)")
    add("--work", type=Path, metavar="DIR", help="checkpoints of what is under way (runs/WHAT)")
    add("--figures", type=Path, metavar="DIR", help="where figures are drawn at the end (docs/figures/exploration)")
    add("--draw", action="store_true", help="only redraw the figures from the result files")
    add("--status", action="store_true", help="show what is done, under way and missing, and run nothing")
    command.set_defaults(run=run_reproduce)


def _duration(text: str) -> float:
    unit = {"s": 1, "m": 60, "h": 3600}.get(text[-1:], 0)
    try:
        return float(text[:-1]) * unit if unit else float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is no duration; write it as 90s, 25m or 2h") from None


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is no number; write it as 2000000 or 2e6") from None


def _seeds(text: str) -> int | list[int]:
    try:
        return [int(part) for part in text.split(",") if part] if "," in text else int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is neither a count nor a list such as 0,1,2") from None


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
    sweep = {}
    for text in texts:
        key, equals, values = text.partition("=")
        if not equals or not values or "." not in key:
            raise ValueError(f"{text!r} is no sweep; write it as kme.balance=1e-5,1e-4.")
        sweep[key] = values.split(",")
    return sweep


def run_train(options: argparse.Namespace) -> int:
    """`voronaut train`."""
    from voronaut.training.api import configure
    from voronaut.training.command import train

    names = ("bonuses", "seeds", "steps", "threshold", "backend", "envs", "rollout")
    given = {name: getattr(options, name) for name in names if getattr(options, name) is not None}
    config = configure(
        options.task, **given, options=bonus_options(options.rest), sweep=sweep_options(options.sweep or [])
    )
    return train(config, options.out, resume=options.resume, quiet=options.quiet)


def run_reproduce(options: argparse.Namespace) -> int:
    """`voronaut reproduce`."""
    import importlib

    from voronaut.experiments import sweep

    experiment = importlib.import_module(f"voronaut.experiments.{options.what}")
    names = ("methods", "seeds", "steps", "folder", "work")
    given = {name: getattr(options, name) for name in names if getattr(options, name) is not None}
    plan = sweep.choose(options.only, sweep.make_plan(experiment.PLAN, **given))
    if not options.status:
        if not options.draw:
            sweep.run(plan, budget=options.budget)
        for path in _draw(experiment, plan, options):
            print(path)
    print(sweep.status(plan))
    return 0


def _draw(experiment: Any, plan: Any, options: argparse.Namespace) -> list[Path]:
    """All figures of the experiment, also of the cells that were not chosen now."""
    whole = plan._replace(cells=experiment.PLAN.cells, methods=experiment.PLAN.methods)
    try:
        return list(experiment.draw(whole, options.figures or experiment.FIGURES))
    except ImportError as error:
        if options.draw:
            raise
        print(f"no figures: {error}", file=sys.stderr)
        return []


def run_eval(options: argparse.Namespace) -> int:
    """`voronaut eval`."""
    from voronaut.training.command import evaluate

    return evaluate(options.folder, options.episodes, options.seed, options.video)


def run_bench(options: argparse.Namespace) -> int:
    """`voronaut bench`."""
    import importlib

    print(importlib.import_module(f"voronaut.bench.{options.what}").run(options.out))
    return 0


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; errors a user can mend are one line on stderr and exit code 2."""
    options, options_rest = parser().parse_known_args(arguments)
    options.rest = options_rest
    try:
        if options_rest and options.command != "train":
            raise ValueError(f"unknown: {' '.join(options_rest)}. See voronaut {options.command} --help.")
        return int(options.run(options))
    except (ValueError, ImportError, FileNotFoundError) as error:
        print(f"voronaut: {error}", file=sys.stderr)
        return 2
