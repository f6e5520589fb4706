"""`voronaut train` and `eval` when the machine does not play along: one line of advice that fits, and no traceback."""

import errno
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import voronaut as vn
from tests.training.toys import small
from voronaut import cli
from voronaut.training import command, loop
from voronaut.training.watching.progress import display

TRAIN = ["train", "maze", "--bonus", "kme", "--seeds", "1", "--steps", "64", "--rollout", "64", "--envs", "2",
         "--kme.clusters", "10"]  # fmt: skip
ADVICE = {
    errno.ENOSPC: "Make room",
    errno.EDQUOT: "Make room",
    errno.EPIPE: "--quiet",
    errno.EROFS: "cannot be written to",
    errno.EACCES: "cannot be written to",
    errno.ENOTDIR: "Choose another --out",
    errno.EIO: "When that is mended",
}


@pytest.mark.parametrize("number", ADVICE, ids=errno.errorcode.get)
def test_the_advice_fits_the_error(
    number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(*_: Any, **__: Any) -> bool:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(loop, "train", fail)
    assert command.train(small(), tmp_path, resume=False, quiet=True) == 1
    said = capsys.readouterr().err
    assert os.strerror(number) in said and "Nothing was saved yet" in said
    assert {advice for advice in ADVICE.values() if advice in said} == {ADVICE[number]}


@pytest.mark.parametrize(
    ("name", "message"),
    [("file", "is a file"), ("file/below", "Choose another --out"), ("n" * 300, "Choose another --out")],
)
def test_a_folder_that_cannot_be_made(
    name: str, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").touch()
    assert cli.main([*TRAIN, "--quiet", "--out", str(tmp_path / name)]) in (1, 2)
    said = capsys.readouterr().err
    assert message in said and "room" not in said and len(said.strip().splitlines()) == 1
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


@pytest.mark.parametrize("steps", ["inf", "nan", "-inf"])
@pytest.mark.parametrize("words", [["train", "maze"], ["demo"]])
def test_steps_without_end(words: list[str], steps: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        cli.main([*words, "--out", "nowhere", f"--steps={steps}"])
    assert "finite" in capsys.readouterr().err


def test_a_class_is_no_task(tmp_path: Path) -> None:
    class Mine:
        """Somebody's environment."""

    for task in (Mine, Mine()):
        with pytest.raises(ValueError, match=r"register.*gym:"):
            vn.train(task, out=tmp_path / "x")  # type: ignore[arg-type]


def test_nothing_is_shown_where_there_is_no_output(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdout", None)
    with display(small()) as report:
        assert report is None


def shell(line: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """A line for bash, in which $RUN is the command line."""
    environment = {
        **os.environ,
        "RUN": f"{sys.executable} -m voronaut",
        "PYTHONPATH": str(Path(vn.__file__).parents[1]),
    }
    return subprocess.run(
        ["bash", "-c", line], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )


def test_closed_outputs_end_no_training(tmp_path: Path) -> None:
    done = shell(f"$RUN {' '.join(TRAIN)} --out run >&-", tmp_path)
    assert done.returncode == 0 and done.stderr == ""
    assert (tmp_path / "run" / "finished.json").exists()


def test_an_output_that_nobody_reads_is_no_traceback(tmp_path: Path) -> None:
    done = shell(f"$RUN --help | true; $RUN {' '.join(TRAIN)} --out run | true; echo ${{PIPESTATUS[0]}}", tmp_path)
    assert "Traceback" not in done.stderr and "ignored" not in done.stderr and "room" not in done.stderr
    assert done.stdout.strip() in ("0", "1")


@pytest.mark.parametrize("name", ["folder", "file/x.mp4", "n" * 300 + ".mp4"])
def test_a_video_that_cannot_be_written_is_told_first(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").touch()
    monkeypatch.setattr(command.policy, "load", lambda folder: pytest.fail("the episodes come after"))
    assert cli.main(["eval", str(tmp_path), "--video", str(tmp_path / name)]) == 2
    said = capsys.readouterr().err
    assert "cannot be written" in said and len(said.strip().splitlines()) == 1
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "folder"]
