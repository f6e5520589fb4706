"""The kit applied to every bonus, and its adapter checks proven on a toy host and its mutants."""

import subprocess
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import voronaut as vn
from voronaut.conformance import ADAPTER_CHECKS, BONUS_CHECKS, Host, Rollout, Walk, check_adapter

BONUSES = {
    "KME": vn.KME,
    "KME from data": partial(vn.KME, clusters=30, init="data"),
    "RND": partial(vn.RND, hidden=64, features=32),
    "RND that drops": partial(vn.RND, hidden=64, features=32, on_bad="drop"),
    "RE3": partial(vn.RE3, hidden=64),
    "RE3 with memory": partial(vn.RE3, hidden=64, memory=200),
    "HashCount": vn.HashCount,
    "NoBonus": vn.NoBonus,
}


@pytest.mark.parametrize("check", BONUS_CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("name", BONUSES)
def test_bonus(name: str, check: Callable[[Any], None]) -> None:
    check(BONUSES[name])


class ToyHost:
    """An on-policy loop in thirty lines: vector reset, rollout of 30 steps, GAE with a value of its own."""

    gamma, lam, steps = 0.9, 0.8, 30

    def __init__(self, bonus: Any, walks: Sequence[Walk], scale: float) -> None:
        self.bonus, self.walks, self.scale = bonus, walks, scale
        self.returns: list[float] = []

    def value(self, states: np.ndarray) -> np.ndarray:
        return np.asarray(np.sin(states @ np.array([1, 2, 3, 4.0])))

    def paid_states(self, left: np.ndarray, led_to: np.ndarray, reset_to: np.ndarray) -> np.ndarray:
        return led_to

    def bonus_of(self, states: np.ndarray) -> np.ndarray:
        return np.asarray(self.scale * self.bonus.rewards(states))

    def learned_states(self, led_to: np.ndarray, reset_to: np.ndarray) -> np.ndarray:
        return led_to

    def log(self, extrinsic: float, bonus: float) -> float:
        return extrinsic

    def collect(self) -> Rollout:
        left, led_to, reset_to = (np.zeros((self.steps, len(self.walks), 4), np.float32) for _ in range(3))
        extrinsic, ends = np.zeros(left.shape[:2]), np.zeros(left.shape[:2], bool)
        for i, walk in enumerate(self.walks):
            state = walk.reset()
            for t in range(self.steps):
                left[t, i] = state
                state, extrinsic[t, i], terminated, truncated = walk.step()
                led_to[t, i], ends[t, i] = state, terminated or truncated
                state = walk.reset() if ends[t, i] else state
                reset_to[t, i] = state
        bonus = self.bonus_of(self.paid_states(left, led_to, reset_to))
        rewards, advantages = self.learn(extrinsic, bonus, left, led_to, ends)
        self.bonus.update(self.learned_states(led_to, reset_to))
        return Rollout(rewards, self.episode_returns(extrinsic, bonus, ends), advantages, self.gamma, self.lam)

    def learn(self, extrinsic: Any, bonus: Any, left: Any, led_to: Any, ends: Any) -> tuple[Any, Any]:
        return extrinsic + bonus, self.gae(extrinsic + bonus, left, led_to, ends)

    def gae(self, rewards: np.ndarray, left: np.ndarray, led_to: np.ndarray, ends: np.ndarray) -> np.ndarray:
        advantages, later = np.zeros_like(rewards), np.zeros(rewards.shape[1])
        for t in reversed(range(len(rewards))):
            error = rewards[t] + self.gamma * self.value(led_to[t]) - self.value(left[t])
            later = error + self.gamma * self.lam * np.where(ends[t], 0, later)
            advantages[t] = later
        return advantages

    def episode_returns(self, extrinsic: np.ndarray, bonus: np.ndarray, ends: np.ndarray) -> list[float]:
        found = []
        for i in range(ends.shape[1]):
            start = 0
            for end in np.flatnonzero(ends[:, i]) + 1:
                found.append(self.log(extrinsic[start:end, i].sum(), bonus[start:end, i].sum()))
                start = end
        return found

    def save(self, path: Path) -> None:
        np.savez(path.with_suffix(".npz"), **self.bonus.state_dict())

    def load(self, path: Path) -> None:
        self.bonus.load_state_dict(dict(np.load(path.with_suffix(".npz"))))


class OffPolicy(ToyHost):
    def learn(self, *parts: Any) -> tuple[Any, Any]:
        return super().learn(*parts)[0], None


class StepsOnConstruction(ToyHost):
    def __init__(self, bonus: Any, walks: Sequence[Walk], scale: float) -> None:
        super().__init__(bonus, walks, scale)
        walks[0].reset()
        walks[0].step()
        walks[0].episode, walks[0].time = -1, 0


class PaysStateLeft(ToyHost):
    def paid_states(self, left: np.ndarray, led_to: np.ndarray, reset_to: np.ndarray) -> np.ndarray:
        return left


class PaysLate(ToyHost):
    def paid_states(self, left: np.ndarray, led_to: np.ndarray, reset_to: np.ndarray) -> np.ndarray:
        return np.roll(led_to, -1, axis=0)


class PaysPermuted(ToyHost):
    def bonus_of(self, states: np.ndarray) -> np.ndarray:
        return super().bonus_of(np.random.default_rng(0).permutation(states))


class PaysTwice(ToyHost):
    def bonus_of(self, states: np.ndarray) -> np.ndarray:
        return 2 * super().bonus_of(states)


class PaysNothing(ToyHost):
    """As a bonus added after the copy into a replay buffer."""

    def learn(self, extrinsic: Any, bonus: Any, left: Any, led_to: Any, ends: Any) -> tuple[Any, Any]:
        return super().learn(extrinsic, 0 * bonus, left, led_to, ends)


class PaysResetState(ToyHost):
    def paid_states(self, left: np.ndarray, led_to: np.ndarray, reset_to: np.ndarray) -> np.ndarray:
        return reset_to


class PaysNoEnd(ToyHost):
    def learn(self, extrinsic: Any, bonus: Any, left: Any, led_to: Any, ends: Any) -> tuple[Any, Any]:
        return super().learn(extrinsic, np.where(ends, 0, bonus), left, led_to, ends)


class PaysAfterGae(ToyHost):
    def learn(self, extrinsic: Any, bonus: Any, left: Any, led_to: Any, ends: Any) -> tuple[Any, Any]:
        return extrinsic + bonus, self.gae(extrinsic, left, led_to, ends)


class AddsToAdvantages(ToyHost):
    def learn(self, extrinsic: Any, bonus: Any, left: Any, led_to: Any, ends: Any) -> tuple[Any, Any]:
        return extrinsic + bonus, self.gae(extrinsic, left, led_to, ends) + bonus


class LogsTheSum(ToyHost):
    def log(self, extrinsic: float, bonus: float) -> float:
        return extrinsic + bonus


class NeverUpdates(ToyHost):
    def learned_states(self, led_to: np.ndarray, reset_to: np.ndarray) -> np.ndarray:
        return led_to[:0]


class UpdatesTwice(ToyHost):
    def learned_states(self, led_to: np.ndarray, reset_to: np.ndarray) -> np.ndarray:
        return np.concatenate([led_to, led_to])


class LearnsResetStates(ToyHost):
    def learned_states(self, led_to: np.ndarray, reset_to: np.ndarray) -> np.ndarray:
        return reset_to


class ForgetsBonus(ToyHost):
    def load(self, path: Path) -> None:
        """Only the policy comes back."""


MUTANTS = {
    "construction_steps_nothing": (StepsOnConstruction,),
    "bonus_is_paid_for_the_next_state": (PaysStateLeft, PaysLate, PaysPermuted, PaysTwice, PaysNothing),
    "bonus_is_paid_for_the_final_state": (PaysResetState, PaysNoEnd),
    "bonus_reaches_the_advantages": (PaysAfterGae, AddsToAdvantages),
    "extrinsic_return_is_logged_apart": (LogsTheSum,),
    "bonus_learns_each_state_once": (NeverUpdates, UpdatesTwice, LearnsResetStates),
    "bonus_survives_save_and_load": (ForgetsBonus,),
}
CHECKS = {check.__name__: check for check in ADAPTER_CHECKS}


def test_every_check_has_a_mutant() -> None:
    assert set(MUTANTS) == set(CHECKS)


@pytest.mark.parametrize("host", [ToyHost, OffPolicy])
def test_an_honest_host_passes(host: Callable[..., Host]) -> None:
    check_adapter(host)


@pytest.mark.parametrize(("name", "mutant"), [(name, mutant) for name, all_ in MUTANTS.items() for mutant in all_])
def test_the_mutant_host_is_stopped(name: str, mutant: Callable[..., Host]) -> None:
    with pytest.raises(AssertionError, match=r".{15,}"):
        CHECKS[name](mutant)
    others = [check for other, check in CHECKS.items() if other != name]
    passed = sum(not fails(check, mutant) for check in others)
    assert passed >= len(others) - 2  # a mutant is stopped for its own fault, not for everything


def fails(check: Callable[[Any], None], mutant: Any) -> bool:
    try:
        check(mutant)
    except AssertionError:
        return True
    return False


def test_a_short_rollout_is_asked_to_be_longer() -> None:
    class Short(ToyHost):
        steps = 5

    with pytest.raises(AssertionError, match="longer rollout"):
        check_adapter(Short)


def test_pytest_is_not_needed() -> None:
    code = "import sys; sys.modules['pytest'] = None; from voronaut.conformance import check_bonus, check_adapter"
    subprocess.run([sys.executable, "-c", code], check=True)
