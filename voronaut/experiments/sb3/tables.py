"""The table of docs/results.md about the cross-check."""

from collections.abc import Sequence

from voronaut.experiments.common import drawing, sweep
from voronaut.experiments.common.results import Result
from voronaut.experiments.common.sweep import Plan
from voronaut.experiments.sb3.run import CELL, METHODS, PLAN, beside
from voronaut.markdown import table

SCORES: dict[str, tuple[drawing.Score, str]] = {
    "mean return over training": (drawing.area, ".2f"),
    "final return": (drawing.final, ".1f"),
    "top dense reward": (drawing.top, ".2f"),
    "state entropy (nats)": (drawing.entropy, ".1f"),
    "first return above 1, million steps": (lambda result: drawing.first_above_one(result) / 1e6, ".2f"),
}


def computed(plan: Plan = PLAN) -> dict[str, str]:
    """Both trainers beside each other, every seed."""
    runs, ours, rows = sweep.collect(plan)[0][CELL], beside(plan), []
    for method in METHODS:
        for trainer, some in (("Stable-Baselines3", runs[method]), ("ours", ours[method])):
            texts = [_cell(some, *score) for score in SCORES.values()] if some else [drawing.NOT_RUN, "", "", "", ""]
            rows.append([trainer, drawing.NAMES[method], len(some), *texts])
    return {"sb3": table(["trainer", "method", "seeds", *SCORES], rows)}


def _cell(some: Sequence[Result], score: drawing.Score, form: str) -> str:
    """Every seed, lowest first; never where a seed met no reward."""
    values = sorted(float(value) for value in drawing.scores(some, score))
    return ", ".join("never" if value == float("inf") else f"{value:{form}}" for value in values)
