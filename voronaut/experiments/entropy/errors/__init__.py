"""Errors in nats: laws whose entropy is known, other estimators beside ours, and the same laws in other units."""

from voronaut.experiments.common.jobs import Job, Results
from voronaut.experiments.entropy.errors import run, units
from voronaut.experiments.entropy.errors.figures import draw
from voronaut.experiments.entropy.errors.tables import TABLES

__all__ = ["computed", "draw", "jobs"]


def jobs(**given: int) -> list[Job]:
    """All jobs of this part."""
    return [*run.jobs(**given), *units.jobs(**given)]


def computed(found: Results) -> dict[str, str]:
    """All tables of this part."""
    return {name: make(found) for name, make in TABLES.items()}
