"""SimHash counts against a dictionary of codes."""

from collections import Counter

import numpy as np
import pytest

from voronaut.bonuses.hashcount import HashCount


def codes_by_hand(bonus: HashCount, states: np.ndarray) -> list[tuple[bool, ...]]:
    directions = bonus.state_dict()["directions"]
    return [tuple(bool(sum(x * a for x, a in zip(s, row, strict=True)) >= 0) for row in directions.T) for s in states]


@pytest.mark.parametrize("bits", [3, 20, 32, 64])
def test_equals_a_dictionary_of_codes(bits: int) -> None:
    rng, bonus, visits = np.random.default_rng(bits), HashCount(dim=4, bits=bits, seed=1), Counter[tuple[bool, ...]]()
    for _ in range(3):
        states = rng.normal(size=(50, 4))
        wanted = [1 / np.sqrt(visits[code] + 1) for code in codes_by_hand(bonus, states)]
        np.testing.assert_allclose(bonus.rewards(states), wanted, rtol=1e-6)
        bonus.update(states)
        visits.update(codes_by_hand(bonus, states))
    assert bonus.metrics()["states"] == 150 and bonus.metrics()["codes"] == len(visits)


def test_memory_is_bounded_and_collisions_only_pay_less() -> None:
    bonus = HashCount(dim=8, table_bits=6)
    before = sum(array.nbytes for array in bonus.state_dict().values())
    for seed in range(5):
        bonus.update(np.random.default_rng(seed).normal(size=(1000, 8)))
    assert sum(array.nbytes for array in bonus.state_dict().values()) == before
    assert bonus.rewards(np.ones(8)) < 1 and bonus.metrics()["full"] == 1


@pytest.mark.parametrize(("bits", "codes"), [(1, 2), (64, 200)])
def test_the_fewest_and_the_most_bits(bits: int, codes: int) -> None:
    bonus = HashCount(dim=8, bits=bits)
    bonus.update(np.random.default_rng(0).normal(size=(200, 8)))
    assert bonus.metrics()["codes"] == codes
    assert HashCount(dim=8, table_bits=1).slots(np.ones((3, 8))).max() < 2


@pytest.mark.parametrize("wrong", [{"bits": 0}, {"bits": 65}, {"table_bits": 0}, {"on_bad": "ignore"}])
def test_wrong_parameters(wrong: dict[str, int]) -> None:
    with pytest.raises(ValueError, match="must be"):
        HashCount(dim=2, **wrong)


def test_negative_counts_are_refused() -> None:
    bonus = HashCount(dim=2, table_bits=3)
    state = bonus.state_dict()
    state["counts"][0] = -1
    with pytest.raises(ValueError, match="negative"):
        bonus.load_state_dict(state)
