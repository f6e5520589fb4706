"""Computed parts of README.md, docs/performance.md and docs/watching.md.

`python -m voronaut.pages.front` renews them. They come from results/ and benchmarks/ alone, and a test holds
the pages to them.
"""

import json
from pathlib import Path

import numpy as np

from voronaut.demo import maze
from voronaut.experiments import exploration
from voronaut.experiments.common import drawing, stats, sweep
from voronaut.experiments.common.sweep import Plan
from voronaut.experiments.exploration.figures import METHODS, Data
from voronaut.experiments.exploration.tables import pretty, table
from voronaut.markdown import fill

COST = Path("benchmarks/bonuses.json")
BONUSES = {"kme": "KME, 300 clusters", "rnd": "RND", "re3": "RE3", "hash": "HashCount"}


def results(plan: Plan = exploration.PLAN) -> str:
    """Mean return over training with its interval, and seeds with reward at the end, by task and method."""
    data, _ = sweep.collect(plan)
    cells = [c for c in plan.cells if all(len(data[c.name].get(m, ())) == plan.seeds for m in ("none", "kme"))]
    rows = [[drawing.title(c).replace("\n", ", "), *(_score(data, c.name, m) for m in METHODS)] for c in cells]
    return table(["task", *(drawing.NAMES[m] for m in METHODS)], rows)


def _score(data: Data, cell: str, method: str) -> str:
    runs = data[cell].get(method, [])
    if not runs:
        return "not run yet"
    interval = stats.bootstrap([drawing.scores(runs, drawing.area)], stats.mean)
    rewarded = int((np.asarray(drawing.scores(runs, drawing.final)) > 0).sum())
    return f"{pretty(interval, '.0f')}, {rewarded} of {len(runs)}"


def cost(path: Path = COST) -> str:
    """Seconds per rollout of every bonus, and the ratio to KME."""
    measured = {row["bonus"]: row for row in json.loads(path.read_text())["rollout"]}
    rows = [
        [text, f"{measured[name]['both']:.3f}", f"{measured[name]['times KME']:.1f}"] for name, text in BONUSES.items()
    ]
    return table(["bonus", "seconds per rollout", "times KME"], rows)


def pages() -> dict[Path, dict[str, str]]:
    """Every computed part of the pages, by name."""
    return {
        Path("README.md"): {"results": results(), "cost": cost()},
        Path("docs/performance.md"): {"cost": cost()},
        Path("docs/watching.md"): maze.sections(),
    }


if __name__ == "__main__":
    for page, parts in pages().items():
        page.write_text(fill(page.read_text(), parts))
        print(page)
