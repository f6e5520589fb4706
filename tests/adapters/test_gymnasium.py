"""`BonusVectorEnv` in every autoreset mode, and `BonusEnv`."""

import warnings
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.envs.classic_control import PendulumEnv
from gymnasium.utils.env_checker import check_env
from gymnasium.vector import AsyncVectorEnv, AutoresetMode, SyncVectorEnv
from gymnasium.wrappers.vector import RecordEpisodeStatistics

import voronaut as vn
import voronaut.tasks
from tests.adapters.worlds import DictWalkEnv, PictureEnv, Spy, WalkEnv, corner, walks
from voronaut.adapters.gymnasium_env import BonusEnv, BonusVectorEnv
from voronaut.conformance.walk import replay

assert voronaut.tasks  # registers the sparse tasks
Step = tuple[Any, Any, Any, Any, dict[str, Any]]


def vector(mode: str, kind: type[WalkEnv] = WalkEnv, maker: Any = SyncVectorEnv) -> Any:
    return maker(list(walks(kind)), autoreset_mode=AutoresetMode[mode])


def run(env: Any, steps: int) -> list[Step]:
    env.reset(seed=0)
    done = []
    for _ in range(steps):
        done.append(env.step(env.action_space.sample()))
        ended = done[-1][2] | done[-1][3]
        if ended.any() and env.metadata["autoreset_mode"] == AutoresetMode.DISABLED:
            env.reset(options={"reset_mask": ended})
    return done


@pytest.mark.parametrize("kind", [WalkEnv, DictWalkEnv, PictureEnv])
@pytest.mark.parametrize("mode", ["SAME_STEP", "DISABLED"])
def test_rows_are_paid_for_the_state_led_to(mode: str, kind: type[WalkEnv]) -> None:
    spy, known = Spy(), replay(16)
    options: dict[str, Any] = {DictWalkEnv: {"keys": ["who", "rest"]}, PictureEnv: {"features": corner}}.get(kind, {})
    env = BonusVectorEnv(vector(mode, kind), spy, scale=0.5, update_every=16, **options)
    steps = run(env, 16)
    np.testing.assert_array_equal(spy.seen(), known.led_to)
    np.testing.assert_array_equal(spy.seen("update"), [known.led_to.reshape(-1, 4)])
    bonus = 0.5 * known.led_to.sum(axis=-1)
    np.testing.assert_allclose([s[4]["bonus"] for s in steps], bonus)
    np.testing.assert_allclose([s[4]["extrinsic_reward"] for s in steps], 0.25 + known.ends)
    np.testing.assert_allclose([s[1] for s in steps], 0.25 + known.ends + bonus)


@pytest.mark.parametrize("maker", [SyncVectorEnv, AsyncVectorEnv])
def test_the_reset_step_of_next_step_mode_is_not_paid_and_not_learned(maker: Any) -> None:
    spy = Spy()
    env = BonusVectorEnv(vector("NEXT_STEP", maker=maker), spy, scale=0.5, update_every=21)
    steps = run(env, 21)
    env.close()
    for i in range(3):
        length = 4 + i
        known = replay(21).led_to[:, i]
        rows = [t for t in range(21) if t % (length + 1) != length]
        for t, (_, reward, *_, info) in enumerate(steps):
            assert info["_bonus"][i] == (t in rows)
            if t not in rows:
                assert reward[i] == info["bonus"][i] == 0
        paid = [steps[t][4]["bonus"][i] for t in rows]
        np.testing.assert_allclose(paid, 0.5 * known[: len(rows)].sum(axis=-1))
    learned = spy.seen("update")[0]
    assert len(learned) == sum(info["_bonus"].sum() for *_, info in steps)
    assert (learned[:, 2] > 0).all()


def test_a_reset_in_between_takes_the_artificial_step_away() -> None:
    env = BonusVectorEnv(vector("NEXT_STEP"), Spy())
    ended = run(env, 4)[-1][2]
    assert ended.tolist() == [True, False, False]
    env.reset(options={"reset_mask": ended})
    assert env.step(env.action_space.sample())[4]["_bonus"].all()


def test_returns_recorded_inside_are_the_environments() -> None:
    env = BonusVectorEnv(RecordEpisodeStatistics(vector("NEXT_STEP")), Spy(), scale=100)
    info = run(env, 4)[-1][4]
    assert info["episode"]["r"][0] == 2


def test_the_sparse_tasks_work() -> None:
    pytest.importorskip("dm_control", reason="dm_control is not installed (pip install 'voronaut[train]')")
    envs = gymnasium.make_vec("voronaut/CartpoleSwingupSparse-v0", num_envs=2, vectorization_mode="vector_entry_point",
                              max_episode_steps=5, backend="dm_control")  # fmt: skip
    env = BonusVectorEnv(envs, vn.KME(dim=5, clusters=4), update_every=6)
    rewards = np.array([step[1] for step in run(env, 9)])
    assert env.payer.updates == 1
    assert np.all(rewards[:6] == 0) and np.any(rewards[6:] != 0)  # nothing is paid before the first update
    env.close()


@pytest.mark.parametrize("final", ["array", "dict"])
def test_final_observations_of_dicts_come_in_two_shapes(final: str) -> None:
    class Shaped(gymnasium.vector.VectorWrapper):
        def step(self, actions: Any) -> Any:
            obs, reward, terminated, truncated, info = self.env.step(actions)
            if "final_obs" in info and final == "dict":
                rows = [row or self.single_observation_space.sample() for row in info["final_obs"]]
                info["final_obs"] = {key: np.array([row[key] for row in rows]) for key in rows[0]}
            return obs, reward, terminated, truncated, info

    spy = Spy()
    run(BonusVectorEnv(Shaped(vector("SAME_STEP", DictWalkEnv)), spy, keys=["who", "rest"]), 12)
    np.testing.assert_array_equal(spy.seen(), replay(12).led_to)


def test_mistakes_are_told() -> None:
    envs = vector("SAME_STEP")
    with pytest.raises(TypeError, match="take BonusEnv"):
        BonusVectorEnv(WalkEnv(), Spy())
    with pytest.raises(TypeError, match="take BonusVectorEnv"):
        BonusEnv(envs, Spy())
    with pytest.raises(ValueError, match="Pass features="):
        BonusVectorEnv(vector("SAME_STEP", PictureEnv), Spy())
    wrong = BonusVectorEnv(vector("NEXT_STEP"), Spy(), autoreset_mode="SameStep")
    with pytest.raises(ValueError, match="info has no 'final_obs'"):
        run(wrong, 4)
    envs.metadata = {}
    with pytest.raises(ValueError, match=r"does not say how it starts new episodes.*autoreset_mode="):
        BonusVectorEnv(envs, Spy())
    assert BonusVectorEnv(envs, Spy(), autoreset_mode=AutoresetMode.SAME_STEP).autoreset_mode == AutoresetMode.SAME_STEP


def test_one_environment() -> None:
    spy = Spy()
    env = BonusEnv(WalkEnv(1), spy, scale=0.5, update_every=2)
    env.reset(seed=0)
    steps = [env.step(env.action_space.sample()) for _ in range(5)]
    known = replay(5)
    np.testing.assert_array_equal(np.array(spy.seen())[:, 0], known.led_to[:, 1])
    for t, (_, reward, terminated, _, info) in enumerate(steps):
        assert info["bonus"] == 0.5 * known.led_to[t, 1].sum()
        assert reward == info["bonus"] + info["extrinsic_reward"]
        assert terminated == known.ends[t, 1]
    assert len(spy.seen("update")) == 2


def test_one_environment_keeps_gymnasiums_rules() -> None:
    paid = BonusEnv(PendulumEnv(), vn.KME(dim=3, clusters=4), update_every=10**6)  # no update: steps are repeated
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it does not like wrappers and infinite bounds
        check_env(paid, skip_render_check=True)
    paid.close()


@pytest.mark.parametrize("single", [True, False])
def test_save_and_load(tmp_path: Path, single: bool) -> None:
    kme = vn.KME(dim=4, clusters=4)
    inner = WalkEnv(0) if single else vector("SAME_STEP")
    env: Any = (BonusEnv if single else BonusVectorEnv)(inner, kme, update_every=3, scale=2.0)
    env.reset(seed=0)
    for _ in range(4):
        env.step(env.action_space.sample())
    env.save(tmp_path / "bonus.npz")
    again = type(env).load(tmp_path / "bonus.npz", inner)
    np.testing.assert_array_equal(again.bonus.centers, kme.centers)
    assert (again.payer.steps, again.payer.scale, again.payer.updates) == (4, 2, 1)
    for one in (env, again):
        one.payer.keep(np.zeros((1, 4)))
        one.payer.keep(np.zeros((1, 4)))
    np.testing.assert_array_equal(again.bonus.centers, kme.centers)


@pytest.mark.parametrize("single", [True, False])
def test_mistakes_are_told_at_once_and_a_class_is_made_to_fit(single: bool) -> None:
    wrap: Any = BonusEnv if single else BonusVectorEnv
    inner = WalkEnv(0) if single else vector("SAME_STEP")
    assert wrap(inner, vn.KME).bonus.dim == 4
    with pytest.raises(ValueError, match=r"dim=3 and those it would see have 4 numbers"):
        wrap(inner, vn.KME(dim=3))
    with pytest.raises(ValueError, match=r"already in a Bonus.*paid twice"):
        wrap(wrap(inner, Spy()), Spy())
    with pytest.raises(ValueError, match=r"already in a BonusEnv.*paid twice"):
        BonusVectorEnv(SyncVectorEnv([lambda: BonusEnv(WalkEnv(0), Spy())]), Spy())
    with pytest.raises(TypeError, match="object lacks rewards"):
        wrap(inner, object())


@pytest.mark.parametrize("single", [True, False])
def test_frozen_steps_are_paid_and_teach_nothing(single: bool) -> None:
    spy = Spy()
    inner: Any = WalkEnv(0) if single else vector("SAME_STEP")
    env: Any = (BonusEnv if single else BonusVectorEnv)(inner, spy, update_every=1)
    env.reset(seed=0)
    with env.frozen():
        info = env.step(env.action_space.sample())[4]
    assert np.all(info["bonus"] > 0) and not spy.seen("update") and env.training
    env.training = False
    env.step(env.action_space.sample())
    assert not spy.seen("update") and env.payer.steps == 0
