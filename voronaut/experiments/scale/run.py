"""What is run: four weights of each bonus, so that every method has the same budget."""

from pathlib import Path

from voronaut import presets
from voronaut.experiments.common.sweep import Cell, Plan
from voronaut.experiments.exploration.run import FIGURES

__all__ = ["FIGURES", "PLAN", "SCALES", "papers"]
# The paper's: kme 1e-2, rnd 1e-5, re3 1e-4.
SCALES = {
    "kme": ("1e-4", "1e-3", "1e-2", "1e-1"),
    "rnd": ("1e-5", "1e-4", "1e-3", "1e-2"),
    "re3": ("1e-5", "1e-4", "1e-3", "1e-2"),
}
PLAN = Plan(
    cells=tuple(
        Cell(kind, "cheetah-run", {"bonuses": (kind,), "sweep": {f"{kind}.scale": values}})
        for kind, values in SCALES.items()
    ),
    seeds=3,
    steps=2_000_000,
    folder=Path("results/scale"),
    work=Path("runs/scale"),
)


def papers(kind: str) -> str:
    """The paper's weight as it stands in `SCALES`."""
    wanted = presets.paper().scale[kind]
    return next(text for text in SCALES[kind] if float(text) == wanted)
