"""Names and colours of methods: the same on every chart of the page."""

from collections.abc import Sequence
from typing import Any

from voronaut.plotting import COLORS
from voronaut.report.records import Run

MORE = ("#d1569f", "#1aa3b8", "#8a7a1f", "#5f6bd8", "#b0622c", "#4c9a2a", "#a83279", "#6c7a89")
DASHES = ("solid", "dash", "dot", "dashdot")


def distinct(runs: Sequence[Run]) -> list[Run]:
    """Runs of one name that are not of one method (other settings, or a seed twice) get their experiment's name."""
    groups: dict[tuple[str, str], list[Run]] = {}
    for run in runs:
        groups.setdefault((run.task, run.method), []).append(run)
    mixed = {key for key, group in groups.items() if _mixed(group)}
    return [
        run._replace(method=f"{run.method} ({run.experiment})") if (run.task, run.method) in mixed else run
        for run in runs
    ]


def _mixed(group: Sequence[Run]) -> bool:
    seeds = [run.seed for run in group]
    return len(set(seeds)) < len(seeds) or any(run.settings != group[0].settings for run in group)


def styles(runs: Sequence[Run]) -> dict[str, dict[str, Any]]:
    """Colour and dash of every method; the first of a kind has the colour of the figures."""
    kinds = {run.method: run.kind for run in sorted(runs, key=lambda run: (run.kind != "none", run.method))}
    taken: set[str] = set()
    chosen: dict[str, dict[str, Any]] = {}
    spare = 0
    for method, kind in kinds.items():
        usual = COLORS.get(kind)
        if usual and usual not in taken:
            chosen[method] = {"color": usual, "dash": DASHES[0]}
            taken.add(usual)
        else:
            dash = DASHES[min(spare // len(MORE), len(DASHES) - 1)]
            chosen[method] = {"color": MORE[spare % len(MORE)], "dash": dash}
            spare += 1
    return chosen
