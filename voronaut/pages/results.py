"""docs/results.md: writes the computed tables between their marks. `python -m voronaut.pages.results` renews it."""

from pathlib import Path

from voronaut import markdown as parts
from voronaut.experiments import exploration, parameters, sb3, scale
from voronaut.experiments.common import sweep
from voronaut.experiments.exploration import tables as exploration_tables

PAGE = Path("docs/results.md")


def sections() -> dict[str, str]:
    """Every computed part of the page, by name."""
    plan = exploration.PLAN
    data, troubles = sweep.collect(plan)
    tables = exploration_tables
    return {
        "missing": "\n".join(
            [
                tables.missing(plan, data, troubles),
                tables.progress("scale sweep", scale.PLAN),
                tables.progress("parameter sweep", parameters.PLAN),
                tables.progress("cross-check with Stable-Baselines3", sb3.PLAN),
            ]
        ),
        "claims": tables.claims(plan, data),
        "tasks": tables.tasks(plan, data),
        "chances": tables.chances(plan, data),
        "iqm": tables.iqms(plan, data),
        "costs": tables.costs(plan, data),
        "scale": scale.table(),
        "parameters": parameters.table(),
        "recomputed": parameters.recomputed(),
        "sb3": sb3.table(),
    }


def fill(text: str) -> str:
    """The page with every computed part renewed."""
    return parts.fill(text, sections())


if __name__ == "__main__":
    PAGE.write_text(fill(PAGE.read_text()))
    print(PAGE)
