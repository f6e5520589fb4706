"""Computed parts of the entropy pages in docs. `python -m voronaut.pages.entropy` renews them.

entropy_experiments.md comes from results/entropy, the times of entropy.md from benchmarks/entropy.json.
"""

import json
from pathlib import Path
from typing import Any

from voronaut import markdown as parts
from voronaut.experiments import entropy
from voronaut.experiments.common import jobs as small
from voronaut.experiments.entropy import tables as entropy_tables
from voronaut.experiments.entropy.errors import tables as entropy_error_tables
from voronaut.experiments.entropy.tables import table

PAGE = Path("docs/entropy_experiments.md")
USER_PAGE = Path("docs/entropy.md")
COST = Path("benchmarks/entropy.json")
NOT_MEASURED = "Not measured yet: `voronaut bench entropy`."


def fill(text: str, folder: Path = entropy.FOLDER) -> str:
    """entropy_experiments.md with every computed part renewed."""
    found = small.collect(entropy.plan(), folder)
    tables = {**entropy_tables.TABLES, **entropy_error_tables.TABLES}
    return parts.fill(text, {name: make(found) for name, make in tables.items()})


def fill_cost(text: str, path: Path = COST) -> str:
    """entropy.md with its time and memory renewed."""
    measured = json.loads(path.read_text()) if path.exists() else None
    return parts.fill(text, {"cost": cost(measured) if measured else NOT_MEASURED})


def cost(measured: dict[str, Any]) -> str:
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


def _against(row: dict[str, Any]) -> list[str]:
    seconds = ["–" if row[name] is None else f"{row[name]:.1f}" for name in ("k-d tree", "all pairs", "stream")]
    return [f"{row['points']:,}", *seconds, f"{row['kNN/stream']:.1f}"]


if __name__ == "__main__":
    PAGE.write_text(fill(PAGE.read_text()))
    USER_PAGE.write_text(fill_cost(USER_PAGE.read_text()))
    print(PAGE, USER_PAGE, sep="\n")
