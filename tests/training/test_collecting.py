"""Collecting, and the way of a bonus into the advantages."""

import numpy as np
import pytest

from tests.training.toys import Counter, small
from voronaut.learners import ppo
from voronaut.training import on_policy
from voronaut.training.on_policy import PPOTrainer


def collected(
    limit: int = 3, terminates: bool = False
) -> tuple[on_policy.Rollout, on_policy.Running, list[list[float]]]:
    settings = ppo.Settings(envs=2, rollout=8)
    task = Counter(4, limit, terminates)
    params = ppo.init([np.random.default_rng(s) for s in (0, 1)], 2, 1, settings).params
    room = on_policy.empty(2, settings, 2, 1)
    start = on_policy.Running(task.reset().reshape(2, 2, 2).copy(), np.zeros((2, 2)))
    running, finished = on_policy.collect(task, params, np.zeros((2, 4, 2, 1), np.float32), start, room)
    return room, running, finished


def test_next_states_are_the_true_final_states() -> None:
    room, running, finished = collected()
    assert room.observations[0, :, 0, 1].tolist() == [0, 1, 2, 0]
    assert room.next_states[0, :, 0, 1].tolist() == [1, 2, 3, 1]
    assert room.truncated[0, :, 0].tolist() == [False, False, True, False]
    assert room.observations[1, 0, :, 0].tolist() == [2, 3]  # run-major: run 1 has environments 2 and 3
    assert finished == [[pytest.approx(0.6)] * 2] * 2
    assert running.returns.tolist() == [[pytest.approx(0.1)] * 2] * 2
    assert running.observations[0, 0].tolist() == [0, 1]


def test_observations_of_a_finished_rollout_are_not_overwritten_by_the_task() -> None:
    room, running, _ = collected()
    assert running.observations.base is None and room.observations[0, 1, 0, 1] == 1


@pytest.mark.parametrize("terminates", [False, True])
def test_the_bonus_reaches_the_advantage_by_the_hand_computed_amount(
    terminates: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Pay 1 at one step: the advantage there grows by 1, before it by (γλ)^lag within the episode, elsewhere by 0."""
    config = small(task="gym:unused", seeds=1, bonuses=["kme"], rollout=16, steps=16)
    trainer = PPOTrainer(config, Counter(2, 5, terminates))
    seen: list[ppo.Batch] = []

    def spy(agent: ppo.Agent, batch: ppo.Batch, *_: object) -> tuple[ppo.Agent, ppo.Stats]:
        seen.append(batch)
        return agent, ppo.Stats(*np.zeros((7, 1)))

    monkeypatch.setattr(ppo, "learn", spy)
    noise = np.zeros((1, 8, 2, 1), np.float32)
    trainer.running = trainer._start(trainer.task.reset())
    on_policy.collect(trainer.task, trainer.agent.params, noise, trainer.running, trainer.room)
    bonus = np.zeros((1, 8, 2), np.float32)
    for amount in (0, 1):
        bonus[0, 6, 1] = amount
        trainer._learn(noise, bonus, trainer._rngs(0, "rollout"))
    change = (seen[1].advantages - seen[0].advantages).reshape(8, 2)
    wanted = np.zeros((8, 2))
    wanted[6, 1], wanted[5, 1] = 1, 0.99 * 0.95  # step 4 ended the episode before
    np.testing.assert_allclose(change, wanted, atol=1e-6)


def test_the_first_rollout_pays_nothing_and_schedules_end_at_their_end() -> None:
    config = small(bonuses=["kme"], options={"kme": {"scale": "linear:0.3:0", "clusters": 5}}, seeds=1)
    scales = [PPOTrainer(config, Counter(2)).bonuses.scales(r)[0] for r in range(4)]
    assert scales == pytest.approx([0, 0.2, 0.1, 0])
