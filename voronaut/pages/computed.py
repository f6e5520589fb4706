"""What the pages say from results/ and benchmarks/ alone: `python -m voronaut.pages.computed` renews them all."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from voronaut.demo import maze
from voronaut.experiments import entropy, exploration, hard, loops, noise, parameters, sb3, scale
from voronaut.experiments.common import drawing, stats, sweep
from voronaut.experiments.common.sweep import Data, Plan
from voronaut.experiments.exploration.figures import METHODS
from voronaut.helpers.markdown import fill, table

BENCHMARKS = Path("benchmarks")
SHOWN = ("orders", "walks", "accuracy", "laws")  # of the entropy experiments; the rest has a page of its own
BONUSES = {"kme": "KME, 300 clusters", "rnd": "RND", "re3": "RE3", "hash": "HashCount"}


def pages() -> dict[Path, dict[str, str]]:
    """Every computed part, by page and name."""
    cost = bonus_cost(json.loads((BENCHMARKS / "bonuses.json").read_text()))
    sweeps, measured, others = results(), entropy.computed(), loops.computed()
    docs = {
        "results": {"scores": scores(), "claims": sweeps["claims"]},
        "results_tables": {name: text for name, text in sweeps.items() if name != "claims"},
        "hard": hard.computed(),
        "pair": hard.dense(),
        "entropy_experiments": {name: measured[name] for name in SHOWN},
        "entropy_tables": {name: text for name, text in measured.items() if name not in SHOWN},
        "entropy": {"cost": entropy_cost(json.loads((BENCHMARKS / "entropy.json").read_text()))},
        "trials": noise.computed(),
        "performance": {"cost": cost},
        "watching": maze.computed(),
        "adapters/sb3": {name: text for name, text in others.items() if name != loops.COMMAND},
        "start": {loops.COMMAND: others[loops.COMMAND]},
    }
    found = {Path("docs", f"{name}.md"): parts for name, parts in docs.items()}
    return {Path("README.md"): {"cost": cost, **hard.brief()}, **found}


def results() -> dict[str, str]:
    """docs/results.md and its tables: all sweeps."""
    parts = {name: text for each in (exploration, scale, parameters, sb3) for name, text in each.computed().items()}
    others = {"scale sweep": scale, "parameter sweep": parameters, "cross-check with Stable-Baselines3": sb3}
    lines = [parts["missing"], *(progress(name, each.PLAN) for name, each in others.items())]
    return {**parts, "missing": "\n".join(lines)}


def progress(name: str, plan: Plan) -> str:
    """One line about a sweep: runs done of runs planned."""
    data, troubles = sweep.collect(plan)
    done = {cell: sum(map(len, runs.values())) for cell, runs in data.items()}
    texts = ", ".join(f"{cell} {done[cell]} of {len(runs) * plan.seeds}" for cell, runs in data.items())
    return "\n".join([f"- {name}, runs done: {texts}", *(f"- not used: {trouble}" for trouble in troubles)])


def scores(plan: Plan = exploration.PLAN) -> str:
    """Mean return over training with its interval, and seeds with reward at the end, by task and method."""
    data, _ = sweep.collect(plan)
    cells = [c for c in plan.cells if all(len(data[c.name].get(m, ())) == plan.seeds for m in ("none", "kme"))]
    rows = [[drawing.title(c).replace("\n", ", "), *(_score(data, c.name, m) for m in METHODS)] for c in cells]
    return table(["task", *(drawing.NAMES[m] for m in METHODS)], rows)


def _score(data: Data, cell: str, method: str) -> str:
    runs = data[cell].get(method, [])
    if not runs:
        return drawing.NOT_RUN
    interval = stats.bootstrap([drawing.scores(runs, drawing.area)], stats.mean)
    rewarded = int((np.asarray(drawing.scores(runs, drawing.final)) > 0).sum())
    return f"{stats.pretty(interval, '.0f')}, {rewarded} of {len(runs)}"


def bonus_cost(measured: Mapping[str, Any]) -> str:
    """Seconds per rollout of every bonus, and the ratio to KME."""
    found = {row["bonus"]: row for row in measured["rollout"]}
    rows = [[text, f"{found[name]['both']:.3f}", f"{found[name]['times KME']:.1f}"] for name, text in BONUSES.items()]
    return table(["bonus", "seconds per rollout", "times KME"], rows)


def entropy_cost(measured: Mapping[str, Any]) -> str:
    """Seconds per million points, the ratio to exact neighbours at equal n, the state's size; and the figure."""
    rates = [[row["dim"], f"{row['stream']:.1f}", f"{row['floor']:.1f}", f"{row['stream/floor']:.2f}",
              f"{row['start']:.1f}"] for row in measured["cost"]]  # fmt: skip
    sizes = [row["state kB"] for row in measured["memory"]]
    where = measured["machine"]
    return "\n\n".join(
        [
            table(["d", "s per 1M points", "floor", "times the floor", "start, s, once"], rates),
            table(["points", "k-d tree, s", "all pairs, s", "`mixture`, s", "faster search / `mixture`"],
                  [_against(row) for row in measured["kNN"]]),
            f"The state has {sizes[0]:,.0f} kB after {measured['memory'][0]['points']:,} points and "
            f"{sizes[-1]:,.0f} kB after {measured['memory'][-1]['points']:,} (d = 17). One thread of {where['cpu']}, "
            f"{where['date']}.",
            "![seconds over the points beside exact nearest neighbours, and memory](../benchmarks/entropy.png)",
        ]
    )  # fmt: skip


def _against(row: Mapping[str, Any]) -> list[str]:
    seconds = ["–" if row[name] is None else f"{row[name]:.1f}" for name in ("k-d tree", "all pairs", "stream")]
    return [f"{row['points']:,}", *seconds, f"{row['kNN/stream']:.1f}"]


if __name__ == "__main__":
    for page, parts in pages().items():
        page.write_text(fill(page.read_text(), parts))
        print(page)
