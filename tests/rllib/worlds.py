"""Small algorithms on environments whose every number is known beforehand."""

import copy
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
from numpy.typing import NDArray
from ray.rllib.algorithms.ppo import PPOConfig
from ray.rllib.connectors.connector_v2 import ConnectorV2
from ray.rllib.env.single_agent_env_runner import SingleAgentEnvRunner
from ray.tune.registry import register_env

from tests.adapters.worlds import WalkEnv
from voronaut.adapters.rllib import add_bonus
from voronaut.conformance import Rollout, Walk

STEPS = 24
GAMMA, LAM = 0.99, 0.95
POLICY = "default_policy"
IN_HAND: list[Walk] = []  # the walks of the host under test, which RLlib would copy if it were given them


def walk_env(context: Any) -> Any:
    """Walk number `walk` if asked for, else the number of the env runner."""
    if "in_hand" in context:
        return WalkEnv(IN_HAND[context["in_hand"]])
    return WalkEnv(Walk(context.get("walk", context.worker_index)), discrete=context.get("discrete", False))


register_env("walk", walk_env)


def small(env: Any = "walk", **env_config: Any) -> Any:
    """PPO with a tiny network, in this process."""
    return (
        PPOConfig()
        .environment(env, env_config=env_config, disable_env_checking=True)
        .env_runners(num_env_runners=0, rollout_fragment_length="auto")
        .training(train_batch_size_per_learner=64, minibatch_size=32, num_epochs=1, lr=1e-3, gamma=GAMMA, lambda_=LAM)
        .rl_module(model_config={"fcnet_hiddens": [8]})
        .debugging(seed=0, log_level="ERROR")
    )


def many(env: Any = "walk", learners: int = 2, runners: int = 2, **env_config: Any) -> Any:
    """The same over several processes."""
    return small(env, **env_config).learners(num_learners=learners).env_runners(num_env_runners=runners)


def states_of(algorithm: Any) -> list[dict[str, NDArray[Any]]]:
    """What each learner's bonus holds."""
    results = algorithm.learner_group.foreach_learner(lambda learner: learner.bonus_connector.get_state()["bonus"])
    return [result.get() for result in results]


def assert_equal(one: dict[str, NDArray[Any]], other: dict[str, NDArray[Any]]) -> None:
    assert set(one) == set(other)
    for name, array in one.items():
        np.testing.assert_array_equal(array, other[name], err_msg=name)


def learn(algorithm: Any, episodes: list[Any]) -> Any:
    """Let the learners learn from copies of these episodes."""
    return algorithm.learner_group.update(
        episodes=copy.deepcopy(episodes), timesteps={}, num_epochs=1, minibatch_size=32
    )


class Recorder(ConnectorV2):
    """At the end of a learner's pipeline: keeps the finished train batch."""

    def __call__(self, *, batch: Any, **_: Any) -> Any:
        self.batch = {key: column.numpy() for key, column in batch[POLICY].items() if hasattr(column, "numpy")}
        return batch


class Host:
    """PPO with one learner; its env runners walk one walk each, so that all take equally many steps."""

    def __init__(self, bonus: Any, walks: Sequence[Walk], scale: float) -> None:
        IN_HAND[:] = walks
        config = add_bonus(small(in_hand=0), bonus, scale=scale)
        self.algorithm = config.build_algo()
        self.runners = [
            SingleAgentEnvRunner(config=small(in_hand=i).copy(copy_frozen=False)) for i in range(len(walks))
        ]
        self.learner = self.algorithm.learner_group._learner

    @property
    def bonus(self) -> Any:
        return self.learner.bonus_connector.payer.bonus

    def collect(self) -> Rollout:
        recorder = Recorder()
        self.learner._learner_connector.append(recorder)
        episodes = [episode for runner in self.runners for episode in runner.sample(num_timesteps=STEPS)]
        self.algorithm.learner_group.update(episodes=episodes, timesteps={}, num_epochs=1, minibatch_size=32)
        rewards, targets = self._table(recorder.batch, "rewards"), self._table(recorder.batch, "value_targets")
        # Value targets are advantages + values, and values are equal in all hosts; RLlib's advantages are standardised.
        return Rollout(rewards, self._returns(), targets, GAMMA, LAM)

    @staticmethod
    def _table(batch: Any, column: str) -> NDArray[Any]:
        table = np.full((STEPS, 3), np.nan)
        real = batch["loss_mask"].astype(bool)
        for state, value in zip(batch["obs"][real], batch[column][real], strict=True):
            walk, episode, time = state[:3].astype(int)
            table[episode * (4 + walk) + time, walk] = value
        return table

    def _returns(self) -> list[float]:
        """As the env runners log them, asked only now: learners must not have changed the episodes meanwhile."""
        logged = [runner.get_metrics() for runner in self.runners]
        for one in logged:
            assert one["episode_return_min"].peek() == one["episode_return_max"].peek()
        return [float(one["episode_return_mean"].peek()) for one in logged for _ in range(int(one["num_episodes"]))]

    def save(self, path: Path) -> None:
        self.algorithm.save_to_path(str(path))

    def load(self, path: Path) -> None:
        self.algorithm.restore_from_path(str(path))


class Picture(gymnasium.Env[Any, Any]):
    """Pictures of one shade, in floats as RLlib's networks want them."""

    observation_space = gymnasium.spaces.Box(0, 255, (36, 36, 1), np.float32)
    action_space = gymnasium.spaces.Discrete(2)

    def __init__(self, _: Any = None) -> None:
        self.time = 0

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        self.time = 0
        return np.zeros((36, 36, 1), np.float32), {}

    def step(self, action: Any) -> Any:
        self.time += 1
        return np.full((36, 36, 1), self.time, np.float32), 0.0, self.time == 8, False, {}
