"""Voronaut: k-means maximum entropy exploration (KME) as a library, a trainer and a measuring instrument.

Names are loaded when first used, so that importing the package costs next to nothing and no optional library is needed
before something that uses it.
"""

import importlib
from typing import TYPE_CHECKING, Any

from voronaut.version import __version__

if TYPE_CHECKING:
    from voronaut import conformance, features, jax, presets, tasks
    from voronaut.bonuses.base import Bonus
    from voronaut.bonuses.hashcount import HashCount
    from voronaut.bonuses.kme import KME
    from voronaut.bonuses.none import NoBonus
    from voronaut.bonuses.re3 import RE3
    from voronaut.bonuses.rnd import RND
    from voronaut.bonuses.saving import load
    from voronaut.entropy.estimator import KMeansEntropy
    from voronaut.training.api import train
    from voronaut.training.policy import load_policy

_HOMES = {
    "Bonus": "voronaut.bonuses.base",
    "HashCount": "voronaut.bonuses.hashcount",
    "KME": "voronaut.bonuses.kme",
    "KMeansEntropy": "voronaut.entropy.estimator",
    "NoBonus": "voronaut.bonuses.none",
    "RE3": "voronaut.bonuses.re3",
    "RND": "voronaut.bonuses.rnd",
    "load": "voronaut.bonuses.saving",
    "load_policy": "voronaut.training.policy",
    "train": "voronaut.training.api",
}
_MODULES = ("conformance", "features", "jax", "presets", "tasks")

__all__ = [
    "KME",
    "RE3",
    "RND",
    "Bonus",
    "HashCount",
    "KMeansEntropy",
    "NoBonus",
    "__version__",
    "conformance",
    "features",
    "jax",
    "load",
    "load_policy",
    "presets",
    "tasks",
    "train",
]


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return importlib.import_module(f"voronaut.{name}")
    if name in _HOMES:
        return getattr(importlib.import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'voronaut' has no attribute {name!r}; it has {', '.join(__all__)}.")


def __dir__() -> list[str]:
    return list(__all__)
