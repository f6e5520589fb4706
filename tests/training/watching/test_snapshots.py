"""Snapshots of the clusters: few, small, close to the truth, and the same after a resume."""

import time
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as nps

import voronaut as vn
from tests.training.toys import small
from voronaut.bonuses.base import has_centers
from voronaut.training import loop
from voronaut.training.watching import snapshots
from voronaut.training.watching.snapshots import Snapshot


@given(st.integers(1, 20_000))
def test_few_snapshots_the_first_and_the_last_among_them(rollouts: int) -> None:
    taken = [rollout for rollout in range(1, rollouts + 1) if snapshots.due(rollout, rollouts)]
    assert taken[0] == 1 and taken[-1] == rollouts
    assert len(taken) <= snapshots.EVEN + 1 + np.log2(rollouts)
    assert np.diff(taken, append=rollouts).max(initial=0) <= -(-rollouts // snapshots.EVEN)


@given(nps.arrays(np.float64, (5, 3), elements=st.floats(-1e30, 1e30)), st.integers(0, 5))
def test_what_is_read_is_what_was_written(tmp_path_factory: pytest.TempPathFactory, values: np.ndarray, k: int) -> None:
    folder = tmp_path_factory.mktemp("run")
    centers, states = values[:k], values
    snapshots.write(folder / snapshots.FOLDER, Snapshot(7, centers, np.arange(k), states))
    (path,) = snapshots.saved(folder)
    back = snapshots.read(path)
    assert back.rollout == 7 and (back.counts == np.arange(k)).all() and back.centers.shape == (k, 3)
    for mine, theirs in ((centers, back.centers), (states, back.states)):
        step = np.ptp(mine, axis=0) / 65534 if len(mine) else 0.0
        assert (np.abs(mine - theirs) <= 0.51 * step + 1e-12 * np.abs(mine) + 1e-300).all()


def test_states_that_are_not_finite_are_left_out(tmp_path: Path) -> None:
    states = np.arange(32, dtype=np.float32).reshape(4, 4, 2)
    states[::2] = np.nan
    snapshots.take([tmp_path], 1, [vn.NoBonus(dim=2)], [states])
    back = snapshots.read(snapshots.saved(tmp_path)[0])
    assert 0 < len(back.states) < snapshots.STATES and np.isfinite(back.states).all()
    assert back.centers.shape == (0, 2)


@pytest.mark.parametrize(("dim", "drawn"), [(2, True), (17, False)])  # beyond four coordinates there are views
def test_a_memory_without_centers_of_whole_states_is_not_drawn(dim: int, drawn: bool, tmp_path: Path) -> None:
    kme = vn.KME(dim, clusters=8)
    kme.update(np.random.default_rng(0).normal(size=(64, dim)))
    assert has_centers(kme) == drawn and not has_centers(vn.RND(dim))


def test_a_damaged_file_is_refused(tmp_path: Path) -> None:
    snapshots.write(tmp_path / snapshots.FOLDER, Snapshot(1, np.ones((3, 2)), np.ones(3, np.int64), np.ones((4, 2))))
    (path,) = snapshots.saved(tmp_path)
    path.write_bytes(path.read_bytes()[:-40])
    with pytest.raises(ValueError, match=r"000001\.npz"):
        snapshots.read(path)


def test_a_resumed_run_leaves_the_same_snapshots(tmp_path: Path) -> None:
    config = small(seeds=1, preset="paper")  # whose centers are of whole states
    loop.train(config, tmp_path / "whole")
    for _ in range(2):
        with pytest.raises(loop.Stopped):
            loop.train(config, tmp_path / "cut", resume=True, deadline=time.monotonic() - 1)
    stray = tmp_path / "cut" / "kme-0" / snapshots.FOLDER / "000009.npz"
    stray.write_text("made after the checkpoint")
    loop.train(config, tmp_path / "cut", resume=True)
    for name in config.folders():
        whole, cut = snapshots.saved(tmp_path / "whole" / name), snapshots.saved(tmp_path / "cut" / name)
        assert [p.name for p in whole] == [p.name for p in cut] == [f"{n:06d}.npz" for n in (1, 2, 3, 4)]
        assert all(
            np.array_equal(a, b)
            for one, other in zip(map(snapshots.read, whole), map(snapshots.read, cut), strict=True)
            for a, b in zip(one, other, strict=True)
        )
    last = snapshots.read(snapshots.saved(tmp_path / "whole" / "kme-0")[-1])
    bonus = vn.load(tmp_path / "whole" / "kme-0" / "bonus.npz")
    assert np.allclose(last.centers, bonus.centers, atol=1e-3) and (last.counts == bonus.counts).all()
