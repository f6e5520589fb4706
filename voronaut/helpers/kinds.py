"""Whether what was chosen is of the kind that it must be."""

import dataclasses
import math
from collections.abc import Collection
from numbers import Integral, Real
from typing import Any


def check_kinds(settings: Any) -> None:
    """ValueError where a field of a dataclass that must be a number, a whole number or several is something else."""
    for field in dataclasses.fields(settings):
        given, usual = getattr(settings, field.name), field.default
        if isinstance(usual, tuple):
            fits, kind = _are(given, _kind(usual[0])), "numbers in brackets"
        elif usual is dataclasses.MISSING or isinstance(usual, (bool, str)):
            continue
        else:
            fits, kind = _are([given], _kind(usual)), "a whole number" if isinstance(usual, int) else "a number"
        if not fits:
            raise ValueError(f"{field.name} must be {kind}, such as {usual}; got {given!r}.")


def _kind(usual: Any) -> Any:
    return Integral if isinstance(usual, int) else Real


def _are(given: Any, kind: Any) -> bool:
    """All of the kind, and neither NaN nor true or false, which Python counts as numbers too."""
    several = isinstance(given, Collection) and not isinstance(given, str)
    return several and all(isinstance(x, kind) and not isinstance(x, bool) and not math.isnan(x) for x in given)
