"""`voronaut demo`: what it leaves behind, going on after an interrupt, and what it says when it cannot work."""

import json
import os
import signal
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from voronaut import demo
from voronaut.cli import main
from voronaut.demo import film, maze
from voronaut.training.folder import Rows
from voronaut.training.on_policy import PPOTrainer

ROOT = Path(__file__).parents[2]
STEPS = "1152"


@pytest.fixture(scope="module", autouse=True)
def _small() -> object:
    """Rollouts of 384 states, more than there are clusters: three of them take a moment."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(demo.SETTINGS, "rollout", 384)
        yield


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("demo") / "out"
    assert main(["demo", "--out", str(out), "--steps", STEPS, "--seed", "1"]) == 0
    return out


def test_what_it_leaves_behind(finished: Path) -> None:
    assert sorted(path.name for path in finished.iterdir()) == [
        "maze.gif", "maze.npz", "maze.png", "report.html", "runs",
    ]  # fmt: skip
    assert {"none-1", "kme-1"} <= {path.name for path in (finished / "runs").iterdir()}
    with Image.open(finished / "maze.png") as picture, Image.open(finished / "maze.gif") as moving:
        assert picture.width >= 800
        assert moving.n_frames == 3  # type: ignore[attr-defined]
    record = film.load(finished / "maze.npz")
    assert record.steps.tolist() == [384, 768, 1152]
    assert record.states.shape == (2, 3, 256, 2) and record.centers.shape == (3, 300, 2)


def test_both_start_alike_and_part_when_the_bonus_is_paid(finished: Path) -> None:
    """The same seed gives the same first rollouts (the first pays nothing); the third has heard of the bonus."""
    states = film.load(finished / "maze.npz").states
    np.testing.assert_array_equal(states[0, :2], states[1, :2])
    assert (states[0, 2] != states[1, 2]).any()


def test_the_table_and_a_second_time(finished: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Finished before: nothing is trained, everything is drawn again, the same."""
    before = (finished / "maze.npz").read_bytes()
    (finished / "maze.png").unlink()
    assert main(["demo", "--out", str(finished), "--steps", STEPS, "--seed", "1"]) == 0
    said = capsys.readouterr().out
    assert "1,152 steps each" in said and "PPO + KME" in said and "maze seen" in said and "maze.gif" in said
    assert (finished / "maze.png").exists() and (finished / "maze.npz").read_bytes() == before


def test_ctrl_c_and_the_same_command_again(
    finished: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    words, turn = ["demo", "--out", str(tmp_path / "cut"), "--steps", STEPS, "--seed", "1"], PPOTrainer.turn

    def interrupted(trainer: PPOTrainer) -> Rows:
        if trainer.done == 1:
            os.kill(os.getpid(), signal.SIGINT)
        return turn(trainer)

    monkeypatch.setattr(PPOTrainer, "turn", interrupted)
    assert main(words) == 130
    assert "the same command goes on" in capsys.readouterr().err
    monkeypatch.setattr(PPOTrainer, "turn", turn)
    assert main(words) == 0
    one, other = (film.load(out / "maze.npz") for out in (finished, tmp_path / "cut"))
    for whole, resumed in zip(one, other, strict=True):
        np.testing.assert_array_equal(whole, resumed)


def test_a_folder_that_is_not_ours_is_left_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "thesis.tex").write_text("precious")
    assert main(["demo", "--out", str(tmp_path), "--steps", STEPS]) == 2
    assert "not empty and holds no demo. Choose another folder with --out" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]


def test_another_demo_in_the_folder(finished: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["demo", "--out", str(finished), "--steps", STEPS, "--seed", "2"]) == 2
    assert "differs in seeds" in capsys.readouterr().err


def test_a_folder_that_cannot_be_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").write_text("")
    for out in (tmp_path / "file", tmp_path / "file" / "below"):
        assert main(["demo", "--out", str(out), "--steps", STEPS]) == 2
        said = capsys.readouterr().err
        assert f"cannot write to {out}" in said and said.count("\n") == 1


def test_a_missing_extra_is_named_before_training(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    assert main(["demo", "--out", str(tmp_path / "out"), "--steps", STEPS]) == 2
    assert "[train]'" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_without_the_report_s_extra_the_rest_is_made(finished: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "voronaut.report", None)
    assert demo.page(finished).startswith("no report page: ")


def test_squares_are_counted() -> None:
    """One state in each of 3 squares of 256; a whole lattice sees everything."""
    assert film.seen(np.array([[0.0, 0.0], [0.01, 0.01], [0.3, 0.0], [3.4, 3.4]])) == 3 / 256
    lattice = np.stack(np.meshgrid(*[np.linspace(-0.45, 3.45, 40)] * 2), axis=-1)
    assert film.seen(lattice) == 1


def test_the_committed_picture_redraws_from_its_result_file(tmp_path: Path) -> None:
    png, gif = maze.draw(ROOT / "results/maze", tmp_path)
    for path, most in ((png, 200_000), (gif, 3_000_000)):
        committed = ROOT / "docs/figures" / path.name
        assert path.stat().st_size < most and committed.stat().st_size < most
        with Image.open(path) as new, Image.open(committed) as old:
            assert (new.size, getattr(new, "n_frames", 1)) == (old.size, getattr(old, "n_frames", 1))


def test_the_committed_numbers_are_those_of_the_committed_record_and_settings() -> None:
    for name in maze.kept(ROOT / "results/maze"):
        kept = json.loads((ROOT / f"results/maze/{name}.json").read_text())
        assert list(kept.pop("seeds")) == [str(seed) for seed in maze.SEEDS[name]]
        assert kept == {**maze.settings(), "ppo": {**demo.PPO, "envs": 32, "rollout": 6400}}  # not the test's
    record = film.load(ROOT / f"results/maze/seed-{maze.SHOWN}.npz")
    assert record.steps[-1] >= demo.STEPS
    stored = json.loads((ROOT / "results/maze/tuning.json").read_text())["seeds"][str(maze.SHOWN)]
    for name, found in film.numbers(record).items():
        assert found._asdict() == pytest.approx(stored[name], abs=1e-4)


def test_the_demo_s_own_seed_is_paid_and_it_says_of_how_many() -> None:
    record = film.load(ROOT / f"results/maze/seed-{maze.SHOWN}.npz")
    assert film.numbers(record)["kme"].returns > 100 > film.numbers(record)["none"].returns
    newest = maze.kept(ROOT / "results/maze")[-1]
    seeds, *found = demo.TRIED
    assert seeds.startswith(f"{maze.SEEDS[newest][0]} to {maze.SEEDS[newest][-1]},")
    assert tuple(found) == maze.counts(maze.read(ROOT / "results/maze", newest)["kme"])


@pytest.mark.parametrize("steps", ["0", "-1"])
def test_too_few_steps_are_refused_in_its_own_words(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], steps: str
) -> None:
    assert main(["demo", "--out", str(tmp_path / "out"), "--steps", steps]) == 2
    assert f"steps must be at least 32, one per environment; got {steps}" in capsys.readouterr().err
