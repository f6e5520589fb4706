"""Two learners and two env runners on a local Ray: one clustering."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import ray

import voronaut as vn
from tests.rllib.worlds import assert_equal, learn, many, small, states_of
from voronaut.adapters.rllib import add_bonus, bonus_of


def kme(**options: Any) -> Any:
    return vn.KME(dim=4, clusters=16, init="data", **options)


@pytest.fixture(scope="module")
def algorithm(cluster: None) -> Iterator[Any]:
    config = add_bonus(many("CartPole-v1"), kme())
    config.fault_tolerance(restart_failed_env_runners=True)
    made = config.build_algo()
    yield made
    made.stop()


def test_all_learners_hold_the_same_clusters(algorithm: Any) -> None:
    for _ in range(2):
        result = algorithm.train()
        one, other = states_of(algorithm)
        assert_equal(one, other)
    logged = result["learners"]["__all_modules__"]["bonus"]
    assert logged["states"] == one["totals"][0] >= 2 * 128
    assert logged["updates"] == 2
    assert logged["differed"] == 0


def test_the_clusters_do_not_depend_on_the_sharding(algorithm: Any) -> None:
    alone = add_bonus(small("CartPole-v1"), kme()).build_algo()
    start = alone.learner_group._learner.bonus_connector.get_state()
    algorithm.learner_group.foreach_learner(lambda learner: learner.bonus_connector.set_state(start))
    for _ in range(3):
        episodes = alone.env_runner.sample(num_timesteps=150)
        learn(alone, episodes)
        learn(algorithm, episodes)
        for state in states_of(algorithm):
            assert_equal(state, states_of(alone)[0])
    assert bonus_of(algorithm).metrics()["states"] >= 450


def test_learners_that_differ_follow_the_first(algorithm: Any) -> None:
    def disturb(learner: Any) -> None:
        import torch

        if torch.distributed.get_rank() == 1:
            bonus = learner.bonus_connector.payer.bonus
            state = bonus.state_dict()
            bonus.load_state_dict({**state, "centers": state["centers"] + 1})

    algorithm.learner_group.foreach_learner(disturb)
    one, other = states_of(algorithm)
    assert (one["centers"] != other["centers"]).any()
    logged = algorithm.train()["learners"]["__all_modules__"]["bonus"]
    assert_equal(*states_of(algorithm))
    assert logged["differed"] == 1


def test_checkpoints_bring_the_clusters_back_to_all(algorithm: Any, tmp_path: Path) -> None:
    algorithm.train()
    kept = states_of(algorithm)[0]
    algorithm.save_to_path(str(tmp_path / "saved"))
    algorithm.train()
    assert (states_of(algorithm)[0]["totals"] != kept["totals"]).any()
    algorithm.restore_from_path(str(tmp_path / "saved"))
    for state in states_of(algorithm):
        assert_equal(state, kept)
    alone = add_bonus(small("CartPole-v1"), kme()).build_algo()  # a checkpoint of many learners, restored by one
    alone.restore_from_path(str(tmp_path / "saved"))
    assert_equal(states_of(alone)[0], kept)
    alone.train()
    alone.save_to_path(str(tmp_path / "again"))
    algorithm.restore_from_path(str(tmp_path / "again"))  # and the other way round
    for state in states_of(algorithm):
        assert_equal(state, states_of(alone)[0])


def test_an_env_runner_that_dies_costs_only_its_samples(algorithm: Any) -> None:
    group, before = algorithm.env_runner_group, states_of(algorithm)[0]
    assert group.num_healthy_remote_workers() == 2
    ray.kill(group._worker_manager.actors()[1], no_restart=False)
    seen = [int(before["totals"][0])]
    for _ in range(20):
        algorithm.train()
        one, other = states_of(algorithm)
        assert_equal(one, other)
        seen.append(int(one["totals"][0]))
        if group.num_remote_worker_restarts() and group.num_healthy_remote_workers() == 2:
            break
    assert group.num_remote_worker_restarts() == 1 and group.num_healthy_remote_workers() == 2
    assert np.diff(seen).min() >= 128  # every iteration was a whole one: what the dead did not bring, the other did


def test_an_error_in_one_shard_reaches_everybody(algorithm: Any) -> None:
    episodes = small("CartPole-v1").build_algo().env_runner.sample(num_timesteps=128)
    longest = max(episodes, key=len)
    longest.observations.data[1:2] = np.nan
    before = states_of(algorithm)[0]
    with pytest.raises(Exception, match=r"not finite|another learner could not pay"):
        learn(algorithm, episodes)
    for state in states_of(algorithm):
        assert_equal(state, before)
