"""docs/entropy_experiments.md, the paper's experiments and Theorem 1: tables from the result files, in Markdown."""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from voronaut.experiments import entropy
from voronaut.experiments.common.jobs import Values
from voronaut.experiments.entropy import density, orders, shift, steps, walks
from voronaut.experiments.entropy.figures import step_shares

Found = Mapping[str, Values]
NOT_RUN = "not run yet"
CELLS = (
    ("online", "as the stream leaves them"),
    ("slower", "balanced further"),
    ("quantiles", "centers at quantiles"),
)
WAYS = {
    "zeros": "the paper's numbers, centers start at 0",
    "data": "the same, centers start at states",
    "auto": "scale-free, centers start at states",
}


def table(head: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    """Markdown."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(str(cell) for cell in line) + " |" for line in lines)


def missing(found: Found) -> str:
    """What is done of each part."""
    plan = entropy.plan()
    parts = dict.fromkeys(job.part for job in plan)
    lines = []
    for part in parts:
        mine = [f"{job.part}/{job.name}" for job in plan if job.part == part]
        lines.append(f"{part} {sum(name in found for name in mine)} of {len(mine)}")
    return "Jobs done: " + ", ".join(lines) + "."


def order_table(found: Found) -> str:
    """From how many points on all seeds have the six laws in their order."""
    rows = []
    for way, label in WAYS.items():
        row = [label]
        for read_out in orders.READ_OUTS:
            firsts = [orders.right_from(found, way, seed, read_out) for seed in range(orders.SEEDS)]
            row.append(_worst([first for first in firsts if first is not None]))
        rows.append(row)
    return table(["", "objective L", "`entropy()`", "Theorem 2's bound"], rows)


def _worst(firsts: Sequence[float]) -> str:
    if not firsts:
        return NOT_RUN
    text = "never" if math.isinf(max(firsts)) else f"{max(firsts):,.0f}"
    return f"{text} ({len(firsts)} seed{'s' if len(firsts) > 1 else ''})"


def walk_table(found: Found) -> str:
    """At how many of the checkpoints the three variances stand in their order, and what the walks really visit."""
    rows = []
    for sampler in walks.SAMPLERS:
        for dim in walks.DIMS:
            row: list[Any] = [sampler, dim]
            for read_out in ("zeros.objective", "zeros.entropy", "auto.objective", "auto.entropy"):
                told = [walks.orders(found, sampler, dim, seed, read_out) for seed in range(walks.SEEDS)]
                held = [holds for each in told if each for holds in each.values()]
                row.append(f"{sum(held)} of {len(held)}" if held else NOT_RUN)
            rows.append([*row, _at_end(found, sampler, dim, "zeros.objective"), _visited(found, sampler, dim)])
    head = ["walk", "d", "L, the paper's", "entropy, the paper's", "L, scale-free", "entropy, scale-free",
            "L, the paper's, at 1M", "variance visited / asked"]  # fmt: skip
    return table(head, rows)


def _at_end(found: Found, sampler: str, dim: int, read_out: str) -> str:
    told = [walks.orders(found, sampler, dim, seed, read_out) for seed in range(walks.SEEDS)]
    last = [list(each.values())[-1] for each in told if each]
    return f"{sum(last)} of {len(last)} seeds right" if last else NOT_RUN


def _visited(found: Found, sampler: str, dim: int) -> str:
    """Second half of the walks."""
    shares = []
    for variance in walks.VARIANCES:
        names = [f"walks/{sampler}-{dim}-{variance}-{seed}" for seed in range(walks.SEEDS)]
        seen = [found[name]["variance_seen"] / variance for name in names if name in found]
        shares.append(f"{np.mean(seen):.2f}" if seen else "–")
    return ", ".join(shares)


def step_table(found: Found) -> str:
    """Shares of steps, and gaps per step."""
    rows = []
    for init in ("zeros", "data"):
        for dim in steps.DIMS:
            keys = ("steps_with_grown", "grown_per_step", "steps_with_recomputed", "recomputed_per_step")
            told = [step_shares(found, dim, init, key) for key in keys]
            if not told[0]:
                rows.append(["0" if init == "zeros" else "states", dim, *[NOT_RUN] * 4])
                continue
            means = [float(np.mean(values)) for values in told]
            rows.append(["0" if init == "zeros" else "states", dim, f"{means[0]:.0%}", f"{means[1]:.2f}",
                         f"{means[2]:.0%}", f"{means[3]:.2f}"])  # fmt: skip
    head = ["centers start at", "d", "steps in which a gap grew", "such gaps per step", "steps that recompute here",
            "gaps recomputed per step"]  # fmt: skip
    return table(head, rows)


def shift_table(found: Found) -> str:
    """Balance before, and states until 99 % of the cells are in use after a shift."""
    rows = []
    for dim in shift.DIMS:
        for way, label in (("paper", "κ = 1e-4, α = 0.05"), ("auto", "scale-free")):
            cvs, dead = _balance(found, dim, way)
            row = [dim, label, cvs, dead]
            rows.append([*row, *(_used(found, dim, way, distance) for distance in shift.SHIFTS)])
    head = ["d", "", "std / mean of cell masses at scale 0.001 / 1 / 1000", "dead cells, same scales",
            "states until 99 % in use, shift 3", "shift 10"]  # fmt: skip
    return table(head, rows)


def _balance(found: Found, dim: int, way: str) -> tuple[str, str]:
    cvs, dead = [], []
    for distance, scale in (("0", "0.001"), ("3", "1"), ("0", "1000")):
        names = [f"shift/{dim}-{distance}-{scale}-{way}-{seed}" for seed in range(shift.SEEDS)]
        there = [found[name] for name in names if name in found]
        cvs.append(f"{np.mean([r['cv'] for r in there]):.2f}" if there else "–")
        dead.append(f"{np.mean([r['dead'] for r in there]):.0%}" if there else "–")
    return " / ".join(cvs), " / ".join(dead)


def _used(found: Found, dim: int, way: str, distance: float) -> str:
    """The mean over seeds of the first batch after which 99 % of the cells stay in use."""
    times = []
    for seed in range(shift.SEEDS):
        result = found.get(f"shift/{dim}-{distance:g}-1-{way}-{seed}")
        if result:
            low = [at for at, used in enumerate(result["used_after"], 1) if used < 0.99]
            last = max(low, default=0)
            times.append((last + 1) * result["batch"] if last < len(result["used_after"]) else math.inf)
    if not times:
        return NOT_RUN
    return "over 300,000" if math.isinf(max(times)) else f"{np.mean(times):,.0f}"


def density_table(found: Found) -> str:
    """∫|p̂ − p| by k, and the balance at the largest."""
    rows = []
    for name, shape in density.SHAPES.items():
        for dim in (1, 2):
            for kind, label in CELLS[: 3 if dim == 1 else 2]:
                errors = density.curve(found, name, dim, kind, "error")
                cells = [f"{np.mean(errors[k]):.3f}" if k in errors else "–" for k in density.CLUSTERS]
                last = max(errors, default=0)
                told = [np.mean(density.curve(found, name, dim, kind, key).get(last, [math.nan])) for key in
                        ("error_masses", "cv", "steepest", "widest")]  # fmt: skip
                rows.append([shape.label, dim, label, *cells, *(f"{value:.2f}" for value in told)])
    head = ["law", "d", "cells", *(f"k = {k}" for k in density.CLUSTERS), "with true masses", "std / mean of masses",
            "steepest weights", "farthest point"]  # fmt: skip
    return table(head, rows)


TABLES: dict[str, Callable[[Found], str]] = {
    "missing": missing,
    "orders": order_table,
    "walks": walk_table,
    "steps": step_table,
    "shift": shift_table,
    "density": density_table,
}
