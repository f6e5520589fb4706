"""What is run: the paper's KME, and one parameter at a time at other values."""

from pathlib import Path
from typing import Any

from voronaut import presets
from voronaut.experiments.common import sweep
from voronaut.experiments.common.sweep import Cell, Data, Plan
from voronaut.experiments.exploration.run import FIGURES
from voronaut.training import ways

__all__ = ["FIGURES", "ORDER", "PLAN", "SYMBOLS", "points"]
TASK, PAPER = "cheetah-run", "paper"
# Besides the paper's own values, which are run once, in the cell "paper".
VALUES = {
    "balance": ("0", "1e-5", "1e-3"),
    "step_size": ("0.005", "0.2"),
    "clusters": ("100", "1000"),
    "objective": ("log",),
    ways.OPTION: ("in-order", "online", "online-shuffled"),
}
ORDER = ("sqrt", "log", *ways.WAYS)  # of values that are words, the paper's first
ROLLOUTS = (4_096, 65_536)  # the agent's and the bonus's alike: Algorithm 2 has one B
SYMBOLS = {"balance": "κ", "step_size": "α", "clusters": "k", "objective": "f", "absorb": "", "rollout": "B"}


def _cell(name: str, **choices: Any) -> Cell:
    return Cell(name, TASK, {"bonuses": ("kme",), **choices})


PLAN = Plan(
    cells=(
        _cell(PAPER),
        *(_cell(name, sweep={f"kme.{name}": values}) for name, values in VALUES.items()),
        *(_cell(f"rollout-{size}", rollout=size) for size in ROLLOUTS),
    ),
    seeds=3,
    steps=2_000_000,
    folder=Path("results/parameters"),
    work=Path("runs/parameters"),
)


def points(plan: Plan, say: sweep.Say = print) -> Data:
    """Runs by parameter and value, the paper's value in its place; files that are not used are named."""
    runs, paper = sweep.used(plan, say), presets.paper()
    by_parameter = {}
    for name, values in VALUES.items():
        usual = _text(paper.kme.get(name, ways.USUAL))
        mine = dict(zip(values, runs[name].values(), strict=True)) | {usual: runs[PAPER]["kme"]}
        by_parameter[name] = {value: mine[value] for value in sorted(mine, key=_size)}
    lengths = {size: runs[f"rollout-{size}"]["kme"] for size in ROLLOUTS} | {paper.ppo["rollout"]: runs[PAPER]["kme"]}
    by_parameter["rollout"] = {str(size): lengths[size] for size in sorted(lengths)}
    return by_parameter


def _text(value: Any) -> str:
    """A value as `VALUES` writes it: 1e-4, 0.05, 300, sqrt."""
    return f"{value:.0e}".replace("e-0", "e-") if isinstance(value, float) and value < 1e-3 else str(value)


def _size(value: str) -> float:
    return ORDER.index(value) if value in ORDER else float(value)
