"""RND: what it pays, that it learns, and that statistics move in `update` alone."""

import subprocess
import sys

import numpy as np
import pytest

from voronaut.bonuses import networks
from voronaut.bonuses.rnd import RND
from voronaut.helpers import missing

SMALL = {"hidden": 32, "features": 16, "learning_rate": 1e-3}


def plain_network(state: dict[str, np.ndarray], name: str, rows: np.ndarray) -> np.ndarray:
    for i in range(3):
        rows = rows @ state[f"{name}.{i}.weight"].astype(np.float64) + state[f"{name}.{i}.bias"]
        rows = np.maximum(rows, 0) if i < 2 else rows
    return rows


def test_reward_is_the_equation_in_plain_numpy() -> None:
    rng, bonus = np.random.default_rng(0), RND(dim=6, seed=1, **SMALL)
    for _ in range(3):
        bonus.update(5 + 2 * rng.normal(size=(200, 6)))
    states, state = 5 + 4 * rng.normal(size=(700, 6)), bonus.state_dict()
    scaled = np.clip((states - state["states.mean"]) / np.sqrt(state["states.variance"] + 1e-8), -5, 5)
    wanted = np.square(plain_network(state, "predictor", scaled) - plain_network(state, "target", scaled)).mean(axis=1)
    np.testing.assert_allclose(bonus.rewards(states), wanted / np.sqrt(state["errors.variance"]), rtol=2e-4)


def test_adam_step_equals_torch() -> None:
    torch = pytest.importorskip("torch")
    learner, rng = networks.start_learner(0, (3, 8, 8, 4)), np.random.default_rng(0)
    params = [torch.nn.Parameter(torch.tensor(a)) for layer in learner.predictor for a in layer]
    adam = torch.optim.Adam(params, lr=1e-2)
    for _ in range(5):
        rows, weights = rng.normal(size=(16, 3)).astype(np.float32), (np.arange(16) < 10).astype(np.float32)
        goal = torch.tensor(np.asarray(networks.forward(learner.target, rows)))
        y = torch.tensor(rows)
        for i in range(3):
            y = y @ params[2 * i] + params[2 * i + 1]
            y = y.relu() if i < 2 else y
        adam.zero_grad()
        (y - goal).square().mean(dim=1)[:10].mean().backward()
        adam.step()
        learner, _ = networks.distill_one(learner, rows, weights, np.float32(1e-2))
    ours = [np.asarray(a) for layer in learner.predictor for a in layer]
    for a, b in zip(ours, params, strict=True):
        np.testing.assert_allclose(a, b.detach().numpy(), rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize("seed", range(20))
def test_error_falls_on_repeated_data_and_stays_high_on_new(seed: int) -> None:
    rng, bonus = np.random.default_rng(seed), RND(dim=5, seed=seed, **SMALL)
    known = rng.normal(size=(256, 5))
    new = rng.normal(size=(256, 5)) + 4 * rng.choice([-1, 1], size=5)
    errors = []
    for _ in range(100):  # one Adam step each
        bonus.update(known)
        errors.append(bonus.metrics()["error"])
    assert errors[-1] < 0.5 * errors[0]
    assert bonus.rewards(new).mean() > 2 * bonus.rewards(known).mean()


def test_orthogonal_start() -> None:
    for rows, columns in ((17, 64), (64, 64), (64, 20)):
        weight = networks.orthogonal(np.random.default_rng(0), rows, columns).astype(np.float64)
        gram = weight @ weight.T if rows <= columns else weight.T @ weight
        np.testing.assert_allclose(gram, 2 * np.eye(min(rows, columns)), atol=1e-5)


def test_before_any_update_states_are_taken_as_they_are() -> None:
    bonus = RND(dim=3, seed=0, **SMALL)
    state, rows = bonus.state_dict(), np.array([[1, -2, 7.0]])
    clipped = np.clip(rows, -5, 5)
    wanted = np.square(plain_network(state, "predictor", clipped) - plain_network(state, "target", clipped)).mean(
        axis=1
    )
    np.testing.assert_allclose(bonus.rewards(rows), wanted, rtol=1e-5)


@pytest.mark.parametrize(("count", "fraction", "steps"), [(1, 0.25, 1), (100, 0.25, 1), (400, 1.0, 4), (300, 0.5, 2)])
def test_fraction_and_batch_size_decide_the_steps(count: int, fraction: float, steps: int) -> None:
    bonus = RND(dim=2, batch_size=100, fraction=fraction, **SMALL)
    bonus.update(np.random.default_rng(0).normal(size=(count, 2)))
    state = bonus.state_dict()
    assert state["steps"] == steps and state["errors.seen"] == max(1, round(fraction * count))


def test_equal_errors_do_not_blow_rewards_up() -> None:
    bonus = RND(dim=2, **SMALL)
    bonus.update(np.ones(2))
    assert np.isfinite(bonus.rewards(np.ones(2))) and bonus.rewards(np.ones(2)) <= 100


def test_a_large_offset_is_harmless() -> None:
    states = np.random.default_rng(0).normal(size=(200, 3))
    near, far = RND(dim=3, **SMALL), RND(dim=3, **SMALL)
    near.update(states)
    far.update(states + 2**30)
    np.testing.assert_allclose(far.rewards(states + 2**30), near.rewards(states), rtol=1e-3)


def test_dropped_states_earn_nothing_and_teach_nothing() -> None:
    states = np.random.default_rng(0).normal(size=(64, 3))
    clean, bonus = RND(dim=3, **SMALL), RND(dim=3, on_bad="drop", **SMALL)
    clean.update(states)
    bonus.update(np.concatenate([states, [[np.nan, 0, 0]]]))
    np.testing.assert_array_equal(clean.rewards(states), bonus.rewards(states))
    assert bonus.rewards([np.inf, 0, 0]) == 0 and bonus.metrics()["bad_states"] == 1


ZERO = ("fraction", "learning_rate", "batch_size", "clip", "features", "hidden")


@pytest.mark.parametrize("wrong", [{"fraction": 1.5}, *({name: 0} for name in ZERO)])
def test_wrong_parameters(wrong: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="got"):
        RND(dim=2, **wrong)  # type: ignore[arg-type]


def test_construction_starts_no_device_and_missing_jax_says_what_to_install() -> None:
    quiet = (
        "import voronaut as vn; vn.RND(dim=3); vn.RE3(dim=3); vn.HashCount(dim=3)\n"
        "from jax._src import xla_bridge; assert not xla_bridge._backends"
    )
    subprocess.run([sys.executable, "-c", quiet], check=True)
    without = "import sys; sys.modules['jax'] = None; import voronaut as vn; vn.HashCount(dim=3); vn.RND(dim=3)"
    done = subprocess.run([sys.executable, "-c", without], capture_output=True, text=True, check=False)
    assert f"jax is missing. Install it with: {missing.pip('jax')}" in done.stderr


def test_a_program_pays_what_rewards_pays() -> None:
    rng, bonus = np.random.default_rng(0), RND(dim=4, seed=1, **SMALL)
    states = (100 + 3 * rng.normal(size=(50, 4))).astype(np.float32)
    for _ in range(3):
        np.testing.assert_allclose(bonus.pay(bonus.frozen(), states), bonus.rewards(states), rtol=1e-4)
        bonus.update(100 + 2 * rng.normal(size=(200, 4)))
    states[3, 1] = np.inf
    paid = np.asarray(bonus.pay(bonus.frozen(), states))
    assert paid[3] == 0 and (np.delete(paid, 3) > 0).all()
