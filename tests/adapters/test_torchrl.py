"""`BonusTransform` in TorchRL environments."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from gymnasium import spaces

torch = pytest.importorskip("torch")
pytest.importorskip("torchrl")
from torchrl.envs import Compose, GymWrapper, SerialEnv, TransformedEnv, check_env_specs  # noqa: E402

import voronaut as vn  # noqa: E402
from tests.adapters.worlds import DictWalkEnv, PictureEnv, Spy, WalkEnv, corner, walks  # noqa: E402
from voronaut.adapters.torchrl_env import BonusTransform  # noqa: E402
from voronaut.conformance.walk import replay  # noqa: E402


def serial(kind: type[WalkEnv] = WalkEnv) -> Any:
    return SerialEnv(3, list(walks(kind, wrap=GymWrapper)))


def test_the_bonus_has_a_key_of_its_own() -> None:
    spy, known = Spy(), replay(16)
    env = TransformedEnv(serial(), BonusTransform(spy, scale=0.5, update_every=16))
    data = env.rollout(16, break_when_any_done=False)
    bonus = 0.5 * known.led_to.sum(axis=-1)
    np.testing.assert_allclose(data["next", "intrinsic_reward"].squeeze(-1).T, bonus)
    np.testing.assert_allclose(data["next", "reward"].squeeze(-1).T, 0.25 + known.ends)
    np.testing.assert_array_equal(spy.seen("update"), [known.led_to.reshape(-1, 4)])


def test_added_to_the_reward_if_asked() -> None:
    known = replay(8)
    env = TransformedEnv(serial(), BonusTransform(Spy(), scale=0.5, add_to_reward=True))
    data = env.rollout(8, break_when_any_done=False)["next"]
    np.testing.assert_allclose(data["extrinsic_reward"].squeeze(-1).T, 0.25 + known.ends)
    assert torch.allclose(data["reward"], data["extrinsic_reward"] + data["intrinsic_reward"])


@pytest.mark.parametrize("add", [True, False])
def test_specs_hold(add: bool) -> None:
    for inner in (serial(), GymWrapper(WalkEnv())):
        check_env_specs(TransformedEnv(inner, BonusTransform(vn.KME(dim=4, clusters=4), add_to_reward=add)))


def test_several_keys_and_features() -> None:
    spy, known = Spy(), replay(8)
    env = TransformedEnv(serial(DictWalkEnv), BonusTransform(spy, in_keys=["who", "rest"]))
    env.rollout(8, break_when_any_done=False)
    np.testing.assert_array_equal(spy.seen(), known.led_to)
    pictures = Spy()
    seen = TransformedEnv(
        serial(PictureEnv), BonusTransform(pictures, in_keys=["pixels"], features=lambda x: corner(x.numpy()))
    )
    seen.rollout(8, break_when_any_done=False)
    np.testing.assert_array_equal(pictures.seen(), known.led_to)
    with pytest.raises(ValueError, match=r"image.*\(8, 8, 3\).*Pass features="):
        TransformedEnv(serial(PictureEnv), BonusTransform(pictures, in_keys=["pixels"])).rollout(2)


class GridEnv(WalkEnv):
    """A walk whose four numbers are two rows of two."""

    observation_space = spaces.Box(-np.inf, np.inf, (2, 2), np.float32)

    def observe(self) -> Any:
        return super().observe().reshape(2, 2)


def test_arrays_of_any_shape_become_vectors_and_unknown_keys_are_named() -> None:
    env = TransformedEnv(serial(GridEnv), BonusTransform(vn.KME, update_every=4))
    env.rollout(8, break_when_any_done=False)
    assert env.transform.bonus.dim == 4 and env.transform.payer.updates == 2
    with pytest.raises(ValueError, match=r"no observation 'observation'; there are \['pixels'\]. Pass in_keys="):
        TransformedEnv(serial(PictureEnv), BonusTransform(vn.KME)).rollout(1)


def test_environments_that_wait_are_neither_paid_nor_learned() -> None:
    spy = Spy()
    env = TransformedEnv(serial(), BonusTransform(spy, update_every=6))
    data = env.rollout(6, break_when_any_done=False, break_when_all_done=True)
    assert data.shape[-1] == 6
    states = spy.seen("update")[0]
    assert sorted(np.bincount(states[:, 0].astype(int))) == [4, 5, 6]
    assert len({tuple(state) for state in states}) == 15
    assert data["next", "done"][0, 3:].all()  # TorchRL repeats the last row while others go on


def test_it_belongs_around_the_workers() -> None:
    make = [lambda: TransformedEnv(GymWrapper(WalkEnv()), BonusTransform(Spy()))]
    with pytest.raises(ValueError, match="every worker would have a bonus of its own"):
        SerialEnv(1, make).reset()


def test_the_environments_state_dict_carries_everything(tmp_path: Path) -> None:
    def make() -> Any:
        return TransformedEnv(serial(), BonusTransform(vn.KME(dim=4, clusters=4), update_every=5))

    env, again = make(), make()
    env.rollout(7, break_when_any_done=False)
    torch.save(env.state_dict(), tmp_path / "env.pt")
    again.load_state_dict(torch.load(tmp_path / "env.pt", weights_only=True))
    one, other = env.transform.payer, again.transform.payer
    assert (other.steps, other.updates) == (7, 1)
    for payer in (one, other):
        for _ in range(3):
            payer.keep(np.ones((2, 4), np.float32))
    np.testing.assert_array_equal(one.bonus.centers, other.bonus.centers)
    assert one.updates == other.updates == 2


def test_mistakes_are_told_once_the_environment_is_known() -> None:
    with pytest.raises(ValueError, match=r"dim=3 and those it would see have 4 numbers"):
        TransformedEnv(serial(), BonusTransform(vn.KME(dim=3))).rollout(1)
    with pytest.raises(TypeError, match="object lacks rewards"):
        BonusTransform(object())
    with pytest.raises(ValueError, match="two BonusTransforms"):
        TransformedEnv(serial(), Compose(BonusTransform(Spy()), BonusTransform(Spy()))).rollout(1)
    with pytest.raises(ValueError, match=r"not known here. Make the bonus yourself: KME\(dim=…\)"):
        assert BonusTransform(vn.KME).bonus


def test_a_class_is_made_to_fit() -> None:
    env = TransformedEnv(serial(DictWalkEnv), Compose(BonusTransform(vn.KME, in_keys=["who", "rest"])))
    env.rollout(3)
    assert env.transform[0].bonus.dim == 4


def test_frozen_steps_are_paid_and_teach_nothing() -> None:
    spy = Spy()
    env = TransformedEnv(serial(), BonusTransform(spy, update_every=1))
    with env.transform.frozen():
        assert (env.rollout(3)["next", "intrinsic_reward"] > 0).all()
    assert not spy.seen("update")
    env.rollout(3)
    assert len(spy.seen("update")) == 3
