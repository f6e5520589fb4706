"""The noise experiment: noise stands behind the state, and a tiny run of it comes out as a table."""

from pathlib import Path

import numpy as np
import pytest

from voronaut.experiments import noise
from voronaut.experiments.common import jobs
from voronaut.experiments.noise.task import Noisy
from voronaut.tasks.base import VectorTask
from voronaut.tasks.factory import make


def test_noise_stands_behind_the_state() -> None:
    plain, noisy = make("maze", [1], 3, episode_steps=2), Noisy(make("maze", [1], 3, episode_steps=2), 4, [1])
    assert isinstance(noisy, VectorTask) and noisy.obs_dim == 6
    first = noisy.reset()
    np.testing.assert_array_equal(first[:, :2], plain.reset())
    for over in (False, True):
        step, want = noisy.step(np.ones((3, 2))), plain.step(np.ones((3, 2)))
        np.testing.assert_array_equal(step.next_states[:, :2], want.next_states)
        np.testing.assert_array_equal(step.obs[:, :2], want.obs)
        np.testing.assert_array_equal(step.rewards, want.rewards)
        assert (step.obs == step.next_states).all() == (not over)  # one state has one noise
        assert not (step.next_states[:, 2:] == first[:, 2:]).any()
    assert step.obs.dtype == np.float32


def test_jobs_are_chosen_by_their_beginning() -> None:
    every = noise.plan()
    assert {job.given["memory"] for job in jobs.choose(every, ["noise-20"])} == set(noise.MEMORIES)
    assert [job.name for job in jobs.choose(every, ["noise-0/whole-3"])] == ["whole-3"]
    with pytest.raises(ValueError, match="there is no part or job 'nois-20'"):
        jobs.choose(every, ["nois-20"])


def test_the_table_has_what_was_run(tmp_path: Path) -> None:
    for seed, job in enumerate(noise.plan(seeds=2)[:2]):
        curve = {name: [None, 10.0 * seed, 20.0] for name in noise.COLUMNS}
        jobs.write(job, tmp_path, curve, 1.0)
    text = noise.computed(tmp_path)["noise"]
    assert "each coordinate by itself (the default) | 0 | 0, 10 | 10, 15 | 20, 20" in text and text.count("\n") == 2
