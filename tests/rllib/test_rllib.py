"""`add_bonus` with one learner in this process."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from gymnasium import spaces
from ray.rllib.algorithms.algorithm import Algorithm
from ray.rllib.algorithms.impala import IMPALAConfig
from ray.rllib.algorithms.ppo.torch.ppo_torch_learner import PPOTorchLearner
from ray.rllib.algorithms.sac import SACConfig
from ray.rllib.connectors.connector_v2 import ConnectorV2

import voronaut as vn
from tests.rllib.worlds import Picture, Recorder, assert_equal, learn, small, states_of
from voronaut.adapters.rllib import BonusConnector, KeepsBonus, add_bonus, bonus_of, in_common_order
from voronaut.conformance.walk import Toll
from voronaut.helpers import missing

pytestmark = pytest.mark.usefixtures("cluster")


@pytest.mark.parametrize(("env", "dim"), [("CartPole-v1", 4), ("Pendulum-v1", 3)])
def test_discrete_and_continuous_actions(env: str, dim: int) -> None:
    algorithm = add_bonus(small(env), vn.KME(dim=dim, clusters=8)).build_algo()
    algorithm.train()
    algorithm.train()
    bonus = bonus_of(algorithm)
    assert bonus.metrics()["states"] >= 2 * 64
    assert bonus.metrics()["updates"] == 2


def test_logs_keep_the_environments_returns_apart() -> None:
    algorithm = add_bonus(small(walk=1), Toll(), scale=100.0).build_algo()
    for _ in range(3):  # episodes of 5 steps are cut by batches of 64
        result = algorithm.train()
        assert result["env_runners"]["episode_return_mean"] == pytest.approx(2.25)
    logged = result["learners"]["__all_modules__"]["bonus"]
    assert 100 < logged["paid"] < 200
    assert 0.25 < logged["extrinsic_reward"] < 0.6
    assert logged["states"] == 3 * 64
    assert set(result["learners"]) == {"default_policy", "__all_modules__"}


def test_warmup_and_a_scale_that_falls() -> None:
    options: Any = {"warmup": 1, "scale": lambda progress: 1 - progress, "total_steps": 256}
    algorithm = add_bonus(small(walk=0), Toll(), **options).build_algo()
    paid = [algorithm.train()["learners"]["__all_modules__"]["bonus"]["paid"] for _ in range(4)]
    assert paid[0] == 0
    assert 0.75 <= paid[1] <= 1.5 and 0.5 <= paid[2] <= 1.0 and 0.25 <= paid[3] <= 0.5


def test_an_image_needs_features() -> None:
    config = small(Picture).rl_module(model_config={"conv_filters": [[4, 4, 4]], "fcnet_hiddens": [8]})
    refused = add_bonus(config.copy(copy_frozen=False), vn.KME(dim=16, clusters=4)).build_algo()
    with pytest.raises(ValueError, match=r"image.*\(36, 36, 1\).*Pass features="):
        refused.train()
    flat = add_bonus(
        config, vn.KME(dim=16, clusters=4), features=lambda obs: obs[:, :4, :4].reshape(len(obs), -1)
    ).build_algo()
    flat.train()
    assert bonus_of(flat).metrics()["states"] > 0


def test_checkpoints_hold_the_bonus(tmp_path: Path) -> None:
    config = add_bonus(small("CartPole-v1"), vn.KME(dim=2, clusters=8), features=lambda obs: obs[:, [0, 2]])
    algorithm = config.build_algo()
    algorithm.train()
    kept = states_of(algorithm)[0]
    algorithm.save_to_path(str(tmp_path / "saved"))
    algorithm.train()
    assert states_of(algorithm)[0]["totals"][1] == 2
    algorithm.restore_from_path(str(tmp_path / "saved"))
    assert_equal(states_of(algorithm)[0], kept)
    again = Algorithm.from_checkpoint(str(tmp_path / "saved"))
    assert_equal(states_of(again)[0], kept)
    assert again.train()["learners"]["__all_modules__"]["bonus"]["updates"] == 2


def test_recurrent_modules_get_the_bonus_too() -> None:
    config = small(walk=0).rl_module(model_config={"fcnet_hiddens": [8], "use_lstm": True, "max_seq_len": 4})
    paid, unpaid = (add_bonus(config.copy(copy_frozen=False), Toll(price), scale=1.0) for price in (1, 0))
    tables = [_rewards(one.build_algo()) for one in (paid, unpaid)]
    extra = tables[0] - tables[1]
    assert ((extra == 0) | ((extra >= 1) & (extra <= 2))).all() and (extra > 0).sum() == 64


def _rewards(algorithm: Any) -> Any:
    recorder = Recorder()
    algorithm.learner_group._learner._learner_connector.append(recorder)
    learn(algorithm, algorithm.env_runner.sample(num_timesteps=64))
    return recorder.batch["rewards"]


class Marker(ConnectorV2):
    def __call__(self, *, batch: Any, **_: Any) -> Any:
        return batch


def test_a_learner_connector_that_was_there_stays() -> None:
    config = small("CartPole-v1").learners(learner_connector=lambda *_: Marker())
    algorithm = add_bonus(config, vn.KME(dim=4, clusters=4)).build_algo()
    names = [type(piece).__name__ for piece in algorithm.learner_group._learner._learner_connector.connectors]
    assert names.index("AddOneTsToEpisodesAndTruncate") < names.index("Marker") < names.index("BonusConnector")
    assert names.index("BonusConnector") < names.index("AddColumnsFromEpisodesToTrainBatch")
    assert names[-1] == "GeneralAdvantageEstimation"


class Plain(PPOTorchLearner):
    pass


class Keeping(KeepsBonus, PPOTorchLearner):
    pass


def test_what_cannot_work_is_refused() -> None:
    kme = vn.KME(dim=4, clusters=4)
    with pytest.raises(TypeError, match=r"needs a config of PPO, SAC or DQN; got IMPALAConfig"):
        add_bonus(IMPALAConfig(), kme)
    with pytest.raises(TypeError, match="lacks rewards"):
        add_bonus(small(), object())
    with pytest.raises(ValueError, match="warmup"):
        add_bonus(small(), kme, warmup=-1)
    for config in (small(), SACConfig()):
        with pytest.raises(ValueError, match="has a bonus already: it would be paid twice"):
            add_bonus(add_bonus(config, kme).copy(copy_frozen=False), kme)
    with pytest.raises(TypeError, match=r"class Mine\(voronaut.adapters.rllib.KeepsBonus, Plain\)"):
        add_bonus(small().learners(learner_class=Plain), kme)
    assert add_bonus(small().learners(learner_class=Keeping), kme).learner_class is Keeping


def test_the_users_bonus_is_copied() -> None:
    kme = vn.KME(dim=4, clusters=4)
    algorithm = add_bonus(small(walk=0), kme).build_algo()
    algorithm.train()
    assert kme.metrics()["updates"] == 0
    assert bonus_of(algorithm).metrics()["updates"] == 1


def test_keys_name_what_is_seen() -> None:
    parts = [{"a": np.ones((3, 2)), "b": np.zeros((3, 1))}, {"a": np.ones((2, 2)), "b": np.ones((2, 1))}]
    episodes = [type("Episode", (), {"get_observations": lambda self, _, part=part: part})() for part in parts]
    seen = BonusConnector(Toll(), keys=["b", "a"])._states(episodes, [3, 2])
    np.testing.assert_array_equal(seen, [[0, 1, 1]] * 3 + [[1, 1, 1]] * 2)
    with pytest.raises(ValueError, match=r"keys=.*\['a', 'b'\]"):
        BonusConnector(Toll())._states(episodes, [3, 2])


def test_the_common_order_is_common_and_fair() -> None:
    states = np.random.default_rng(0).normal(size=(50, 3)).astype(np.float32)
    mixed = states[np.random.default_rng(1).permutation(50)]
    one, other = in_common_order(states, 7), in_common_order(mixed, 7)
    np.testing.assert_array_equal(one, other)
    np.testing.assert_array_equal(np.sort(one, axis=0), np.sort(states, axis=0))
    assert (one != in_common_order(states, 8)).any()


def test_without_ray_the_error_has_the_pip_line() -> None:
    code = "import sys; sys.modules['ray'] = None; import voronaut.adapters.rllib"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert f"ImportError: ray is missing. Install it with: {missing.pip('rllib')}" in done.stderr


def test_a_bonus_must_fit_where_the_space_is_known() -> None:
    config = small(walk=0)
    with pytest.raises(ValueError, match=r"not known here. Make the bonus yourself: KME\(dim=…\)"):
        add_bonus(config.copy(copy_frozen=False), vn.KME)
    config.environment(observation_space=spaces.Box(-1, 1, (4,)))
    with pytest.raises(ValueError, match=r"dim=3 and those it would see have 4 numbers"):
        add_bonus(config.copy(copy_frozen=False), vn.KME(dim=3))
    assert add_bonus(config.copy(copy_frozen=False), vn.KME) is not None
