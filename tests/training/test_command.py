"""`voronaut train` and `eval` when the machine does not play along: one line of advice that fits, and no traceback."""

import errno
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import voronaut as vn
from tests.training.toys import small
from voronaut import cli
from voronaut.training import command, loop
from voronaut.training.api import configure
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
    errno.EIO: "When that is fixed",
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


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["train", "maze", "--seeds", "1-100000000000"], "more than 10000"),
        (["train", "maze", "--seeds", "104-100"], "names no seed"),
        (["train", "maze", "--seeds", "few"], "neither a count nor a list"),
        (["reproduce", "hard", "--budget", "nan"], "not a duration"),
        (["reproduce", "hard", "--budget", "soon"], "not a duration"),
        (["eval", "nowhere", "--seed", "-1"], "--seed: '-1' is no seed"),
        (["entropy", "nowhere", "--seed", "x"], "--seed: 'x' is no seed"),
    ],
)
def test_seeds_and_durations_that_are_none(words: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        cli.main(words)
    assert message in capsys.readouterr().err


@pytest.mark.parametrize(
    "error", [MemoryError(), RuntimeError("RESOURCE_EXHAUSTED: Out of memory allocating 9 bytes.")]
)
def test_too_little_memory_is_said_in_a_line(
    error: Exception, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    def fails(*_: Any, **__: Any) -> None:
        raise error

    monkeypatch.setattr(loop, "train", fails)
    words = ["train", "maze", "--quiet", "--seeds", "1", "--out", str(tmp_path / "run")]
    assert cli.main(words) == 2 and "too little memory" in (said := capsys.readouterr().err) and said.count("\n") == 1
    error.args = ("something else",)
    if isinstance(error, RuntimeError):
        with pytest.raises(RuntimeError, match="something else"):
            cli.main(words)


def test_a_class_is_no_task(tmp_path: Path) -> None:
    class Mine:
        """Somebody's environment."""

    with pytest.raises(ValueError, match=r"a function or class that makes a Gymnasium environment; got .*Mine"):
        vn.train(Mine(), out=tmp_path / "x")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"Mine must make one gymnasium\.Env .* got .*Mine"):
        vn.train(Mine, out=tmp_path / "x")
    assert not (tmp_path / "x").exists()


@pytest.mark.parametrize(
    ("choice", "said"),
    [
        ({"bonuses": 5}, "bonuses must be a name such as 'kme'"),
        ({"bonuses": [vn.KME]}, "bonuses must be a name such as 'kme'"),
        ({"seeds": 1.5}, "seeds must be a count"),
        ({"seeds": "0,1"}, "seeds must be a count"),
        ({"steps": "1e6"}, "steps must be a number; got '1e6'"),
        ({"envs": 16.5}, "envs must be a whole number"),
        ({"rollout": True}, "rollout must be a whole number"),
        ({"options": {"kme": 3}}, "options must look like"),
        ({"sweep": {"kme.balance": "1e-5"}}, "sweep must look like"),
        ({"learner": None}, "learner must be ppo or sac"),
    ],
)
def test_wrong_kinds_are_said(choice: dict[str, Any], said: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=said):
        vn.train("maze", out=tmp_path / "x", **choice)
    assert not (tmp_path / "x").exists()


def test_what_means_the_same_may_be_said_in_several_ways() -> None:
    usual = configure("maze", bonuses=["kme"], seeds=[0, 1])
    assert json.dumps(configure("maze", envs=np.int64(4), rollout=np.int64(8), steps=np.float32(64)).to_json())
    assert usual == configure("maze", bonuses="kme", seeds=np.int64(2)) == configure(
        "maze", bonuses=("kme",), seeds=(seed for seed in range(2))
    )  # fmt: skip


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


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run on an environment that Gymnasium draws with pygame, if it is there."""
    out = tmp_path_factory.mktemp("trained") / "x"
    return vn.train("gym:Pendulum-v1", bonuses="none", seeds=1, steps=64, rollout=64, envs=2, out=out, quiet=True)[0]


@pytest.mark.parametrize(
    ("name", "missing", "message"),
    [("film.mp4", "pygame", "pygame"), ("film.xyz", "", "end its name in .mp4"), ("film", "", "end its name in .mp4"),
     ("film.mp4", "imageio", "imageio is missing")],
)  # fmt: skip
def test_a_film_that_cannot_be_made_is_told_before_the_episodes(
    name: str, missing: str, message: str, trained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    monkeypatch.setitem(sys.modules, missing, None)
    monkeypatch.setattr(command.policy, "returns", lambda *_, **__: pytest.fail("the episodes come after"))
    assert cli.main(["eval", str(trained), "--video", str(tmp_path / name)]) == 2
    said = capsys.readouterr().err
    assert message in said and len(said.strip().splitlines()) == 1
    assert not list(tmp_path.iterdir())


def test_a_renderer_that_cannot_be_loaded_is_one_line(
    trained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def make(*_: object, **__: object) -> None:
        raise RuntimeError("rendering is not possible here")

    monkeypatch.setattr(command, "make", make)
    assert cli.main(["eval", str(trained), "--video", str(tmp_path / "film.mp4")]) == 2
    assert capsys.readouterr().err == "voronaut: rendering is not possible here\n"


def test_pictures_that_are_not_possible_are_one_line(tmp_path: Path) -> None:
    make = [*TRAIN[:1], "cartpole-swingup", *TRAIN[2:], "--out", "run", "--quiet"]
    done = shell(f"$RUN {' '.join(make)} && MUJOCO_GL=disable $RUN eval run/kme-0 --video x.mp4", tmp_path)
    assert done.returncode == 2 and "rendering is not possible here" in done.stderr, done.stderr
    assert "Traceback" not in done.stderr and "mean action" not in done.stdout


def test_an_experiment_s_folder_names_its_runs(trained: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["eval", str(trained.parent)]) == 2
    assert str(trained) in capsys.readouterr().err


def test_episodes_show_how_far_they_are_on_a_terminal(
    trained: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["eval", str(trained), "--episodes", "2"]) == 0
    assert capsys.readouterr().err == ""
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    assert cli.main(["eval", str(trained), "--episodes", "2"]) == 0
    shown = capsys.readouterr()
    assert "mean action: step 1, 0 of 2 episodes done" in shown.err
    assert len(shown.out.strip().splitlines()) == 2


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
