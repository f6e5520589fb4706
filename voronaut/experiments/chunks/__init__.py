"""What absorbing a stream in chunks would change: `voronaut reproduce chunks`, an experiment that is over.

200 rollouts of a stationary and of a drifting stream, absorbed in chunks of 4 to 4096 states, with frozen assignments
and exactly. Two questions: how far a chunked run has gone from the sequential one (`run`), and how far one chunked
rollout goes from the sequential one if both start from the same clusters (`rollout`). Beside them what no GPU is
needed for: the sequence in another order, in float64, and with one center moved by one last bit. Nothing absorbs with
frozen assignments any more, so nothing is run: results, table and figure are kept.
"""

import argparse
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from voronaut.helpers.markdown import table
from voronaut.helpers.plotting import figure

__all__ = ["computed", "draw", "reproduce"]

FOLDER, FIGURES = Path("results/chunks"), Path("docs/figures/chunks")
NAMES = {
    "frozen": "frozen assignments",
    "exact": "exact",
    "shuffle": "sequence, other order",
    "double": "sequence, float64",
    "bit": "sequence, one bit off",
}
LINES = {"frozen": ("#c8443f", "o"), "exact": ("#2a9d62", "s"), "shuffle": ("#3b6fb6", ""), "double": ("0.45", "")}
PANELS = (
    ("rollout", "mean", "correlation of rewards,\none rollout"),
    ("run", "mean", "correlation of rewards,\nwhole run"),
    ("run", "entropy", "largest |Δ entropy|, nats"),
)


def reproduce(options: argparse.Namespace, say: Callable[[str], None] = print) -> int:
    """Draw, and print the table."""
    folder = options.folder or FOLDER
    if options.methods or options.work or options.only or options.seeds is not None or options.steps is not None:
        raise ValueError("this experiment is over: it has no --method, --only, --seeds, --steps and --work any more.")
    if not read(folder):
        raise ValueError(f"there are no results in {folder}, and this experiment is over: see docs/gpu.md.")
    if not options.status:
        say(str(draw(folder, options.figures or FIGURES)[0]))
    say(computed(folder)["chunks"])
    return 0


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
    """The table of docs/gpu.md: one line per stream, way and chunk."""
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


def draw(folder: Path = FOLDER, figures: Path = FIGURES) -> list[Path]:
    """chunks.png: correlation and entropy against the chunk, a row per stream."""
    found, path = read(folder), figures / "chunks.png"
    with figure(path, 3, (11, 3.1 * len(found)), len(found)) as axes:
        for line, result in zip(np.atleast_2d(axes), found, strict=True):
            for axis, (span, name, label) in zip(line, PANELS, strict=True):
                _panel(axis, result["rows"], span, name)
                title = result["stream"] if span == "rollout" else ""
                axis.set(xscale="log", xlabel="chunk", ylabel=label, title=title)
            line[2].axhline(0.02, color="0.7", linestyle=":", linewidth=1)
        np.atleast_2d(axes)[0][1].legend(fontsize=8, loc=(0.25, 0.15))
    return [path]


def _panel(axis: Any, rows: list[dict[str, Any]], span: str, name: str) -> None:
    """Curves over the chunks, and levels of what has none."""
    for kind, (color, marker) in LINES.items():
        mine = [row for row in rows if row["kind"] == kind]
        chunks, values = [row["chunk"] for row in mine], [numbers(row, span)[name] for row in mine]
        if marker:
            axis.plot(chunks, values, marker=marker, color=color, label=NAMES[kind], markersize=4)
        else:
            axis.axhline(values[0], color=color, linestyle="--", linewidth=1, label=NAMES[kind])
