"""`BonusVecEnv` and `BonusCallback` with Stable-Baselines3."""

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from gymnasium import spaces
from stable_baselines3 import A2C, DQN, PPO, SAC, TD3
from stable_baselines3.common.callbacks import CheckpointCallback, EvalCallback
from stable_baselines3.common.evaluation import evaluate_policy
from stable_baselines3.common.logger import KVWriter, Logger
from stable_baselines3.common.monitor import Monitor
from stable_baselines3.common.vec_env import DummyVecEnv, VecFrameStack, VecMonitor, VecNormalize

import voronaut as vn
from tests.adapters.worlds import DictWalkEnv, PictureEnv, Spy, WalkEnv, corner, walks
from voronaut.adapters.gymnasium_env import BonusEnv
from voronaut.conformance.walk import replay
from voronaut.sb3 import BonusCallback, BonusVecEnv


def tiny(**policy: Any) -> dict[str, Any]:
    """Options of a small model, new ones each time: Stable-Baselines3 writes into them."""
    return {"device": "cpu", "seed": 0, "policy_kwargs": {"net_arch": [8], **policy}}


def run(env: Any, steps: int) -> list[Any]:
    """Reset and take steps; actions do not matter to a walk."""
    env.reset()
    action = env.action_space.sample()
    return [env.step(np.array([action] * env.num_envs)) for _ in range(steps)]


def test_infos_keep_bonus_and_reward_apart() -> None:
    env = BonusVecEnv(DummyVecEnv(list(walks())), Spy(), scale=0.5)
    known = replay(6)
    for t, (_, rewards, dones, infos) in enumerate(run(env, 6)):
        for i, info in enumerate(infos):
            assert info["bonus"] == pytest.approx(0.5 * known.led_to[t, i].sum())
            assert info["extrinsic_reward"] == 0.25 + dones[i]
            assert rewards[i] == pytest.approx(info["bonus"] + info["extrinsic_reward"])
            assert ("extrinsic_return" in info) == dones[i] == known.ends[t, i]
        assert rewards.dtype == np.float32
    assert run(env, 5)[3][3][0]["extrinsic_return"] == 2


def test_the_update_comes_after_the_pay_of_its_step() -> None:
    spy = Spy()
    run(BonusVecEnv(DummyVecEnv(list(walks())), spy, update_every=4), 9)
    assert [name for name, _ in spy.calls] == [*["rewards"] * 4, "update"] * 2 + ["rewards"]
    np.testing.assert_array_equal(spy.seen("update")[1], replay(8).led_to[4:].reshape(-1, 4))


@pytest.mark.parametrize("norm_reward", [True, False])
def test_below_vec_normalize_the_bonus_sees_raw_states(norm_reward: bool) -> None:
    spy = Spy()
    env = VecNormalize(BonusVecEnv(DummyVecEnv(list(walks())), spy, scale=0.5), norm_reward=norm_reward)
    steps, known = run(env, 8), replay(8)
    np.testing.assert_array_equal(np.array(spy.seen()), known.led_to)
    paid = 0.25 + known.ends + 0.5 * known.led_to.sum(axis=-1)
    np.testing.assert_allclose(env.get_original_reward(), paid[-1], rtol=1e-5)
    last = env.normalize_reward(paid[-1]) if norm_reward else paid[-1]
    np.testing.assert_allclose(steps[-1][1], last, rtol=1e-5)


@pytest.mark.parametrize("norm_reward", [True, False])
def test_above_vec_normalize_the_bonus_sees_normalised_states(norm_reward: bool) -> None:
    spy, known = Spy(), replay(8)
    inner = VecNormalize(DummyVecEnv(list(walks())), norm_reward=norm_reward)
    env = BonusVecEnv(inner, spy, scale=0.5)
    inner.obs_rms.mean, inner.obs_rms.var, inner.training = np.array([1.0, 2, 3, 0]), np.full(4, 4.0), False
    inner.ret_rms.var = np.array(4.0)  # with 1, as it starts, rewards normalised and not would be the same
    steps = run(env, 8)
    np.testing.assert_allclose(spy.seen(), (known.led_to - [1, 2, 3, 0]) / 2, atol=1e-5)
    extrinsic = inner.normalize_reward(0.25 + known.ends)
    np.testing.assert_allclose([s[1] for s in steps], extrinsic + 0.5 * np.sum(spy.seen(), axis=-1), rtol=1e-4)
    own = [[info["extrinsic_reward"] for info in step[3]] for step in steps]
    np.testing.assert_allclose(own, 0.25 + known.ends)


@pytest.mark.parametrize("outside", [True, False])
def test_off_policy_buffers_hold_the_bonus_in_either_order(outside: bool) -> None:
    spy, venv = Spy(), DummyVecEnv(list(walks(count=2)))
    env: Any = VecNormalize(venv, norm_obs=False, gamma=0) if outside else venv
    env = BonusVecEnv(env, spy, scale=0.5)
    env = env if outside else VecNormalize(env, norm_obs=False, gamma=0)
    model = SAC("MlpPolicy", env, learning_starts=100, buffer_size=100, **tiny())
    model.learn(40)
    normalize: Any = model.get_vec_normalize_env()
    stored, known = model.replay_buffer.rewards[:20], replay(20)
    bonus, extrinsic = 0.5 * known.led_to[:, :2].sum(axis=-1), 0.25 + known.ends[:, :2]
    if outside:  # paid beside normalised rewards, stored as what gives that when normalised as at that time
        assert (stored > extrinsic + 1e-3 * bonus).all()
        last = stored[-1] / np.sqrt(normalize.ret_rms.var + normalize.epsilon)
        np.testing.assert_allclose(last, normalize.normalize_reward(extrinsic[-1]) + bonus[-1], rtol=1e-4)
    else:
        np.testing.assert_allclose(stored, extrinsic + bonus, rtol=1e-5)


def test_dict_observations_by_naming_keys() -> None:
    spy = Spy()
    run(BonusVecEnv(DummyVecEnv(list(walks(DictWalkEnv))), spy, keys=["who", "rest"]), 8)
    np.testing.assert_array_equal(np.array(spy.seen()), replay(8).led_to)
    with pytest.raises(ValueError, match="name what the bonus shall see with keys="):
        BonusVecEnv(DummyVecEnv(list(walks(DictWalkEnv))), spy)


def test_pictures_need_features() -> None:
    spy = Spy()
    with pytest.raises(ValueError, match=r"image.*Pass features="):
        BonusVecEnv(DummyVecEnv(list(walks(PictureEnv))), spy)
    run(BonusVecEnv(DummyVecEnv(list(walks(PictureEnv))), spy, features=corner), 8)
    np.testing.assert_array_equal(np.array(spy.seen()), replay(8).led_to)


def test_stacked_frames_end_in_the_final_frame() -> None:
    spy = Spy()
    spy.dim = 8
    run(BonusVecEnv(VecFrameStack(DummyVecEnv(list(walks())), 2), spy), 8)
    np.testing.assert_array_equal(np.array(spy.seen())[..., 4:], replay(8).led_to)


def test_a_monitor_inside_logs_the_environments_return() -> None:
    env = BonusVecEnv(VecMonitor(DummyVecEnv(list(walks()))), Spy(), scale=100)
    infos = run(env, 4)[-1][3]
    assert infos[0]["episode"]["r"] == infos[0]["extrinsic_return"] == 2


def test_a_class_is_made_to_fit() -> None:
    env = BonusVecEnv(DummyVecEnv(list(walks(DictWalkEnv))), vn.KME, keys=["who", "table"])
    assert isinstance(env.bonus, vn.KME) and env.bonus.dim == 5
    assert BonusVecEnv(DummyVecEnv(list(walks(PictureEnv))), vn.KME, features=corner).bonus.dim == 4


def test_evaluation_teaches_nothing_while_frozen() -> None:
    spy = Spy()
    env = BonusVecEnv(DummyVecEnv(list(walks(wrap=Monitor))), spy, scale=0.5, update_every=2)
    with env.frozen():
        infos = run(env, 5)[-1][3]
    assert not spy.seen("update") and env.payer.steps == 0
    assert infos[0]["bonus"] > 0
    env.training = False
    run(env, 5)
    assert not spy.seen("update")
    env.training = True
    run(env, 5)
    assert len(spy.seen("update")) == 2


def test_steps_outside_of_learn_are_warned_of_once() -> None:
    env = BonusVecEnv(DummyVecEnv(list(walks(wrap=Monitor))), kme())
    model = PPO("MlpPolicy", env, n_steps=8, batch_size=24, n_epochs=1, **tiny())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.learn(24)
        with env.frozen():
            evaluate_policy(model, env, 1)
    env = BonusVecEnv(DummyVecEnv(list(walks(wrap=Monitor))), kme())
    with pytest.warns(UserWarning, match=r"outside of learn\(\).*with env.frozen\(\)") as caught:
        evaluate_policy(model, env, 1)
        run(env, 2)
    assert len(caught) == 1


def test_an_evaluation_inside_of_learn_is_warned_of() -> None:
    bonus = kme()
    env, test = (BonusVecEnv(DummyVecEnv(list(walks(wrap=Monitor))), bonus) for _ in range(2))
    model = PPO("MlpPolicy", env, n_steps=8, batch_size=24, n_epochs=1, **tiny())
    with pytest.warns(UserWarning, match=r"outside of learn\(\)"):
        model.learn(24, callback=EvalCallback(test, eval_freq=4, n_eval_episodes=1, verbose=0))


def test_states_that_nobody_pays_are_warned_of() -> None:
    env = BonusVecEnv(DummyVecEnv(list(walks())), kme(), pay=False)
    with pytest.warns(UserWarning, match="replay_buffer_class=BonusReplayBuffer"):
        SAC("MlpPolicy", env, learning_starts=100, buffer_size=100, **tiny()).learn(12)


class Forgetful(DummyVecEnv):
    """Loses the last observation."""

    def step_wait(self) -> Any:
        obs, rewards, dones, infos = super().step_wait()
        for info in infos:
            info.pop("terminal_observation", None)
        return obs, rewards, dones, infos


def test_mistakes_are_told() -> None:
    spy, venv = Spy(), DummyVecEnv(list(walks()))
    with pytest.raises(ValueError, match=r"environments \[0\] and infos has no 'terminal_observation'"):
        run(BonusVecEnv(Forgetful(list(walks())), spy), 4)
    with pytest.raises(TypeError, match=r"wraps a VecEnv; got WalkEnv.*make_vec_env"):
        BonusVecEnv(WalkEnv(), spy)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="DummyVecEnv lacks rewards"):
        BonusVecEnv(venv, venv)
    with pytest.raises(ValueError, match="already in a BonusVecEnv"):
        BonusVecEnv(VecMonitor(BonusVecEnv(venv, spy)), spy)
    with pytest.raises(ValueError, match="already in a BonusEnv"):
        BonusVecEnv(VecMonitor(DummyVecEnv([lambda: BonusEnv(WalkEnv(), spy)])), spy)
    with pytest.raises(ValueError, match=r"dim=3 and those it would see have 4 numbers.*KME\(dim=4\)"):
        BonusVecEnv(venv, vn.KME(dim=3))
    with pytest.raises(TypeError, match="PPO lacks rewards"):
        BonusVecEnv(venv, PPO)
    with pytest.raises(ValueError, match="BonusCallback found no bonus"):
        PPO("MlpPolicy", venv, n_steps=8, batch_size=8, **tiny()).learn(8, callback=BonusCallback())
    with pytest.raises(ValueError, match="pass save_path="):
        BonusCallback(save_freq=1)


def kme() -> vn.KME:
    return vn.KME(dim=4, clusters=8, seed=0)


def test_a_loaded_wrapper_goes_on_as_if_nothing_had_happened(tmp_path: Path) -> None:
    venv = DummyVecEnv(list(walks()))
    env = BonusVecEnv(venv, kme(), scale=2.0, update_every=3, warmup=1)
    action = np.zeros((3, 1))
    run(env, 5)  # two steps are pending
    env.save(tmp_path / "bonus.npz")
    straight = [env.step(action)[3] for _ in range(5)]
    again = BonusVecEnv.load(tmp_path / "bonus.npz", DummyVecEnv(list(walks())))
    run(again.venv, 5)
    resumed = [again.step(action)[3] for _ in range(5)]
    assert [[i["bonus"] for i in infos] for infos in straight] == [[i["bonus"] for i in infos] for infos in resumed]
    assert again.bonus.state_dict().keys() == env.bonus.state_dict().keys()
    assert (again.payer.update_every, again.payer.warmup, again.payer.updates) == (3, 1, 3)


def test_what_a_file_cannot_hold_is_asked_for(tmp_path: Path) -> None:
    path, pictures = tmp_path / "bonus.npz", DummyVecEnv(list(walks(PictureEnv)))
    BonusVecEnv(pictures, kme(), features=corner, scale=lambda p: p, total_steps=9).save(path)
    with pytest.raises(ValueError, match="function as features="):
        BonusVecEnv.load(path, pictures, scale=1)
    with pytest.raises(ValueError, match="function as scale="):
        BonusVecEnv.load(path, pictures, features=corner)
    assert BonusVecEnv.load(path, pictures, features=corner, scale=1).payer.scale == 1
    for bonus, why in ((Spy(), "not one of Voronaut's own"), (vn.KME(dim=4, features=np.abs), "a function")):
        BonusVecEnv(DummyVecEnv(list(walks())), bonus).save(path)
        with pytest.raises(ValueError, match=f"{why}.*pass it as bonus="):
            BonusVecEnv.load(path, DummyVecEnv(list(walks())))
    with pytest.raises(ValueError, match="KME"):
        BonusVecEnv(DummyVecEnv(list(walks())), kme()).save(path)
        BonusVecEnv.load(path, DummyVecEnv(list(walks())), bonus=vn.KME(dim=4, clusters=9))


class Memory(KVWriter):
    """A logger's output, kept."""

    def __init__(self) -> None:
        self.rows: list[dict[str, Any]] = []

    def write(self, key_values: dict[str, Any], key_excluded: Any, step: int = 0) -> None:
        self.rows.append(dict(key_values))

    def close(self) -> None:
        pass


def learn(model: Any, steps: int, callback: Any) -> list[dict[str, Any]]:
    memory = Memory()
    model.set_logger(Logger(None, [memory]))
    model.learn(steps, callback=callback, log_interval=1)
    return memory.rows


def algorithms() -> dict[str, tuple[Any, str, dict[str, Any]]]:
    contrib = pytest.importorskip("sb3_contrib")
    rollout: dict[str, Any] = {"n_steps": 32, "batch_size": 32, "n_epochs": 1}
    replayed: dict[str, Any] = {"buffer_size": 500, "learning_starts": 40, "batch_size": 16}
    return {
        "PPO": (PPO, "MlpPolicy", rollout),
        "A2C": (A2C, "MlpPolicy", {"n_steps": 16}),
        "SAC": (SAC, "MlpPolicy", replayed),
        "TD3": (TD3, "MlpPolicy", replayed),
        "DQN": (DQN, "MlpPolicy", replayed),
        "RecurrentPPO": (contrib.RecurrentPPO, "MlpLstmPolicy", rollout),
        "MaskablePPO": (contrib.MaskablePPO, "MlpPolicy", rollout),
    }


@pytest.mark.parametrize("name", ["PPO", "A2C", "SAC", "TD3", "DQN", "RecurrentPPO", "MaskablePPO"])
def test_every_algorithm_learns_with_it_and_logs_it(name: str) -> None:
    kind, policy, options = algorithms()[name]
    discrete = name in {"DQN", "MaskablePPO"}
    venv = DummyVecEnv([lambda i=i: Monitor(WalkEnv(i, discrete)) for i in range(2)])  # type: ignore[misc]
    env = BonusVecEnv(venv, kme(), scale=0.5, update_every=16)
    small = tiny(lstm_hidden_size=8) if name == "RecurrentPPO" else tiny()
    rows = learn(kind(policy, env, **options, **small), 256, BonusCallback())
    assert env.payer.updates == 8
    logged = {key: value for row in rows for key, value in row.items()}
    assert logged["bonus/paid"] > 0
    assert 2 <= logged["bonus/extrinsic_return"] <= 2.25
    assert logged["rollout/ep_rew_mean"] == pytest.approx(2.1, abs=0.15)
    assert logged["bonus/entropy"] == -np.inf  # the last number of a walk's state never changes
    assert logged["bonus/states"] == 256
    assert logged["bonus/scale"] == 0.5


def test_the_callback_saves_beside_checkpoints_and_tells_the_progress(tmp_path: Path) -> None:
    env = BonusVecEnv(DummyVecEnv(list(walks())), kme(), scale=lambda progress: 1 - progress, update_every=8)
    model = PPO("MlpPolicy", env, n_steps=16, batch_size=48, n_epochs=1, **tiny())
    beside = BonusCallback(save_freq=16, save_path=tmp_path, name_prefix="run")
    rows = learn(model, 96, [CheckpointCallback(16, str(tmp_path), "run"), beside])
    assert {path.name for path in tmp_path.iterdir()} == {
        "run_48_steps.zip", "run_bonus_48_steps.npz", "run_96_steps.zip", "run_bonus_96_steps.npz"
    }  # fmt: skip
    assert [row["bonus/scale"] for row in rows] == pytest.approx([0.5, 0], abs=1e-6)
    loaded = BonusVecEnv.load(tmp_path / "run_bonus_96_steps.npz", DummyVecEnv(list(walks())), scale=lambda p: p)
    np.testing.assert_array_equal(loaded.bonus.centers, env.bonus.centers)
    assert loaded.payer.progress == 1
    assert isinstance(env.observation_space, spaces.Box)


def test_evaluation_in_an_equal_stack_without_a_bonus(tmp_path: Path) -> None:
    def stack(bonus: Any) -> Any:
        return VecNormalize(BonusVecEnv(DummyVecEnv(list(walks(wrap=Monitor))), bonus), norm_reward=False)

    test = EvalCallback(stack(vn.NoBonus(dim=4)), eval_freq=16, n_eval_episodes=3, verbose=0, log_path=str(tmp_path))
    train = stack(kme())
    PPO("MlpPolicy", train, n_steps=16, batch_size=48, n_epochs=1, **tiny()).learn(48, callback=test)
    assert test.last_mean_reward == pytest.approx(2.25)
    assert train.venv.payer.env_steps == 48
