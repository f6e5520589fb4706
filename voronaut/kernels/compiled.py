"""The one way to compile with numba here: cached on disk where a folder can be written, in memory otherwise."""

from collections.abc import Callable
from typing import Any, TypeVar

import numba

F = TypeVar("F", bound=Callable[..., Any])

# No "reassoc": equal centers must give equal sums in every lane, or ties would not fall to the lowest index.
FAST = {"contract", "nnan", "nsz"}


def compiled(function: F) -> F:
    """`numba.njit` that releases the GIL and forgives a cache folder that is missing or read-only."""
    try:
        kernel = numba.njit(nogil=True, fastmath=FAST, cache=True)(function)
    except RuntimeError:  # numba found no folder it may write to
        kernel = numba.njit(nogil=True, fastmath=FAST)(function)
    return kernel  # type: ignore[no-any-return]


def reordered(function: F) -> F:
    """`compiled` with sums in any order: for functions whose ties are decided by sums of one and the same loop."""
    try:
        kernel = numba.njit(nogil=True, fastmath={*FAST, "reassoc"}, cache=True)(function)
    except RuntimeError:
        kernel = numba.njit(nogil=True, fastmath={*FAST, "reassoc"})(function)
    return kernel  # type: ignore[no-any-return]


def inlined(function: F) -> F:
    """`compiled` into each caller: for what is called so often that counting references to its arguments would show."""
    return numba.njit(nogil=True, fastmath=FAST, inline="always")(function)  # type: ignore[no-any-return]
