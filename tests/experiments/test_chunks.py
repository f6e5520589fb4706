"""An experiment that is over: its table and figure redraw, and what it cannot do any more is said."""

from pathlib import Path

import pytest

from voronaut.cli import main
from voronaut.experiments import chunks


def test_table_and_figure_redraw(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["reproduce", "chunks", "--figures", str(tmp_path)]) == 0
    assert "frozen assignments" in capsys.readouterr().out
    assert (tmp_path / "chunks.png").stat().st_size > 1000
    exact = [row for result in chunks.read(chunks.FOLDER) for row in result["rows"] if row["kind"] == "exact"]
    assert min(chunks.numbers(row, "rollout")["least"] for row in exact) > 0.999


@pytest.mark.parametrize("words", [["--method", "kme"], ["--seeds", "3"], ["--only", "drifting"], ["--steps", "9"]])
def test_options_that_mean_nothing_here_are_refused(capsys: pytest.CaptureFixture[str], words: list[str]) -> None:
    assert main(["reproduce", "chunks", "--status", *words]) == 2
    assert "is over" in capsys.readouterr().err


def test_without_results_there_is_nothing_to_draw(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["reproduce", "chunks", "--results", str(tmp_path)]) == 2
    assert "no results" in capsys.readouterr().err
