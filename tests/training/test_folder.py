"""The experiment's folder: full disks, damage, two processes at once, and what killed ones leave behind."""

import os
import resource
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.training.test_train import TRAIN, rows, same
from tests.training.toys import small
from voronaut.cli import main
from voronaut.helpers import files, npz
from voronaut.training import checkpoint, command, folder, loop
from voronaut.training.folder import Rows
from voronaut.training.on_policy import PPOTrainer
from voronaut.training.watching import logs

CONFIG = small(seeds=1, bonuses=["kme"])
LEFT = ".000009.npz.a1b2c3d4.part"  # what a killed write leaves


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The experiment, uninterrupted."""
    out = tmp_path_factory.mktemp("whole") / "run"
    assert loop.train(CONFIG, out)
    return out


@pytest.fixture(scope="module")
def stopped(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The experiment after three of four rollouts, with checkpoints after the second and the third."""
    out = tmp_path_factory.mktemp("stopped") / "run"
    for _ in range(3):
        with pytest.raises(loop.Stopped):
            loop.train(CONFIG, out, resume=True, deadline=time.monotonic() - 1)
    assert [path.name for path in checkpoint.saved(out / "checkpoints")] == ["000002.npz", "000003.npz"]
    return out


@pytest.fixture
def cut(stopped: Path, tmp_path: Path) -> Path:
    """A copy of `stopped`."""
    shutil.copytree(stopped, tmp_path / "cut")
    return tmp_path / "cut"


@pytest.fixture
def turns(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The numbers of the turns that are taken."""
    seen: list[int] = []
    turn = PPOTrainer.turn

    def noted(trainer: PPOTrainer) -> Rows:
        seen.append(trainer.done)
        return turn(trainer)

    monkeypatch.setattr(PPOTrainer, "turn", noted)
    return seen


@contextmanager
def full_disk(room: int = 0) -> Iterator[None]:
    """No file can grow beyond `room` bytes; opening, cutting and renaming go on."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (room, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def everything(out: Path) -> dict[str, bytes]:
    """All files below a folder."""
    return {str(path.relative_to(out)): path.read_bytes() for path in sorted(out.rglob("*")) if path.is_file()}


def test_a_log_that_cannot_be_cut_stays_whole(tmp_path: Path) -> None:
    path = tmp_path / "progress.jsonl"
    path.write_text('{"env_steps": 1}\n' * 5)
    with full_disk(), pytest.raises(OSError, match="too large"):
        logs.RunLog(tmp_path, 2)
    assert len(logs.read(path)) == 5 and os.listdir(tmp_path) == ["progress.jsonl"]
    logs.RunLog(tmp_path, 2).close()
    assert len(logs.read(path)) == 2


def test_a_damaged_checkpoint_is_set_aside_and_the_one_before_is_gone_on_from(
    whole: Path, cut: Path, turns: list[int], capsys: pytest.CaptureFixture[str]
) -> None:
    newest = cut / "checkpoints" / "000003.npz"
    newest.write_bytes(newest.read_bytes()[:5000])
    assert loop.train(CONFIG, cut, resume=True)
    assert turns == [2, 3] and same(whole, cut, CONFIG)
    assert "000003.npz" in (said := capsys.readouterr().err) and "set aside" in said
    assert "000003.npz" in (cut / "notes.txt").read_text()
    assert os.listdir(cut / "checkpoints") == ["000004.npz"]


def test_a_log_shorter_than_the_newest_checkpoint_goes_on_from_the_older_one(
    whole: Path, cut: Path, turns: list[int]
) -> None:
    log = cut / "kme-0" / "progress.jsonl"
    log.write_text("".join(log.read_text().splitlines(keepends=True)[:2]) + '{"env_st')
    assert loop.train(CONFIG, cut, resume=True)
    assert turns == [2, 3] and same(whole, cut, CONFIG)


def test_a_log_shorter_than_all_checkpoints_changes_nothing(cut: Path) -> None:
    log = cut / "kme-0" / "progress.jsonl"
    log.write_text(log.read_text().splitlines(keepends=True)[0])
    before = everything(cut)
    with pytest.raises(ValueError, match=r"progress.jsonl .* 1 .*--restart"):
        loop.train(CONFIG, cut, resume=True)
    assert everything(cut) == before


def damaged(out: Path) -> None:
    for path in checkpoint.saved(out / "checkpoints"):
        path.write_bytes(path.read_bytes()[:5000])


def test_with_every_checkpoint_damaged_only_the_users_word_starts_again(
    whole: Path, cut: Path, turns: list[int], capsys: pytest.CaptureFixture[str]
) -> None:
    damaged(cut)
    for _ in range(2):
        assert main_train(cut, "--resume") == 2
        assert "--restart" in capsys.readouterr().err and len(rows(cut, "kme-0")) == 3 and turns == []
    assert sorted(os.listdir(cut / "checkpoints")) == ["000002.npz.aside", "000003.npz.aside"]
    before = (cut / "kme-0" / "progress.jsonl").read_bytes()
    with pytest.raises(loop.Stopped):
        loop.train(CONFIG, cut, restart=True, deadline=time.monotonic() - 1)
    assert [path.name for path in checkpoint.saved(cut / "checkpoints")] == ["000001.npz"]
    assert loop.train(CONFIG, cut, resume=True)
    assert turns == [0, 1, 2, 3] and same(whole, cut, CONFIG)
    assert (cut / "before-1" / "kme-0" / "progress.jsonl").read_bytes() == before
    assert (cut / "before-1" / "config.json").read_bytes() == (cut / "config.json").read_bytes()
    with pytest.raises(ValueError, match="finished"):
        loop.train(CONFIG, cut, restart=True)


def test_a_replay_that_is_missing_or_damaged_is_told_with_what_helps(tmp_path: Path) -> None:
    sac = small(task="maze", backend="auto", seeds=1, bonuses=["none"], learner="sac", steps=384,
                options={"sac": {"width": 8, "batch": 8, "gradient_steps": 1, "random_steps": 64}})  # fmt: skip
    with pytest.raises(loop.Stopped):
        loop.train(sac, tmp_path / "run", deadline=time.monotonic() - 1)
    [chunk] = checkpoint.chunks(tmp_path / "run/checkpoints").glob("*.npz")
    chunk.write_bytes(chunk.read_bytes()[:-100])
    for _ in range(2):
        with pytest.raises(ValueError, match=r"000000000\.npz .* damaged.* Nothing was loaded\. Add --restart"):
            loop.train(sac, tmp_path / "run", resume=True)
    chunk.unlink()
    with pytest.raises(ValueError, match=r"000000000\.npz is missing, and the checkpoint needs it\. Add --restart"):
        loop.train(sac, tmp_path / "run", resume=True)


def test_what_cannot_be_made_longer_may_start_again_longer(cut: Path) -> None:
    longer, before = small(seeds=1, bonuses=["kme"], steps=2 * CONFIG.steps), (cut / "config.json").read_bytes()
    damaged(cut)
    with pytest.raises(ValueError, match="--restart"):
        loop.train(longer, cut, resume=True)
    with pytest.raises(loop.Stopped):
        loop.train(longer, cut, resume=True, restart=True, deadline=time.monotonic() - 1)
    assert (cut / "before-1" / "config.json").read_bytes() == before != (cut / "config.json").read_bytes()
    assert len(rows(cut, "kme-0")) == 1 and len(rows(cut / "before-1", "kme-0")) == 3


def main_train(out: Path, *more: str) -> int:
    """CONFIG from the command line."""
    words = [*TRAIN, "--bonus", "kme", "--out", str(out), *more]
    words[words.index("--steps") + 1] = "256"
    return main(words)


def test_a_run_that_had_saved_nothing_needs_no_word(whole: Path, tmp_path: Path, monkeypatch: Any) -> None:
    out = tmp_path / "new"

    def killed(*_: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(checkpoint, "save", killed)
        with pytest.raises(KeyboardInterrupt):
            loop.train(CONFIG, out, deadline=time.monotonic() - 1)
    assert len(rows(out, "kme-0")) == 1
    assert loop.train(CONFIG, out, resume=True) and same(whole, out, CONFIG)


def test_a_folder_is_one_processes(cut: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = everything(cut)
    with folder.locked(cut):
        with pytest.raises(ValueError, match=f"process {os.getpid()}"):
            loop.train(CONFIG, cut, resume=True)
        assert main_train(cut, "--resume") == 2 and str(os.getpid()) in capsys.readouterr().err
    assert everything(cut) == before
    assert loop.train(CONFIG, cut, resume=True) and not (cut / folder.LOCK).exists()


def test_the_lock_goes_with_a_killed_process(cut: Path) -> None:
    code = "import sys; from pathlib import Path; from voronaut.training import folder\n" \
           "with folder.locked(Path(sys.argv[1])): print('mine', flush=True); sys.stdin.read()"  # fmt: skip
    child = subprocess.Popen([sys.executable, "-c", code, str(cut)], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert child.stdout is not None and child.stdout.readline() == b"mine\n"
    with pytest.raises(ValueError, match=f"process {child.pid}"):
        loop.train(CONFIG, cut, resume=True)
    child.send_signal(signal.SIGKILL)
    child.communicate()
    assert (cut / folder.LOCK).exists()
    assert loop.train(CONFIG, cut, resume=True) and not (cut / folder.LOCK).exists()


def test_nothing_is_made_where_a_task_cannot_be(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="NoSuch"):
        loop.train(small(task="gym:NoSuch-v0", backend="auto"), tmp_path / "a" / "b")
    assert not list(tmp_path.iterdir())


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")  # TensorBoard's own thread
@pytest.mark.parametrize("room", [0, 100, 1000])  # for nothing, for the lock, for config.json
def test_a_disk_that_is_full_from_the_start_leaves_a_folder_that_can_be_resumed(
    whole: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], room: int
) -> None:
    out = tmp_path / "new"
    with full_disk(room):
        assert command.train(CONFIG, out, resume=False, quiet=True) == 1
    assert "--resume" in capsys.readouterr().err
    assert command.train(CONFIG, out, resume=True, quiet=True) == 0
    assert same(whole, out, CONFIG)


@pytest.mark.parametrize("name", [".config.json", ".config.json.a1b2c3d4.part", ".lock"])
def test_a_folder_with_nothing_but_the_leftovers_of_a_kill_is_empty(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text("")
    with pytest.raises(loop.Stopped):
        loop.train(CONFIG, tmp_path, resume=True, deadline=time.monotonic() - 1)
    assert not (tmp_path / name).exists()


def test_what_killed_writes_left_is_removed_at_the_start_and_at_the_end(cut: Path, monkeypatch: Any) -> None:
    places = [cut, cut / "checkpoints", cut / "kme-0", cut / "kme-0" / "clusters"]
    for place in places:
        (place / LEFT).write_text("half")
    turn = PPOTrainer.turn

    def checked(trainer: PPOTrainer) -> Rows:
        assert not any((place / LEFT).exists() for place in places)
        (cut / "kme-0" / LEFT).write_text("half")
        return turn(trainer)

    monkeypatch.setattr(PPOTrainer, "turn", checked)
    assert loop.train(CONFIG, cut, resume=True)
    assert not any((place / LEFT).exists() for place in places)


def test_an_empty_folder_of_checkpoints_is_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write = npz.write

    def full(path: npz.Where, arrays: Any, **more: Any) -> None:
        if Path(path).parent.name == "checkpoints":
            raise OSError(28, "No space left on device", str(path))
        write(path, arrays, **more)

    monkeypatch.setattr(npz, "write", full)
    with pytest.raises(OSError, match="No space"):
        loop.train(CONFIG, tmp_path / "new", deadline=time.monotonic() - 1)
    assert not (tmp_path / "new" / "checkpoints").exists()


def test_checkpoints_stay_until_everything_else_is_written(
    whole: Path, cut: Path, turns: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    replacing = files.replacing
    for name in ("bonus.npz", "finished.json"):

        def full(path: files.Where, name: str = name, **more: Any) -> Any:
            if Path(path).name == name:
                raise OSError(28, "No space left on device")
            return replacing(path, **more)

        monkeypatch.setattr(files, "replacing", full)
        with pytest.raises(OSError, match="No space"):
            loop.train(CONFIG, cut, resume=True)
        assert checkpoint.saved(cut / "checkpoints") and not (cut / "finished.json").exists()
    monkeypatch.setattr(files, "replacing", replacing)
    assert loop.train(CONFIG, cut, resume=True) and turns == [3] and same(whole, cut, CONFIG)


def test_older_checkpoints_that_outlived_the_end_are_removed_by_the_next_command(cut: Path, monkeypatch: Any) -> None:
    def killed(*_: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(folder, "drop_spare", killed)
        with pytest.raises(KeyboardInterrupt):
            loop.train(CONFIG, cut, resume=True)
    assert len(checkpoint.saved(cut / "checkpoints")) == 2
    assert not loop.train(CONFIG, cut, resume=True) and os.listdir(cut / "checkpoints") == ["000004.npz"]


def test_a_kill_between_the_longer_config_and_the_end_of_the_shorter_one_can_be_resumed(
    whole: Path, tmp_path: Path, turns: list[int]
) -> None:
    out, short = tmp_path / "out", small(seeds=1, bonuses=["kme"], steps=128)
    loop.train(short, out)
    done = (out / "finished.json").read_bytes()
    folder.claim(CONFIG, out)
    (out / "finished.json").write_bytes(done)
    assert loop.train(CONFIG, out, resume=True) and same(whole, out, CONFIG) and turns == [0, 1, 2, 3]


def test_the_old_checkpoint_goes_after_the_new_one_is_written(tmp_path: Path) -> None:
    for rollout in (1, 2):
        checkpoint.save(tmp_path, rollout, {})
    with full_disk(), pytest.raises(OSError, match="too large"):
        checkpoint.save(tmp_path, 3, {})
    assert [path.name for path in sorted(tmp_path.iterdir())] == ["000001.npz", "000002.npz"]
    checkpoint.save(tmp_path, 3, {})
    assert [path.name for path in checkpoint.saved(tmp_path)] == ["000002.npz", "000003.npz"]


def test_the_millionth_rollout_is_the_newest(tmp_path: Path) -> None:
    for rollout in (999_998, 999_999, 1_000_000):
        checkpoint.save(tmp_path, rollout, {})
    assert [path.stem for path in checkpoint.saved(tmp_path)] == ["999999", "1000000"]


def test_damaged_text_is_named_by_file_and_line(cut: Path) -> None:
    log = cut / "kme-0" / "progress.jsonl"
    lines = log.read_text().splitlines(keepends=True)
    log.write_text("".join([lines[0], "gibberish\n", lines[2]]))
    with pytest.raises(ValueError, match=r"progress\.jsonl.* line 2"):
        loop.train(CONFIG, cut, resume=True)
    (cut / "config.json").write_text('{\n"task": half')
    with pytest.raises(ValueError, match=r"config\.json .*line 2"):
        loop.train(CONFIG, cut, resume=True)


@pytest.mark.parametrize("damage", [b"", b"gibberish\n", b"\xff\xfe\n"])
def test_a_damaged_log_of_a_finished_run_is_named_and_not_cut_short(
    damage: bytes, whole: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    shutil.copytree(whole, out)
    log = out / "kme-0" / logs.NAME
    log.write_bytes(damage + b"".join(log.read_bytes().splitlines(keepends=True)[1:] if damage else []))
    with pytest.raises(ValueError, match=r"progress\.jsonl.* line 1" if damage else r"progress\.jsonl is empty"):
        command.train(CONFIG, out, resume=False, quiet=True)


def test_the_last_line_of_a_log_may_be_half_written(tmp_path: Path) -> None:
    (tmp_path / "log").write_text('{"a": 1}\n{"a"')
    assert logs.read(tmp_path / "log") == [{"a": 1}]
