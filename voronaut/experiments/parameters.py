"""What the parameters do: one parameter of KME at a time on Cheetah, three seeds, two million steps each.

The paper says in words: more balancing (κ) and larger steps (α) cost stability, κ buys a balanced diagram and α a
representative one; more clusters (k) buy stability and accuracy; long shuffled rollouts (B) buy stability.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from voronaut import presets
from voronaut.experiments import drawing, exploration, stats, sweep
from voronaut.experiments.results import Result
from voronaut.experiments.sweep import Cell, Plan
from voronaut.plotting import COLORS, figure

FIGURES = exploration.FIGURES
TASK, PAPER = "cheetah-run", "paper"
# Besides the paper's own values, which are run once, in the cell "paper".
VALUES = {
    "balance": ("0", "1e-5", "1e-3"),
    "step_size": ("0.005", "0.2"),
    "clusters": ("100", "1000"),
    "objective": ("log",),
}
ROLLOUTS = (4_096, 65_536)  # the agent's and the bonus's alike: Algorithm 2 has one B
SYMBOLS = {"balance": "κ", "step_size": "α", "clusters": "k", "objective": "f", "rollout": "B"}


def _cell(name: str, **choices: Any) -> Cell:
    return Cell(name, TASK, {"bonuses": ("kme",), **choices})


SWEEP = (
    _cell(PAPER),
    *(_cell(name, sweep={f"kme.{name}": values}) for name, values in VALUES.items()),
    *(_cell(f"rollout-{size}", rollout=size) for size in ROLLOUTS),
)
PLAN = Plan(cells=SWEEP, seeds=3, steps=2_000_000, folder=Path("results/parameters"), work=Path("runs/parameters"))


def balance(result: Result) -> float:
    """Spread of the clusters' counts at the end (standard deviation / mean): 0 is a balanced diagram."""
    return float(result.about["last_metrics"].get("kme/count_cv", np.nan))


ROWS: dict[str, drawing.Score] = {
    "mean return over training": drawing.area,
    "top dense reward": drawing.top,
    "state entropy (nats)": drawing.entropy,
    "spread of counts": balance,
}


def points(plan: Plan) -> tuple[dict[str, dict[str, list[Result]]], list[str]]:
    """Runs by parameter and value, the paper's value in its place, and a line for each file that is not used."""
    runs, troubles = sweep.collect(plan)
    paper = presets.paper()
    by_parameter = {}
    for name, values in VALUES.items():
        mine = dict(zip(values, runs[name].values(), strict=True)) | {_text(paper.kme[name]): runs[PAPER]["kme"]}
        by_parameter[name] = {value: mine[value] for value in sorted(mine, key=_size)}
    lengths = {size: runs[f"rollout-{size}"]["kme"] for size in ROLLOUTS} | {paper.ppo["rollout"]: runs[PAPER]["kme"]}
    by_parameter["rollout"] = {str(size): lengths[size] for size in sorted(lengths)}
    return by_parameter, troubles


def _text(value: Any) -> str:
    """A value as `VALUES` writes it: 1e-4, 0.05, 300, sqrt."""
    return f"{value:.0e}".replace("e-0", "e-") if isinstance(value, float) and value < 1e-3 else str(value)


def _size(value: str) -> float:
    try:
        return float(value)
    except ValueError:
        return float(value != "sqrt")


def draw(plan: Plan = PLAN, figures: Path = FIGURES, say: Callable[[str], None] = print) -> list[Path]:
    """parameters.png: return, top reward, entropy and balance against each parameter."""
    by_parameter, troubles = points(plan)
    for trouble in troubles:
        say(f"not used: {trouble}")
    path = figures / "parameters.png"
    with figure(path, columns=len(by_parameter), rows=len(ROWS), size=(13, 9)) as grid:
        for column, (name, runs) in enumerate(by_parameter.items()):
            for axes, (text, score) in zip(grid[:, column], ROWS.items(), strict=True):
                _panel(axes, runs, score)
                axes.set_ylabel(text if column == 0 else "")
            grid[0, column].set_title(f"{name} {SYMBOLS[name]}")
    return [path]


def _panel(axes: Any, runs: drawing.Runs, score: drawing.Score) -> None:
    if not any(runs.values()):
        return drawing.not_run(axes)
    drawing.dots(axes, list(runs), [drawing.scores(results, score) for results in runs.values()], COLORS["kme"])


def table(plan: Plan = PLAN) -> str:
    """Markdown: one row per parameter and value, means over seeds with t-intervals."""
    by_parameter = points(plan)[0]
    if not any(results for runs in by_parameter.values() for results in runs.values()):
        return "Nothing has been run yet."
    lines = ["| parameter | value | seeds | " + " | ".join(ROWS) + " |", "|---" * (3 + len(ROWS)) + "|"]
    for name, runs in by_parameter.items():
        for value, results in runs.items():
            numbers = [stats.mean_interval(drawing.scores(results, score)) for score in ROWS.values() if results]
            texts = [f"{n.value:.2f} [{n.low:.2f}, {n.high:.2f}]" for n in numbers] or ["not run yet"] * len(ROWS)
            lines.append(f"| {name} {SYMBOLS[name]} | {value} | {len(results)} | " + " | ".join(texts) + " |")
    return "\n".join(lines)
