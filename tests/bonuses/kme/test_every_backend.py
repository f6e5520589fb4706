"""Units, offsets and the order of coordinates change nothing, odd input breaks nothing: on CPU, XLA and a device."""

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import voronaut as vn
from voronaut.bonuses.kme import tensors

BACKENDS = ("cpu", "xla", "device")
MEMORIES: dict[str, dict[str, Any]] = {
    "whole": {"views": 1, "clusters": 20},
    "singles": {"view_dim": 1, "clusters": 8},
    "paper": {**vn.presets.paper().kme, "clusters": 20},
    "paper at data": {**vn.presets.paper().kme, "clusters": 20, "init": "data"},
}
VIEWED = ("whole", "singles")
pytestmark = [
    pytest.mark.parametrize("backend", BACKENDS),
    pytest.mark.filterwarnings("ignore:on this device updates go state by state"),
]
Give = Callable[[Any], Any]


@functools.cache
def program() -> Any:
    """What pays inside a program, compiled once for each shape."""
    import jax

    return jax.jit(vn.KME.pay)


def jax_rewards(kme: vn.KME, states: Any) -> Any:
    """Paid inside a program, of float32 states; the cores learn."""
    return np.asarray(program()(kme.frozen(), np.asarray(states, np.float32)))


@pytest.fixture
def give(backend: str, monkeypatch: pytest.MonkeyPatch) -> Give:
    """States as this backend gets them; a CPU passes for a device."""
    if backend == "cpu":
        pytest.importorskip("numba")
        return np.asarray
    if backend == "xla":
        pytest.importorskip("jax")
        monkeypatch.setattr(vn.KME, "rewards", jax_rewards)
        return np.asarray
    torch = pytest.importorskip("torch")
    monkeypatch.setattr(tensors, "on_device", lambda x: isinstance(x, torch.Tensor))
    return torch.tensor


def paid(kme: vn.KME, batches: Any, give: Give) -> np.ndarray:
    """What the last batch earns after all the others."""
    for batch in batches[:-1]:
        kme.update(give(batch))
    return np.asarray(kme.rewards(give(batches[-1])), np.float64)


def stream(dim: int, seed: int = 0, batches: int = 4, size: int = 150) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(batches, size, dim))


def far(got: np.ndarray, wanted: np.ndarray) -> float:
    """The median difference: by a hair of rounding a few states go to another cluster."""
    return float(np.median(np.abs(got - wanted)))


@pytest.mark.parametrize("name", VIEWED)
@pytest.mark.parametrize("shift", [0.0, 1e6])
def test_units_and_offsets_change_no_reward(name: str, shift: float, give: Give, backend: str) -> None:
    """1e-4 to 1e4 within one state, 1e6 away, float64 in: 1e-3 of a deviation, as clusters are kept in float32."""
    units, states = np.array([1e-4, 1.0, 30.0, 1e4, 0.02]), stream(5)
    shift = shift if backend != "xla" else min(shift, 10.0)  # float32 has no room for more beside a deviation
    wanted = paid(vn.KME(5, **MEMORIES[name]), states, give)
    assert far(paid(vn.KME(5, **MEMORIES[name]), states * units + shift * units, give), wanted) < 1e-3
    assert wanted.std() > 0.1


def test_the_order_of_coordinates_changes_no_reward_of_single_views(give: Give) -> None:
    order, states = np.array([3, 0, 4, 2, 1]), stream(5)
    wanted = paid(vn.KME(5, **MEMORIES["singles"]), states, give)
    assert far(paid(vn.KME(5, **MEMORIES["singles"]), states[..., order], give), wanted) < 1e-4


def test_the_order_of_coordinates_does_not_change_the_law_of_pairs(give: Give) -> None:
    """Which pairs there are depends on the seed, so single rewards differ: means over seeds agree."""
    order, states, options = np.array([3, 0, 2, 1]), stream(4, batches=3, size=80), {"view_dim": 2, "clusters": 8}
    runs = [[paid(vn.KME(4, seed=seed, **options), each, give) for seed in range(12)]
            for each in (states, states[..., order])]  # fmt: skip
    one, other = np.mean(runs, axis=1)
    assert np.corrcoef(one, other)[0, 1] > 0.8 and abs(one.mean() - other.mean()) < 0.2


@pytest.mark.parametrize("unit", [2.0**-13, 2.0**13])
def test_the_papers_rewards_grow_with_the_root_of_the_unit_if_the_balance_does_too(unit: float, give: Give) -> None:
    """What a bonus without a unit is spared: √ of gaps that are all so many times as large."""
    states, options = stream(3), MEMORIES["paper"]
    wanted = paid(vn.KME(3, **options), states, give)
    got = paid(vn.KME(3, **{**options, "balance": options["balance"] * unit}), states * unit, give)
    assert far(got / np.sqrt(unit), wanted) < 1e-3 * wanted.std()


@pytest.mark.parametrize("name", ["paper"])
def test_the_order_of_coordinates_changes_no_reward_of_the_paper(name: str, give: Give) -> None:
    order, states = np.array([3, 0, 4, 2, 1]), stream(5)
    wanted = paid(vn.KME(5, **MEMORIES[name]), states, give)
    assert far(paid(vn.KME(5, **MEMORIES[name]), states[..., order], give), wanted) < 1e-3 * wanted.std()


def odd(kind: str, dim: int, t: int) -> np.ndarray:
    rng = np.random.default_rng(t)
    return {
        "one state": rng.normal(size=(1, dim)), "two values": rng.integers(0, 2, (30, dim)).astype(float),
        "constant": np.full((30, dim), 3.0), "fewer states than clusters": rng.normal(size=(5, dim)),
        "constant column": np.column_stack([rng.normal(size=(30, dim)), np.full(30, 7.0)])[:, -dim:],
        "1e30 away": rng.normal(size=(30, dim)) * 1e12 + 1e30, "growing": rng.normal(size=(30, dim)) * 10.0**t,
    }[kind]  # fmt: skip


KINDS = ("one state", "two values", "constant", "constant column", "fewer states than clusters", "growing")
CASES = [(name, kind) for name in MEMORIES for kind in KINDS] + [(name, "1e30 away") for name in VIEWED]


@pytest.mark.parametrize("dim", [1, 3])
@pytest.mark.parametrize(("name", "kind"), CASES)
def test_odd_streams_are_paid_in_numbers(name: str, kind: str, dim: int, give: Give) -> None:
    kme = vn.KME(dim, **MEMORIES[name])
    for t in range(4):
        kme.update(give(odd(kind, dim, t)))
        assert np.isfinite(np.asarray(kme.rewards(give(odd(kind, dim, t + 9))))).all()
    assert kme.metrics()["states"] > 0
    if kind == "constant" and name in VIEWED:
        assert not np.asarray(kme.rewards(give(odd(kind, dim, 0)))).any()


@pytest.mark.parametrize("beside", [0, 2])
@pytest.mark.parametrize("name", VIEWED)
def test_a_flag_that_is_hardly_ever_set_is_no_fortune(name: str, beside: int, give: Give) -> None:
    """One of six is set, the last in one state of 3000: were its deviation what rounding leaves, it would pay 1000s."""
    kme, rng, most = vn.KME(6 + beside, **MEMORIES[name]), np.random.default_rng(0), 0.0
    for t in range(45):
        flags = np.eye(6)[rng.choice(5, size=100, p=[0.6, 0.2, 0.1, 0.05, 0.05])]
        flags[0] = np.eye(6)[5] if t % 30 == 0 else flags[0]
        states = np.column_stack([flags, rng.normal(size=(100, beside))])
        most = max(most, np.abs(np.asarray(kme.rewards(give(states)))).max())
        kme.update(give(states))
    assert 0 < most < 100


@pytest.mark.parametrize("name", ["paper", "paper at data"])
def test_what_the_papers_memory_cannot_square_is_bad(name: str, give: Give) -> None:
    kme = vn.KME(3, **MEMORIES[name], on_bad="drop")
    for batch in (stream(3)[0], np.full((4, 3), 1e30)):
        kme.update(give(batch))
    assert not np.asarray(kme.rewards(give(np.full((4, 3), 1e30)))).any()
    assert kme.metrics()["bad_states"] == 4


@pytest.mark.parametrize("name", MEMORIES)
def test_a_state_that_is_not_a_number_earns_nothing_and_teaches_nothing(name: str, give: Give) -> None:
    spoilt, clean = (vn.KME(3, **MEMORIES[name], on_bad="drop") for _ in range(2))
    states = stream(3)
    with_it = np.insert(states, 7, np.nan, axis=1)
    got = paid(spoilt, with_it, give)
    assert got[7] == 0 and np.isfinite(got).all() and np.abs(got).sum() > 0
    for batch in states[:-1]:
        clean.update(give(batch))
    assert spoilt.metrics()["states"] == clean.metrics()["states"] and spoilt.metrics()["bad_states"] == 3
