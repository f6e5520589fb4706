"""Files written whole or not at all."""

import os
import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from voronaut.helpers import files


@pytest.mark.skipif(os.name == "nt", reason="no umask on Windows")
@pytest.mark.parametrize(("umask", "mode"), [(0o022, 0o644), (0o077, 0o600), (0o002, 0o664)])
def test_a_file_may_be_read_by_whom_the_umask_says(umask: int, mode: int, tmp_path: Path) -> None:
    before = os.umask(umask)
    try:
        files.write_text(tmp_path / "log", "a line\n")
        assert os.umask(umask) == umask  # asked for, and left as it was
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "log").stat().st_mode) == mode


def test_only_files_of_killed_writes_are_leftovers(tmp_path: Path) -> None:
    left, folder = tmp_path / ".policy.npz.ab12_xyz.part", tmp_path / ".policy.npz.cd34_xyz.part"
    kept = [tmp_path / name for name in ("policy.npz", ".lock", "x.part", ".policy.npz.short.part")]
    folder.mkdir()
    for path in (left, *kept):
        path.touch()
    assert files.is_leftover(left)
    assert not any(files.is_leftover(path) for path in (folder, tmp_path / "gone", *kept))


def test_a_write_that_fails_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "log"
    files.write_text(path, "old")
    with pytest.raises(RuntimeError, match="half way"), files.replacing(path) as file:
        file.write(b"new")
        raise RuntimeError("half way")
    assert path.read_text() == "old" and list(tmp_path.iterdir()) == [path]


def test_why_a_file_cannot_be_written_is_said_in_words() -> None:
    assert files.why_not(OSError(28, "No space left on device", "x.npz")) == "No space left on device"
    assert files.why_not(OSError("the drive is gone")) == "the drive is gone"
    assert files.why_not(NotADirectoryError(20, "Not a directory")) == "a folder on the way there is a file"


@pytest.mark.skipif(os.name == "nt", reason="nobody waits on Windows")
def test_one_process_after_another(tmp_path: Path) -> None:
    """Each adds one to what it read, and would lose another's if that were between its reading and its writing."""
    with ThreadPoolExecutor(8) as pool:  # a file that is opened again is locked against other threads too
        list(pool.map(lambda _: _add_one(tmp_path / "new" / "count"), range(40)))
    assert (tmp_path / "new" / "count").read_text() == "40"


def _add_one(path: Path) -> None:
    with files.alone_in(path.parent):
        before = int(path.read_text()) if path.exists() else 0
        os.sched_yield()
        files.write_text(path, str(before + 1))
