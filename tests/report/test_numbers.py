"""What the report computes: curves on common steps, intervals, warnings in words, planes, masses and visits."""

import base64
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as nps

from tests.report import toys
from voronaut.clusters import Clusters, assign
from voronaut.experiments.common import stats
from voronaut.report import curves, findings, maps
from voronaut.report.records import Run

ROWS = 60


def run(seed: int = 0, kind: str = "kme", rows: int = ROWS, **columns: Any) -> Run:
    """A healthy run, but for the columns given."""
    steps = np.arange(1.0, rows + 1) * 100
    healthy = {"env_steps": steps, "extrinsic_return": np.linspace(1, 9, rows), "bonus_mean": np.full(rows, 0.1)}
    metrics = {key: np.full(rows, value) for key, value in toys.HEALTHY.items()} if kind == "kme" else {}
    given = {name: np.asarray(values, float) for name, values in columns.items()}
    return Run(experiment="e", name=f"e/{kind}-{seed}", folder=None, task="task", method=kind, kind=kind, seed=seed,
               columns=healthy | metrics | given, state="finished", wanted=rows, shared={},
               settings={"params": {"clusters": 100, "balance": 1e-4}})  # fmt: skip


def filled(value: float) -> Any:
    return np.full(ROWS, value)


# Curves


@given(nps.arrays(np.float64, st.tuples(st.integers(2, 6), st.integers(1, 5)), elements=st.floats(-1e3, 1e3)))
def test_where_all_seeds_are_known_the_interval_is_the_figures_interval(values: np.ndarray) -> None:
    mine, theirs = curves.spread(values), stats.mean_interval(values)
    for one, other in ((mine.mean, theirs.value), (mine.low, theirs.low), (mine.high, theirs.high)):
        assert np.allclose(one, other, atol=1e-9)
    assert (mine.seeds == len(values)).all()


def test_a_seed_that_stopped_counts_as_far_as_it_came() -> None:
    short, long = run(0, rows=3, extrinsic_return=[1, 2, 3]), run(1, rows=5, extrinsic_return=[3, 4, 5, 6, 7])
    curve = curves.curve([short, long], "extrinsic_return")
    assert curve is not None
    assert (
        curve["x"] == [100, 200, 300, 400, 500] and curve["mean"] == [2, 3, 4, 6, 7] and curve["n"] == [2, 2, 2, 1, 1]
    )
    assert curve["seeds"] == {"0": [1, 2, 3, None, None], "1": [3, 4, 5, 6, 7]}


@pytest.mark.parametrize("rows", [curves.POINTS - 1, curves.POINTS, curves.POINTS + 1, 10 * curves.POINTS + 7])
def test_long_curves_are_thinned_and_keep_their_mean_and_their_end(rows: int) -> None:
    values = np.random.default_rng(0).normal(size=rows)
    one = run(rows=rows, extrinsic_return=values, max_step_reward=values)
    size = math.ceil(rows / curves.POINTS)
    groups = [values[max(0, end - size) : end] for end in range(rows, 0, -size)][::-1]
    mean, top = curves.curve([one], "extrinsic_return"), curves.curve([one], "max_step_reward")
    assert mean is not None and top is not None
    assert mean["mean"] == pytest.approx([group.mean() for group in groups], rel=1e-3)
    assert top["mean"] == pytest.approx([group.max() for group in groups], rel=1e-3)
    assert len(mean["x"]) <= curves.POINTS and mean["x"][-1] == rows * 100 and "seeds" not in mean


def test_gaps_are_filled_with_the_last_value_and_nothing_is_made_of_nothing() -> None:
    gaps = run(0, rows=4, extrinsic_return=[math.nan, 2, math.nan, 4])
    whole = run(1, rows=4, extrinsic_return=[1, 2, 3, 4])
    curve = curves.curve([gaps, whole], "extrinsic_return")
    assert curve is not None and curve["seeds"]["0"] == [None, 2, 2, 4]
    assert curves.curve([run(x=filled(math.nan))], "x") is None and curves.curve([gaps], "y") is None


# Warnings


def test_a_healthy_run_has_no_warnings() -> None:
    assert findings.findings([run(), run(1, kind="none", bonus_mean=filled(0))], []) == []


FALLING, RISING = np.geomspace(1, 1e-5, ROWS), np.geomspace(1e-5, 1, ROWS)


@pytest.mark.parametrize(
    ("title", "said", "columns"),
    [
        ("Dead centers", "41%", {"kme/empty_cells": filled(0.41)}),
        ("Clamped gaps", "20%", {"kme/clamped_gaps": filled(20)}),
        ("Imbalance", "1.5", {"kme/cell_mass_cv": filled(1.5)}),
        ("Vanishing bonus", "below a hundredth", {"bonus_mean": FALLING}),
        ("Vanishing bonus", "below a hundredth", {"bonus_mean": np.append(filled(1.0)[:50], np.zeros(10))}),
        ("Exploding bonus", "times what", {"bonus_mean": RISING}),
        ("Bonus not a number", "1 rollout(s)", {"bonus_mean": np.append(filled(1.0)[1:], math.nan)}),
        ("Learning broke down", "60 rollout(s)", {"value_loss": filled(math.nan), "policy_loss": filled(0)}),
        ("Bad states", "7 state(s)", {"kme/bad_states": filled(7)}),
        ("No reward yet", "60 rollout(s)", {"extrinsic_return": filled(0)}),
        ("No entropy", "no finite value", {"kme/entropy": filled(math.nan)}),
    ],
)
def test_each_sickness_is_said_once_with_its_seed(title: str, said: str, columns: dict[str, Any]) -> None:
    found = findings.findings([run(0), run(3, **columns), run(5, kind="none", bonus_mean=filled(0))], [])
    assert [(f.title, f.where) for f in found] == [(title, "task, kme seed 3")]
    assert said in found[0].text


def test_the_defaults_are_not_scolded_for_what_the_agent_does() -> None:
    """An agent that rests in a corner fills one cell; nobody chose the balance, so nobody is told to change it."""
    for params in ({}, {"balance": "auto"}):
        resting = run(**{"kme/cell_mass_cv": filled(4.1)})._replace(settings={"params": params})
        assert findings.findings([resting], []) == []
        empty = run(**{"kme/empty_cells": filled(0.41)})._replace(settings={"params": params})
        (finding,) = findings.findings([empty], [])
        assert finding.title == "Dead centers" and "fewer clusters" in finding.text and "balance" not in finding.text


@pytest.mark.parametrize(
    ("state", "title"), [("stopped", "Stopped early"), ("cut", "Log cut off"), ("running", "Under way")]
)
def test_runs_that_are_not_whole_are_named(state: str, title: str) -> None:
    partial = run()._replace(state=state, wanted=4 * ROWS)
    found = findings.findings([partial, run(1)._replace(state=state, wanted=2 * ROWS)], ["x.json is damaged"])
    assert {"Missing or damaged", title} == {f.title for f in found}
    (finding,) = (f for f in found if f.title == title)
    assert "75%" in finding.text and finding.where == "task, kme seeds 0, 1"
    assert [f.level for f in found] == sorted((f.level for f in found), reverse=True)  # warnings first


# Maps


def test_the_plane_is_that_of_the_largest_variance() -> None:
    rng = np.random.default_rng(0)
    turn = np.linalg.qr(rng.normal(size=(5, 5)))[0]
    states = 100 + rng.normal(size=(2000, 5)) * [0.1, 7, 0.2, 3, 0.1] @ turn
    plane = maps.plane(states)
    assert np.allclose(np.abs(plane.axes.T @ turn.T), [[0, 1, 0, 0, 0], [0, 0, 0, 1, 0]], atol=0.05)
    share = np.var(states @ turn[1]) / np.var(states, axis=0).sum()
    assert plane.names[0] == f"component 1 ({share:.0%} of variance)"


@pytest.mark.parametrize("dim", [1, 2])
def test_states_of_two_coordinates_are_shown_as_they_are(dim: int) -> None:
    states = np.random.default_rng(0).normal(size=(9, dim))
    plane = maps.plane(states)
    assert np.array_equal(((states - plane.origin) @ plane.axes)[:, :dim], states)


@given(st.integers(0, 10_000), st.floats(0, 1))
def test_masses_are_the_reference_assignment(seed: int, balance: float) -> None:
    rng = np.random.default_rng(seed)
    states, centers, counts = rng.normal(size=(50, 3)), rng.normal(size=(7, 3)), rng.integers(1, 9, size=7)
    mine = maps.masses(toys.snapshot(1, states, centers, counts), states, balance)
    theirs = np.bincount([assign(Clusters(centers, counts), s, balance) for s in states], minlength=7) / 50
    assert np.allclose(mine, theirs)


def test_cells_of_runs_that_choose_their_own_units_and_balance(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    states, centers = rng.normal(size=(300, 3)), rng.normal(size=(7, 3))
    frame = toys.snapshot(1, states, centers, rng.integers(1, 9, size=7))
    unit = np.array([100.0, 1.0, 0.01])
    wide = toys.snapshot(1, states * unit, centers * unit, frame.counts)
    plain = maps.masses(
        toys.snapshot(1, states, centers / states.std(axis=0), frame.counts), states / states.std(axis=0), 0.1
    )
    assert np.allclose(
        maps.masses(wide, wide.states, 0.1, normalize=True), maps.masses(frame, states, 0.1, normalize=True)
    )
    assert np.allclose(maps.masses(frame, states, 0.1, normalize=True), plain)
    auto = run(**{"kme/balance": [math.nan, 0.2, math.nan, 0.3] * 15})._replace(
        settings={"params": {"balance": "auto"}}
    )
    assert [maps.balance_at(auto, rollout) for rollout in (1, 3, 4)] == [(0.0, False), (0.2, False), (0.3, False)]


def test_visits_are_the_states_absorbed_since_the_frame_before() -> None:
    assert maps.visits(np.array([5, 1, 3]), np.zeros(0, np.int64)).tolist() == [4 / 6, 0, 2 / 6]
    assert maps.visits(np.array([5, 1, 3]), np.array([4, 1, 2])).tolist() == [0.5, 0, 0.5]
    assert maps.visits(np.array([1, 1]), np.array([1, 1])).tolist() == [0, 0]


def unpacked(text: str) -> Any:
    return np.frombuffer(base64.b64decode(text), "<u2") / 65535


def test_a_map_shows_the_centers_where_they_are(tmp_path: Path) -> None:
    folder = toys.experiment(tmp_path / "toy", seeds=1)
    one = run()._replace(folder=folder / "kme-0", columns={"env_steps": np.arange(1.0, 9) * 100})
    drawn, troubles = maps.maps([one])
    assert troubles == [] and [frame["steps"] for frame in drawn[0]["frames"]] == [100.0 * n for n in range(1, 9)]
    last = drawn[0]["frames"][-1]
    low, high = np.array(drawn[0]["low"]), np.array(drawn[0]["high"])
    shown = low + unpacked(last["centers"]).reshape(-1, 2) * (high - low)
    frames = [maps.snapshots.read(path) for path in maps.snapshots.saved(folder / "kme-0")]
    plane = maps.plane(np.concatenate([frame.states for frame in frames]))
    assert np.allclose(shown, (frames[-1].centers - plane.origin) @ plane.axes, atol=1e-3)
    assert unpacked(last["mass"]).sum() == pytest.approx(1, abs=1e-3)
    assert unpacked(last["visits"]).sum() == pytest.approx(1, abs=1e-3)


def test_without_snapshots_the_end_is_drawn_and_damage_is_named(tmp_path: Path) -> None:
    folder = toys.experiment(tmp_path / "toy", seeds=2, maps=False)
    (folder / "kme-1" / "bonus.npz").write_bytes(b"broken")
    whole, broken, none = (
        run()._replace(folder=folder / name, kind=name[:-2]) for name in ("kme-0", "kme-1", "none-0")
    )
    drawn, troubles = maps.maps([whole, broken, none])
    assert len(drawn) == 1 and len(drawn[0]["frames"]) == 1 and len(unpacked(drawn[0]["frames"][0]["mass"])) == 6
    assert len(troubles) == 1 and "kme-1/bonus.npz" in troubles[0]


def test_a_damaged_snapshot_costs_one_frame(tmp_path: Path) -> None:
    folder = toys.experiment(tmp_path / "toy", seeds=1)
    path = maps.snapshots.saved(folder / "kme-0")[2]
    path.write_bytes(path.read_bytes()[:100])
    drawn, troubles = maps.maps([run()._replace(folder=folder / "kme-0")])
    assert len(drawn[0]["frames"]) == 7 and len(troubles) == 1 and str(path) in troubles[0]


@pytest.mark.parametrize("count", [1, 2, 3, 4])
def test_few_seeds_are_shown_themselves_and_not_as_an_interval(count: int) -> None:
    drawn = curves.curve([run(seed) for seed in range(count)], "extrinsic_return")
    assert drawn is not None
    assert ("low" in drawn) == (count > 3)
    assert len(drawn.get("seeds", {})) == (count if count > 1 else 0)
