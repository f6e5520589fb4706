"""Voronaut: k-means maximum entropy exploration (KME) as a library, a trainer and a measuring instrument.

Names are loaded when first used, so that importing the package costs next to nothing and no optional library is needed
before something that uses it.
"""

import importlib
from typing import TYPE_CHECKING, Any

from voronaut.version import __version__

if TYPE_CHECKING:
    from voronaut import presets
    from voronaut.bonuses.base import Bonus
    from voronaut.bonuses.files import load
    from voronaut.bonuses.kme import KME

_HOMES = {
    "Bonus": "voronaut.bonuses.base",
    "KME": "voronaut.bonuses.kme",
    "load": "voronaut.bonuses.files",
}
_MODULES = ("presets",)

__all__ = ["KME", "Bonus", "__version__", "load", "presets"]


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return importlib.import_module(f"voronaut.{name}")
    if name in _HOMES:
        return getattr(importlib.import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'voronaut' has no attribute {name!r}; it has {', '.join(__all__)}.")


def __dir__() -> list[str]:
    return list(__all__)
