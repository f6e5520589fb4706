"""Bonuses, by the names the command line gives them. They are imported when they are asked for."""

import importlib
from typing import Any, NamedTuple

from voronaut.bonuses.weight import USUAL


class Entry(NamedTuple):
    """Where a bonus lives, and its weight with PPO; of RND and RE3 the paper's."""

    kind: str
    module: str
    scale: float | str


BONUSES = {
    "none": Entry("NoBonus", "voronaut.bonuses.none", 0.0),
    "zero": Entry("NoBonus", "voronaut.bonuses.none", 0.0),
    "kme": Entry("KME", "voronaut.bonuses.kme", USUAL),
    "rnd": Entry("RND", "voronaut.bonuses.rnd", 1e-5),
    "re3": Entry("RE3", "voronaut.bonuses.re3", 1e-4),
    "hash": Entry("HashCount", "voronaut.bonuses.hashcount", 0.01),
}


def bonus_class(name: str) -> Any:
    """The class behind a name."""
    entry = BONUSES[name]
    return getattr(importlib.import_module(entry.module), entry.kind)


def class_of_kind(kind: str) -> Any:
    """The class called `kind`, such as "KME"; ValueError if there is none."""
    for name, entry in BONUSES.items():
        if entry.kind == kind:
            return bonus_class(name)
    raise ValueError(f"there is no bonus {kind!r}; known are {', '.join(entry.kind for entry in BONUSES.values())}.")
