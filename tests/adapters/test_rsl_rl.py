"""`add_bonus` in a real OnPolicyRunner with PPO, on small vectorised torch environments."""

import re
import runpy
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from rsl_rl.env import VecEnv
from rsl_rl.runners import OnPolicyRunner
from tensordict import TensorDict

import voronaut as vn
from tests.adapters.views import check_views
from tests.adapters.worlds import Spy
from voronaut.adapters.rsl_rl import add_bonus
from voronaut.conformance import ADAPTER_CHECKS, Rollout, Walk
from voronaut.conformance.walk import replay

ROOT = Path(__file__).parents[2]
STEPS = 24


class Walks(VecEnv):
    """Walks side by side that reset themselves. The state in two groups, `who` and `rest`, beside the whole."""

    num_actions, device, max_episode_length, cfg = 1, "cpu", 100, {}

    def __init__(self, walks: Sequence[Walk] = (), tells: str | None = "final_obs") -> None:
        self.walks, self.tells = list(walks) or [Walk(i) for i in range(3)], tells
        self.num_envs = len(self.walks)
        self.episode_length_buf = torch.zeros(self.num_envs, dtype=torch.long)
        for walk in self.walks:
            walk.reset()

    def get_observations(self) -> TensorDict:
        states = torch.as_tensor(np.stack([walk.state() for walk in self.walks]))
        parts = {"policy": states, "who": states[:, :1], "rest": states[:, 1:], "grid": states.reshape(-1, 2, 2)}
        parts["image"] = parts["grid"].to(torch.uint8)
        return TensorDict(parts, batch_size=[self.num_envs])

    def step(self, actions: torch.Tensor) -> Any:
        assert actions.shape == (self.num_envs, 1)
        _, rewards, terminated, truncated = zip(*(walk.step() for walk in self.walks), strict=True)
        last, dones = self.get_observations(), torch.tensor(terminated) | torch.tensor(truncated)
        for i in dones.nonzero()[:, 0]:
            self.walks[i].reset()
        extras = {"time_outs": torch.tensor(truncated)}
        if self.tells is not None and dones.any():
            extras[self.tells] = last
        return self.get_observations(), torch.tensor(rewards), dones, extras


def settings(steps: int = STEPS, **more: Any) -> dict[str, Any]:
    net = {"class_name": "MLPModel", "hidden_dims": [8], "activation": "elu"}
    spread = {"class_name": "GaussianDistribution", "init_std": 1.0, "std_type": "scalar"}
    algorithm = {"class_name": "PPO", "gamma": 0.99, "lam": 0.95, "normalize_advantage_per_mini_batch": True, **more}
    groups = {"actor": ["policy"], "critic": ["policy"]}
    return {
        "num_steps_per_env": steps, "save_interval": 1000, "obs_groups": groups, "algorithm": algorithm,
        "actor": {**net, "distribution_cfg": spread}, "critic": dict(net),
    }  # fmt: skip


def runner_on(env: VecEnv, folder: Any = None, **more: Any) -> OnPolicyRunner:
    torch.manual_seed(0)
    runner = OnPolicyRunner(env, settings(**more), log_dir=None if folder is None else str(folder))
    runner.logger.git_status_repos = []
    return runner


class Host:
    """rsl_rl as `check_adapter` wants to see it."""

    def __init__(self, bonus: Any, walks: Sequence[Walk], scale: float) -> None:
        self.folder = tempfile.TemporaryDirectory()
        self.runner = runner_on(Walks(walks), self.folder.name)
        self.pay = add_bonus(self.runner, bonus, scale=scale)

    @property
    def bonus(self) -> Any:
        return self.pay.bonus

    def collect(self) -> Rollout:
        self.runner.learn(1)
        storage, logger = self.runner.alg.storage, self.runner.logger
        rewards, advantages = (x[..., 0].numpy().copy() for x in (storage.rewards, storage.advantages))
        return Rollout(rewards, list(logger.rewbuffer), advantages, 0.99, 0.95)

    def save(self, path: Path) -> None:
        self.runner.save(str(path))

    def load(self, path: Path) -> None:
        self.runner.load(str(path))


@pytest.mark.parametrize("check", ADAPTER_CHECKS, ids=lambda check: check.__name__)
def test_conformance(check: Callable[[Any], None]) -> None:
    check(Host)


def test_views() -> None:
    check_views(Host)


# ---- what is paid ----------------------------------------------------------------------------------------------------


def test_one_rollout_is_paid_in_one_call_before_it_is_learned() -> None:
    spy, runner = Spy(), runner_on(Walks())
    add_bonus(runner, spy)
    runner.learn(2)
    assert [name for name, _ in spy.calls] == ["rewards", "update"] * 2
    led_to = replay(2 * STEPS).led_to
    np.testing.assert_array_equal(np.concatenate(spy.seen()), led_to)
    np.testing.assert_array_equal(np.concatenate(spy.seen("update")), led_to.reshape(-1, 4))


def test_keys_and_features_choose_what_the_bonus_sees() -> None:
    led_to = replay(STEPS).led_to
    for options, wanted in (
        ({"keys": ["rest", "who"]}, led_to[..., [1, 2, 3, 0]]),
        ({"features": lambda obs: obs["rest"][:, :2] * 2}, led_to[..., 1:3] * 2),
        ({"keys": ["who"], "features": lambda states: states - 1}, led_to[..., :1] - 1),
    ):
        spy, runner = Spy(), runner_on(Walks())
        add_bonus(runner, spy, **options)
        runner.learn(1)
        np.testing.assert_array_equal(spy.seen()[0], wanted)


def test_lost_final_states_are_refused_unless_allowed() -> None:
    runner = runner_on(Walks(tells=None))
    add_bonus(runner, Spy())
    with pytest.raises(ValueError, match=r"paid for the reset state.*final=None"):
        runner.learn(1)


def test_without_final_states_ends_are_neither_paid_nor_learned() -> None:
    spy, runner = Spy(), runner_on(Walks(tells=None))
    pay = add_bonus(runner, spy, final=None, scale=0.5)
    runner.learn(1)
    known = replay(STEPS)
    np.testing.assert_allclose(pay.paid, np.where(known.ends, 0, 0.5 * known.led_to.sum(axis=-1)))
    np.testing.assert_array_equal(spy.seen("update")[0], known.led_to[~known.ends])


def test_final_states_from_another_place() -> None:
    for final in ("terminal", lambda obs, extras: extras.get("terminal", obs)["policy"]):
        spy, runner = Spy(), runner_on(Walks(tells="terminal"))
        add_bonus(runner, spy, final=final)
        runner.learn(1)
        np.testing.assert_array_equal(spy.seen()[0], replay(STEPS).led_to)


def test_final_states_of_some_environments_only_are_refused() -> None:
    runner = runner_on(Walks())
    add_bonus(runner, Spy(), final=lambda obs, extras: obs["policy"][:1])
    with pytest.raises(ValueError, match=r"of all 3 environments, \(3, 4\); got \(1, 4\)"):
        runner.learn(1)


def test_warmup_and_schedule() -> None:
    runner = runner_on(Walks())
    pay = add_bonus(runner, Spy(), warmup=1, scale=lambda progress: 1 - progress, total_steps=STEPS * 3 * 4)
    factors = []
    for rollout in range(3):
        runner.learn(1)
        states = replay((rollout + 1) * STEPS).led_to[-STEPS:]
        factors.append(float((pay.paid.numpy() / states.sum(axis=-1)).mean()))
    np.testing.assert_allclose(factors, [0, 0.75, 0.5])


def test_other_rewards_of_the_library_stay() -> None:
    """Time-outs are bootstrapped as without a bonus: the difference of the two runs' rewards is the bonus."""
    rewards = []
    for bonus in (vn.NoBonus(dim=4), Spy()):
        runner = runner_on(Walks())
        pay = add_bonus(runner, bonus)
        runner.learn(1)
        rewards.append(runner.alg.storage.rewards[..., 0].numpy().copy())
    np.testing.assert_allclose(rewards[1] - rewards[0], pay.paid, atol=1e-5)


# ---- with a KME ------------------------------------------------------------------------------------------------------


def test_kme_is_paid_logged_and_resumed_to_the_bit(tmp_path: Path) -> None:
    def start() -> Any:
        runner = runner_on(Walks(), tmp_path / "log", learning_rate=0.0)
        return runner, add_bonus(runner, vn.KME(dim=4, clusters=6, init="data"), scale=0.01, warmup=1)

    whole, pay = start()
    whole.learn(2)
    states = replay(2 * STEPS).led_to.astype(np.float32)
    wanted = vn.KME(dim=4, clusters=6, init="data")
    wanted.update(states[:STEPS])
    np.testing.assert_allclose(pay.paid, 0.01 * wanted.rewards(states[STEPS:]), rtol=1e-4, atol=1e-6)
    whole.save(str(tmp_path / "model.pt"))
    again, other = start()
    again.load(str(tmp_path / "model.pt"))
    assert other.payer.env_steps == 2 * STEPS * 3 and other.payer.steps == 2
    np.testing.assert_array_equal(other.bonus.counts, pay.bonus.counts)
    np.testing.assert_array_equal(other.bonus.rewards(states), pay.bonus.rewards(states))
    assert again.current_learning_iteration == whole.current_learning_iteration


def test_metrics_reach_the_log(tmp_path: Path) -> None:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    runner = runner_on(Walks(), tmp_path)
    pay = add_bonus(runner, vn.KME(dim=4, clusters=6))
    runner.learn(2)
    runner.logger.writer.close()
    log = EventAccumulator(str(tmp_path)).Reload()
    paid, states = (log.Scalars(f"Bonus/{name}") for name in ("paid", "states"))
    assert paid[-1].value == pytest.approx(float(pay.paid.mean()), rel=1e-5)
    assert [event.value for event in states] == [STEPS * 3, 2 * STEPS * 3]
    assert log.Scalars("Train/mean_reward")[-1].value == pytest.approx(np.mean(runner.logger.rewbuffer))


def test_other_bonuses() -> None:
    runner = runner_on(Walks())
    pay = add_bonus(runner, vn.HashCount(dim=4), scale=0.01)
    runner.learn(2)
    assert float(pay.paid.abs().sum()) > 0 and pay.paid.shape == (STEPS, 3)


# ---- refused ---------------------------------------------------------------------------------------------------------


def test_a_checkpoint_without_a_bonus_is_named(tmp_path: Path) -> None:
    path = str(tmp_path / "plain.pt")
    runner_on(Walks()).save(path)
    runner = runner_on(Walks())
    add_bonus(runner, vn.KME(dim=4, clusters=6))
    with pytest.raises(ValueError, match=r"holds no bonus.*load_cfg="):
        runner.load(path)
    runner.load(path, load_cfg={"actor": True, "critic": True, "optimizer": True, "iteration": True})


def test_bad_options_are_named() -> None:
    runner = runner_on(Walks())
    for options, message in (
        ({"keys": "policy"}, r"Write keys=\['policy'\]"),
        ({"keys": ["nothing"]}, "there are .*'policy'"),
        ({"scale": float("nan")}, "scale must be a finite number of at least 0"),
    ):
        with pytest.raises((TypeError, ValueError), match=message):
            add_bonus(runner, Spy(), **options)
    with pytest.raises(TypeError, match="OnPolicyRunner with PPO; got Walks"):
        add_bonus(Walks(), Spy())
    with pytest.raises(TypeError, match=r"a bonus such as vn.KME"):
        add_bonus(runner, runner)
    with pytest.raises(ValueError, match=r"dim=3 and those it would see have 4 numbers"):
        add_bonus(runner, vn.KME(dim=3))
    assert add_bonus(runner, vn.KME).bonus.dim == 4
    with pytest.raises(ValueError, match="has a bonus already"):
        add_bonus(runner, Spy())


def test_a_group_of_any_shape_becomes_a_vector() -> None:
    flat, grid = Spy(), Spy()
    for spy, keys in ((flat, ["policy"]), (grid, ["grid"])):
        runner = runner_on(Walks())
        add_bonus(runner, spy, keys=keys)
        runner.learn(1)
    np.testing.assert_array_equal(flat.seen(), grid.seen())
    assert add_bonus(runner_on(Walks()), vn.KME, keys=["grid", "who"]).bonus.dim == 5


def test_images_and_wrong_features_are_named() -> None:
    for options, message in (
        ({"keys": ["image"]}, "'image' is an image.*features="),
        ({"features": lambda obs: obs["image"]}, r"a tensor \(n, dim\); got"),
    ):
        runner = runner_on(Walks())
        add_bonus(runner, Spy(), **options)
        with pytest.raises(ValueError, match=message):
            runner.learn(1)


def test_two_runners_do_not_mix() -> None:
    """Hooks are on one algorithm object: a runner made later has no bonus."""
    spy, plain = Spy(), runner_on(Walks())
    add_bonus(runner_on(Walks()), spy)
    plain.learn(1)
    assert not spy.calls


# ---- the page and the example ----------------------------------------------------------------------------------------


def test_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "docs/adapters/rsl_rl.md").read_text(), re.DOTALL)
    names: dict[str, object] = {}
    for block in blocks:
        exec(compile(block, "rsl_rl.md", "exec"), names)
    assert len(blocks) == 2 and names["pay"].bonus.metrics()["states"] == 3 * 8 * 256  # type: ignore[attr-defined]


def test_example(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys, "argv", ["rsl_rl_ppo.py", "--envs", "32", "--iterations", "2"])
    runpy.run_path(str(ROOT / "examples" / "rsl_rl_ppo.py"), run_name="__main__")
    assert len(re.findall(r": return 0.0 at the end, 0\.\d+ of the square seen", capsys.readouterr().out)) == 2
