"""Hindsight: goals and rewards of most sampled steps are made up, and the bonus must be paid on those too."""

import pickle
from typing import Any

import numpy as np
import pytest
from gymnasium import spaces
from stable_baselines3 import SAC, HerReplayBuffer
from stable_baselines3.common.vec_env import DummyVecEnv, VecNormalize

from tests.adapters.sb3.test_env import tiny
from tests.adapters.worlds import Spy, WalkEnv, walks
from voronaut.sb3 import BonusHerReplayBuffer, BonusVecEnv

PARTS = ("observation", "achieved_goal", "desired_goal")


class GoalEnv(WalkEnv):
    """A walk with a goal that is never reached; the reward of a made-up goal is -7."""

    observation_space = spaces.Dict({name: WalkEnv.observation_space for name in PARTS})  # type: ignore[assignment]

    def observe(self) -> Any:
        state = self.walk.state()
        return {"observation": state, "achieved_goal": state, "desired_goal": np.full_like(state, 99)}

    def compute_reward(self, achieved: Any, desired: Any, info: Any) -> Any:
        return np.full(len(achieved), -7.0)


def model(buffer: Any, pay: bool, wrap: Any = lambda env: env, **options: Any) -> SAC:
    """SAC with hindsight, before it has learned."""
    venv = DummyVecEnv(list(walks(GoalEnv)))
    env = BonusVecEnv(wrap(venv), Spy(), pay=pay, keys=["observation"], scale=0.5)
    return SAC("MultiInputPolicy", env, replay_buffer_class=buffer, buffer_size=400, learning_starts=400,
               replay_buffer_kwargs=options, **tiny())  # fmt: skip


@pytest.mark.parametrize("copy_info_dict", [False, True])
def test_every_sampled_step_is_paid_now(copy_info_dict: bool) -> None:
    agent = model(BonusHerReplayBuffer, pay=False, copy_info_dict=copy_info_dict)
    agent.learn(120)
    batch: Any = agent.replay_buffer.sample(200)
    state, goal = batch.next_observations["observation"].numpy(), batch.next_observations["desired_goal"].numpy()
    made_up = (goal != 99).any(axis=1)
    own = np.where(made_up, -7.0, 0.25 + (state[:, 2] == state[:, 0] + 4))
    assert 0 < made_up.sum() < 200
    np.testing.assert_allclose(batch.rewards[:, 0].numpy(), own + 0.5 * state.sum(axis=1), rtol=1e-5)
    assert agent.replay_buffer.last_bonus > 0


def test_rewards_are_normalised_before_the_bonus_is_added() -> None:
    agent = model(BonusHerReplayBuffer, pay=False, wrap=lambda env: VecNormalize(env, norm_obs=False))
    agent.learn(120)
    normalize: Any = agent.get_vec_normalize_env()
    normalize.ret_rms.var = np.array(4.0)
    batch: Any = agent.replay_buffer.sample(100, env=normalize)
    made_up = (batch.next_observations["desired_goal"].numpy() != 99).any(axis=1)
    paid = 0.5 * batch.next_observations["observation"].numpy().sum(axis=1)
    wanted = normalize.normalize_reward(np.full(made_up.sum(), -7.0)) + paid[made_up]
    np.testing.assert_allclose(batch.rewards[made_up, 0].numpy(), wanted, rtol=1e-4)


def test_a_buffer_that_would_leave_made_up_steps_unpaid_is_refused() -> None:
    agent = model(HerReplayBuffer, pay=True)
    agent.learn(120)
    with pytest.raises(ValueError, match=r"without the bonus.*pay=False.*BonusHerReplayBuffer"):
        agent.replay_buffer.sample(10)
    assert agent.env.env_method("action_masks")[0].tolist() == [True, False, True]


def test_a_saved_buffer_must_meet_its_environment_again() -> None:
    agent = model(BonusHerReplayBuffer, pay=False)
    agent.learn(120)
    again = pickle.loads(pickle.dumps(agent.replay_buffer))
    again.set_env(agent.env)
    with pytest.raises(RuntimeError, match="has met no environment"):
        again.sample(10)
