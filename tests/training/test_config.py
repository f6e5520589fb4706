"""What an experiment may be, and what is refused with advice."""

import json

import numpy as np
import pytest

from voronaut.bonuses.weight import Weight, checked
from voronaut.cli.commands import bonus_options, sweep_options
from voronaut.learners import ppo
from voronaut.training.api import configure
from voronaut.training.config import make_methods


def test_the_papers_numbers_are_a_preset() -> None:
    config = configure("cheetah-run", preset="paper")
    assert (config.envs, config.rollout, config.steps, config.seeds) == (16, 16_384, 5_000_000, (0, 1, 2, 3, 4))
    none, kme = config.methods
    assert (none.scale, kme.scale) == ("0.0", "0.01")
    assert kme.params == {"clusters": 300, "step_size": 0.05, "balance": 1e-4, "objective": "sqrt", "init": "zeros"}
    assert config.rollouts == 306  # 305 would be 2880 steps short
    assert config.folders()[4:6] == ["none-4", "kme-0"]
    pair = configure("cheetah-run", preset="paper", learner="sac", bonuses="kme").methods[0]
    assert (pair.params, pair.scale) == (kme.params, "1")
    with pytest.raises(ValueError, match="preset must be 'paper', or be left out; got 'papr'"):
        configure("cheetah-run", preset="papr")


@pytest.mark.parametrize("learner", ["ppo", "sac"])
def test_without_a_preset_kme_is_that_of_its_defaults(learner: str) -> None:
    [method] = configure("cheetah-run", learner=learner, bonuses="kme").methods
    assert method.params == {} and method.scale == {"ppo": "falling:0.1", "sac": "1"}[learner]


def test_options_and_sweeps() -> None:
    options = bonus_options(["--kme.scale", "linear:0.01:0", "--kme.objective=log"])
    sweep = sweep_options(["kme.balance=1e-5,1e-4", "kme.clusters=100,300"])
    methods = make_methods(["none", "kme"], options, sweep)
    assert [m.label for m in methods] == [
        "none", "kme,balance=1e-5,clusters=100", "kme,balance=1e-5,clusters=300", "kme,balance=1e-4,clusters=100",
        "kme,balance=1e-4,clusters=300",
    ]  # fmt: skip
    assert methods[1].params == methods[2].params | {"clusters": 100}
    assert (methods[1].scale, methods[1].params["balance"], methods[1].params["objective"]) == (
        "linear:0.01:0",
        1e-5,
        "log",
    )
    assert make_methods(["kme"], {}, {"kme.balance": [1e-5]})[0].label == "kme,balance=1e-5"


@pytest.mark.parametrize(
    ("choices", "message"),
    [
        ({"task": "cheetah-walk"}, "cheetah-run"),
        ({"bonuses": ["kmee"]}, "Did you mean 'kme'"),
        ({"bonuses": ["kme", "kme"]}, "once"),
        ({"options": {"rnd": {"scale": 1}}}, "Add --bonus rnd"),
        ({"options": {"kme": {"balanse": 1}}}, "Did you mean 'balance'"),
        ({"options": {"kme": {"scale": "fast"}}}, "linear:FROM:TO"),
        ({"steps": 1000}, "at least one rollout"),
        ({"steps": float("inf")}, "finite"),
        ({"steps": float("nan")}, "finite"),
        ({"seeds": 0}, "seeds"),
        ({"seeds": [1, 1]}, "seeds"),
        ({"seeds": [2**32]}, "distinct numbers from 0 to 4294967295"),
        ({"seeds": 10**12}, "a count from 1 to 10000"),
        ({"pair": "stored"}, "ppo has one agent"),
        ({"pair": False}, "ppo has one agent"),
        ({"options": {"kme": {"scale": -1}}}, "linear:FROM:TO"),
        ({"options": {"kme": {"scale": "falling:-1"}}}, "linear:FROM:TO"),
        ({"options": {"kme": {"features": np.square}}}, "kme.features must be a number, .* wrap the environment"),
        ({"options": {"kme": {"features": "square"}}}, "no parameter 'features'"),
        ({"learner": "sac", "options": {"sac": {"random_steps": -5}}}, "random_steps must be at least 1"),
        ({"learner": "sac", "options": {"sac": {"explorer_task": -1}}}, "explorer_task at least 0"),
        ({"rollout": 1000}, "multiple of envs"),
        ({"envs": 0}, "envs must be at least 1; got 0"),
        ({"envs": -2}, "envs must be at least 1; got -2"),
        ({"rollout": 0}, "rollout must be at least 2; got 0"),
        ({"rollout": -16}, "rollout must be at least 2; got -16"),
        ({"threshold": "papr"}, "threshold"),
        ({"learner": "sac", "options": {"kme": {"scale": "falling"}}}, "'falling' is no scale"),
        ({"backend": "unity"}, "backend"),
    ],
)
def test_bad_choices(choices: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        configure(**{"task": "cheetah-run", **choices})  # type: ignore[arg-type]


def test_numbers_of_numpy_and_lists_are_plain_ones() -> None:
    options = {
        "ppo": {"hidden": [8, 8], "epochs": np.int64(3)},
        "kme": {"clusters": np.int64(5), "scale": np.float32(2)},
    }
    config = configure("maze", bonuses="kme", options=options, seeds=np.arange(2))
    assert json.dumps(dict(config.numbers)) == '{"hidden": [8, 8], "epochs": 3}'
    assert config.methods[0].params == {"clusters": 5} and float(config.methods[0].scale) == 2
    assert hash(ppo.Settings(**config.numbers)) == hash(ppo.Settings(hidden=(8, 8), epochs=3))


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("clusters", [10, 10]),
        ("clusters", ["10", "10"]),
        ("clusters", ["10", 10.0]),
        ("balance", ["1e-4", "0.0001"]),
        ("scale", ["0.01", "1e-2"]),
    ],
)
def test_equal_values_of_a_sweep_are_refused(name: str, values: list[object]) -> None:
    with pytest.raises(ValueError, match=f"kme.{name} .* more than once"):
        make_methods(["kme"], {}, {f"kme.{name}": values})


def test_unequal_values_of_a_sweep_have_folders_of_their_own() -> None:
    def labels(*values: object) -> list[str]:
        return [method.label for method in make_methods(["kme"], {}, {"kme.balance": values})]

    assert labels(1.0000001e-4, 1.0000002e-4) == ["kme,balance=0.00010000001", "kme,balance=0.00010000002"]
    assert labels(1e-5, 0.001, 0.1) == ["kme,balance=1e-5", "kme,balance=0.001", "kme,balance=0.1"]
    assert len(set(labels(1e-300, 1e-30, 1e-3, "1e-2", 0.1 + 0.2, 0.3))) == 6
    with pytest.raises(ValueError, match="same folder"):
        make_methods(["kme"], {}, {"kme.objective": ["a/b", "a_b"]})


def test_a_sweep_is_named_once() -> None:
    with pytest.raises(ValueError, match=r"kme\.clusters more than once"):
        sweep_options(["kme.clusters=10", "kme.clusters=20"])


@pytest.mark.parametrize("words", [["--kme.scale"], ["kme.scale", "1"], ["--scale", "1"], ["--kme.scale", "--x.y"]])
def test_unreadable_options(words: list[str]) -> None:
    with pytest.raises(ValueError, match="--help"):
        bonus_options(words)


def test_schedules() -> None:
    assert [Weight("linear:0.01:0").at(p) for p in (0, 0.5, 1)] == pytest.approx([0.01, 0.005, 0])
    assert Weight("0.01").at(0.7) == 0.01
    for text in ("linear:1", "linear:1:2:3", "nan", "linear:a:b", ""):
        with pytest.raises(ValueError, match="no scale"):
            checked(text)


@pytest.mark.parametrize(("learner", "name"), [("sac", "layer_norm"), ("sac", "bfloat16"), ("ppo", "entropy_falls")])
def test_a_switch_of_a_learner_is_on_or_off_and_nothing_else(learner: str, name: str) -> None:
    """`--sac.layer_norm false` had been the text "false", and so true."""
    for text, meant in (("true", True), ("false", False)):
        assert configure("maze", learner=learner, options={learner: {name: text}}).numbers[name] is meant
    with pytest.raises(ValueError, match=f"{name}.* must be true or false; got .*'no'"):
        configure("maze", learner=learner, options={learner: {name: "no"}})
