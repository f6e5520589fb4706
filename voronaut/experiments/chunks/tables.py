"""The table of docs/gpu.md, from the result files."""

import json
from pathlib import Path
from typing import Any

import numpy as np

from voronaut.experiments.chunks.run import FOLDER
from voronaut.helpers.markdown import table

NAMES = {
    "frozen": "frozen assignments",
    "exact": "exact",
    "shuffle": "sequence, other order",
    "double": "sequence, float64",
    "bit": "sequence, one bit off",
}


def read(folder: Path) -> list[dict[str, Any]]:
    """All streams that were measured."""
    return [json.loads(path.read_text()) for path in sorted(folder.glob("*.json"), reverse=True)]


def numbers(row: dict[str, Any], span: str) -> dict[str, float]:
    """Mean and least correlation, and the largest of the other differences, over all looks."""
    looks = row[span]
    values = {name: np.array([look[name] for look in looks]) for name in looks[0]}
    worst = {name: float(np.abs(values[name]).max()) for name in ("entropy", "balance", "coverage")}
    correlation = values["correlation"]
    return {"mean": float(correlation.mean()), "least": float(correlation.min()), **worst}


def computed(folder: Path = FOLDER) -> dict[str, str]:
    """One line per stream, way and chunk."""
    head = ["stream", "absorbed", "chunk", "rounds", "r, one rollout (least)", "Δ entropy, one rollout"]
    head += ["r, whole run", "Δ entropy", "Δ balance", "Δ coverage"]
    rows = [[result["stream"], *_cells(row)] for result in read(folder) for row in result["rows"]]
    return {"chunks": table(head, rows, ["---", "---", *["--:"] * 8])}


def _cells(row: dict[str, Any]) -> list[str]:
    one, run = numbers(row, "rollout"), numbers(row, "run")
    rounds = f"{row['rounds']:.1f}" if row["kind"] == "exact" else ""
    cells = [NAMES[row["kind"]], str(row["chunk"]), rounds, f"{one['mean']:.4f} ({one['least']:.4f})"]
    cells += [f"{one['entropy']:.3f}", f"{run['mean']:.3f}"]
    return cells + [f"{run[name]:.3f}" for name in ("entropy", "balance", "coverage")]
