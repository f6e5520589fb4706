"""Threads that are kept: starting some for every call costs more than small work does, most on a busy machine."""

import functools
import os
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor, wait
from typing import Any


@functools.cache
def pool(use: str, threads: int) -> ThreadPoolExecutor:
    """The threads of one use. Work may wait for work of another use, never of its own: it could wait forever."""
    return ThreadPoolExecutor(threads, use)


if hasattr(os, "register_at_fork"):  # not on Windows
    os.register_at_fork(after_in_child=pool.cache_clear)  # a child has none of its parent's threads


def share_out(use: str, threads: int, work: Callable[..., Any], *parts: Iterable[Any]) -> list[Any]:
    """[work(a, b, …) for a, b, … in zip(*parts)] in threads. Whatever goes wrong, nobody is still at work after it."""
    running = [pool(use, threads).submit(work, *own) for own in zip(*parts, strict=True)]
    try:
        return [each.result() for each in running]
    finally:
        wait(running)
