"""What rsl_rl and TorchRL ask of their own RND, asked of our bonuses in the same sizes; docs/adapters/ lists it."""

from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("rsl_rl")
pytest.importorskip("torchrl")
from tensordict import TensorDict  # noqa: E402

import voronaut as vn  # noqa: E402
from tests.adapters.test_rsl_rl import STEPS, Walks, runner_on  # noqa: E402
from voronaut.adapters.rsl_rl import add_bonus  # noqa: E402
from voronaut.adapters.torchrl_env import BonusTransform  # noqa: E402
from voronaut.conformance import Walk  # noqa: E402

ENVS, DIM = 8, 6  # rsl_rl's
BONUSES = [vn.KME, vn.RND]
ids = [each.__name__ for each in BONUSES]


def observations(*batch: int, dim: int = DIM) -> Any:
    return torch.randn(*batch, dim, generator=torch.Generator().manual_seed(0))


# ---- rsl_rl: tests/extensions/test_rnd.py, tests/algorithms/test_rnd_schedule_checkpoint.py --------------------------


@pytest.mark.parametrize("kind", BONUSES, ids=ids)
def test_rewards_are_finite_one_per_environment(kind: Any) -> None:
    bonus, states = kind(dim=DIM), observations(ENVS).numpy()
    bonus.update(states)
    assert bonus.rewards(states).shape == (ENVS,)
    assert torch.isfinite(torch.as_tensor(bonus.rewards(states))).all()


@pytest.mark.parametrize("kind", BONUSES, ids=ids)
def test_what_was_seen_often_earns_less_than_what_was_never_seen(kind: Any) -> None:
    bonus, states = kind(dim=DIM), observations(32 * ENVS)
    for _ in range(20):
        bonus.update(states.numpy())
    assert bonus.rewards(states.numpy()).mean() < bonus.rewards((states + 3).numpy()).mean()


def walks() -> Walks:
    return Walks([Walk(i) for i in range(ENVS)])


def test_a_weight_of_zero_pays_nothing() -> None:
    pay = add_bonus(runner := runner_on(walks()), vn.KME, scale=0.0)
    runner.learn(2)
    assert pay.paid is not None and pay.paid.shape == (STEPS, ENVS) and not pay.paid.any()


@pytest.mark.parametrize(
    ("schedule", "weights"),
    [
        (0.5, [0.5, 0.5, 0.5, 0.5]),
        (lambda p: 1.0 if p < 0.5 else 0.1, [1.0, 1.0, 0.1, 0.1]),
        (lambda p: 1 - p, [1.0, 0.75, 0.5, 0.25]),
    ],
    ids=["constant", "step", "linear"],
)
def test_schedules_of_the_weight(schedule: Any, weights: list[float]) -> None:
    pay = add_bonus(runner := runner_on(walks()), vn.KME, scale=schedule, total_steps=4 * STEPS * ENVS)
    seen = []
    for _ in range(4):
        seen.append(pay.payer.weight())
        runner.learn(1)
    assert seen == pytest.approx(weights)
    assert pay.payer.updates == 4


def test_a_resumed_schedule_goes_on_where_it_was(tmp_path: Path) -> None:
    def made() -> Any:
        runner = runner_on(walks(), tmp_path)
        return runner, add_bonus(runner, vn.KME, scale=lambda p: 1 - p, total_steps=4 * STEPS * ENVS)

    (runner, pay), (other, again) = made(), made()
    runner.learn(3)
    runner.save(str(tmp_path / "model.pt"))
    other.load(str(tmp_path / "model.pt"))
    assert again.payer.updates == 3
    assert again.payer.weight() == pay.payer.weight() == pytest.approx(0.25)


def test_loading_the_actor_alone_leaves_the_bonus_as_it_is(tmp_path: Path) -> None:
    runner, other = runner_on(walks(), tmp_path), runner_on(walks(), tmp_path)
    add_bonus(runner, vn.KME)
    kept = add_bonus(other, vn.KME)
    runner.learn(2)
    runner.save(str(tmp_path / "model.pt"))
    other.load(str(tmp_path / "model.pt"), load_cfg={"actor": True})
    assert kept.payer.updates == 0
    saved = torch.load(tmp_path / "model.pt", weights_only=True)["bonus"]
    assert all(isinstance(value, torch.Tensor) for part in saved.values() for value in part.values())


def test_a_runner_without_a_bonus_saves_none(tmp_path: Path) -> None:
    runner = runner_on(walks(), tmp_path)
    runner.learn(1)
    runner.save(str(tmp_path / "model.pt"))
    assert "bonus" not in torch.load(tmp_path / "model.pt", weights_only=True)


# ---- TorchRL: its tests of RNDTransform ------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", BONUSES, ids=ids)
@pytest.mark.parametrize("batch", [(), (8,), (3, 5)])
def test_the_transform_alone_writes_one_number_per_observation(kind: Any, batch: tuple[int, ...]) -> None:
    transform = BonusTransform(kind(dim=4))
    following = TensorDict({"observation": observations(*batch, dim=4)}, batch_size=batch)
    transform._step(TensorDict({}, batch_size=batch), following)
    assert following["intrinsic_reward"].shape == (*batch, 1)
    assert torch.isfinite(following["intrinsic_reward"]).all()


def test_keys_of_ones_own() -> None:
    transform = BonusTransform(vn.KME(dim=4), in_keys=["obs_feat"], out_key="curiosity")
    following = TensorDict({"obs_feat": observations(dim=4)}, batch_size=[])
    transform._step(TensorDict({}, batch_size=[]), following)
    assert "curiosity" in following
    nested = BonusTransform(vn.KME(dim=4), in_keys=[("agent", "obs")])
    following = TensorDict({"agent": {"obs": observations(8, dim=4)}}, batch_size=[8])
    nested._step(TensorDict({}, batch_size=[8]), following)
    assert following["intrinsic_reward"].shape == (8, 1)


def test_what_it_learned_is_in_its_state() -> None:
    transform, again = (BonusTransform(vn.KME(dim=4), update_every=1) for _ in range(2))
    following = TensorDict({"observation": observations(64, dim=4)}, batch_size=[64])
    for _ in range(2):
        transform._step(TensorDict({}, batch_size=[64]), following)
    again.load_state_dict(transform.state_dict())
    assert again.bonus.metrics()["states"] == 128
    assert again.payer.updates == 2
