"""Training as a whole: what is written, that resuming changes nothing, and what happens when things go wrong."""

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest

import voronaut as vn
from tests.training.toys import small
from voronaut.cli import main
from voronaut.helpers import machine, npz
from voronaut.tasks.backends.envpool import EnvpoolTask
from voronaut.training import checkpoint, command, loop
from voronaut.training.config import Config
from voronaut.training.folder import Rows
from voronaut.training.on_policy import PPOTrainer
from voronaut.training.watching import logs

SECONDS = ("collect_seconds", "bonus_seconds", "learn_seconds", "method_bonus_seconds")
TRAIN = ["train", "cheetah-run", "--seeds", "1", "--steps", "128", "--rollout", "64", "--envs", "2", "--quiet",
         "--backend", "dm_control", "--kme.clusters", "10"]  # fmt: skip


def rows(out: Path, name: str) -> list[dict[str, Any]]:
    """The log of a run without its wall times."""
    return [{k: v for k, v in row.items() if k not in SECONDS} for row in logs.read(out / name / "progress.jsonl")]


def same(one: Path, other: Path, config: Config) -> bool:
    """Whether two folders hold the same numbers, policies and bonuses, bit for bit."""
    return all(
        [r.get("env_steps") for r in rows(one, name)] == [r.get("env_steps") for r in rows(other, name)]
        and all(
            _without_metrics(a) == _without_metrics(b) for a, b in zip(rows(one, name), rows(other, name), strict=True)
        )
        and (one / name / "policy.npz").read_bytes() == (other / name / "policy.npz").read_bytes()
        and (one / name / "bonus.npz").read_bytes() == (other / name / "bonus.npz").read_bytes()
        for name in config.folders()
    )


def _without_metrics(row: dict[str, Any]) -> dict[str, Any]:
    return {k: v for k, v in row.items() if "/" not in k}  # metrics are logged with checkpoints only


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An uninterrupted run of the small experiment."""
    out = tmp_path_factory.mktemp("whole") / "run"
    assert loop.train(small(), out)
    return out


def test_what_is_written(finished: Path) -> None:
    config = json.loads((finished / "config.json").read_text())
    assert config["task"] == "cheetah-run" and config["backend"] == "dm_control"
    assert sorted(p.name for p in finished.iterdir()) == [
        "checkpoints", "config.json", "finished.json", "kme-0", "kme-1", "machine.txt", "none-0", "none-1",
    ]  # fmt: skip
    lines = logs.read(finished / "kme-1" / "progress.jsonl")
    assert [row["env_steps"] for row in lines] == [64, 128, 192, 256]
    wanted = {"extrinsic_return", "max_step_reward", "bonus_mean", "state_entropy", *SECONDS}
    assert wanted <= lines[0].keys()
    assert lines[0]["extrinsic_return"] is None and lines[0]["scale"] == 0 and lines[1]["scale"] == 0.1
    assert lines[1]["bonus_mean"] > 0 and "kme/entropy" in lines[-1]
    assert any(p.name.startswith("events.out.tfevents") for p in (finished / "kme-1").iterdir())
    assert isinstance(vn.load(finished / "kme-1" / "bonus.npz"), vn.KME)


def test_the_same_command_gives_the_same_numbers(finished: Path, tmp_path: Path) -> None:
    loop.train(small(), tmp_path / "again")
    assert same(finished, tmp_path / "again", small())


def test_a_run_does_not_depend_on_the_runs_beside_it(finished: Path, tmp_path: Path) -> None:
    alone = small(bonuses=["kme"], seeds=[1])
    loop.train(alone, tmp_path / "alone")
    assert same(finished, tmp_path / "alone", alone)


def test_stopping_and_resuming_changes_nothing(finished: Path, tmp_path: Path) -> None:
    out = tmp_path / "cut"
    for _ in range(3):
        with pytest.raises(loop.Stopped):
            loop.train(small(), out, resume=True, deadline=time.monotonic() - 1)
    assert loop.train(small(), out, resume=True)
    assert same(finished, out, small())
    assert [path.name for path in (out / "checkpoints").iterdir()] == ["000004.npz"]


def test_going_on_elsewhere_is_noted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for place in ("2 × A", "2 × A", "16 × B", "16 × B"):
        monkeypatch.setattr(machine, "brief", lambda place=place: place)
        with suppress(loop.Stopped):
            loop.train(small(), tmp_path / "cut", resume=True, deadline=time.monotonic() - 1)
    notes = (tmp_path / "cut" / "notes.txt").read_text().splitlines()
    assert notes == ["went on after rollout 2 on another machine: 16 × B; before on 2 × A"]


def test_the_fast_simulator_repeats_itself_and_resumes_or_says_that_it_did_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("envpool", reason="envpool is not installed (pip install 'voronaut[fast]')")
    config = small(backend="envpool", seeds=1, rollout=128, steps=256)
    for name in ("one", "two"):
        loop.train(config, tmp_path / name)
    assert same(tmp_path / "one", tmp_path / "two", config)
    with pytest.raises(loop.Stopped):
        loop.train(config, tmp_path / "cut", deadline=time.monotonic() - 1)
    loop.train(config, tmp_path / "cut", resume=True)
    assert same(tmp_path / "one", tmp_path / "cut", config) and not (tmp_path / "cut" / "notes.txt").exists()
    monkeypatch.setattr(EnvpoolTask, "state_dict", lambda self: {"generation": np.array(0)})  # as of older versions
    with pytest.raises(loop.Stopped):
        loop.train(config, tmp_path / "old", deadline=time.monotonic() - 1)
    loop.train(config, tmp_path / "old", resume=True)
    assert [row.get("episodes_restarted") for row in rows(tmp_path / "old", "kme-0")] == [None, True]
    assert "started anew" in (tmp_path / "old" / "notes.txt").read_text()


def test_every_bonus_trains_and_resumes_beside_the_others(tmp_path: Path) -> None:
    options = {"rnd": {"hidden": 16, "features": 8}, "re3": {"hidden": 16, "features": 8}, "hash": {"table_bits": 8}}
    config = small(bonuses=list(options), options=options, steps=192)
    loop.train(config, tmp_path / "whole")
    with pytest.raises(loop.Stopped):
        loop.train(config, tmp_path / "cut", deadline=time.monotonic() - 1)
    loop.train(config, tmp_path / "cut", resume=True)
    assert same(tmp_path / "whole", tmp_path / "cut", config)
    assert all(rows(tmp_path / "whole", f"{name}-1")[1]["bonus_mean"] > 0 for name in options)


def test_a_damaged_checkpoint_falls_back_on_the_one_before(finished: Path, tmp_path: Path) -> None:
    out = tmp_path / "cut"
    for _ in range(3):
        with pytest.raises(loop.Stopped):
            loop.train(small(), out, resume=True, deadline=time.monotonic() - 1)
    kept = checkpoint.saved(out / "checkpoints")
    assert [p.name for p in kept] == ["000002.npz", "000003.npz"]
    kept[-1].write_bytes(kept[-1].read_bytes()[:5000])
    loop.train(small(), out, resume=True)
    assert same(finished, out, small())


def test_a_full_disk_loses_nothing(
    finished: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    out, whole = tmp_path / "cut", npz.write
    with pytest.raises(loop.Stopped):
        loop.train(small(), out, deadline=time.monotonic() - 1)

    def full(path: npz.Where, arrays: Any, **_: Any) -> None:
        raise OSError(28, "No space left on device", str(path))

    monkeypatch.setattr(npz, "write", full)
    assert command.train(small(), out, resume=True, quiet=True) == 1
    assert "No space left" in (said := capsys.readouterr().err) and "000001.npz" in said and "--resume" in said
    assert command.train(small(), tmp_path / "new", resume=False, quiet=True) == 1
    assert "Nothing was saved yet" in capsys.readouterr().err
    monkeypatch.setattr(npz, "write", whole)
    assert command.train(small(), out, resume=True, quiet=True) == 0
    assert same(finished, out, small())


def test_ctrl_c_saves_and_says_how_to_go_on(
    finished: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    out, turn = tmp_path / "cut", PPOTrainer.turn

    def interrupted(trainer: PPOTrainer) -> Rows:
        if trainer.done == 1:
            os.kill(os.getpid(), signal.SIGINT)
        return turn(trainer)

    monkeypatch.setattr(PPOTrainer, "turn", interrupted)
    assert command.train(small(), out, resume=False, quiet=True) == 130
    assert "--resume" in capsys.readouterr().err
    assert len(rows(out, "kme-0")) == 2
    monkeypatch.setattr(PPOTrainer, "turn", turn)
    assert command.train(small(), out, resume=True, quiet=True) == 0
    assert same(finished, out, small())


def test_a_killed_process_can_be_resumed(tmp_path: Path) -> None:
    """KILL, not a polite signal, at whatever point the process happens to be after its first checkpoint."""
    arguments = [*TRAIN, "--bonus", "kme", "--out", str(tmp_path / "out"), "--resume"]
    arguments[arguments.index("--steps") + 1] = "6400"
    child = subprocess.Popen([sys.executable, "-m", "voronaut", *arguments])
    while child.poll() is None and not checkpoint.saved(tmp_path / "out" / "checkpoints"):
        os.sched_yield()
    child.kill()
    child.wait()
    before = len(rows(tmp_path / "out", "kme-0"))
    assert main(arguments) == 0
    assert before >= 1 and len(rows(tmp_path / "out", "kme-0")) == 100


def test_more_steps_later_are_the_longer_run_to_the_bit(finished: Path, tmp_path: Path) -> None:
    out = tmp_path / "short"
    loop.train(small(steps=128), out)
    with pytest.raises(loop.Stopped):
        loop.train(small(), out, resume=True, deadline=time.monotonic() - 1)
    assert not (out / "finished.json").exists()
    assert loop.train(small(), out, resume=True) and same(finished, out, small())
    assert json.loads((out / "config.json").read_text())["steps"] == 256
    assert not loop.train(small(), out, resume=True)


def test_more_steps_that_cannot_be_added_change_nothing(tmp_path: Path) -> None:
    out, linear = tmp_path / "short", {"kme": {"clusters": 10, "scale": "linear:0.01:0"}}
    loop.train(small(steps=128, seeds=1), out)
    before = {path: path.read_bytes() for path in sorted(out.rglob("*")) if path.is_file()}
    with pytest.raises(ValueError, match=r"128 steps\. Add --resume to go on to 256"):
        loop.train(small(seeds=1), out)
    with pytest.raises(ValueError, match=r"128 steps\. Ask for more"):
        loop.train(small(steps=64, seeds=1), out, resume=True)
    with pytest.raises(ValueError, match="differs in seeds, steps"):
        loop.train(small(), out, resume=True)
    with pytest.raises(ValueError, match="differs in steps"):
        loop.train(small(seeds=1), out, restart=True)
    assert {path: path.read_bytes() for path in sorted(out.rglob("*")) if path.is_file()} == before
    [kept] = checkpoint.saved(out / "checkpoints")
    kept.write_bytes(kept.read_bytes()[:5000])
    with pytest.raises(ValueError, match=r"no checkpoint that can be read\. Choose another folder"):
        loop.train(small(seeds=1), out, resume=True)
    with pytest.raises(ValueError, match="has been removed"):
        loop.train(small(seeds=1), out, resume=True)
    assert not loop.train(small(steps=128, seeds=1), out)  # still finished
    loop.train(small(steps=128, seeds=1, options=linear), tmp_path / "linear")
    with pytest.raises(ValueError, match="a weight that changes"):
        loop.train(small(seeds=1, options=linear), tmp_path / "linear", resume=True)


def test_folders_are_not_mixed_up(finished: Path, tmp_path: Path) -> None:
    assert not loop.train(small(), finished)  # finished before: nothing to do
    with pytest.raises(ValueError, match=r"another experiment.*seeds"):
        loop.train(small(seeds=3), finished)
    with pytest.raises(loop.Stopped):
        loop.train(small(), tmp_path / "cut", deadline=time.monotonic() - 1)
    with pytest.raises(ValueError, match="Add --resume"):
        loop.train(small(), tmp_path / "cut")
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.tex").write_text("precious")
    with pytest.raises(ValueError, match="not empty"):
        loop.train(small(), tmp_path / "mine")


def test_from_python(tmp_path: Path) -> None:
    folders = vn.train("cheetah-run", out=tmp_path / "py", bonuses=["none"], seeds=1, steps=64, rollout=64, envs=2,
                       backend="dm_control", quiet=True)  # fmt: skip
    policy = vn.load_policy(folders[0])
    actions = policy(np.zeros((5, 17)))
    assert actions.shape == (5, 6) and (np.abs(actions) <= 1).all()
    assert not np.array_equal(policy(np.zeros((5, 17)), rng=np.random.default_rng(0)), actions)
    with pytest.raises(ValueError, match="17"):
        policy(np.zeros(3))
    with pytest.raises(FileNotFoundError, match="DIR/kme-0"):
        vn.load_policy(tmp_path)


CARTPOLE = ["train", "gym:CartPole-v1", "--seeds", "1", "--rollout", "512", "--quiet"]


def test_choices_are_learned_saved_and_evaluated(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = str(tmp_path / "cartpole")
    assert main([*CARTPOLE, "--bonus", "none", "--steps", "8192", "--ppo.learning_rate", "2e-3", "--out", out]) == 0
    returns = [row["extrinsic_return"] for row in rows(tmp_path / "cartpole", "none-0")]
    known = [each for each in returns if each is not None]  # a pole that stands ends no episode
    assert known[0] < 40 and known[-1] > 60, returns
    assert main(["eval", f"{out}/none-0", "--episodes", "4"]) == 0
    assert "sampled" in capsys.readouterr().out
    policy = vn.load_policy(f"{out}/none-0")
    states = np.random.default_rng(0).normal(size=(50, 4))
    assert policy(states).shape == (50,) and set(policy(states).tolist()) == {0, 1} and policy(states[0]).shape == ()
    drawn = [policy(states, rng=np.random.default_rng(seed)) for seed in range(20)]
    assert np.mean([each == policy(states) for each in drawn]) > 0.6 and not (drawn[0] == drawn[1]).all()


def test_sac_says_that_it_needs_continuous_actions(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*CARTPOLE, "--learner", "sac", "--steps", "512", "--out", str(tmp_path / "x")]) == 2
    assert "gym:CartPole-v1 has 2 choices: --learner ppo" in capsys.readouterr().err
    assert not (tmp_path / "x").exists()


class Line(gymnasium.Env[Any, Any]):
    """A point on a line, paid near 1."""

    observation_space = gymnasium.spaces.Box(-2, 2, (1,), np.float32)
    action_space = gymnasium.spaces.Box(-1, 1, (1,), np.float32)

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        self.at, self.left = np.zeros(1, np.float32), 20
        return self.at, {}

    def step(self, action: Any) -> Any:
        self.at, self.left = np.clip(self.at + 0.2 * action, -2, 2).astype(np.float32), self.left - 1
        return self.at, float(abs(self.at[0] - 1) < 0.1), False, self.left == 0, {}


@pytest.mark.parametrize("learner", ["ppo", "sac"])
def test_a_function_that_makes_an_environment_is_a_task(
    learner: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    numbers = {"sac": {"sac": {"width": 8, "batch": 8, "gradient_steps": 1, "random_steps": 64}}}.get(learner, {})
    choices: dict[str, Any] = {"learner": learner, "bonuses": "none", "seeds": 1, "rollout": 64, "envs": 2}
    choices |= {"options": numbers, "quiet": True, "steps": 128}
    [run] = vn.train(Line, out=tmp_path / "named", **choices)
    assert [row["episodes"] for row in logs.read(run / logs.NAME)] == [2, 4]
    assert json.loads((run.parent / "config.json").read_text())["task"] == "env:tests.training.test_train:Line"
    assert main(["eval", str(run), "--episodes", "1"]) == 0 and "sampled" in capsys.readouterr().out
    [other] = vn.train(lambda: Line(), out=tmp_path / "unnamed", **choices)  # noqa: PLW0108
    same_numbers = [[row["state_entropy"] for row in logs.read(each / logs.NAME)] for each in (run, other)]
    assert same_numbers[0] == same_numbers[1]


def test_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = str(tmp_path / "cli")
    assert main([*TRAIN, "--out", out]) == 0
    assert (
        "entropy" in (said := capsys.readouterr().out)
        and "--steps 256 --resume" in said
        and "checkpoints holds" in said
    )
    assert main([*TRAIN, "--out", out]) == 0
    assert "nothing to do" in capsys.readouterr().out
    assert main(["eval", f"{out}/kme-0", "--episodes", "2"]) == 0
    assert "sampled" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["train", "cheeta-run", "--out", "x"], "Did you mean 'cheetah-run'"),
        (["train", "cheetah-run", "--bonus", "kne", "--out", "x"], "Did you mean 'kme'"),
        (["train", "cheetah-run", "--steps", "5", "--out", "x"], "at least one rollout"),
        (["train", "cheetah-run", "--out", "x", "--kme.clusterz", "3"], "clusters"),
        (["train", "gym:NoSuch-v0", "--out", "x"], "NoSuch"),
        (["eval", "nowhere"], "policy.npz"),
        (["bench", "kernels", "--fast"], "unknown: --fast"),
    ],
)
def test_mistakes_get_one_line_and_exit_code_2(
    words: list[str], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(words) == 2
    said = capsys.readouterr().err
    assert message in said and said.startswith("voronaut: ") and said.count("\n") == 1
    assert not list(tmp_path.iterdir())
