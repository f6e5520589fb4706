"""What all adapters share: paying, keeping, scales, observations, files."""

import json
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from gymnasium import spaces

import voronaut as vn
from tests.adapters.worlds import Spy
from voronaut.adapters import files
from voronaut.adapters.observations import Reader
from voronaut.adapters.payer import Payer, fitting
from voronaut.helpers import missing, npz

STATES = np.arange(8.0).reshape(2, 4)


def test_states_are_paid_first_and_learned_all_together() -> None:
    spy = Spy()
    payer = Payer(spy, scale=0.5, update_every=3)
    for step in range(7):
        np.testing.assert_array_equal(payer.pay(STATES + step), 0.5 * (STATES + step).sum(axis=1))
        payer.keep(STATES + step)
    assert [name for name, _ in spy.calls] == [*["rewards"] * 3, "update"] * 2 + ["rewards"]
    np.testing.assert_array_equal(spy.seen("update")[1], np.concatenate([STATES + 3, STATES + 4, STATES + 5]))


def test_warm_up_learns_without_pay() -> None:
    spy = Spy()
    payer = Payer(spy, warmup=2, update_every=2, scale=1)
    paid = []
    for _ in range(3):
        paid.append(payer.pay(STATES).sum())
        payer.keep(STATES)
    assert paid == [0, 0, STATES.sum()]
    assert len(spy.seen("update")) == 1


def test_a_scale_may_depend_on_progress() -> None:
    payer = Payer(Spy(), scale=lambda progress: 1 - progress, total_steps=8)
    weights = []
    for _ in range(6):
        weights.append(payer.weight())
        payer.keep(STATES)
    assert weights == [1, 0.75, 0.5, 0.25, 0, 0]
    told = Payer(Spy(), scale=lambda progress: 1 - progress)
    with pytest.raises(ValueError, match=r"total_steps=.*BonusCallback"):
        told.pay(STATES)
    told.progress = 0.25
    assert told.weight() == 0.75


@pytest.mark.parametrize(
    ("choice", "message"),
    [
        ({"scale": "fast"}, "'fast' is no scale"),
        ({"scale": float("nan")}, "finite"),
        ({"update_every": 0}, "update_every must be a whole number of at least 1; got 0"),
        ({"warmup": -1}, "warmup must be a whole number of at least 0"),
        ({"total_steps": 1.5}, "total_steps"),
    ],
)
def test_wrong_choices_are_refused(choice: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Payer(Spy(), **choice)


def test_what_is_no_bonus_is_refused() -> None:
    with pytest.raises(TypeError, match=r"object lacks rewards, update.*environment comes first"):
        Payer(object())


def test_dict_observations_are_joined_in_the_order_of_the_keys() -> None:
    space = spaces.Dict({"a": spaces.Box(-1, 1, (2,)), "b": spaces.Box(-1, 1, (1,)), "c": spaces.Discrete(3)})
    obs = {"a": np.ones((3, 2)), "b": np.zeros((3, 1)), "c": np.zeros(3)}
    reader = Reader(space, ["b", "a"])
    final = {1: {"a": np.full(2, 7), "b": np.full(1, 5), "c": 0}}
    np.testing.assert_array_equal(reader(obs, final), [[0, 1, 1], [5, 7, 7], [0, 1, 1]])
    assert obs["a"].max() == 1


@pytest.mark.parametrize(
    ("space", "keys", "message"),
    [
        (spaces.Box(0, 255, (84, 84, 3), np.uint8), None, r"image .*\(84, 84, 3\).*Pass features="),
        (spaces.Box(0, 1, (84, 84)), None, r"RandomConv\(\(84, 84\)\)"),
        (spaces.Text(5), None, r"Text.*, and a bonus needs vectors. Pass features="),
        (spaces.Dict({"a": spaces.Box(-1, 1, (2,))}), None, r"keys=\[…\] out of \['a'\] \(keys=\['a'\] takes all\)"),
        (
            spaces.Dict({"eye": spaces.Box(0, 255, (8, 8, 3), np.uint8), "a": spaces.Discrete(2), "t": spaces.Text(3)}),
            None,
            r"\(keys=\['a'\] leaves out the images \['eye'\]\)",
        ),
        (spaces.Dict({"a": spaces.Box(-1, 1, (2,))}), ["z"], r"there are \['a'\]"),
        (spaces.Dict({"a": spaces.Box(0, 255, (2, 2, 3), np.uint8)}), ["a"], "Leave it out of keys="),
        (spaces.Box(-1, 1, (2,)), ["a"], "Leave keys out"),
    ],
)
def test_what_is_no_vector_is_refused_with_the_repair(space: Any, keys: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Reader(space, keys)


@pytest.mark.parametrize(
    ("space", "values", "wanted"),
    [
        (spaces.Discrete(3), [2, 0], [[0, 0, 1], [1, 0, 0]]),
        (spaces.Discrete(3, start=-1), [[1], [-1]], [[0, 0, 1], [1, 0, 0]]),
        (spaces.MultiDiscrete([2, 3]), [[1, 0], [0, 2]], [[0, 1, 1, 0, 0], [1, 0, 0, 0, 1]]),
        (spaces.MultiDiscrete([[2], [2]], start=[[5], [0]]), [[[5], [1]]], [[1, 0, 0, 1]]),
        (spaces.MultiBinary(3), [[1, 0, 1]], [[1, 0, 1]]),
        (spaces.MultiBinary((2, 2)), [[[1, 0], [1, 1]]], [[1, 0, 1, 1]]),
        (spaces.Box(-1, 1, (2, 2)), [[[1, 2], [3, 4]]], [[1, 2, 3, 4]]),
        (spaces.Box(-1, 1, ()), [0.5, 0.25], [[0.5], [0.25]]),
    ],
)
def test_every_kind_of_observation_becomes_a_vector(space: Any, values: Any, wanted: Any) -> None:
    reader = Reader(space)
    states = reader(np.array(values))
    np.testing.assert_array_equal(states, wanted)
    assert reader.dim == states.shape[1]
    ended = reader(np.array(values), {0: np.array(values)[-1]})
    np.testing.assert_array_equal(ended, [wanted[-1], *wanted[1:]])


@pytest.mark.parametrize("seed", range(5))
def test_one_hot_is_gymnasiums(seed: int) -> None:
    space = spaces.MultiDiscrete([3, 2, 4], seed=seed, start=[0, 1, -2])
    sample = space.sample()
    np.testing.assert_array_equal(Reader(space)(sample[None])[0], spaces.flatten(space, sample))


def test_the_length_of_a_state_is_known_beforehand() -> None:
    inside = {"a": spaces.Box(-1, 1, (2, 2)), "b": spaces.Discrete(3), "eye": spaces.Box(0, 255, (8, 8, 3), np.uint8)}
    space = spaces.Dict(inside)
    assert Reader(space, ["b", "a"]).dim == 7
    assert Reader(space, ["b"], lambda joined: joined[:, :2]).dim == 2
    assert Reader(space, features=lambda obs: obs["eye"].reshape(len(obs["eye"]), -1)).dim == 192
    assert Reader(space, features=lambda obs: obs["nothing"]).dim is None


def test_a_bonus_fits_the_states() -> None:
    kme = vn.KME(dim=4)
    assert fitting(kme, 4) is kme and fitting(kme, None) is kme
    made = fitting(vn.RND, 3)
    assert isinstance(made, vn.RND) and made.dim == 3
    with pytest.raises(ValueError, match=r"dim=4 and those it would see have 3.*KME\(dim=3\).*the class KME"):
        fitting(kme, 3)
    assert fitting(vn.KME(dim=2, features=lambda states: states[..., :2]), 3).dim == 2
    with pytest.raises(ValueError, match=r"not known here.*KME\(dim=…\)"):
        fitting(vn.KME, None)
    with pytest.raises(TypeError, match="dict lacks rewards"):
        fitting(dict, 3)


def test_features_must_give_one_vector_per_observation() -> None:
    space = spaces.Box(0, 1, (2, 2))
    obs = np.arange(8.0).reshape(2, 2, 2)
    assert Reader(space, features=lambda batch: batch.reshape(len(batch), -1))(obs).shape == (2, 4)
    with pytest.raises(ValueError, match=r"turn 2 observations into an array \(2, dim\); got shape \(8,\)"):
        Reader(space, features=np.ravel)(obs)
    with pytest.raises(TypeError, match=r"keys=\['a'\]"):
        Reader(space, "a")


def test_states_do_not_share_memory_with_the_environment() -> None:
    obs = np.zeros((2, 4))
    states = Reader(spaces.Box(-1, 1, (4,)))(obs)
    obs[:] = 1
    assert states.max() == 0


def test_a_file_of_another_kind_is_refused(tmp_path: Any) -> None:
    vn.KME(dim=4).save(tmp_path / "kme.npz")
    with pytest.raises(ValueError, match="another kind of object, not by BonusVecEnv"):
        files.SavedAdapter(tmp_path / "kme.npz", "BonusVecEnv")
    header = np.frombuffer(json.dumps({"adapter": "BonusVecEnv", "format": 99}).encode(), np.uint8)
    npz.write(tmp_path / "late.npz", {"header": header})
    with pytest.raises(ValueError, match="has format 99"):
        files.SavedAdapter(tmp_path / "late.npz", "BonusVecEnv")


@pytest.mark.parametrize(
    ("module", "library", "line"),
    [
        (
            "voronaut.sb3",
            "stable_baselines3",
            f"stable-baselines3 is missing. Install it with: {missing.pip('sb3')}",
        ),
        (
            "voronaut.adapters.gymnasium_env",
            "gymnasium",
            "gymnasium is missing. Install it with: pip install ",
        ),
        (
            "voronaut.adapters.torchrl_env",
            "torchrl",
            f"torchrl is missing. Install it with: {missing.pip('torchrl')}",
        ),
    ],
)
def test_a_missing_library_gives_the_pip_line(module: str, library: str, line: str) -> None:
    code = f"import sys; sys.modules[{library!r}] = None; sys.modules['torch'] = None; import {module}"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert line in done.stderr.splitlines()[-1]
