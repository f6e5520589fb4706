"""What a pair chooses about its models where the user has not: observations in deviations, temperature from 0.1 on."""

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from stable_baselines3 import DQN, SAC, TD3
from stable_baselines3.common.buffers import ReplayBuffer
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.torch_layers import FlattenExtractor
from stable_baselines3.common.vec_env import DummyVecEnv, VecNormalize

import voronaut as vn
from tests.adapters.sb3.test_env import kme, tiny
from tests.adapters.sb3.test_pair import SMALL
from tests.adapters.worlds import DictWalkEnv, walks
from voronaut.adapters.sb3.standardised import Standardised
from voronaut.sb3 import Pair


def walking(algorithm: Any = SAC, **options: Any) -> Pair:
    return Pair(algorithm, "MlpPolicy", DummyVecEnv(list(walks())), kme(), **{**SMALL, **tiny(), **options})


@pytest.mark.parametrize(("algorithm", "networks"), [(SAC, 3), (TD3, 4)])
def test_every_network_sees_observations_in_deviations_of_all_that_were_seen(algorithm: Any, networks: int) -> None:
    pair = walking(algorithm, learning_starts=20)
    pair.learn(90)
    seen = pair.exploiter.replay_buffer.observations[:30].reshape(-1, 4)
    moves = seen.std(axis=0) > 0
    assert 0 < moves.sum() < 4  # a walk has a number that never changes
    wanted = np.where(moves, (seen - seen.mean(axis=0)) / np.where(moves, seen.std(axis=0), 1), seen)
    extractors = [each for model in (pair.exploiter, pair.explorer) for each in _extractors(model)]
    assert len(extractors) == 2 * networks
    for each in extractors:
        np.testing.assert_allclose(each(torch.as_tensor(seen)), wanted, rtol=1e-4, atol=1e-4)
        assert each(torch.full((1, 4), 1e9)).max() == pytest.approx(10)


def _extractors(model: Any) -> list[Any]:
    return [each for each in model.policy.modules() if isinstance(each, Standardised)]


def test_choices_of_the_user_stay(tmp_path: Path) -> None:
    own: dict[str, Any] = {"net_arch": [8], "features_extractor_class": FlattenExtractor}
    assert not _extractors(walking(policy_kwargs=own).exploiter)
    assert not _extractors(walking(standardise=False).explorer)
    shared: dict[str, Any] = {"net_arch": [8]}
    assert _extractors(walking(policy_kwargs=shared).exploiter) and "features_extractor_class" not in shared
    normalised = VecNormalize(DummyVecEnv(list(walks())))
    assert not _extractors(Pair(SAC, "MlpPolicy", normalised, kme(), **SMALL, **tiny()).exploiter)
    rewards_alone = VecNormalize(DummyVecEnv(list(walks())), norm_obs=False)
    assert _extractors(Pair(SAC, "MlpPolicy", rewards_alone, kme(), **SMALL, **tiny()).exploiter)


def test_what_is_not_a_vector_is_left_as_it_is() -> None:
    pair = Pair(SAC, "MultiInputPolicy", DummyVecEnv(list(walks(DictWalkEnv))), vn.KME, keys=["who"], **SMALL, **tiny())
    assert not _extractors(pair.exploiter)
    lake = Pair(DQN, "MlpPolicy", make_vec_env("FrozenLake-v1", 2), vn.KME, **SMALL, **tiny())
    assert not _extractors(lake.exploiter)
    lake.learn(20)


def test_statistics_go_on_after_loading(tmp_path: Path) -> None:
    pair = walking()
    pair.learn(60)
    pair.save(tmp_path)
    again = Pair.load(tmp_path, env=DummyVecEnv(list(walks())), device="cpu")
    again.learn(30, reset_num_timesteps=False)
    seen = again.exploiter.replay_buffer.observations[:30].reshape(-1, 4)
    [mean] = {
        tuple(each.running_mean.tolist()) for model in (again.exploiter, again.explorer) for each in _extractors(model)
    }
    moves = seen.std(axis=0) > 0
    np.testing.assert_allclose(mean, np.where(moves, seen.mean(axis=0), 0), rtol=1e-5)
    assert again.statistics.seen.count == len(seen)


def test_the_temperature_begins_at_a_tenth_unless_it_is_given() -> None:
    for given, wanted in (({}, 0.1), ({"ent_coef": "auto"}, 1.0), ({"ent_coef": "auto_0.3"}, 0.3)):
        pair = walking(**given)
        for model in (pair.exploiter, pair.explorer):
            assert float(model.log_ent_coef.detach().exp()) == pytest.approx(wanted)
    assert walking(ent_coef=0.2).exploiter.ent_coef == 0.2


class KeptElsewhere(SAC):
    """As SBX's SAC: until it is set up, what was given stands in `ent_coef_init`."""

    def __init__(self, *args: Any, ent_coef: Any = "auto", _init_setup_model: bool = True, **kwargs: Any) -> None:
        super().__init__(*args, _init_setup_model=False, **kwargs)
        del self.ent_coef
        self.ent_coef_init = ent_coef

    def _setup_model(self) -> None:
        self.ent_coef = self.ent_coef_init
        super()._setup_model()


def test_the_temperature_of_sbx_begins_at_a_tenth_too() -> None:
    for given, wanted in (({}, 0.1), ({"ent_coef": "auto"}, 1.0)):
        pair = walking(KeptElsewhere, **given)
        for model in (pair.exploiter, pair.explorer):
            assert float(model.log_ent_coef.detach().exp()) == pytest.approx(wanted)


def test_windows_have_three_steps_unless_they_are_given(tmp_path: Path) -> None:
    own: dict[str, Any] = {}
    pair = walking(replay_buffer_kwargs=own)
    assert pair.exploiter.replay_buffer.n_steps == 3 and not own  # a dict of the user's
    for alone in ({"n_steps": 1}, {"replay_buffer_class": ReplayBuffer}):
        assert type(walking(**alone).exploiter.replay_buffer) is ReplayBuffer
    assert walking(n_steps=5).exploiter.replay_buffer.n_steps == 5
    pair.exploiter.save(tmp_path / "model.zip")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        SAC.load(tmp_path / "model.zip", device="cpu")
