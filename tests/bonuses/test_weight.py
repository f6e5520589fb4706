"""What a bonus weighs: numbers, lines, functions, and a weight that falls as the task pays by itself."""

import numpy as np
import pytest

from voronaut.bonuses.weight import EPISODES, Weight


def episode(weight: Weight, paid: bool, steps: int = 3) -> None:
    for t in range(steps):
        weight.see([float(paid and t == 1)], [t == steps - 1])


def test_numbers_lines_and_functions() -> None:
    assert [Weight(scale).at(0.5) for scale in (0.1, "0.1", "linear:0.4:0", lambda p: p / 5)] == pytest.approx(
        [0.1, 0.1, 0.2, 0.1]
    )
    assert Weight(0.3).at(None) == 0.3 and Weight("falling:0.3").at(None) == 0.3
    for scale in ("linear:1:0", lambda p: p):
        with pytest.raises(ValueError, match="progress, which is not known"):
            Weight(scale).at(None)


def test_it_falls_with_the_share_of_paid_episodes_and_rises_when_they_are_lost() -> None:
    weight = Weight("falling:0.2")
    for paid in (False, True, True, False):
        episode(weight, paid)
    assert weight.at(None) == pytest.approx(0.1)
    for _ in range(10 * EPISODES):
        episode(weight, True)
    assert weight.at(None) < 1e-4
    for _ in range(EPISODES):
        episode(weight, False)
    assert 0.2 * 0.6 < weight.at(None) < 0.2 * 0.7  # 1 − 1/e: a memory that fades


def test_a_cost_of_every_step_is_no_pay() -> None:
    weight = Weight("falling:1")
    weight.see([-0.1, 0.0], [True, True])
    assert weight.at(None) == 1
    weight.see([-0.1, 100.0], [True, True])
    assert weight.at(None) == pytest.approx(0.75)


@pytest.mark.parametrize("pieces", [1, 4, 20])
def test_a_rollout_is_its_steps(pieces: int) -> None:
    rng = np.random.default_rng(0)
    rewards, over = rng.random((40, 3)) * (rng.random((40, 3)) < 0.1), rng.random((40, 3)) < 0.2
    steps, whole = Weight("falling:1"), Weight("falling:1")
    for own, ends in zip(rewards, over, strict=True):
        steps.see(own, ends)
    for own, ends in zip(np.split(rewards, pieces), np.split(over, pieces), strict=True):
        whole.see(own, ends)
        resumed = Weight("falling:1")
        resumed.load_state_dict(whole.state_dict())
        whole = resumed
    assert 0 < whole.at(None) < 1 and whole.at(None) == steps.at(None)
    assert whole.episodes == over.sum()


@pytest.mark.parametrize(
    "scale",
    [True, float("nan"), None, "fast", "linear:1", "falling", "falling:1:0", "falling:inf", -1, "-0.1", "linear:1:-1"],
)
def test_what_is_no_scale_is_said(scale: object) -> None:
    with pytest.raises(ValueError, match="falling:NUMBER such as"):
        Weight(scale)  # type: ignore[arg-type]


def test_nothing_is_kept_where_nothing_falls() -> None:
    constant = Weight(0.1)
    episode(constant, True)
    assert constant.state_dict() == {} and constant.at(0.0) == 0.1
