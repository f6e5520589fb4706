"""One reader of states for all bonuses: whatever holds the numbers, they are read alike, and nothing hidden is used."""

from typing import Any

import numpy as np
import pytest

from voronaut.bonuses import BONUSES, bonus_class
from voronaut.bonuses.states import flatten

DIM = 3
STATES = np.arange(24, dtype=np.float32).reshape(8, DIM) / 8  # exact in bfloat16
OPTIONS: dict[str, dict[str, Any]] = {"kme": {"clusters": 4}, "rnd": {"hidden": 8}, "re3": {"hidden": 8}}


def make(name: str, **more: Any) -> Any:
    return bonus_class(name)(dim=DIM, **OPTIONS.get(name, {}), **more)


def paid(bonus: Any, states: Any) -> Any:
    """What states earn after they have been absorbed."""
    bonus.update(states)
    return bonus.rewards(states)


@pytest.mark.parametrize("name", BONUSES)
@pytest.mark.parametrize("kind", ["gradient", "bfloat16", "float16"])
def test_tensors_are_read_as_arrays_and_paid_in_tensors(name: str, kind: str) -> None:
    torch = pytest.importorskip("torch")
    tensor = torch.tensor(STATES, requires_grad=kind == "gradient")
    if kind != "gradient":
        tensor = tensor.to(getattr(torch, kind))
    rewards = paid(make(name), tensor)
    assert isinstance(rewards, torch.Tensor) and not rewards.requires_grad
    np.testing.assert_allclose(rewards.numpy(), paid(make(name), STATES), rtol=1e-6)


@pytest.mark.parametrize("name", BONUSES)
@pytest.mark.parametrize("kind", ["float32", "bfloat16"])
def test_arrays_of_jax_are_read_as_arrays(name: str, kind: str) -> None:
    jax = pytest.importorskip("jax")
    rewards = paid(make(name), jax.numpy.asarray(STATES, kind))
    np.testing.assert_array_equal(rewards, paid(make(name), STATES))


@pytest.mark.parametrize("name", BONUSES)
def test_masked_numbers_are_bad(name: str) -> None:
    masked = np.ma.masked_array(STATES, np.zeros(STATES.shape, bool))
    np.testing.assert_array_equal(paid(make(name), masked), paid(make(name), STATES))
    masked[5, 1] = np.ma.masked
    with pytest.raises(ValueError, match=r"1 of 8 states are .*masked.* index \(5,\)"):
        make(name).rewards(masked)
    with pytest.raises(ValueError, match="masked"):
        make(name).update(masked)
    holes = np.where(masked.mask, np.nan, STATES)
    np.testing.assert_array_equal(paid(make(name, on_bad="drop"), masked), paid(make(name, on_bad="drop"), holes))


@pytest.mark.parametrize("name", BONUSES)
def test_masked_integers_are_bad_too(name: str) -> None:
    with pytest.raises(ValueError, match="masked"):
        make(name).rewards(np.ma.masked_equal(np.arange(24).reshape(8, DIM), 4))


@pytest.mark.parametrize("name", BONUSES)
@pytest.mark.parametrize("states", [np.zeros((2, DIM), complex), np.array([["a"] * DIM]), np.zeros((2, DIM), "V4")])
def test_other_kinds_are_refused(name: str, states: Any) -> None:
    with pytest.raises(ValueError, match="real numbers"):
        make(name).rewards(states)


@pytest.mark.parametrize(
    ("given", "read"),
    [("float16", "float32"), ("float32", "float32"), ("float64", "float64"), ("longdouble", "float64"),
     ("int8", "float64"), ("bool", "float64")],
)  # fmt: skip
def test_narrow_kinds_are_widened_and_others_keep_their_precision(given: str, read: str) -> None:
    flat, shape = flatten(np.ones((2, 4, DIM), given), DIM)
    assert flat.dtype == read and flat.shape == (8, DIM) and shape == (2, 4)
