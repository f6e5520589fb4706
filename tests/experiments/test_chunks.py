"""Absorbing in chunks: what the loops of the experiment promise, and that its table and figure redraw."""

import argparse
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from voronaut import clusters as reference
from voronaut.cli import main
from voronaut.experiments import chunks
from voronaut.experiments.chunks import run, tables

NONE = {"methods": None, "seeds": None, "work": None}
SIZE = run.Size(rollouts=2, states=96, clusters=12, dim=3, looks=2, held_out=400)


def start(kind: str, chunk: int, dtype: Any = np.float64) -> run.Run:
    centers = run.draw_states("drifting", 0, SIZE, SIZE.clusters, 1).astype(dtype)
    return run.Run(kind, chunk, centers, np.ones(SIZE.clusters, np.int64))


@pytest.mark.parametrize("kind, chunk", [("frozen", 1), ("exact", 1), ("exact", 16), ("exact", 50), ("exact", 96)])
def test_a_chunk_of_one_and_every_exact_chunk_are_the_sequence(kind: str, chunk: int) -> None:
    states = run.draw_states("drifting", 1, SIZE, SIZE.states, 2)
    got, _ = run.absorb(start(kind, chunk), states)
    want = reference.Clusters(start(kind, chunk).centers, start(kind, chunk).counts)
    for state in states.astype(float):
        want = reference.absorb(want, state, run.RULES.step_size, run.RULES.balance)
    np.testing.assert_array_equal(got.counts, want.counts)
    np.testing.assert_allclose(got.centers, want.centers, atol=1e-6)  # shares are rounded to float32 on purpose


def test_a_frozen_chunk_is_assigned_as_it_was() -> None:
    states, one = run.draw_states("stationary", 1, SIZE, 8, 2), start("frozen", 8)
    got, _ = run.absorb(one, states)
    frozen = reference.Clusters(one.centers, one.counts)
    winners = [reference.assign(frozen, s.astype(float), run.RULES.balance) for s in states]
    np.testing.assert_array_equal(got.counts, 1 + np.bincount(winners, minlength=SIZE.clusters))


def test_table_and_figure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run, "CHUNKS", (4, 32))
    monkeypatch.setattr(chunks, "Size", lambda: SIZE)
    options = argparse.Namespace(
        folder=tmp_path, figures=tmp_path, steps=None, only=[], draw=False, status=False, **NONE
    )
    said: list[str] = []
    assert chunks.reproduce(options, said.append) == 0
    found = tables.read(tmp_path)
    assert [result["stream"] for result in found] == ["stationary", "drifting"]
    exact = [row for result in found for row in result["rows"] if row["kind"] == "exact"]
    assert min(tables.numbers(row, "rollout")["least"] for row in exact) > 0.999
    (tmp_path / "chunks.png").unlink()
    options.draw = True
    assert chunks.reproduce(options, said.append) == 0
    assert said[1] == said[3] and "frozen assignments" in said[1]
    assert (tmp_path / "chunks.png").stat().st_size > 1000


def test_an_unknown_stream_is_refused(tmp_path: Path) -> None:
    options = argparse.Namespace(
        folder=tmp_path, figures=tmp_path, steps=None, only=["tides"], draw=False, status=False, **NONE
    )
    with pytest.raises(ValueError, match="stationary"):
        chunks.reproduce(options)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--only", "stationary", "--only", "foo"], "no stream 'foo'"),
        (["--method", "kme"], "no --method"),
        (["--seeds", "3"], "no --seeds"),
    ],
)
def test_options_that_mean_nothing_here_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], words: list[str], message: str
) -> None:
    assert main(["reproduce", "chunks", "--status", "--results", str(tmp_path), *words]) == 2
    assert message in capsys.readouterr().err
