"""What the parameters do: one parameter of KME at a time on Cheetah, three seeds, two million steps each.

The paper says in words: more balancing (κ) and larger steps (α) cost stability, κ buys a balanced diagram and α a
representative one; more clusters (k) buy stability and accuracy; long rollouts (B), shuffled and absorbed after they
are paid, buy stability; online, a gap has to be computed anew in about 0.01 % of the steps.
"""

import argparse
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from voronaut import presets
from voronaut.experiments.common import drawing, sweep
from voronaut.experiments.common.sweep import Cell, Data, Plan
from voronaut.experiments.exploration.run import FIGURES
from voronaut.helpers.markdown import table
from voronaut.helpers.plotting import COLORS
from voronaut.training.population import ABSORB, ONLINE, SHUFFLED, Population, Stack

__all__ = ["PLAN", "computed", "draw", "reproduce"]

TASK, PAPER = "cheetah-run", "paper"
IN_ORDER, ONLINE_SHUFFLED = "in-order", "online-shuffled"  # which only this experiment knows
WAYS = (SHUFFLED, IN_ORDER, ONLINE, ONLINE_SHUFFLED)
# Besides the paper's own values, which are run once, in the cell "paper".
VALUES = {
    "balance": ("0", "1e-5", "1e-3"),
    "step_size": ("0.005", "0.2"),
    "clusters": ("100", "1000"),
    "objective": ("log",),
    ABSORB: (IN_ORDER, ONLINE, ONLINE_SHUFFLED),
}
ORDER = ("sqrt", "log", *WAYS)  # of values that are words, the paper's first
ROLLOUTS = (4_096, 65_536)  # the agent's and the bonus's alike: Algorithm 2 has one B
SYMBOLS = {"balance": "κ", "step_size": "α", "clusters": "k", "objective": "f", "absorb": "", "rollout": "B"}


class Orders(Population):
    """What lies between the two algorithms, besides both of them.

    "in-order" is Algorithm 2 without the shuffle: all states are paid first, then absorbed as they came.
    "online-shuffled" is Algorithm 1 over shuffled states.
    """

    def pay_stack(self, stack: Stack, states: NDArray[np.float32], absorb: str, rollout: int) -> NDArray[Any]:
        """One method's states (seeds, t, n, d) -> (seeds, t, n)."""
        if absorb != ONLINE_SHUFFLED:
            return super().pay_stack(stack, states, absorb, rollout)
        size = int(np.prod(states.shape[1:-1]))
        orders = [np.random.default_rng([seed, rollout, 3]).permutation(size) for seed in self.config.seeds]
        return stack.step(states, orders)

    def update_stack(self, stack: Stack, states: NDArray[np.float32], absorb: str, rollout: int) -> None:
        """Let one method's bonuses learn, unless they did when they paid."""
        if absorb == IN_ORDER:
            stack.step(states)
        elif absorb != ONLINE_SHUFFLED:
            super().update_stack(stack, states, absorb, rollout)


def _cell(name: str, **choices: Any) -> Cell:
    return Cell(name, TASK, {"bonuses": ("kme",), **choices})


def _sweep(name: str, values: tuple[str, ...]) -> Cell:
    """One parameter's values beside each other; those of `absorb` are this experiment's own."""
    if name != ABSORB:
        return _cell(name, sweep={f"kme.{name}": values})
    return _cell(name)._replace(variants=tuple({ABSORB: value} for value in values), population=Orders)


PLAN = Plan(
    cells=(
        _cell(PAPER),
        *(_sweep(name, values) for name, values in VALUES.items()),
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
        usual = _text(paper.kme.get(name, SHUFFLED))
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


def reproduce(options: argparse.Namespace) -> int:
    """`voronaut reproduce parameters`."""
    return sweep.reproduce(options, PLAN, draw, FIGURES)


def last(name: str) -> drawing.Score:
    """A metric of KME at the end."""
    return lambda result: float(result.about["last_metrics"].get(f"kme/{name}", np.nan))


ROWS: dict[str, drawing.Score] = {
    "mean return over training": drawing.area,
    "top dense reward": drawing.top,
    "state entropy (nats)": drawing.entropy,
    "spread of counts": last("count_cv"),  # standard deviation / mean: 0 is a balanced diagram
    "spread of cell masses": last("cell_mass_cv"),  # of a fair sample of all states
}


def draw(plan: Plan = PLAN, figures: Path = FIGURES, say: sweep.Say = print) -> list[Path]:
    """parameters.png: return, top reward, entropy and balance against each parameter."""
    by_parameter, path = points(plan, say), figures / "parameters.png"

    def panel(axes: Any, name: str, score: drawing.Score) -> None:
        runs = by_parameter[name]
        if not any(runs.values()):
            return drawing.not_run(axes)
        labels = [value.replace("-", "\n") if value in WAYS else value for value in runs]
        groups = [drawing.scores(results, score) for results in runs.values()]
        drawing.dots(axes, labels, groups, COLORS["kme"], "none" if set(runs) & set(ORDER) else "-")
        axes.tick_params(axis="x", labelsize=8)

    drawing.grid(path, {name: f"{name} {SYMBOLS[name]}" for name in by_parameter}, ROWS, panel, (15, 10.5))
    return [path]


def computed(plan: Plan = PLAN) -> dict[str, str]:
    """Every parameter and value; and gaps that had to be computed anew."""
    by_parameter = points(plan, say=lambda trouble: None)
    return {"parameters": values(by_parameter), "recomputed": recomputed(by_parameter)}


def values(by_parameter: Data) -> str:
    """One row per parameter and value."""
    if not any(results for runs in by_parameter.values() for results in runs.values()):
        return "Nothing has been run yet."
    forms = dict.fromkeys(ROWS.values(), ".2f")
    rows = [
        [f"{name} {SYMBOLS[name]}".strip(), value, *drawing.means(results, forms)]
        for name, runs in by_parameter.items()
        for value, results in runs.items()
    ]
    return table(["parameter", "value", "seeds", *ROWS], rows)


def recomputed(by_parameter: Data) -> str:
    """Gaps per state that grew, which the paper computes anew, and those that had to be here."""
    forms = dict.fromkeys(map(per_state, ("grown_gaps", "recomputed_gaps")), ".3f")
    online = by_parameter[ABSORB]
    rows = [[value, *drawing.means(online[value], forms)] for value in (ONLINE, ONLINE_SHUFFLED)]
    return table(["absorb", "seeds", "gaps that grew, per state", "gaps recomputed here, per state"], rows)


def per_state(name: str) -> drawing.Score:
    """A total of KME's, by the states that it has absorbed."""
    return lambda result: last(name)(result) / last("states")(result)
