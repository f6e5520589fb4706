"""The XLA kernel behind the CPU kernel's functions gives the CPU kernel's numbers."""

import numpy as np
import pytest

from voronaut.kernels import cpu, xla
from voronaut.kernels.rules import LOG, SQRT, Rules

RNG = np.random.default_rng(0)


@pytest.mark.parametrize(("dtype", "tolerance"), [("float64", 1e-11), ("float32", 2e-4)])
@pytest.mark.parametrize("objective", [SQRT, LOG])
def test_the_same_functions_give_the_same_numbers(dtype: str, tolerance: float, objective: int) -> None:
    centers, states = RNG.normal(size=(20, 3)).astype(dtype), RNG.normal(size=(50, 3)).astype(dtype)
    counts, rules = RNG.integers(1, 9, 20) + 2**33, Rules(0.05, 1e-3, objective, 0.01)
    mine, yours = (kernel.prepare(centers, counts, 1e-3) for kernel in (xla, cpu))
    np.testing.assert_allclose(mine.gaps, yours.gaps, atol=tolerance)
    assert xla.assign(mine, states).tolist() == cpu.assign(yours, states).tolist()
    wanted = cpu.rewards(yours, states, rules)
    np.testing.assert_allclose(xla.rewards(mine, states, rules), wanted, atol=tolerance)
    after, wanted_after = (k.update(centers, counts, states, np.arange(50)[::-1].copy(), rules)
                           for k in (xla, cpu))  # fmt: skip
    np.testing.assert_allclose(after[0], wanted_after[0], atol=tolerance)
    assert after[1].tolist() == wanted_after[1].tolist() and after[0].dtype == dtype
