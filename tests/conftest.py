"""What must be true before any test module is imported."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

# Triton reads this once, when it is first imported, and torch may import it before the tests of the kernels do.
os.environ.setdefault("TRITON_INTERPRET", "0" if Path("/dev/nvidiactl").exists() else "1")


@pytest.fixture(scope="module")
def quick_compilation() -> Iterator[None]:
    """For tests whose programs run for milliseconds and compile for seconds."""
    jax = pytest.importorskip("jax")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("JAX_DISABLE_MOST_OPTIMIZATIONS", "1")  # for processes that are started
        jax.config.update("jax_disable_most_optimizations", True)
        yield
        jax.config.update("jax_disable_most_optimizations", False)
