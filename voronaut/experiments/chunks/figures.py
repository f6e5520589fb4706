"""chunks.png, from the result files."""

from pathlib import Path
from typing import Any

import numpy as np

from voronaut.experiments.chunks.run import FIGURES, FOLDER
from voronaut.experiments.chunks.tables import NAMES, numbers, read
from voronaut.helpers.plotting import figure

LINES = {"frozen": ("#c8443f", "o"), "exact": ("#2a9d62", "s"), "shuffle": ("#3b6fb6", ""), "double": ("0.45", "")}


def draw(folder: Path = FOLDER, figures: Path = FIGURES) -> list[Path]:
    """chunks.png: correlation and entropy against the chunk, a row per stream."""
    found, path = read(folder), figures / "chunks.png"
    panels = (
        ("rollout", "mean", "correlation of rewards,\none rollout"),
        ("run", "mean", "correlation of rewards,\nwhole run"),
        ("run", "entropy", "largest |Δ entropy|, nats"),
    )
    with figure(path, 3, (11, 3.1 * len(found)), len(found)) as axes:
        for line, result in zip(np.atleast_2d(axes), found, strict=True):
            for axis, (span, name, label) in zip(line, panels, strict=True):
                _panel(axis, result["rows"], span, name)
                axis.set(
                    xscale="log", xlabel="chunk", ylabel=label, title=result["stream"] if span == "rollout" else ""
                )
            line[2].axhline(0.02, color="0.7", linestyle=":", linewidth=1)
        np.atleast_2d(axes)[0][1].legend(fontsize=8, loc=(0.25, 0.15))
    return [path]


def _panel(axis: Any, rows: list[dict[str, Any]], span: str, name: str) -> None:
    """Curves over the chunks, and levels of what has none."""
    for kind, (color, marker) in LINES.items():
        mine = [row for row in rows if row["kind"] == kind]
        values = [numbers(row, span)[name] for row in mine]
        if marker:
            axis.plot(
                [row["chunk"] for row in mine], values, marker=marker, color=color, label=NAMES[kind], markersize=4
            )
        else:
            axis.axhline(values[0], color=color, linestyle="--", linewidth=1, label=NAMES[kind])
