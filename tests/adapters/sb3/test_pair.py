"""`Pair`: who acts where, who is paid what, what a folder keeps, and that the two of them learn what one cannot."""

from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
import torch
from gymnasium import spaces
from stable_baselines3 import DQN, PPO, SAC, TD3
from stable_baselines3.common.callbacks import CheckpointCallback, EvalCallback, StopTrainingOnRewardThreshold
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.evaluation import evaluate_policy
from stable_baselines3.common.logger import Logger
from stable_baselines3.common.monitor import Monitor
from stable_baselines3.common.noise import NormalActionNoise
from stable_baselines3.common.vec_env import DummyVecEnv, VecNormalize

import voronaut as vn
from tests.adapters.sb3.test_env import Memory, kme, tiny
from tests.adapters.worlds import DictWalkEnv, Spy, WalkEnv, walks
from voronaut.adapters.sb3.near_reward import NearReward
from voronaut.conformance.walk import replay
from voronaut.sb3 import BonusReplayBuffer, BonusVecEnv, Pair

SMALL: dict[str, Any] = {"buffer_size": 600, "learning_starts": 600, "batch_size": 16}
SINGLE: dict[str, Any] = {**SMALL, "n_steps": 1}


def own_reward(states: Any) -> Any:
    """What a walk pays for getting there."""
    return 0.25 + (states[..., 2] == states[..., 0] + 4)


def test_the_explorer_is_paid_by_task_and_bonus_and_the_exploiter_by_the_task() -> None:
    pair = Pair(SAC, "MlpPolicy", DummyVecEnv(list(walks())), kme(), update_every=10, **SINGLE, **tiny())
    pair.learn(60)
    for _ in range(2):
        batch = pair.explorer.replay_buffer.sample(100)
        states, rewards = batch.next_observations.numpy(), batch.rewards[:, 0].numpy()
        in_deviations = pair.bonus.rewards(states) / pair.paid.units[0]
        np.testing.assert_allclose(rewards, own_reward(states) + in_deviations, rtol=1e-5)
        pair.bonus.update(np.random.default_rng(0).normal(size=(500, 4)))
    plain = pair.exploiter.replay_buffer.sample(100)
    np.testing.assert_allclose(plain.rewards[:, 0], own_reward(plain.next_observations.numpy()))
    assert pair.explorer.replay_buffer.size() == pair.exploiter.replay_buffer.size() == 20


def test_the_deviation_is_that_of_what_the_batches_earn() -> None:
    spy = Spy()
    pair = Pair(SAC, "MlpPolicy", DummyVecEnv(list(walks())), spy, **SINGLE, **tiny())
    pair.learn(300)
    spy.calls.clear()
    for _ in range(50):
        pair.explorer.replay_buffer.sample(200)
    uniform = spy.seen()[::2]  # each batch is 150 steps of the whole replay and 50 from before rewards
    assert [len(states) for states in spy.seen()] == [150, 50] * 50
    spreads = [states.sum(axis=1).std() for states in uniform]
    assert pair.paid.units[0] == pytest.approx(np.mean(spreads), rel=1e-6)  # at first a plain mean
    constant = Pair(SAC, "MlpPolicy", DummyVecEnv(list(walks())), vn.NoBonus(dim=4), **SINGLE, **tiny())
    constant.learn(30)
    batch = constant.explorer.replay_buffer.sample(20)
    np.testing.assert_allclose(batch.rewards[:, 0], own_reward(batch.next_observations.numpy()))


def test_a_window_of_n_steps_is_paid_for_every_step_of_it() -> None:
    pair = Pair(SAC, "MlpPolicy", DummyVecEnv(list(walks())), Spy(), n_steps=3, gamma=0.5, **SMALL, **tiny())
    pair.learn(90)
    batch = pair.explorer.replay_buffer.sample(300)
    known, deviation = replay(30), pair.paid.units[0]
    for first, got in zip(batch.observations.numpy(), batch.rewards[:, 0].numpy(), strict=True):
        walk, episode, time = first[:3].astype(int)
        t, length = episode * (4 + walk) + time, 4 + walk
        steps = range(t, min(t + 3, t - time + length, 30))
        paid = [0.25 + known.ends[i, walk] + known.led_to[i, walk].sum() / deviation for i in steps]
        assert got == pytest.approx(sum(p * 0.5**k for k, p in enumerate(paid)), rel=1e-5)


def test_the_bonus_learns_every_state_once_and_final_ones_too() -> None:
    spy = Spy()
    Pair(SAC, "MlpPolicy", DummyVecEnv(list(walks())), spy, update_every=5, **SMALL, **tiny()).learn(60)
    assert len(spy.seen("update")) == 4
    np.testing.assert_array_equal(np.concatenate(spy.seen("update")), replay(20).led_to.reshape(-1, 4))


def test_with_vec_normalize_the_bonus_sees_raw_states_and_is_not_normalised() -> None:
    spy = Spy()
    env = VecNormalize(DummyVecEnv(list(walks())))
    pair = Pair(SAC, "MlpPolicy", env, spy, **SINGLE, **tiny())
    pair.learn(120)
    spy.calls.clear()
    batch = pair.explorer.replay_buffer.sample(50, env=env)
    raw = env.unnormalize_obs(batch.next_observations.numpy())
    np.testing.assert_allclose(np.concatenate(spy.seen()), raw, atol=1e-4)
    wanted = env.normalize_reward(own_reward(np.rint(raw))) + raw.sum(axis=1) / pair.paid.units[0]
    np.testing.assert_allclose(batch.rewards[:, 0], wanted, rtol=1e-2, atol=1e-2)


class Far(gymnasium.Env[Any, Any]):
    """A hundred steps of which one, number `paid`, is rewarded; the state is (episode, number of the step)."""

    observation_space, action_space = spaces.Box(-1000, 1000, (2,)), spaces.Box(-1, 1, (1,))

    def __init__(self, paid: int = 90, dictionary: bool = False) -> None:
        self.paid, self.episode, self.t, self.dictionary = paid, -1, 0, dictionary
        if dictionary:
            self.observation_space = spaces.Dict({"place": self.observation_space})  # type: ignore[assignment]

    def _seen(self) -> Any:
        place = np.array([self.episode, self.t], np.float32)
        return {"place": place} if self.dictionary else place

    def reset(self, *, seed: Any = None, options: Any = None) -> Any:
        self.episode, self.t = self.episode + 1, 0
        return self._seen(), {}

    def step(self, action: Any) -> Any:
        self.t += 1
        return self._seen(), float(self.t == self.paid), False, self.t == 100, {}


class Always(Far):
    """Pays at every step."""

    def step(self, action: Any) -> Any:
        seen, _, *rest = super().step(action)
        return seen, 1.0, *rest


FAR: dict[str, Any] = {"buffer_size": 4000, "learning_starts": 4000, "batch_size": 16}


@pytest.mark.parametrize("n_steps", [1, 3])
@pytest.mark.parametrize("dictionary", [False, True])
def test_a_share_of_every_batch_lies_before_a_reward(n_steps: int, dictionary: bool) -> None:
    if dictionary and n_steps > 1:
        pytest.skip("SB3 has no windows of Dict observations")
    env = DummyVecEnv([lambda: Far(90, dictionary), lambda: Far(10**6, dictionary)])
    policy, options = ("MultiInputPolicy", {"keys": ["place"]}) if dictionary else ("MlpPolicy", {})
    pair = Pair(SAC, policy, env, vn.NoBonus(dim=2), near_reward=0.5, n_steps=n_steps, **options, **FAR, **tiny())
    pair.learn(160)
    assert pair.near.count(16) == 0  # nothing was found yet
    pair.learn(640, reset_num_timesteps=False)
    for memory in (pair.memory, pair.paid):
        batch = memory.sample(200)
        seen = batch.observations["place"] if dictionary else batch.observations
        times, rewards = seen[100:, 1].numpy(), batch.rewards[100:, 0].numpy()
        assert len(seen) == 200 and times.min() >= 90 - n_steps - 40 and times.max() <= 90 - n_steps
        if memory is pair.memory:
            np.testing.assert_allclose(rewards, np.where(times == 90 - n_steps, 0.99 ** (n_steps - 1), 0), rtol=1e-6)
    assert type(pair.exploiter.replay_buffer).__name__ == type(pair.near.replay).__name__


def test_what_lies_before_a_reward_may_lie_at_the_other_end_of_the_replay() -> None:
    """The reward of step 290 is in row 4 of 95: most of the forty steps before it are in the last rows."""
    options: dict[str, Any] = {**FAR, "buffer_size": 95, "n_steps": 1}
    pair = Pair(SAC, "MlpPolicy", DummyVecEnv([Far]), vn.NoBonus(dim=2), **options, **tiny())
    pair.learn(300)
    episode, times = NearReward(pair.near.replay, 0.25).drawn(2000).observations[0].T
    assert set(episode) == {2} and set(times) == set(range(50, 90))


def test_the_replay_is_not_searched_before_rows_are_overwritten(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every step is paid: all places are known, and all of them are right, until the replay is full."""
    env = DummyVecEnv([Always, Always])
    pair = Pair(SAC, "MlpPolicy", env, vn.NoBonus(dim=2), **{**FAR, "buffer_size": 80}, **tiny())
    searched: list[int] = []
    find = pair.near._find
    monkeypatch.setattr(pair.near, "_find", lambda: searched.append(pair.near.replay.pos) or find())
    pair.learn(78)
    assert not searched and len(pair.near._places) == 78
    pair.learn(10, reset_num_timesteps=False)
    assert searched and len(pair.near._places) <= 80


def test_rewards_that_were_overwritten_are_forgotten() -> None:
    env = DummyVecEnv([lambda: Far(90)])
    pair = Pair(SAC, "MlpPolicy", env, vn.NoBonus(dim=2), **{**FAR, "buffer_size": 50}, **tiny())
    pair.learn(95)
    assert pair.near.count(16) == 4
    pair.learn(45, reset_num_timesteps=False)
    assert NearReward(pair.near.replay, 0.25).count(16) == 0
    with pytest.raises(ValueError, match="near_reward must be at least 0"):
        Pair(SAC, "MlpPolicy", env, vn.NoBonus(dim=2), near_reward=1.0, **tiny())


def drivers(pair: Pair) -> Any:
    """Whose action each transition has, (t, n): True where it is the explorer's; both act without noise."""
    buffer = pair.exploiter.replay_buffer
    seen = torch.as_tensor(buffer.observations[: buffer.size()].reshape(-1, 4))
    with torch.no_grad():
        own, other = (model.actor(seen).numpy().reshape(buffer.size(), -1) for model in (pair.exploiter, pair.explorer))
    taken = buffer.actions[: buffer.size(), :, 0]
    is_explorer = np.abs(taken - other) < 1e-6
    assert (is_explorer ^ (np.abs(taken - own) < 1e-6)).all()
    return is_explorer


# Nobody learns, and nothing that actions depend on changes.
STILL: dict[str, Any] = {"buffer_size": 600, "learning_starts": 0, "gradient_steps": 0, "standardise": False}


@pytest.mark.parametrize(("share", "wanted"), [(0.5, 2), (0.7, 2), (0.01, 1), (0.99, 2)])
def test_environments_are_shared_out(share: float, wanted: int) -> None:
    env = DummyVecEnv(list(walks()))
    pair = Pair(TD3, "MlpPolicy", env, Spy(), explorer_share=share, **STILL, **tiny())
    pair.learn(60)
    np.testing.assert_array_equal(drivers(pair), np.broadcast_to(np.arange(3) >= 3 - wanted, (20, 3)))


def test_one_environment_is_shared_out_by_episodes() -> None:
    pair = Pair(TD3, "MlpPolicy", Monitor(WalkEnv(0)), Spy(), explorer_share=0.25, **STILL, **tiny())
    pair.learn(64)  # 16 episodes of four steps
    whose = drivers(pair).reshape(16, 4)
    assert (whose == whose[:, :1]).all()
    assert whose[:, 0].tolist() == [True, False, False, False] * 4
    assert (len(pair.exploiter.ep_info_buffer), len(pair.explorer.ep_info_buffer)) == (12, 4)


def algorithms() -> dict[str, tuple[Any, dict[str, Any]]]:
    contrib = pytest.importorskip("sb3_contrib")
    noise = NormalActionNoise(np.zeros(1), np.full(1, 0.1))
    return {
        "SAC": (SAC, {"use_sde": True}),
        "SAC of n steps": (SAC, {"n_steps": 3, "gradient_steps": -1}),
        "TD3": (TD3, {"action_noise": noise}),
        "TQC": (contrib.TQC, {}),
        "CrossQ": (contrib.CrossQ, {}),
        "DQN": (DQN, {"train_freq": 1, "target_update_interval": 10}),
        "QRDQN": (contrib.QRDQN, {"train_freq": 1}),
    }


@pytest.mark.parametrize("name", ["SAC", "SAC of n steps", "TD3", "TQC", "CrossQ", "DQN", "QRDQN"])
@pytest.mark.parametrize("count", [1, 2])
def test_every_algorithm_learns_and_logs(name: str, count: int) -> None:
    kind, options = algorithms()[name]
    discrete = "DQN" in name
    env = DummyVecEnv([lambda i=i: Monitor(WalkEnv(i, discrete)) for i in range(count)])  # type: ignore[misc]
    pair = Pair(kind, "MlpPolicy", env, kme(), update_every=16, **{**SMALL, "learning_starts": 20}, **options, **tiny())
    before = [[p.clone() for p in model.policy.parameters()] for model in (pair.exploiter, pair.explorer)]
    memory = Memory()
    pair.exploiter.set_logger(Logger(None, [memory]))
    pair.learn(96, log_interval=1)
    for model, old in zip((pair.exploiter, pair.explorer), before, strict=True):
        assert any(not torch.equal(a, b) for a, b in zip(model.policy.parameters(), old, strict=True))
        assert model.num_timesteps == 96
    logged = {key: value for row in memory.rows for key, value in row.items()}
    assert {"rollout/ep_rew_mean", "explorer/ep_rew_mean", "explorer/n_updates", "bonus/paid", "bonus/states"} <= set(
        logged
    )
    assert logged["train/n_updates"] == logged["explorer/n_updates"] > 0
    assert 2 <= logged["rollout/ep_rew_mean"] <= 2.25  # the task's own


@pytest.mark.parametrize(("every", "wanted"), [(4, [0, 4, 8]), (-1, [0])])
def test_noise_that_depends_on_states_is_drawn_anew_as_often_as_asked(every: int, wanted: list[int]) -> None:
    options: Any = {**STILL, "train_freq": 10, "use_sde": True, "sde_sample_freq": every}
    pair = Pair(SAC, "MlpPolicy", DummyVecEnv(list(walks())), Spy(), **options, **tiny())
    drawn: dict[str, list[int]] = {"exploiter": [], "explorer": []}
    for name, steps in drawn.items():
        now = lambda *_, steps=steps: steps.append(pair.exploiter.num_timesteps // 3)  # noqa: E731
        getattr(pair, name).actor.reset_noise = now
        getattr(pair, name).policy.reset_noise = lambda *_: None
    pair.learn(30)
    assert drawn == {"exploiter": wanted, "explorer": wanted}


def test_training_may_wait_for_whole_episodes() -> None:
    options = {**SMALL, "learning_starts": 0, "train_freq": (2, "episode"), "gradient_steps": 1}
    pair = Pair(SAC, "MlpPolicy", Monitor(WalkEnv(0)), kme(), **options, **tiny())
    pair.learn(24)  # six episodes of four steps
    assert pair.exploiter._n_updates == pair.explorer._n_updates == 3


def test_dict_observations_and_a_class_that_is_made_to_fit() -> None:
    env = DummyVecEnv(list(walks(DictWalkEnv)))
    pair = Pair(SAC, "MultiInputPolicy", env, vn.KME, keys=["who", "rest"], **SMALL, **tiny())
    pair.learn(30)
    assert isinstance(pair.bonus, vn.KME) and pair.bonus.dim == 4
    batch = pair.explorer.replay_buffer.sample(20)
    assert batch.next_observations["table"].shape == (20, 2, 2)


def test_a_loaded_pair_goes_on_as_the_saved_one_does(tmp_path: Path) -> None:
    options: dict[str, Any] = {**SMALL, "learning_starts": 20}
    env = DummyVecEnv(list(walks(wrap=Monitor)))
    pair = Pair(SAC, "MlpPolicy", env, kme(), update_every=7, explorer_share=0.3, **options, **tiny())
    pair.learn(90)
    pair.save(tmp_path / "folder")
    assert {path.name for path in (tmp_path / "folder").iterdir()} == {
        "exploiter.zip", "explorer.zip", "replay.pkl", "pair.npz"
    }  # fmt: skip
    again = Pair.load(tmp_path / "folder", env=DummyVecEnv(list(walks(wrap=Monitor))), device="cpu")
    pair.exploiter.set_env(DummyVecEnv(list(walks(wrap=Monitor))))  # as SB3 goes on: with a reset
    weights = []
    for each in (pair, again):
        each.exploiter.set_random_seed(3)
        each.learn(60, reset_num_timesteps=False)
        weights.append([p for m in (each.exploiter, each.explorer) for p in m.policy.parameters()])
    assert again.exploiter.num_timesteps == 150
    assert all(torch.equal(a, b) for a, b in zip(*weights, strict=True))
    np.testing.assert_array_equal(again.bonus.centers, pair.bonus.centers)
    np.testing.assert_array_equal(again.paid.units, pair.paid.units)
    assert again.explorer_share == 0.3 and again.explorer.replay_buffer.replay is again.exploiter.replay_buffer


def test_both_are_plain_models(tmp_path: Path) -> None:
    test = DummyVecEnv(list(walks(count=1, wrap=Monitor)))
    pair = Pair(SAC, "MlpPolicy", DummyVecEnv(list(walks())), kme(), **SMALL, **tiny())
    judge = EvalCallback(test, eval_freq=4, n_eval_episodes=1, verbose=0)
    assert pair.learn(12, callback=[judge, CheckpointCallback(2, str(tmp_path))], progress_bar=True) is pair
    assert judge.last_mean_reward == pytest.approx(2)
    assert type(pair.exploiter) is type(pair.explorer) is SAC
    for model in (pair.exploiter, pair.explorer):
        model.save(tmp_path / "model.zip")
        again = SAC.load(tmp_path / "model.zip", device="cpu")
        state = np.ones((1, 4), np.float32)
        np.testing.assert_array_equal(
            again.predict(state, deterministic=True)[0], model.predict(state, deterministic=True)[0]
        )
        assert evaluate_policy(again, test, 1)[0] == pytest.approx(2)
    assert len(list(tmp_path.glob("rl_model_*"))) == 2
    first = [next(iter(m.policy.parameters())) for m in (pair.exploiter, pair.explorer)]
    assert not torch.equal(*first)


def test_a_callback_may_end_it() -> None:
    pair = Pair(SAC, "MlpPolicy", DummyVecEnv(list(walks())), kme(), **SMALL, **tiny())
    pair.learn(60, callback=lambda found, _: found["lead"].num_timesteps < 9)
    assert pair.exploiter.num_timesteps == 9


def test_mistakes_are_told() -> None:
    env = DummyVecEnv(list(walks()))
    with pytest.raises(TypeError, match="off-policy algorithm, such as SAC"):
        Pair(PPO, "MlpPolicy", env, kme())
    with pytest.raises(ValueError, match="already in a BonusVecEnv"):
        Pair(SAC, "MlpPolicy", BonusVecEnv(env, kme()), kme())
    with pytest.raises(ValueError, match=r"dim=3 and those it would see have 4.*KME\(dim=4\)"):
        Pair(SAC, "MlpPolicy", env, vn.KME(dim=3))
    with pytest.raises(ValueError, match="explorer_share must lie between 0 and 1; got 1"):
        Pair(SAC, "MlpPolicy", env, kme(), explorer_share=1)
    with pytest.raises(ValueError, match="Leave replay_buffer_class out"):
        Pair(SAC, "MlpPolicy", env, kme(), replay_buffer_class=BonusReplayBuffer)
    with pytest.raises(ValueError, match="keeps no final states"):
        Pair(SAC, "MlpPolicy", env, kme(), optimize_memory_usage=True,
             replay_buffer_kwargs={"handle_timeout_termination": False})  # fmt: skip


class Corridor(gymnasium.Env[Any, Any]):
    """Reward 1 at the far end of a corridor, and every push costs a little: without a bonus it pays to stand still.

    Pushes without a plan end 0.2 from the middle (their deviation after 50 steps); the reward is 0.8 away.
    """

    observation_space = spaces.Box(-1, 1, (1,), np.float32)
    action_space = spaces.Box(-1, 1, (1,), np.float32)

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self.place, self.time = 0.0, 0
        return np.zeros(1, np.float32), {}

    def step(self, action: Any) -> Any:
        self.place = float(np.clip(self.place + 0.05 * action[0], -1, 1))
        self.time += 1
        reward = float(self.place > 0.8) - 0.02 * float(action[0]) ** 2
        return np.array([self.place], np.float32), reward, False, self.time == 50, {}


def judge() -> EvalCallback:
    """Ends training once an episode returns 15: the reward is reached, and held for a third of the episode."""
    enough = StopTrainingOnRewardThreshold(15, verbose=0)
    return EvalCallback(make_vec_env(Corridor, 1), enough, eval_freq=250, n_eval_episodes=1, verbose=0)


def test_the_pair_learns_what_sac_alone_does_not() -> None:
    torch.set_num_threads(1)
    options: dict[str, Any] = {
        "device": "cpu", "seed": 0, "batch_size": 64, "learning_rate": 1e-3, "ent_coef": "auto_0.1",
        "policy_kwargs": {"net_arch": [32, 32]},
    }  # fmt: skip
    together, alone = judge(), judge()
    Pair(SAC, "MlpPolicy", make_vec_env(Corridor, 4, seed=0), vn.KME, update_every=64, **options).learn(
        10_000, together
    )
    SAC("MlpPolicy", make_vec_env(Corridor, 4, seed=0), **options).learn(10_000, alone)
    assert together.best_mean_reward > 15
    assert alone.best_mean_reward < 1
