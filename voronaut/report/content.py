"""Everything that the page shows, as plain JSON values: charts, tables, maps, findings and configurations."""

import json
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from voronaut.experiments.common import stats
from voronaut.experiments.common.results import SECONDS
from voronaut.helpers.plotting import COLORS
from voronaut.report import curves, findings, maps
from voronaut.report.records import Columns, Experiment, Reading, Run, grouped

MAIN = {
    "extrinsic_return": "Return of the episodes that ended",
    "explorer_return": "Return of the explorer's episodes",
    "state_entropy": "Entropy of a rollout's states (nats)",
    "max_step_reward": "Top reward of a rollout, before the threshold",
}
OTHER = {
    "bonus_mean": "mean bonus, before its weight (the first rollout pays none)",
    "scale": "weight of the bonus",
    "episodes": "episodes that ended",
    "entropy": "entropy of the policy (nats)",
}
HIDDEN = {"env_steps", "episodes_restarted", *SECONDS}
MORE = ("#d1569f", "#1aa3b8", "#8a7a1f", "#5f6bd8", "#b0622c", "#4c9a2a", "#a83279", "#6c7a89")
UNKNOWN = "–"
DASHES = ("solid", "dash", "dot", "dashdot")


def content(reading: Reading) -> dict[str, Any]:
    """The page's content; `charts` and `maps` are drawn by the browser, the rest is written into the page."""
    runs = distinct(reading.runs)
    drawn, damage = maps.maps(runs)
    tasks = grouped(runs, lambda run: run.task)
    return {
        "tasks": [{"title": task, "panels": _panels(group)} for task, group in tasks.items()],
        "methods": styles(runs),
        "maps": drawn,
        "findings": [f._asdict() for f in findings.findings(runs, [*reading.troubles, *damage])],
        "summary": without_empty([r for group in tasks.values() for r in _summary(group)], "explorer's final return"),
        "costs": [row for group in tasks.values() for row in _costs(group)],
        "experiments": [_experiment(one, [run for run in runs if run.experiment == one.name])
                        for one in reading.experiments],
    }  # fmt: skip


def methods(runs: Sequence[Run]) -> dict[str, list[Run]]:
    """Runs by method."""
    return grouped(runs, lambda run: run.method)


def _panels(runs: Sequence[Run]) -> dict[str, Any]:
    """Curves by name and method: the three that come first, and all others that were logged."""
    runs = [run._replace(columns=_paid(run.columns)) for run in runs]
    others = dict.fromkeys(name for run in runs for name in run.columns if name not in HIDDEN)
    groups = methods(runs)
    panels: dict[str, Any] = {}
    for name in dict.fromkeys([*MAIN, *OTHER, *others]):
        drawn = {method: curve for method, own in groups.items() if (curve := curves.curve(own, name))}
        if drawn:
            panels[name] = {"title": MAIN.get(name) or OTHER.get(name) or name, "main": name in MAIN, "curves": drawn}
    for name in set(panels) - set(MAIN):
        for curve in panels[name]["curves"].values():
            if "low" in curve:
                curve.pop("seeds", None)  # single seeds of many are drawn in the main charts only
    return panels


def _paid(columns: Columns) -> Columns:
    """Without the bonus of the first rollout, which is not paid and often hundreds of times what follows."""
    bonus = columns.get("bonus_mean", np.empty(0)).copy()
    bonus[:1] = math.nan
    return columns | {"bonus_mean": bonus} if len(bonus) > 1 else columns


def _summary(runs: Sequence[Run]) -> list[dict[str, str]]:
    """A row of numbers for each method of a task; `return` is the exploiter's where an explorer is beside it."""
    rows = []
    for method, own in methods(runs).items():
        rows.append(
            {
                "task": own[0].task,
                "method": method,
                "seeds": str(len(own)),
                "progress": _progress(own),
                "final return": interval(curves.number(own, "extrinsic_return", stats.final)),
                "explorer's final return": interval(curves.number(own, "explorer_return", stats.final)),
                "mean return": interval(curves.number(own, "extrinsic_return", stats.area)),
                "top reward": interval(curves.number(own, "max_step_reward", lambda _, v: float(np.fmax.reduce(v)))),
                "entropy": interval(curves.number(own, "state_entropy", stats.area)),
            }
        )
    return rows


def without_empty(rows: list[dict[str, str]], name: str) -> list[dict[str, str]]:
    """The rows without a column in which nothing is known."""
    empty = all(row[name] == UNKNOWN for row in rows)
    return [{key: value for key, value in row.items() if not empty or key != name} for row in rows]


def _progress(runs: Sequence[Run]) -> str:
    """finished, 306 rollouts / running, 12 to 14 of 306 rollouts."""
    done = sorted({len(run.steps) for run in runs})
    wanted = max(run.wanted for run in runs)
    count = f"{done[0]}" if len(done) == 1 else f"{done[0]} to {done[-1]}"
    whole = f" of {wanted}" if wanted and done != [wanted] else ""
    states = "/".join(sorted({run.state for run in runs} - {"unknown"}))
    return f"{states + ', ' if states else ''}{count}{whole} rollouts"


def interval(measured: stats.Interval) -> str:
    """-1120 (-1200 to -1040); a dash where nothing is known."""
    if not math.isfinite(measured.value):
        return UNKNOWN
    text = figure(measured.value)
    return text if not math.isfinite(measured.low) else f"{text} ({figure(measured.low)} to {figure(measured.high)})"


def figure(value: float) -> str:
    """Four digits, a true minus sign."""
    return f"{value:.4g}".replace("-", "−")


def _costs(runs: Sequence[Run]) -> list[dict[str, Any]]:
    """Seconds per rollout of one run, by method, for runs that measured them."""
    rows = []
    for method, own in methods(runs).items():
        known = [run.shared for run in own if len(run.shared) == 3]
        if known:
            mean = {part: float(np.mean([shared[part] for shared in known])) for part in ("collect", "bonus", "learn")}
            parts = {part: float(f"{value:.4g}") for part, value in mean.items() if math.isfinite(value)}
            rows.append({"task": own[0].task, "method": method, **dict.fromkeys(mean, 0.0), **parts,
                         "share": f"{mean['bonus'] / max(sum(mean.values()), 1e-12):.1%}"})  # fmt: skip
    return rows


def _experiment(one: Experiment, runs: Sequence[Run]) -> dict[str, Any]:
    """Configuration, notes and the runs found."""
    plain = {key: value for key, value in one.config.items() if key != "methods"}
    chosen = [
        {"label": str(m.get("label")), "kind": str(m.get("kind")), "scale": str(m.get("scale")),
         "params": ", ".join(f"{k} {v}" for k, v in (m.get("params") or {}).items()) or "–"}
        for m in one.config.get("methods", ())
    ]  # fmt: skip
    return {
        "name": one.name,
        "settings": {key: value if isinstance(value, str) else json.dumps(value) for key, value in plain.items()},
        "methods": chosen,
        "notes": list(one.notes),
        "runs": [{"name": run.name, "state": run.state, "rollouts": len(run.steps)} for run in runs],
    }


def distinct(runs: Sequence[Run]) -> list[Run]:
    """Runs of one name that are not of one method (other settings, or a seed twice) get their experiment's name."""
    mixed = {key for key, group in grouped(runs, lambda run: (run.task, run.method)).items() if _mixed(group)}
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
