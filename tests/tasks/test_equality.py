"""Both backends and plain dm_control are one environment: same starts and actions, same observations and rewards.

envpool hides its physics, but not its seeds: it draws starts as C++ does (std::mt19937). A random state that draws
the same numbers lets dm_control start in the same physics state, down to the solver's warm start.
"""

from typing import Any

import numpy as np
import pytest
from dm_control import suite
from numpy.typing import NDArray

from voronaut import tasks
from voronaut.tasks.base import Step, VectorTask, env_seeds, sparse

SEEDS, ENVS = [3], 2
# envpool 1.2.5 carries MuJoCo 3.6, dm_control runs on 3.17. Measured in float64 over 24 episodes of 60 steps, relative
# to 1 + |observation|: equal bits on Cartpole and Acrobot (off the rail's ends); elsewhere 1e-13 after a step, at most
# 2e-8 after 60, as contacts amplify the last bit. Rarely the two constraint solvers stop an iteration apart, at a joint
# limit or a hard landing: jumps of 3e-8 to 1e-6, once in 36 Humanoid episodes 3e-5, after which that episode goes its
# own way. Random actions from seed 3 meet none of them.
STEPS, TOLERANCE = 60, 1e-6


class CppRandom(np.random.RandomState):
    """Draws what std::uniform_real_distribution and std::normal_distribution (libstdc++) draw from std::mt19937."""

    def uniform(self, low: Any = 0.0, high: Any = 1.0, size: Any = None) -> Any:
        shape = np.broadcast(low, high).shape if size is None else (size,)
        draws = np.array([self._canonical() for _ in range(int(np.prod(shape)))]).reshape(shape)
        return draws * (np.asarray(high) - low) + low

    def rand(self, *shape: int) -> Any:
        return self.uniform(size=shape[0])

    def randn(self, *shape: int) -> Any:
        return np.array([self._normal() for _ in range(shape[0])]) if shape else self._normal()

    def _canonical(self) -> float:
        low, high = (int(word) for word in self.randint(0, 2**32, size=2, dtype=np.uint32))
        return (low + high * 2.0**32) / 2.0**64

    def _normal(self) -> float:
        while True:
            x, y = 2 * self._canonical() - 1, 2 * self._canonical() - 1
            square = x * x + y * y
            if 0 < square <= 1:
                return float(y * np.sqrt(-2 * np.log(square) / square))


def plain_envs(name: str, seeds: list[int] = SEEDS, envs: int = ENVS) -> list[Any]:
    """dm_control's own environments, starting where envpool's start."""
    task = tasks.find(name)
    randoms = [CppRandom(seed) for seed in env_seeds(seeds, envs)]
    return [suite.load(task.domain, task.task, task_kwargs={"random": random}) for random in randoms]


def flat(time_steps: list[Any]) -> NDArray[np.float32]:
    rows = [np.concatenate([np.ravel(part) for part in step.observation.values()]) for step in time_steps]
    return np.array(rows, np.float32)


def actions_for(task: VectorTask, steps: int) -> NDArray[np.float64]:
    """Random actions, some of them beyond the bounds."""
    shape = (steps, task.num_envs, task.action_dim)
    return np.random.default_rng(0).uniform(1.2 * task.action_low, 1.2 * task.action_high, shape)


def step_both(task: VectorTask, envs: list[Any], actions: NDArray[np.float64], threshold: float) -> Step:
    """Take the same actions in both, compare everything."""
    step = task.step(actions)
    inside = np.clip(actions, task.action_low, task.action_high)
    plain = [env.step(action) for env, action in zip(envs, inside, strict=True)]
    dense = np.array([time_step.reward for time_step in plain], np.float32)
    np.testing.assert_allclose(step.next_states, flat(plain), atol=TOLERANCE, rtol=TOLERANCE)
    np.testing.assert_allclose(step.dense_rewards, dense, atol=TOLERANCE)
    np.testing.assert_allclose(step.rewards, sparse(dense, threshold), atol=TOLERANCE)
    return step


@pytest.mark.parametrize("name", tasks.TASKS)
def test_envpool_equals_plain_dm_control(name: str) -> None:
    pytest.importorskip("envpool")
    task, envs = tasks.make(name, SEEDS, ENVS, backend="envpool", threads=1), plain_envs(name)
    np.testing.assert_allclose(task.reset(), flat([env.reset() for env in envs]), atol=TOLERANCE, rtol=TOLERANCE)
    for actions in actions_for(task, STEPS):
        step_both(task, envs, actions, tasks.find(name).threshold("release"))


def swing_up(obs: NDArray[np.float32]) -> NDArray[np.float64]:
    """Pump energy into Cartpole's pole, then hold it up for a moment."""
    x, cosine, sine, x_speed, speed = obs.T.astype(np.float64)
    pump = -0.3 * np.sign(speed * cosine) - 0.2 * x - 0.1 * x_speed
    hold = 3 * sine + 0.6 * speed + 0.1 * x + 0.2 * x_speed
    return np.where(cosine > 0.9, hold, pump)[:, None]


def test_cartpole_s_reward_is_found_and_equal() -> None:
    pytest.importorskip("envpool")
    task, envs = (
        tasks.make("cartpole-swingup", SEEDS, 1, backend="envpool", threads=1),
        plain_envs("cartpole-swingup", SEEDS, 1),
    )
    obs, rewards = task.reset(), 0.0
    for env in envs:
        env.reset()
    for _ in range(600):
        step = step_both(task, envs, swing_up(obs), 0.0)
        obs, rewards = step.obs, rewards + step.rewards[0]
    assert rewards > 5


@pytest.mark.parametrize(("name", "seed"), [("acrobot-swingup", 223), ("walker-run", 222), ("humanoid-run", 175)])
def test_rewards_above_the_threshold_are_found_and_equal(name: str, seed: int) -> None:
    """These seeds start where a few rewards are found by a wave of full actions (of 400 tried)."""
    pytest.importorskip("envpool")
    task, envs = tasks.make(name, [seed], 1, backend="envpool", threads=1), plain_envs(name, [seed], 1)
    task.reset(), envs[0].reset()
    rewards, threshold = [], tasks.find(name).threshold("release")
    for time in range(50):
        step = step_both(task, envs, np.sign(np.sin(0.6 * time + 1.3 * np.arange(task.action_dim)))[None], threshold)
        rewards.append(step.rewards[0])
        assert step.rewards[0] == (step.dense_rewards[0] if step.dense_rewards[0] >= threshold else 0)
    assert max(rewards) > threshold


@pytest.mark.parametrize("name", tasks.TASKS)
def test_the_dm_control_backend_equals_plain_dm_control_in_every_bit(name: str) -> None:
    row = tasks.find(name)
    task = tasks.make(name, SEEDS, ENVS, backend="dm_control", threshold="paper")
    envs = [suite.load(row.domain, row.task, task_kwargs={"random": seed}) for seed in env_seeds(SEEDS, ENVS)]
    np.testing.assert_array_equal(task.reset(), flat([env.reset() for env in envs]))
    for actions in actions_for(task, STEPS):
        step = task.step(actions)
        inside = np.clip(actions, task.action_low, task.action_high)
        plain = [env.step(action) for env, action in zip(envs, inside, strict=True)]
        dense = np.array([time_step.reward for time_step in plain], np.float32)
        np.testing.assert_array_equal(step.next_states, flat(plain))
        np.testing.assert_array_equal(step.dense_rewards, dense)
        np.testing.assert_array_equal(step.rewards, np.where(dense >= np.float32(row.paper), dense, 0))


@pytest.mark.parametrize("name", tasks.TASKS)
def test_backends_and_table_agree_on_sizes_bounds_and_keys(name: str) -> None:
    pytest.importorskip("envpool")
    pool, plain = (tasks.make(name, [0], 1, backend=backend) for backend in ("envpool", "dm_control"))
    env = plain_envs(name)[0]
    assert tuple(env.observation_spec()) == tasks.find(name).keys
    assert (pool.obs_dim, pool.action_dim, pool.num_envs) == (plain.obs_dim, plain.action_dim, plain.num_envs)
    np.testing.assert_array_equal(pool.action_low, plain.action_low)
    np.testing.assert_array_equal(pool.action_high, plain.action_high)
    assert env._step_limit == pytest.approx(tasks.EPISODE_STEPS)
