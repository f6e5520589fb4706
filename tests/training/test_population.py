"""The bonuses of all runs: they share the cores, and sharing changes no number."""

import dataclasses

import numpy as np
import pytest

from tests.training.toys import small
from voronaut.training import population


@pytest.mark.parametrize(("cores", "seeds", "side_by_side", "each"), [(8, 2, 2, 4), (2, 2, 2, 1), (1, 2, 1, 1)])
def test_runs_share_the_cores(
    monkeypatch: pytest.MonkeyPatch, cores: int, seeds: int, side_by_side: int, each: int
) -> None:
    monkeypatch.setattr(population, "cores", lambda: cores)
    bonuses = population.Population(dataclasses.replace(small(), seeds=tuple(range(seeds))), 17)
    assert [stack.threads for stack in bonuses.stacks] == [side_by_side] * len(bonuses.stacks)
    assert [bonus.settings.threads for bonus in bonuses.members() if hasattr(bonus, "settings")] == [each] * seeds


def test_sharing_changes_no_number(monkeypatch: pytest.MonkeyPatch) -> None:
    states = np.random.default_rng(0).normal(size=(4, 16, 2, 17)).astype(np.float32)
    paid = []
    for cores in (1, 8):
        monkeypatch.setattr(population, "cores", lambda cores=cores: cores)
        bonuses = population.Population(small(), 17)
        bonuses.absorb(states, 0)
        paid.append(bonuses.pay(states, 1)[0])
    assert paid[0].tobytes() == paid[1].tobytes()
