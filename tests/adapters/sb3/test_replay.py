"""`BonusReplayBuffer`: the bonus as it is when sampling."""

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from stable_baselines3 import SAC
from stable_baselines3.common.vec_env import DummyVecEnv, VecFrameStack, VecNormalize

import voronaut as vn
from tests.adapters.sb3.test_env import kme, learn, tiny
from tests.adapters.worlds import DictWalkEnv, Spy, walks
from voronaut.conformance.walk import replay
from voronaut.sb3 import BonusCallback, BonusDictReplayBuffer, BonusReplayBuffer, BonusVecEnv

BUFFER: dict[str, Any] = {"buffer_size": 400, "learning_starts": 400, "replay_buffer_class": BonusReplayBuffer}


def recorded(bonus: Any, wrap: Any = lambda env: env, **options: Any) -> BonusVecEnv:
    return BonusVecEnv(wrap(DummyVecEnv(list(walks()))), bonus, pay=False, scale=0.5, **options)


def test_old_states_are_worth_what_they_are_worth_now() -> None:
    env = recorded(kme(), update_every=10)
    model = SAC("MlpPolicy", env, **BUFFER, **tiny())
    model.learn(60)
    for _ in range(2):
        batch = model.replay_buffer.sample(100)
        now = 0.5 * env.bonus.rewards(batch.next_observations.numpy())
        own = 0.25 + (batch.next_observations[:, 2] == batch.next_observations[:, 0] + 4).numpy()
        np.testing.assert_allclose(batch.rewards[:, 0].numpy(), own + now, rtol=1e-5)
        env.bonus.update(np.random.default_rng(0).normal(size=(500, 4)))
    np.testing.assert_allclose(model.replay_buffer.rewards[:20], 0.25 + replay(20).ends)


def test_final_states_are_the_true_ones() -> None:
    spy = Spy()
    model = SAC("MlpPolicy", recorded(spy), **BUFFER, **tiny())
    model.learn(60)
    seen = model.replay_buffer.sample(300).next_observations.numpy()
    assert {(0, 4), (1, 5), (2, 6)} <= {(int(s[0]), int(s[2])) for s in seen}
    assert (seen[:, 2] > 0).all()
    with pytest.raises(ValueError, match="keeps no final states"):
        SAC("MlpPolicy", recorded(spy), optimize_memory_usage=True,
            replay_buffer_kwargs={"handle_timeout_termination": False}, **BUFFER, **tiny())  # fmt: skip


@pytest.mark.parametrize("outside", [True, False])
def test_with_vec_normalize_in_either_order(outside: bool) -> None:
    spy = Spy()
    env: Any = recorded(spy, VecNormalize) if outside else VecNormalize(recorded(spy))
    model = SAC("MlpPolicy", env, **BUFFER, **tiny())
    model.learn(120)
    normalize: Any = model.get_vec_normalize_env()
    spy.calls.clear()
    batch = model.replay_buffer.sample(50, env=normalize)
    raw = normalize.unnormalize_obs(batch.next_observations.numpy())
    seen = batch.next_observations.numpy() if outside else raw
    np.testing.assert_allclose(spy.seen()[0], seen, atol=1e-4)
    own = 0.25 + (np.rint(raw[:, 2]) == np.rint(raw[:, 0]) + 4)
    wanted = normalize.normalize_reward(own) + 0.5 * seen.sum(axis=1)
    np.testing.assert_allclose(batch.rewards[:, 0].numpy(), wanted, atol=1e-3)


def test_dict_observations() -> None:
    spy = Spy()
    env = BonusVecEnv(DummyVecEnv(list(walks(DictWalkEnv))), spy, pay=False, keys=["who", "rest"])
    options = {**BUFFER, "replay_buffer_class": BonusDictReplayBuffer}
    model = SAC("MultiInputPolicy", env, **options, **tiny())
    model.learn(30)
    batch: Any = model.replay_buffer.sample(20)
    state = np.concatenate([batch.next_observations["who"], batch.next_observations["rest"]], axis=1)
    np.testing.assert_array_equal(spy.seen()[-1], state)


def test_paying_twice_or_never_is_refused() -> None:
    venv = DummyVecEnv(list(walks()))
    with pytest.raises(ValueError, match=r"paid twice.*pay=False"):
        SAC("MlpPolicy", BonusVecEnv(venv, Spy()), **BUFFER, **tiny()).learn(10)
    with pytest.raises(ValueError, match=r"needs a bonus: wrap the environment"):
        SAC("MlpPolicy", venv, **BUFFER, **tiny()).learn(10)
    with pytest.raises(ValueError, match="outside the wrappers that change observations"):
        SAC("MlpPolicy", VecFrameStack(recorded(Spy()), 2), **BUFFER, **tiny()).learn(10)
    model = SAC("MlpPolicy", recorded(Spy()), **BUFFER, **tiny())
    model.learn(3)
    with pytest.raises(RuntimeError, match="has met no environment"):
        pickle.loads(pickle.dumps(model.replay_buffer)).sample(1)


def test_a_saved_buffer_and_model_meet_the_environment_again(tmp_path: Path) -> None:
    env = recorded(kme(), update_every=8)
    model = SAC("MlpPolicy", env, **BUFFER, **tiny())
    model.learn(30)
    model.save(tmp_path / "model.zip")
    model.save_replay_buffer(tmp_path / "buffer.pkl")
    env.save(tmp_path / "bonus.npz")
    other = BonusVecEnv.load(tmp_path / "bonus.npz", DummyVecEnv(list(walks())))
    again = SAC.load(tmp_path / "model.zip", env=other)
    again.load_replay_buffer(tmp_path / "buffer.pkl")
    again.learn(3, reset_num_timesteps=False)
    buffer: Any = again.replay_buffer
    assert buffer.size() == 11
    assert other.paid_by_replay


def test_sac_trains_and_logs_what_was_paid() -> None:
    env = recorded(vn.KME(dim=4, clusters=8), update_every=8)
    model = SAC("MlpPolicy", env, **{**BUFFER, "learning_starts": 30}, **tiny())
    rows = learn(model, 150, BonusCallback())
    assert rows[-1]["bonus/paid"] > 0
