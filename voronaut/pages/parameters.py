"""docs/parameters.md: what each parameter does to the clusters, and what a sick clustering looks like, in numbers.

`python -m voronaut.pages.parameters` measures everything again (some seconds), and `.computed` writes the page's
tables. States are drawn from a law in two dimensions, no agent is involved.
"""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from voronaut.bonuses.kme import KME
from voronaut.clusters import Array
from voronaut.markdown import table

RESULTS = Path("results/parameter_guide.json")
SEEDS = range(3)
ROLLOUTS, STATES, DIM = 20, 4096, 2
START: dict[str, Any] = {"clusters": 100, "balance": 1e-3, "init": "data"}
METRICS = {"empty_cells": ".0%", "clamped_gaps": ".0f", "cell_mass_cv": ".2f", "gap_mean": ".2g", "entropy": ".2f"}

SWEEP: dict[str, Sequence[Any]] = {
    "balance": (0.0, 1e-4, 1e-3, 1e-2, 0.1, "auto"),
    "step_size": (0.005, 0.05, 0.2, 0.5, "auto"),
    "clusters": (10, 100, 1000),
    "init": ("data", "zeros"),
}


class Case(NamedTuple):
    """A stream, as the spread and place of the first and the second half of its rollouts, and options of KME."""

    name: str
    options: Mapping[str, Any]
    spread: tuple[float, float] = (1.0, 1.0)
    place: tuple[float, float] = (0.0, 0.0)
    flat: bool = False


CASES = (
    Case("healthy", {}),
    Case('dead centers: `init="zeros"`, `balance=0`', {"init": "zeros", "balance": 0.0}),
    Case("clamped gaps: states of size 0.0001", {}, spread=(1e-4, 1e-4)),
    Case('vanishing bonus: the same, `balance="auto"`', {"balance": "auto"}, spread=(1e-4, 1e-4)),
    Case("the same, and `normalize=True`", {"balance": "auto", "normalize": True}, spread=(1e-4, 1e-4)),
    Case("imbalance: states move away by 10, `balance=1e-4`", {"balance": 1e-4}, place=(0.0, 10.0)),
    Case('the same move with `balance="auto"`', {"balance": "auto"}, place=(0.0, 10.0)),
    Case("exploding bonus: states become 100 times larger", {}, spread=(1.0, 100.0)),
    Case("a coordinate that is constant", {}, flat=True),
)


def states(case: Case, rollout: int, rng: np.random.Generator) -> Array:
    """One rollout of a case's stream, (STATES, DIM)."""
    half = int(rollout >= ROLLOUTS // 2)
    drawn = case.place[half] + case.spread[half] * rng.normal(size=(STATES, DIM))
    return drawn * [1, 0] if case.flat else drawn


def measure(case: Case, seed: int) -> dict[str, float]:
    """The metrics at the end, and the size of the bonus in the second, the dearest later, and the last rollout."""
    kme, rng, paid = KME(DIM, **{**START, **case.options}, seed=seed), np.random.default_rng(seed), []
    for rollout in range(ROLLOUTS):
        batch = states(case, rollout, rng)
        paid.append(float(np.sqrt(np.square(kme.rewards(batch)).mean())))
        kme.update(batch)
    found = {name: kme.metrics()[name] for name in METRICS}
    return {**found, "bonus_second": paid[1], "bonus_largest": max(paid[2:]), "bonus_last": paid[-1]}


def run(results: Path = RESULTS) -> None:
    """Measure everything and keep it."""
    sweep = {f"{name}={value}": Case("", {name: value}) for name, values in SWEEP.items() for value in values}
    found = {
        key: {name: [measure(case, seed) for seed in SEEDS] for name, case in cases.items()}
        for key, cases in {"sweep": sweep, "cases": {case.name: case for case in CASES}}.items()
    }
    results.write_text(json.dumps(found, indent=1) + "\n")


def _mean(runs: Sequence[Mapping[str, float]], name: str, form: str) -> str:
    value = float(np.mean([run[name] for run in runs]))
    return f"{value:{form}}" if np.isfinite(value) else "−∞"


def _row(runs: Sequence[Mapping[str, float]]) -> list[str]:
    return [_mean(runs, name, form) for name, form in METRICS.items()]


def computed(results: Path = RESULTS) -> dict[str, str]:
    """The page's tables, from the result file; numbers are means over seeds."""
    found = json.loads(results.read_text())
    head = [f"`{name}`" for name in METRICS]
    sweep = [[f"`{name}`", *_row(runs)] for name, runs in found["sweep"].items()]
    cases = []
    for name, runs in found["cases"].items():
        pay = ", ".join(_mean(runs, f"bonus_{when}", ".1e") for when in ("second", "largest", "last"))
        cases.append([name, *_row(runs), pay])
    return {
        "sweep": table(["parameter", *head], sweep),
        "cases": table(["stream and options", *head, "bonus: second rollout, largest later, last"], cases),
    }


if __name__ == "__main__":
    run()
