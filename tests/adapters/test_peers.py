"""What other libraries check of their own, run on ours; docs/adapters/ says what passed, with versions."""

import warnings
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.envs.classic_control import PendulumEnv
from gymnasium.utils.env_checker import check_env as gymnasium_check
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from stable_baselines3.common.env_checker import check_env as sb3_check

import voronaut as vn
from tests.adapters.worlds import DictWalkEnv, WalkEnv, walks
from voronaut.adapters.gymnasium_env import BonusEnv, BonusVectorEnv

NEVER = 10**6  # no update: checkers repeat steps and want the same rewards


@pytest.mark.parametrize("check", [gymnasium_check, sb3_check])
@pytest.mark.parametrize("name", ["MountainCarContinuous-v0", "CartPole-v1", "Taxi-v4", "FrozenLake-v1"])
def test_checkers_of_environments(check: Any, name: str) -> None:
    try:
        inner = gym.make(name).unwrapped
    except gym.error.Error as error:
        pytest.skip(str(error))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # they dislike wrappers and rewards of other ranges than usual
        check(BonusEnv(inner, vn.KME, update_every=NEVER), **({"skip_render_check": True}))


@pytest.mark.parametrize("mode", list(AutoresetMode))
@pytest.mark.parametrize("kind", [WalkEnv, DictWalkEnv])
def test_without_pay_a_vector_environment_is_what_it_was(mode: AutoresetMode, kind: type[WalkEnv]) -> None:
    options: dict[str, Any] = {"keys": ["who", "rest"]} if kind is DictWalkEnv else {}
    plain = SyncVectorEnv(list(walks(kind)), autoreset_mode=mode)
    ours = BonusVectorEnv(SyncVectorEnv(list(walks(kind)), autoreset_mode=mode), vn.NoBonus, **options)
    assert (ours.num_envs, ours.metadata) == (plain.num_envs, plain.metadata)
    for name in ("observation_space", "single_observation_space", "action_space", "single_action_space"):
        assert getattr(ours, name) == getattr(plain, name)
    _same(ours.reset(seed=3)[0], plain.reset(seed=3)[0])
    actions = np.zeros((3, 1), np.float32)
    for _ in range(14):
        (obs, *mine, info), (wanted, *theirs, known) = ours.step(actions), plain.step(actions)
        _same(obs, wanted)
        for a, b in zip(mine, theirs, strict=True):
            np.testing.assert_array_equal(a, b)
            assert a.dtype == b.dtype
        assert set(info) - set(known) == {"bonus", "_bonus", "extrinsic_reward", "_extrinsic_reward"}
        ended = theirs[1] | theirs[2]
        if mode == AutoresetMode.DISABLED and ended.any():
            for env in (ours, plain):
                env.reset(options={"reset_mask": ended.copy()})


def _same(one: Any, other: Any) -> None:
    if isinstance(one, dict):
        assert list(one) == list(other)
        for key in one:
            np.testing.assert_array_equal(one[key], other[key])
    else:
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("batch", [(), (3,), (2, 3)])
def test_torchrl_gets_an_intrinsic_reward_of_the_rewards_shape(batch: tuple[int, ...]) -> None:
    envs = pytest.importorskip("torchrl.envs")
    inner: Any = envs.GymWrapper(PendulumEnv())
    for size in reversed(batch):
        inner = envs.SerialEnv(size, lambda inner=inner: envs.GymWrapper(PendulumEnv()) if len(batch) < 2 else inner)
    from voronaut.adapters.torchrl_env import BonusTransform

    env = envs.TransformedEnv(inner, BonusTransform(vn.KME, scale=1.0))
    envs.check_env_specs(env)
    data = env.rollout(4)
    assert data["next", "intrinsic_reward"].shape == data["next", "reward"].shape == (*batch, 4, 1)
    assert data["next", "intrinsic_reward"].dtype == data["next", "reward"].dtype
