"""The command line: parses, and calls one function of `commands`. Experiments and methods have their own numbers."""

import argparse
import math
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from voronaut.cli import commands
from voronaut.version import __version__

BENCHES = {
    "kernels": "microseconds per state against a bare distance loop",
    "bonuses": "seconds per rollout of every bonus on one thread",
    "adapters": "what BonusVecEnv adds to a step of Stable-Baselines3",
    "rllib": "steps per second of RLlib with one and two learners",
    "entropy": "seconds per million points against clustering and bare matrix products, kNN, and memory",
    "train": "seconds per rollout and per gradient step of SAC against Stable-Baselines3 and SBX, how cost grows",
    "gpu": "states per second of KME on a CUDA device against its ceilings, RND and RE3",
}
EXPERIMENTS = {
    "exploration": "six sparse tasks, PPO alone and with KME, RND and RE3",
    "hard": "the same tasks with SAC, alone and as a pair of explorer and exploiter with KME and others",
    "scale": "the weight of each bonus on Cheetah",
    "parameters": "KME's parameters on Cheetah, one at a time",
    "sb3": "Cheetah once more with Stable-Baselines3's own PPO, alone and with KME",
    "loops": "MountainCarContinuous and MiniGrid's DoorKey with Stable-Baselines3, with Voronaut and without",
    "entropy": "orderings, walks, Theorem 1's density, and errors in nats beside other estimators",
    "balance": "rules that balance clusters, on fixed laws and on streams that move",
    "noise": "a small pair on Cheetah with 20 coordinates of pure noise, with views and with one clustering",
}
TRAIN_HELP = """\
Trains every bonus with every seed, side by side, and writes DIR/config.json and, for each run, a folder such as
DIR/kme-0 with progress.jsonl (one line per rollout), TensorBoard files, policy.npz, bonus.npz and clusters/ (for the
map of voronaut report). Interrupted or killed, the same command with --resume goes on; finished, with more --steps.

examples:
  voronaut train cheetah-run --out runs/cheetah
  voronaut train cheetah-run --learner sac --sac.size small --seeds 1 --steps 3e5 --out runs/pair
  voronaut train cheetah-run --bonus kme --bonus none --seeds 5 --steps 2e6 --out runs/cheetah
  voronaut train cheetah-run --bonus kme --kme.scale linear:0.01:0 --kme.balance 1e-3 --out runs/schedule
  voronaut train cheetah-run --bonus kme --sweep kme.balance=1e-5,1e-4,1e-3 --out runs/sweep
  voronaut train gym:Pendulum-v1 --bonus kme --steps 1e5 --out runs/pendulum
  voronaut train gym:CartPole-v1 --bonus none --rollout 2048 --steps 1e5 --out runs/cartpole
  voronaut train cheetah-run --out runs/cheetah --resume
  voronaut train cheetah-run --out runs/cheetah --steps 1e7 --resume"""


def parser() -> argparse.ArgumentParser:
    """All commands and their help."""
    top = argparse.ArgumentParser(prog="voronaut", description="k-means maximum entropy exploration.")
    top.add_argument("--version", action="version", version=f"voronaut {__version__}")
    menu = top.add_subparsers(dest="command", required=True, metavar="COMMAND")
    _add_train(menu)
    _add_eval(menu)
    _add_reproduce(menu)
    _add_entropy(menu)
    _add_report(menu)
    _add_demo(menu)
    bench = menu.add_parser("bench", help="measure what things cost, beside something else that is run along")
    texts = "; ".join(f"{name}: {text}" for name, text in BENCHES.items())
    bench.add_argument("what", choices=BENCHES, help=texts)
    bench.add_argument("--out", type=Path, default=Path("benchmarks"), help="folder for tables and plots (%(default)s)")
    bench.add_argument("--draw", action="store_true", help="of gpu: only redraw plot and tables from gpu.json in --out")
    bench.set_defaults(run=commands.run_bench)
    return top


def _add_train(menu: Any) -> None:
    train = menu.add_parser("train", help="train an agent with a bonus on a sparse task", description=TRAIN_HELP,
                            formatter_class=argparse.RawDescriptionHelpFormatter)  # fmt: skip
    add = train.add_argument
    add("task", metavar="TASK", help="cheetah-run, walker-run, quadruped-run, humanoid-run, cartpole-swingup, "
        "acrobot-swingup, maze, gym:ID for a Gymnasium environment with flat Box observations, or env:module:name for "
        "a function that makes one")  # fmt: skip
    add("--learner", metavar="ppo|sac", help="ppo, or sac: an explorer and an exploiter that share one memory (ppo)")
    add("--bonus", action="append", dest="bonuses", metavar="NAME", help="none, kme, rnd, re3 or hash, and with sac "
        "zero, a pair without a bonus; repeatable (none and kme)")  # fmt: skip
    add("--pair", type=_switch, metavar="on|off|stored", help="of sac: off is one agent paid by task and bonus "
        "together; stored pays a state what it earned when it was met, not what it earns now (on)")  # fmt: skip
    add("--seeds", type=_seeds, metavar="N", help="this many seeds from 0, or a list such as 3,4,7 (5)")
    add("--steps", type=_number, metavar="N", help="environment steps per run, such as 2e6 (5e6; of sac 1e6)")
    add("--out", type=Path, required=True, metavar="DIR", help="folder for everything that is written")
    add("--threshold", metavar="release|paper|dense", help="which rewards count, on Cheetah and Walker: from 0.25 on, "
        "as in the code that the authors released, from 0.5 on, as the paper prints, or all (release)")  # fmt: skip
    add("--backend", metavar="auto|dm_control|envpool", help="simulator (auto: envpool where it is installed)")
    add("--envs", type=int, metavar="N", help="environments per run (16)")
    add("--rollout", type=int, metavar="N", help="steps per rollout of a run, all its environments together (16384); "
        "of sac: per line of the log (10240)")  # fmt: skip
    add("--sweep", action="append", metavar="kme.balance=1e-5,1e-4", help="train every value of a bonus's parameter "
        "side by side; repeat for a grid")  # fmt: skip
    add("--preset", metavar="paper", help="paper: the paper's numbers for KME instead of its defaults")
    add("--resume", action="store_true", help="go on from the last checkpoint in DIR, if there is one; with more "
        "--steps also when all were done")  # fmt: skip
    add("--restart", action="store_true", help="begin again from 0; what DIR holds of this experiment is moved to "
        "DIR/before-1")  # fmt: skip
    add("--quiet", action="store_true", help="show no progress")
    add("--wandb", nargs="?", const="voronaut", metavar="PROJECT", help="send everything to Weights & Biases too "
        "(project voronaut; needs the extra wandb; WANDB_MODE=offline keeps it on disk)")  # fmt: skip
    train.epilog = (
        "A bonus's own parameters: --kme.clusters 300, --rnd.scale 1e-5, --kme.scale linear:0.01:0, ... "
        "\nA learner's: --ppo.learning_rate 1e-4, --sac.width 128, --sac.size small (for a core or two), ... "
        "\nHow KME absorbs a rollout: --kme.absorb shuffled (Algorithm 2, after it is paid) or online (Algorithm 1)"
    )
    train.set_defaults(run=commands.run_train)


def _add_eval(menu: Any) -> None:
    command = menu.add_parser("eval", help="returns of a trained policy, and a video of it")
    add = command.add_argument
    add("folder", type=Path, metavar="DIR/kme-0", help="the folder of one run, or such as hard/humanoid-run: the best "
        "policy of reproduce hard")  # fmt: skip
    add("--episodes", type=int, default=10, metavar="N", help="with mean actions, and as many with sampled ones (10)")
    add("--seed", type=_seed, default=1_000_000, metavar="N", help="of the episodes (%(default)s)")
    add("--video", type=Path, metavar="out.mp4", help="film one episode with the mean action (.mp4)")
    command.set_defaults(run=commands.run_eval)


def _add_reproduce(menu: Any) -> None:
    command = menu.add_parser(
        "reproduce",
        help="run the paper's experiments, in any number of sittings",
        description="Runs what is missing of an experiment, keeps one small file per run in --results and redraws its "
        "figures. Stops cleanly when the budget is spent; the same command goes on. Results of several machines merge "
        "by copying folders.",
    )
    add = command.add_argument
    add("what", choices=EXPERIMENTS, help="; ".join(f"{name}: {text}" for name, text in EXPERIMENTS.items()))
    add("--only", action="append", default=[], metavar="TASK", help="a task or a cell such as cheetah-run-paper; of "
        "entropy a part; repeatable")  # fmt: skip
    add("--method", action="append", dest="methods", metavar="NAME", help="none, kme, rnd or re3; repeatable (all)")
    add("--cells", action="append", metavar="CELL:METHOD+METHOD,…", help="of hard: cells and, behind a colon, methods "
        "that are run side by side, such as cheetah-0.25:kme+none,acrobot (all that is planned)")  # fmt: skip
    add("--seeds", type=_seeds, metavar="N", help="seeds per cell (exploration: 5, sb3: 2, scale and parameters: 3); "
        "of hard: which, such as 100-104")  # fmt: skip
    add("--steps", type=_number, metavar="N", help="steps per run (exploration: 5e6, sb3: 1e6, else 2e6); points of "
        "entropy")  # fmt: skip
    add("--budget", type=_duration, metavar="25m", help="stop at a checkpoint after this time, such as 90s, 25m or 2h")
    add("--results", type=Path, dest="folder", metavar="DIR", help="one file per run (results/WHAT)")
    add("--work", type=Path, metavar="DIR", help="checkpoints of what is under way (runs/WHAT)")
    add("--figures", type=Path, metavar="DIR", help="where figures are drawn at the end (in docs/figures)")
    add("--processes", type=int, default=1, metavar="N", help="jobs side by side, of entropy, hard, loops and "
        "noise (%(default)s)")  # fmt: skip
    add("--draw", action="store_true", help="only redraw the figures from the result files")
    add("--freeze", action="store_true", help="of hard: write every setting to settings.json in --results; from then "
        "on only such runs are begun, and only such count")  # fmt: skip
    add("--status", action="store_true", help="show what is done, under way and missing, and run nothing")
    command.set_defaults(run=commands.run_reproduce)


def _add_report(menu: Any) -> None:
    command = menu.add_parser(
        "report",
        help="one page about any set of runs: curves, clusters, cost, warnings",
        description="Writes one HTML page, which needs no network, about all runs in and below the folders: of "
        "voronaut train, finished or under way, and result files of voronaut reproduce.",
    )
    add = command.add_argument
    add("folders", nargs="+", type=Path, metavar="DIR", help="an experiment, a run, or a folder of them")
    add("--out", type=Path, default=Path("report.html"), metavar="FILE", help="the page (%(default)s)")
    command.set_defaults(run=commands.run_report)


def _add_demo(menu: Any) -> None:
    command = menu.add_parser(
        "demo",
        help="half a minute: PPO with and without KME in a maze, and a film of it",
        description="Trains both side by side and writes a film (maze.gif), a picture (maze.png) and a report page. "
        "Interrupted, the same command goes on; finished, it draws again.",
    )
    add = command.add_argument
    add("--out", type=Path, default=Path("out/demo"), metavar="DIR", help="folder for all of it (%(default)s)")
    add("--seed", type=_seed, metavar="N", help="of both runs (1)")
    add("--steps", type=_number, metavar="N", help="environment steps of each run (326400)")
    command.set_defaults(run=commands.run_demo)


def _add_entropy(menu: Any) -> None:
    command = menu.add_parser(
        "entropy",
        help="entropy in nats of the rows of a file or of a stream of lines",
        description="Entropy in nats, with its sampling error, in memory that does not grow with the file. Rows of "
        "files are shuffled first (of text and parquet within a pool of 64 MB), those of stdin taken as they come. "
        "What the number means and when not to trust it: docs/entropy.md.",
    )
    add = command.add_argument
    add("file", metavar="FILE", help=".npy, .npz, .csv, .tsv, .txt or .parquet; - for lines on stdin")
    add("--method", metavar="NAME", help="mixture, moments or bound (mixture)")
    add("--clusters", type=int, metavar="N", help="components or cells (300)")
    add("--resolution", type=float, metavar="SHARE", help="blur of columns with repeated values, in scales (1e-3)")
    add("--drop-bad", action="store_const", const="drop", dest="on_bad", help="leave out rows with NaN or infinity")
    add("--key", metavar="NAME", help="which array of an npz file")
    add("--columns", metavar="A,B", help="only these columns, by name or by place from 0 on (all)")
    add("--seed", type=_seed, metavar="N", help="of the clusters' start (0)")
    add("--plot", type=Path, metavar="out.png", help="draw the estimate over the rows")
    add("--json", action="store_true", help="print one JSON object instead")
    command.set_defaults(run=commands.run_entropy)


def _duration(text: str) -> float:
    unit = {"s": 1, "m": 60, "h": 3600}.get(text[-1:], 0)
    try:
        seconds = float(text[:-1]) * unit if unit else float(text)
    except ValueError:
        seconds = math.nan
    if seconds >= 0:
        return seconds
    raise argparse.ArgumentTypeError(f"{text!r} is not a duration; write it as 90s, 25m or 2h")


def _switch(text: str) -> bool | str:
    if text not in ("on", "off", "stored"):
        raise argparse.ArgumentTypeError(f"{text!r} is none of on, off, stored")
    return text if text == "stored" else text == "on"


def _number(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if math.isfinite(number):
        return number
    raise argparse.ArgumentTypeError(f"{text!r} is not a finite number; write it as 2000000 or 2e6")


def _seeds(text: str) -> int | list[int]:
    from voronaut.training.api import SEEDS  # not for every --help

    try:
        if "," not in text and "-" not in text:
            return int(text)
        ends = [part.split("-") for part in text.split(",") if part]
        ranges = [range(int(each[0]), int(each[-1]) + 1) for each in ends]
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is neither a count nor a list such as 0,1,2 or 100-104") from None
    if not all(ranges) or not ranges or sum(map(len, ranges)) > SEEDS:
        raise argparse.ArgumentTypeError(
            f"{text!r} names no seed, or more than {SEEDS}; write a list as 0,1,2 or 100-104"
        )
    return [seed for each in ranges for seed in each]


def _seed(text: str) -> int:
    try:
        if int(text) >= 0:
            return int(text)
    except ValueError:
        pass
    raise argparse.ArgumentTypeError(f"{text!r} is no seed; write a whole number of at least 0")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; errors a user can mend are one line on stderr and exit code 2."""
    _open_outputs()
    given = sys.argv[1:] if arguments is None else arguments
    if not given:
        parser().print_help()
        return 0
    options, options_rest = parser().parse_known_args(given)
    options.rest = options_rest
    try:
        if options_rest and options.command != "train" and getattr(options, "what", "") != "hard":
            raise ValueError(f"unknown: {' '.join(options_rest)}. See voronaut {options.command} --help.")
        code = int(options.run(options))
        sys.stdout.flush()
        return code
    except BrokenPipeError:  # whoever read the output has gone: `voronaut … | head`
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115 (or Python complains at its end)
        return 1
    except (ValueError, ImportError, OSError) as error:
        print(f"voronaut: {error}", file=sys.stderr)
        return 2
    except (MemoryError, RuntimeError) as error:  # JAX and torch tell of it by a RuntimeError
        if isinstance(error, RuntimeError) and "out of memory" not in str(error).lower():
            raise
        told = str(error).partition("\n")[0] or "MemoryError"
        print(f"voronaut: too little memory for this ({told}). Choose less: a batch, a width, runs.", file=sys.stderr)
        return 2


def _open_outputs() -> None:
    """Outputs that were closed (`>&-`) lead nowhere; else the next file to be opened would get their number."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "w"))  # noqa: SIM115
