"""Runs side by side equal runs one by one."""

from typing import Any

import numpy as np
import pytest

from voronaut.bonuses.hashcount import HashCount
from voronaut.bonuses.kme import KME
from voronaut.bonuses.re3 import RE3
from voronaut.bonuses.rnd import RND
from voronaut.helpers.threads import share_out
from voronaut.training import population
from voronaut.training.population import Stack

RUNS = 3
MAKERS: dict[str, Any] = {
    "rnd": lambda seed: RND(dim=4, seed=seed, hidden=32, features=16, batch_size=64, fraction=0.5),
    "re3": lambda seed: RE3(dim=4, seed=seed, hidden=32, features=8),
    "re3 with memory": lambda seed: RE3(dim=4, seed=seed, hidden=32, features=8, memory=50),
    "hash": lambda seed: HashCount(dim=4, seed=seed),
}


def members(name: str) -> list[Any]:
    return [MAKERS[name](seed) for seed in range(RUNS)]


@pytest.mark.parametrize("name", MAKERS)
@pytest.mark.parametrize("how", [{}, {"threads": 2}, {"mapped": True}])
def test_equal_to_one_by_one(name: str, how: dict[str, Any]) -> None:
    if name == "hash" and "mapped" in how:
        pytest.skip("there is no mapped program for it")
    alone, together = members(name), Stack(members(name), **how)
    for round_ in range(4):
        states = np.random.default_rng(round_).normal(size=(RUNS, 10, 15, 4))
        wanted = np.stack([bonus.rewards(own) for bonus, own in zip(alone, states, strict=True)])
        np.testing.assert_allclose(together.rewards(states), wanted, rtol=2e-4, atol=1e-6)
        together.update(states)
        for bonus, own in zip(alone, states, strict=True):
            bonus.update(own)
    for bonus, member in zip(alone, together.members, strict=True):
        for key, array in bonus.state_dict().items():
            np.testing.assert_allclose(member.state_dict()[key], array, rtol=2e-3, atol=2e-5)
    assert [set(m) for m in together.metrics()] == [set(bonus.metrics()) for bonus in alone]


def test_few_states_are_not_shared_among_many_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    used = []
    monkeypatch.setattr(
        population, "share_out", lambda _, threads, *rest: used.append(threads) or share_out("test", 2, *rest)
    )
    together = Stack(members("hash"), threads=8)
    for count in (population.SHORT - 1, population.SHORT):
        together.update(np.zeros((RUNS, count, 4)))
    assert used == [population.FEW, 8]


def test_one_state_of_each_run() -> None:
    together, states = Stack(members("hash")), np.random.default_rng(0).normal(size=(RUNS, 4))
    together.update(states)
    wanted = [member.rewards(state) for member, state in zip(together.members, states, strict=True)]
    np.testing.assert_array_equal(together.rewards(states), wanted)


def test_bad_states_go_one_by_one() -> None:
    together = Stack([RND(dim=2, seed=s, hidden=8, features=4, on_bad="drop") for s in range(2)], mapped=True)
    states = np.ones((2, 5, 2))
    states[0, 3] = np.nan
    together.update(states)
    assert together.rewards(states)[0, 3] == 0
    assert [m["states"] for m in together.metrics()] == [4, 5]


@pytest.mark.parametrize("kind", [KME, HashCount])
@pytest.mark.parametrize("how", [{}, {"threads": 2}])
@pytest.mark.parametrize("bad", [np.nan, np.inf, 1e200])
def test_a_bad_state_of_one_run_lets_none_learn(kind: Any, how: dict[str, Any], bad: float) -> None:
    together = Stack([kind(dim=2, seed=seed) for seed in range(RUNS)], **how)
    states = np.random.default_rng(0).normal(size=(RUNS, 9, 2))
    together.update(states)
    before = [member.state_dict() for member in together.members]
    states[-1, 3, 1] = bad
    for learn in (together.update, together.step) if kind is KME else (together.update,):
        with pytest.raises(ValueError, match="not finite"):
            learn(states)
        for member, old in zip(together.members, before, strict=True):
            for name, array in member.state_dict().items():
                np.testing.assert_array_equal(array, old[name])


def test_on_a_cpu_neither_members_nor_states_are_looked_through(monkeypatch: pytest.MonkeyPatch) -> None:
    together, states = Stack(members("re3")), np.ones((RUNS, 9, 4))
    looked: list[bool] = []
    monkeypatch.setattr(population, "_alike", lambda members: looked.append(True) or False)
    for accelerator in (False, True):
        monkeypatch.setattr(population, "_on_accelerator", lambda found=accelerator: found)
        together.rewards(states)
        together.update(states)
        assert len(looked) == 2 * accelerator


def test_what_does_not_fit_is_refused() -> None:
    with pytest.raises(ValueError, match="one kind"):
        Stack([HashCount(dim=2), RND(dim=2)])
    with pytest.raises(ValueError, match="one kind"):
        Stack([])
    with pytest.raises(ValueError, match="Leave mapped out"):
        Stack([HashCount(dim=2)], mapped=True)
    with pytest.raises(ValueError, match="axis of runs first"):
        Stack([HashCount(dim=2)]).rewards(np.zeros((5, 2)))
