"""What the figures of all experiments share: names, colours, bands around means, panels that wait for data."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from voronaut.experiments.common import stats
from voronaut.experiments.common.results import Result
from voronaut.experiments.common.sweep import Cell
from voronaut.helpers.plotting import COLORS, figure
from voronaut.tasks.table import TASKS

NAMES = {"none": "PPO", "kme": "PPO + KME", "rnd": "PPO + RND", "re3": "PPO + RE3"}
NOT_RUN = "not run yet"
GREY = "#8a8a8a"
CURVES = {
    "state_entropy": "entropy of a rollout's states (nats)",
    "max_step_reward": "top dense reward of a rollout",
    "extrinsic_return": "return",
}
SMOOTH = 5  # rollouts; curves only, never numbers
Score = Callable[[Result], float]
Runs = Mapping[str, Sequence[Result]]  # by method
Panel = Callable[[Any, str, Score], None]  # axes, column, score


def area(result: Result) -> float:
    """Mean return over training: the area under the curve per step."""
    return stats.area(result.curve["env_steps"], result.curve["extrinsic_return"])


def final(result: Result) -> float:
    """Mean return of the last 10 % of the steps."""
    return stats.final(result.curve["env_steps"], result.curve["extrinsic_return"])


def top(result: Result) -> float:
    """The highest dense reward of any step (of Cheetah: the top speed, as a share of the one wanted)."""
    return float(np.nanmax(result.curve["max_step_reward"]))


def entropy(result: Result) -> float:
    """Mean entropy of a rollout's states over training, in nats."""
    return stats.area(result.curve["env_steps"], result.curve["state_entropy"])


def first_above_one(result: Result) -> float:
    """Steps until the first rollout whose mean return is above 1; infinity if there is none."""
    found = np.flatnonzero(result.curve["extrinsic_return"] > 1)
    return float(result.curve["env_steps"][found[0]]) if len(found) else float("inf")


def early_entropy(result: Result) -> float:
    """Mean entropy of a rollout's states in the first 10 % of the steps, in nats."""
    early = result.curve["env_steps"] <= result.curve["env_steps"][-1] / 10
    return float(np.mean(result.curve["state_entropy"][early]))


def scores(results: Sequence[Result], score: Score) -> Any:
    """One number per seed."""
    return np.array([score(result) for result in results])


def means(results: Sequence[Result], forms: Mapping[Score, str]) -> list[str]:
    """How many seeds there are, and for each score their mean with its t-interval."""
    if not results:
        return ["0", NOT_RUN, *[""] * (len(forms) - 1)]
    texts = [stats.pretty(stats.mean_interval(scores(results, score)), form) for score, form in forms.items()]
    return [str(len(results)), *texts]


def stacked(results: Sequence[Result], key: str) -> tuple[Any, Any]:
    """(steps, curves of all seeds), gaps filled with the last value known."""
    return results[0].curve["env_steps"], np.stack([stats.carried(result.curve[key]) for result in results])


def title(cell: Cell) -> str:
    """Cheetah run, reward above 0.25 (release)."""
    words = cell.task.replace("-", " ").capitalize()
    variant = cell.choices.get("threshold", "release")
    least = TASKS[cell.task].threshold(variant)
    return f"{words}\nreward from {least:g} ({variant})" if least else f"{words}\nthe suite's sparse reward"


def smooth(curve: Any) -> Any:
    """The mean of each value and the few before it."""
    return np.array([np.mean(curve[max(0, end - SMOOTH) : end]) for end in range(1, len(curve) + 1)])


def band(axes: Any, results: Sequence[Result], key: str, method: str, spread: bool = True) -> None:
    """Mean over seeds with its 95 % t-interval."""
    steps, curves = stacked(results, key)
    mean = stats.mean_interval([smooth(curve) for curve in curves])
    kind = method.partition(",")[0]
    axes.plot(steps / 1e6, mean.value, color=COLORS[kind], linewidth=1.8, label=NAMES[kind])
    if spread and len(results) > 1:
        axes.fill_between(steps / 1e6, mean.low, mean.high, color=COLORS[kind], alpha=0.1, linewidth=0)
        for edge in (mean.low, mean.high):
            axes.plot(steps / 1e6, edge, color=COLORS[kind], linewidth=0.6, alpha=0.45)


def in_order(runs: Runs) -> list[tuple[str, Sequence[Result]]]:
    """Methods that have data, KME last so that it lies on top."""
    return sorted(((m, rs) for m, rs in runs.items() if rs), key=lambda item: item[0] == "kme")


def not_run(axes: Any, text: str = NOT_RUN) -> None:
    """A panel that waits for data."""
    axes.text(0.5, 0.5, text, transform=axes.transAxes, ha="center", va="center", color=GREY, style="italic")
    axes.set(xticks=[], yticks=[])
    axes.set_facecolor("#fafafa")
    for spine in axes.spines.values():
        spine.set(color="#dddddd", visible=True)


def interval(axes: Any, y: float, measured: stats.Interval, color: str, label: str | None = None) -> None:
    """A dot with its interval as a horizontal bar."""
    if np.isfinite(measured.low):
        axes.plot([measured.low, measured.high], [y, y], color=color, linewidth=3, alpha=0.4, solid_capstyle="butt")
    axes.plot([measured.value], [y], "o", color=color, markersize=5.5, label=label)


def share_y(grid: Any) -> None:
    """One scale per row, wide enough for all its panels that have data; numbers on the left only."""
    for row in grid:
        full = [axes for axes in row if axes.lines]
        limits = [axes.get_ylim() for axes in full]
        for index, axes in enumerate(full):
            axes.set_ylim(min(low for low, _ in limits), max(high for _, high in limits))
            axes.tick_params(labelleft=index == 0)


def grid(
    path: Path, titles: Mapping[str, str], rows: Mapping[str, Score], panel: Panel, size: tuple[float, float]
) -> None:
    """A column per title and a row per score, each panel drawn by `panel`."""
    with figure(path, columns=len(titles), rows=len(rows), size=size) as panels:
        for column, (name, title) in enumerate(titles.items()):
            for axes, (text, score) in zip(panels[:, column], rows.items(), strict=True):
                panel(axes, name, score)
                axes.set_ylabel(text if column == 0 else "")
            panels[0, column].set_title(title)
        share_y(panels)


def dots(axes: Any, labels: Sequence[str], groups: Sequence[Any], color: str, line: str = "-") -> None:
    """Every seed as a faint dot above its label, their means joined by a line."""
    for x, values in enumerate(groups):
        axes.plot(np.full(len(values), x), values, "o", color=color, alpha=0.35, markersize=5, markeredgewidth=0)
    known = [(x, float(np.mean(values))) for x, values in enumerate(groups) if len(values)]
    axes.plot(*zip(*known, strict=True), marker="o", linestyle=line, color=color, markersize=6, linewidth=1.5)
    axes.set_xticks(range(len(labels)), labels)
    axes.set_xlim(-0.4, len(labels) - 0.6)
