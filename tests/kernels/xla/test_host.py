"""The XLA kernel behind the CPU kernel's functions gives the CPU kernel's numbers, for one run and for many."""

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


def test_many_runs_are_each_run_alone() -> None:
    centers, states = (RNG.normal(size=(3, n, 2)).astype("f") for n in (10, 40))
    counts, rules, floors = RNG.integers(1, 9, (3, 10)), Rules(0.05, 1e-3, LOG), np.array([0.1, 0.2, 0.3])
    paid = xla.rewards_runs(centers, counts, states, rules, floors)
    after, totals = xla.update_runs(centers, counts, states, rules)
    for run in range(3):
        alone = cpu.prepare(centers[run], counts[run], rules.balance)
        wanted = cpu.rewards(alone, states[run], rules._replace(floor=floors[run]))
        np.testing.assert_allclose(paid[run], wanted, atol=1e-4)
        one, count = cpu.update(centers[run], counts[run], states[run], np.arange(40), rules)
        np.testing.assert_allclose(after[run], one, atol=1e-5)
        assert totals[run].tolist() == count.tolist()
