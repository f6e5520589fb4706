"""The balance experiment: its compiled loops are the reference, units change nothing, its results can be read."""

import json

import numpy as np
import pytest

from tests.experiments.balance import usage
from voronaut.experiments.balance import judge, loops, streams
from voronaut.experiments.balance.learner import Choice, Learner


def stream(kind: str) -> np.ndarray:
    rng = np.random.default_rng(3)
    states = rng.normal(size=(600, 3))
    states[300:] += {"fixed": 0, "jump": 30, "atoms": 0}[kind]
    return states[rng.integers(0, 9, 600)] if kind == "atoms" else states


@pytest.mark.parametrize("kind", ["fixed", "jump", "atoms"])
def test_the_compiled_rule_is_the_reference(kind: str) -> None:
    states, rule = stream(kind), usage.Rule(fade=0.1)
    options = loops.Options(**rule._asdict())
    clusters, memory = usage.start(states[:12] + 0.1), loops.start(states[:12] + 0.1)
    for state in states[:400]:
        clusters = usage.absorb(clusters, state, rule)
    loops.absorb(memory, states, np.arange(250), options)
    loops.absorb(memory, states, np.arange(250, 400), options)
    assert np.allclose(memory.centers.T, clusters.centers, rtol=0, atol=1e-9)
    assert memory.usage == pytest.approx(clusters.usage, abs=1e-9)
    assert memory.ages.tolist() == clusters.ages.tolist()
    assert memory.scalars[0] == pytest.approx(clusters.margin, rel=1e-9)
    assert memory.scalars[2] > 0 or kind == "fixed"


@pytest.mark.parametrize("scale", ["deviation", "early", "movement"])
def test_units_of_single_coordinates_change_nothing(scale: str) -> None:
    """Powers of two between 2^-14 and 2^13, about 1e-4 to 1e4: not a bit."""
    rng, unit = np.random.default_rng(0), 2.0 ** np.array([-14, 13, 0, 5])
    one, other = (Learner(Choice(scale=scale, clusters=20), seed=0) for _ in range(2))
    for _ in range(3):
        states = rng.normal(size=(500, 4))
        one.update(states)
        other.update(states * unit)
    assert np.array_equal(one.memory.centers * unit[:, None], other.memory.centers)


def test_a_constant_coordinate_counts_for_nothing() -> None:
    rng = np.random.default_rng(0)
    states = rng.normal(size=(500, 2))
    one, other = (Learner(Choice(clusters=20), seed=0) for _ in range(2))
    one.update(states)
    other.update(np.c_[states, np.full(500, 1e9)])
    assert np.array_equal(one.memory.centers, other.memory.centers[:2])
    assert (other.memory.centers[2] == 1e9).all()


def test_cells_of_parts_are_those_of_the_whole() -> None:
    states, learner = np.random.default_rng(0).normal(size=(9000, 3)), Learner(Choice(clusters=20), seed=0)
    learner.update(states[:500])
    parts, whole = (learner.cells(each) for each in (iter([states[:5000], states[5000:]]), [states]))
    assert (parts.empty, parts.cv) == (whole.empty, whole.cv)
    assert parts.distortion == pytest.approx(whole.distortion, rel=1e-12)


def test_a_law_is_judged_by_as_many_fresh_states_as_it_says(monkeypatch: pytest.MonkeyPatch) -> None:
    assert judge.FRESH % judge.PART == 0
    monkeypatch.setattr(judge, "FRESH", 3 * judge.PART)
    parts = list(judge.fresh_states("uniform, d = 2", 0))
    assert sum(map(len, parts)) == judge.FRESH
    assert len(np.unique(np.concatenate(parts), axis=0)) == judge.FRESH


def test_streams_have_the_shape_of_rollouts() -> None:
    for make in streams.MADE.values():
        assert {states.shape[0] for states in make(0, 2)} == {streams.ROLLOUT}
    with pytest.raises(FileNotFoundError, match="Record it"):
        streams.moving("agent, Cheetah", 0, 2, judge.FOLDER / "nowhere")


@pytest.mark.parametrize("plan", judge.PLANS)
def test_committed_results_are_those_of_the_plans(plan: str) -> None:
    choices, names = judge.PLANS[plan]
    found = json.loads((judge.FOLDER / f"{plan}.json").read_text())
    assert {rule: list(scores) for rule, scores in found.items()} == {rule: list(names) for rule in choices}
    assert judge.scores_table(found, "clamped").count("\n") == len(choices) + 1
