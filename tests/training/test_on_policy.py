"""A turn of Algorithm 2 with PPO: what is paid when, what is logged, what is drawn, and what a resume restores."""

import itertools
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.training.toys import Counter, small
from voronaut.learners import ppo
from voronaut.training import on_policy
from voronaut.training.on_policy import PPOTrainer

RUNS, ENVS, STEPS = 2, 2, 4  # four steps in episodes of three: every rollout ends within an episode


def trainer(done: int = 0) -> PPOTrainer:
    """A trainer of two runs of KME that count, after some turns."""
    choices = {"seeds": RUNS, "bonuses": ["kme"], "envs": ENVS, "rollout": ENVS * STEPS, "steps": 10 * ENVS * STEPS}
    made = PPOTrainer(small(task="gym:unused", **choices), Counter(RUNS * ENVS))
    for _ in range(done):
        made.turn()
    return made


def test_a_resumed_trainer_goes_on_within_episodes() -> None:
    whole = trainer(1)
    resumed = trainer()
    resumed.load_state_dict({**whole.state_dict(), "rollout": np.array(1)})
    for one, other in zip(whole.turn(), resumed.turn(), strict=True):
        assert one["extrinsic_return"] == other["extrinsic_return"] == pytest.approx(0.1 + 0.2 + 0.3)
        assert one["episodes"] == other["episodes"] == 2


def test_a_rollout_is_paid_before_it_is_absorbed() -> None:
    before, after = trainer(2), trainer(2)
    rows = after.turn()
    for run, bonus in enumerate(before.bonuses.members()):
        paid = bonus.rewards(after.next_states[run]).mean()
        assert paid > 0 and rows[run]["bonus_mean"] == pytest.approx(paid, rel=1e-6)
    absorbed = [bonus.rewards(after.next_states[run]).mean() for run, bonus in enumerate(after.bonuses.members())]
    assert absorbed != pytest.approx([row["bonus_mean"] for row in rows], rel=1e-3)  # or the above would show nothing


def test_the_top_reward_is_of_the_dense_reward() -> None:
    made = trainer()
    for row in made.turn():
        assert row["max_step_reward"] == pytest.approx(2 * 0.3)  # the sparse one of the toy is half of it
    assert made.room.rewards.max() == pytest.approx(0.3)


def test_seconds_of_the_log_are_those_that_passed(monkeypatch: pytest.MonkeyPatch) -> None:
    """By a clock that ticks once whenever it is asked."""
    ticks = itertools.count(1000)
    monkeypatch.setattr(on_policy.time, "perf_counter", lambda: float(next(ticks)))
    made, names = trainer(1), ("collect_seconds", "bonus_seconds", "learn_seconds")
    began = next(ticks)
    for row in made.turn():
        assert min(row[name] for name in names) > 0 and sum(row[name] for name in names) < next(ticks) - began


def test_the_seconds_of_a_method_are_of_paying_and_of_absorbing(monkeypatch: pytest.MonkeyPatch) -> None:
    made = trainer(1)
    paid, _ = made.bonuses.pay(made.next_states, made.done)
    monkeypatch.setattr(made.bonuses, "pay", lambda *_: (paid, np.array([1.0])))
    monkeypatch.setattr(made.bonuses, "absorb", lambda *_: np.array([2.0]))
    assert [row["method_bonus_seconds"] for row in made.turn()] == [3.0, 3.0]


def test_noise_and_orders_are_new_in_every_rollout_and_run(monkeypatch: pytest.MonkeyPatch) -> None:
    noises: list[NDArray[np.floating]] = []
    orders: list[NDArray[np.int32]] = []
    collect, learn = on_policy.collect, ppo.learn

    def seen_collect(task, params, noise, running, room):  # type: ignore[no-untyped-def]
        noises.append(noise)
        return collect(task, params, noise, running, room)

    def seen_learn(agent, batch, order, settings, unpaid):  # type: ignore[no-untyped-def]
        orders.append(order)
        return learn(agent, batch, order, settings, unpaid)

    monkeypatch.setattr(on_policy, "collect", seen_collect)
    monkeypatch.setattr(ppo, "learn", seen_learn)
    trainer(3)
    for drawn in (noises, orders):
        of_runs = [run for whole in drawn for run in whole]
        assert len({run.tobytes() for run in of_runs}) == 3 * RUNS
    first = len(noises)
    trainer(1)
    assert np.array_equal(noises[first], noises[0]) and np.array_equal(orders[first], orders[0])


def test_a_weight_falls_as_the_task_pays_and_a_resume_remembers() -> None:
    """Every episode of the toy is paid, so that nothing is left of the bonus once one has ended."""
    choices = {"seeds": RUNS, "bonuses": ["kme"], "envs": ENVS, "rollout": ENVS * 2, "steps": 10 * ENVS * 2}
    options = {"kme": {"clusters": 10, "scale": "falling:0.5"}}

    def made() -> PPOTrainer:
        return PPOTrainer(small(task="gym:unused", options=options, **choices), Counter(RUNS * ENVS))

    whole, resumed = made(), made()
    assert [row["scale"] for row in whole.turn()] == [0, 0]  # the first rollout pays nothing, and ends no episode
    resumed.load_state_dict({**whole.state_dict(), "rollout": np.array(1)})
    for one in (whole, resumed):
        assert [weight.episodes for weight in one.bonuses.weights] == [0, 0]
        assert [row["scale"] for row in one.turn()] == [0, 0]
        assert [(weight.episodes, weight.paid) for weight in one.bonuses.weights] == [(2, 1.0)] * 2
    assert "bonus/weight0/paid" in whole.state_dict()
    options["kme"]["scale"] = 0.5
    constant = made()
    constant.turn()
    assert not any("weight" in name for name in constant.state_dict())  # checkpoints from before still fit


def test_new_episodes_after_a_resume_are_not_paid_yet(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Counter, "resumes_exactly", False)
    choices = {"seeds": RUNS, "bonuses": ["kme"], "envs": ENVS, "rollout": ENVS * 2, "steps": 10 * ENVS * 2}
    options = {"kme": {"clusters": 10, "scale": "falling:0.5"}, "ppo": {"entropy_falls": True}}
    whole, resumed = (
        PPOTrainer(small(task="gym:unused", options=options, **choices), Counter(RUNS * ENVS)) for _ in range(2)
    )
    whole.turn()  # two steps of three, all of them paid
    resumed.load_state_dict({**whole.state_dict(), "rollout": np.array(1)})
    for trainer, met in ((whole, True), (resumed, False)):
        for weight in (*trainer.bonuses.weights, *trainer.unpaid):
            weight.see(np.zeros(ENVS), np.ones(ENVS, bool))
            assert weight.paid == met


def test_an_entropy_bonus_falls_as_the_task_pays_with_any_bonus_and_a_resume_remembers() -> None:
    """Every episode of the toy is paid: once one has ended, nothing is left to widen the noise."""
    choices = {"seeds": RUNS, "bonuses": ["none"], "envs": ENVS, "rollout": ENVS * 2, "steps": 10 * ENVS * 2}

    def made(numbers: dict[str, Any]) -> PPOTrainer:
        given = {"ppo": {"entropy_coef": 0.5, **numbers}}
        return PPOTrainer(small(task="gym:unused", options=given, **choices), Counter(RUNS * ENVS))

    whole, resumed = made({"entropy_falls": True}), made({"entropy_falls": True})
    whole.turn()
    assert [weight.at(None) for weight in whole.unpaid] == [1.0] * RUNS  # no episode has ended
    resumed.load_state_dict({**whole.state_dict(), "rollout": np.array(1)})
    for one in (whole, resumed):
        one.turn()
        assert [weight.at(None) for weight in one.unpaid] == [0.0] * RUNS
    np.testing.assert_array_equal(whole.agent.params.log_std, resumed.agent.params.log_std)
    constant = made({})
    constant.turn()
    assert not constant.unpaid and not any("unpaid" in name for name in constant.state_dict())
