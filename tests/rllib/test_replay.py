"""`add_bonus` with SAC and DQN: the replay pays what is drawn from it."""

from typing import Any

import gymnasium
import numpy as np
import pytest
from ray.rllib.algorithms.dqn import DQNConfig
from ray.rllib.algorithms.sac import SACConfig

import voronaut as vn
from voronaut.adapters.rllib import add_bonus, bonus_of

pytestmark = pytest.mark.usefixtures("cluster")


class Counting:
    """Pays the first number of a state, and once more for every update there has been."""

    dim = 2

    def __init__(self) -> None:
        self.seen: list[Any] = []

    def rewards(self, states: Any) -> Any:
        return states[:, 0] + 1000 * len(self.seen)

    def update(self, states: Any) -> None:
        self.seen.append(states.copy())

    def metrics(self) -> dict[str, float]:
        return {"updates": float(len(self.seen))}

    def state_dict(self) -> dict[str, Any]:
        return {}

    def load_state_dict(self, state: Any) -> None:
        pass


class Stairs(gymnasium.Env[Any, Any]):
    """State (t, 0), reward -t; cut off after five steps."""

    observation_space = gymnasium.spaces.Box(-100, 100, (2,), np.float32)

    def __init__(self, config: Any = None) -> None:
        discrete = dict(config or {}).get("discrete", False)
        self.action_space = gymnasium.spaces.Discrete(2) if discrete else gymnasium.spaces.Box(-1, 1, (1,))
        self.t = 0

    def reset(self, *, seed: Any = None, options: Any = None) -> Any:
        self.t = 0
        return np.array([0, 0], np.float32), {}

    def step(self, action: Any) -> Any:
        self.t += 1
        return np.array([self.t, 0], np.float32), -float(self.t), False, self.t == 5, {}


def config(kind: Any = SACConfig, buffer: str = "EpisodeReplayBuffer", **training: Any) -> Any:
    made = kind().environment(Stairs, env_config={"discrete": kind is DQNConfig})
    made.env_runners(num_env_runners=0, rollout_fragment_length=1)
    made.training(
        train_batch_size_per_learner=16,
        num_steps_sampled_before_learning_starts=8,
        replay_buffer_config={"type": buffer, "capacity": 1000, "alpha": 0.6, "beta": 0.4}
        if "Prior" in buffer
        else {"type": buffer, "capacity": 1000},
        **training,
    )
    return made.rl_module(model_config={"fcnet_hiddens": [4]}).reporting(min_sample_timesteps_per_iteration=25)


@pytest.mark.parametrize("kind", [SACConfig, DQNConfig])
@pytest.mark.parametrize("buffer", ["EpisodeReplayBuffer", "PrioritizedEpisodeReplayBuffer"])
def test_what_is_drawn_is_paid_as_it_is_worth_now_and_what_is_kept_stays(kind: Any, buffer: str) -> None:
    algorithm = add_bonus(config(kind, buffer), Counting(), scale=0.5, update_every=10).build_algo()
    result = algorithm.train()
    replay, bonus = algorithm.local_replay_buffer, bonus_of(algorithm)
    updates = len(bonus.seen)
    assert updates >= 2 and result["bonus"]["updates"] == updates
    options: Any = {"beta": 0.4} if "Prior" in buffer else {}
    for episode in replay.sample(num_items=32, n_step=1, gamma=0.99, sample_episodes=True, **options):
        place = episode.get_observations(1)[0]
        assert episode.get_rewards()[0] == pytest.approx(-place + 0.5 * (place + 1000 * updates))
    for episode in replay.episodes:
        rewards, places = episode.get_rewards(), [each[0] for each in episode.get_observations()]
        np.testing.assert_allclose(rewards, [-place for place in places[1:]])
    algorithm.stop()


def test_it_learns_from_every_new_step_once_final_states_among_them() -> None:
    algorithm = add_bonus(config(), Counting(), update_every=10).build_algo()
    algorithm.train()
    places = np.concatenate(bonus_of(algorithm).seen)[:, 0]
    assert list(places[:10]) == [1, 2, 3, 4, 5, 1, 2, 3, 4, 5]
    assert (result := algorithm.train())["env_runners"]["episode_return_mean"] == -15
    assert result["bonus"]["paid"] > 0
    algorithm.stop()


def test_a_falling_weight_counts_every_episode_once() -> None:
    algorithm = add_bonus(config(), Counting(), scale="falling:1", update_every=10).build_algo()
    algorithm.train()
    payer = algorithm.replay_bonus.payer  # how many steps an iteration takes depends on the machine
    known = payer.state_dict()
    assert known["episodes"][0] == payer.env_steps // 5 >= 5 and known["paid"][0] == 0  # no stair is paid
    algorithm.stop()


def test_a_class_is_made_to_fit_and_mistakes_are_told() -> None:
    algorithm = add_bonus(config(), vn.KME, update_every=10).build_algo()
    algorithm.train()
    assert bonus_of(algorithm).dim == 2
    algorithm.stop()
    with pytest.raises(ValueError, match=r"dim=3 and those it would see have 2 numbers"):
        add_bonus(config(), vn.KME(dim=3)).build_algo()
    with pytest.raises(ValueError, match=r"n_step=3.*Set n_step=1"):
        add_bonus(config(n_step=3).env_runners(rollout_fragment_length=3), vn.KME).build_algo()
    with pytest.raises(TypeError, match="object lacks rewards"):
        add_bonus(config(), object())


def test_a_callback_of_the_users_is_kept() -> None:
    called: list[Any] = []
    mine = config().callbacks(on_algorithm_init=lambda algorithm, **_: called.append(algorithm))
    algorithm = add_bonus(mine, vn.KME).build_algo()
    assert called and algorithm.replay_bonus
    algorithm.stop()
