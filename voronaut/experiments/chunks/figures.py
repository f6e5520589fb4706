"""The table and the figure of `voronaut reproduce chunks`, from its result files."""

import json
from pathlib import Path
from typing import Any

import numpy as np

NAMES = {
    "frozen": "frozen assignments",
    "exact": "exact",
    "shuffle": "sequence, other order",
    "double": "sequence, float64",
    "bit": "sequence, one bit off",
}
LINES = {"frozen": ("#c8443f", "o"), "exact": ("#2a9d62", "s"), "shuffle": ("#3b6fb6", ""), "double": ("0.45", "")}


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


def table(found: list[dict[str, Any]]) -> str:
    """One line per stream, way and chunk, as Markdown."""
    names = ["stream", "absorbed", "chunk", "rounds", "r, one rollout (least)", "Δ entropy, one rollout"]
    names += ["r, whole run", "Δ entropy", "Δ balance", "Δ coverage"]
    lines = ["| " + " | ".join(names) + " |", "|---|---|" + "--:|" * 8]
    for result in found:
        for row in result["rows"]:
            one, run = numbers(row, "rollout"), numbers(row, "run")
            cells = [result["stream"], NAMES[row["kind"]], str(row["chunk"])]
            cells += [
                f"{row['rounds']:.1f}" if row["kind"] == "exact" else "",
                f"{one['mean']:.4f} ({one['least']:.4f})",
            ]
            cells += [f"{one['entropy']:.3f}", f"{run['mean']:.3f}"]
            cells += [f"{run[name]:.3f}" for name in ("entropy", "balance", "coverage")]
            lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def draw(found: list[dict[str, Any]], figures: Path) -> Path:
    """Correlation and entropy against the chunk, a row per stream."""
    from voronaut.plotting import figure

    path = figures / "chunks.png"
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
    return path


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
