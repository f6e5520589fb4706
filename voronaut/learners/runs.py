"""Many runs at once: a function of one run, for all runs of a stack. Axis 0 of every array is the run."""

import functools
import os
from collections.abc import Callable, Hashable, Sequence
from typing import Any

import jax
import numpy as np

from voronaut.helpers.threads import share_out

CONCURRENT = {"xla_gpu_command_buffer_scheduling_mode": "CONCURRENT"}


def stack(runs: Sequence[Any]) -> Any:
    """Trees of single runs -> one tree with the run as axis 0."""
    return jax.tree.map(lambda *leaves: np.stack(leaves), *runs)


def for_each_run(function: Callable[..., Any], settings: Hashable, *stacked: Any) -> Any:
    """function(settings, run 0), function(settings, run 1), …, compiled; stacked, as NumPy.

    On a CPU every run is one call of the same program, in as many threads as there are cores: five runs on two cores
    took 2.3 times as long as one (a single vmapped program: 3.2 times), and bits cannot depend on the other runs.
    On an accelerator all runs are one vmapped program; there the last bits may depend on how many there are.
    """
    if jax.default_backend() != "cpu":
        return jax.device_get(program(function, settings, True)(*stacked))
    stacked = jax.tree.map(np.asarray, stacked)
    runs = [jax.tree.map(lambda leaf, r=r: leaf[r], stacked) for r in range(len(jax.tree.leaves(stacked)[0]))]
    one = program(function, settings, False)
    if len(runs) == 1:
        return stack([jax.device_get(one(*runs[0]))])
    return stack(share_out("runs", os.cpu_count() or 1, lambda run: jax.device_get(one(*run)), runs))


@functools.cache
def program(function: Callable[..., Any], settings: Hashable, stacked: bool) -> Callable[..., Any]:
    """function(settings, …) compiled: for one run, or for all of a stack at once."""
    one = functools.partial(function, settings)
    return jax.jit(jax.vmap(one) if stacked else one)


@functools.cache
def options() -> dict[str, str] | None:
    """For `jax.jit`: small programs of a GPU that do not wait for each other run at once, where XLA knows how.

    SAC's gradient step is about eighty of them, and with five pairs takes a fifth less time.
    """
    if jax.default_backend() != "gpu":
        return None
    try:
        jax.jit(lambda x: x + 1, compiler_options=CONCURRENT)(0)
    except jax.errors.JaxRuntimeError:  # no such option
        return None
    return CONCURRENT
