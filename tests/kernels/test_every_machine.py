"""What every kind of machine promises."""

import importlib

import pytest


@pytest.mark.parametrize(("machine", "library"), [("cpu", "numba"), ("xla", "jax"), ("gpu", "torch")])
def test_every_machine_has_the_same_few_functions(machine: str, library: str) -> None:
    pytest.importorskip(library)
    kernel = importlib.import_module(f"voronaut.kernels.{machine}")
    for name in ("prepare", "assign", "rewards", "update"):
        assert name in kernel.__all__ and callable(getattr(kernel, name))
        assert f"`{name}`" in kernel.__doc__
