"""The one way to compile with numba here: cached on disk where a folder can be written, in memory otherwise.

What is cached is used as long as the sources of all kernels are what they were.
"""

import hashlib
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

import numba
from numba.core import event

F = TypeVar("F", bound=Callable[..., Any])

# No "reassoc": equal centers must give equal sums in every lane, or ties would not fall to the lowest index.
FAST = {"contract", "nnan", "nsz"}


def digest() -> str:
    """Of the sources of all kernels of a CPU, which call each other from file to file, and of the numbers they take."""
    home = Path(__file__).parent
    paths = sorted([*home.glob("*.py"), *home.glob("cpu/*.py"), *home.glob("../views.py")])
    return hashlib.sha256(b"".join(path.read_bytes() for path in paths)).hexdigest()


SOURCES = digest()


class Notice(event.Listener):  # type: ignore[misc]
    """Says why the first call takes a while: once, on a terminal, and not where the machine code is found on disk."""

    def __init__(self) -> None:
        self.said = False

    def on_start(self, happening: Any) -> None:
        """A function is about to be compiled."""
        ours = happening.data["dispatcher"].py_func.__module__.startswith("voronaut.")
        if ours and not self.said and sys.stderr is not None and sys.stderr.isatty():
            self.said = True
            print("voronaut: compiling for this machine; some seconds, only this once", file=sys.stderr, flush=True)

    def on_end(self, happening: Any) -> None:
        """It is done."""


event.register("numba:compile", Notice())


def compiled(function: F) -> F:
    """`numba.njit` that releases the GIL and forgives a cache folder that is missing or read-only."""
    return cached(function, FAST)


def reordered(function: F) -> F:
    """`compiled` with sums in any order: for functions whose ties are decided by sums of one and the same loop."""
    return cached(function, {*FAST, "reassoc"})


def cached(function: F, fastmath: set[str]) -> F:
    """`numba.njit`, cached where it can be. By itself numba takes old machine code where only a callee has changed."""
    try:
        kernel = numba.njit(nogil=True, fastmath=fastmath, no_cfunc_wrapper=True, cache=True)(function)
    except RuntimeError:  # numba found no folder it may write to
        return numba.njit(nogil=True, fastmath=fastmath, no_cfunc_wrapper=True)(function)  # type: ignore[no-any-return]
    cache: Any = getattr(kernel, "_cache", None)
    index = getattr(cache, "_cache_file", None)
    if index is not None:  # numba compiles, and caches as it did when this was written (a test tells)
        index._source_stamp = (index._source_stamp, SOURCES)
        cache.save_overload = _forgiving(cache.save_overload)
    return kernel  # type: ignore[no-any-return]


def _forgiving(save: Callable[..., None]) -> Callable[..., None]:
    """A full disk keeps no machine code; what was compiled is used all the same."""

    def forgiving(*given: Any) -> None:
        with suppress(OSError):
            save(*given)

    return forgiving


def inlined(function: F) -> F:
    """`compiled` into each caller: for what is called so often that counting references to its arguments would show."""
    return numba.njit(nogil=True, fastmath=FAST, inline="always")(function)  # type: ignore[no-any-return]
