"""Array files: what is written comes back, and whatever else a file holds is one kind of error."""

import errno
import io
import os
import tracemalloc
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from voronaut.helpers import files, npz

ARRAYS = {"a": np.arange(6.0).reshape(2, 3), "b": np.asfortranarray(np.ones((3, 2), np.int16)), "c": np.array(7)}


def test_what_is_written_comes_back_and_may_be_changed(tmp_path: Path) -> None:
    npz.write(tmp_path / "x.npz", ARRAYS)
    back = npz.read(tmp_path / "x.npz")
    assert back.keys() == ARRAYS.keys()
    for name, array in ARRAYS.items():
        assert np.array_equal(back[name], array) and back[name].dtype == array.dtype
        back[name][...] = 0
    assert os.listdir(tmp_path) == ["x.npz"]


def test_no_flipped_bit_of_a_header_is_anything_but_a_value_error(tmp_path: Path) -> None:
    path = tmp_path / "x.npz"
    npz.write(path, {"a": np.zeros(2**17)})  # so long that its header is read before the zip's checksum says no
    whole = path.read_bytes()
    start = whole.index(b"\x93NUMPY")
    for place in range(start, start + 128):
        for bit in range(8):
            path.write_bytes(whole[:place] + bytes([whole[place] ^ 1 << bit]) + whole[place + 1 :])
            with pytest.raises(ValueError, match=r"x\.npz"):
                npz.read(path)


def member(header: str, data: bytes = b"") -> bytes:
    """An array in the npy format with any header one likes."""
    text = header.encode() + b"\n"
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text + data


def described(shape: Any, dtype: str = "'<f8'") -> str:
    return f"{{'descr': {dtype}, 'fortran_order': False, 'shape': {shape}}}"


def zipped(path: Path, content: bytes, kind: int = zipfile.ZIP_STORED) -> None:
    with zipfile.ZipFile(path, "w", kind) as file:
        file.writestr("a.npy", content)


CRAFTED: dict[str, Callable[[Path], None]] = {
    "nested too deep": lambda p: zipped(p, member("(" * 9000)),
    "no key": lambda p: zipped(p, member("{}")),
    "a shape of words": lambda p: zipped(p, member(described("('a',)"))),
    "a huge shape": lambda p: zipped(p, member(described((10**13,)))),
    "a shape beyond 64 bits": lambda p: zipped(p, member(described((10**30,)))),
    "a product beyond 64 bits": lambda p: zipped(p, member(described((2**32, 2**32)))),
    "a negative shape": lambda p: zipped(p, member(described((-1,)), b"12345678")),
    "no type": lambda p: zipped(p, member(described((1,), "'?what'"))),
    "objects": lambda p: zipped(p, member(described((1,), "'|O'"), b"12345678")),
    "too long": lambda p: zipped(p, member(described((1,)), b"123456789")),
    "an array alone": lambda p: np.save(p.open("wb"), np.ones(3)),
    "damaged compression": lambda p: (
        zipped(p, bytes(range(256)) * 9, zipfile.ZIP_DEFLATED),
        p.write_bytes(p.read_bytes()[:60] + b"\xff\xff\xff\xff" + p.read_bytes()[64:]),
    ),  # type: ignore[func-returns-value]
    "dates": lambda p: np.savez(p, a=np.zeros(3, "M8[s]"), digest=np.zeros(32, np.uint8)),
}


@pytest.mark.parametrize("what", CRAFTED)
def test_crafted_files_are_refused(tmp_path: Path, what: str) -> None:
    path = tmp_path / "x.npz"
    CRAFTED[what](path)
    with pytest.raises(ValueError, match=r"x\.npz"):
        npz.read(path)


def test_no_file_unpacks_to_more_than_its_size(tmp_path: Path) -> None:
    """A small file of compressed zeros, and one whose table names the same bytes a hundred times."""
    path, zeros = tmp_path / "x.npz", io.BytesIO()
    np.save(zeros, np.zeros(2**22, np.uint8))
    zipped(path, zeros.getvalue(), zipfile.ZIP_DEFLATED)
    refused_in_little_memory(path)
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("0.npy", zeros.getvalue()[: 2**20])
        for i in range(1, 100):
            again = zipfile.ZipInfo(f"{i}.npy")
            for name in ("header_offset", "CRC", "file_size", "compress_size"):
                setattr(again, name, getattr(file.filelist[0], name))
            file.filelist.append(again)
    refused_in_little_memory(path)


def refused_in_little_memory(path: Path) -> None:
    tracemalloc.start()
    try:
        with pytest.raises(ValueError, match=r"x\.npz"):
            npz.read(path)
        assert tracemalloc.get_traced_memory()[1] < 2**20
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("shortage", [MemoryError(), OSError(errno.EMFILE, "Too many open files")])
def test_what_the_machine_is_short_of_is_no_damage(tmp_path: Path, monkeypatch: Any, shortage: Exception) -> None:
    def fails(path: Path) -> Any:
        raise shortage

    npz.write(tmp_path / "x.npz", {"a": np.zeros(2)})
    monkeypatch.setattr(npz, "_unpack", fails)
    with pytest.raises(type(shortage)):
        npz.read(tmp_path / "x.npz")
    shortage.errno = errno.EINVAL  # type: ignore[attr-defined]
    with pytest.raises(MemoryError if isinstance(shortage, MemoryError) else ValueError):
        npz.read(tmp_path / "x.npz")


def test_a_missing_file_is_missing(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        npz.read(tmp_path / "nothing.npz")


def test_a_write_that_fails_leaves_the_old_file_and_nothing_beside_it(tmp_path: Path) -> None:
    files.write_text(tmp_path / "x", "old")
    with pytest.raises(RuntimeError), files.replacing(tmp_path / "x") as file:
        file.write(b"new")
        assert sum(map(files.is_leftover, tmp_path.iterdir())) == 1
        raise RuntimeError
    assert os.listdir(tmp_path) == ["x"] and (tmp_path / "x").read_text() == "old"
    files.write_text(tmp_path / "x", "new")
    assert os.listdir(tmp_path) == ["x"] and (tmp_path / "x").read_text() == "new"
    (tmp_path / "y").touch()
    assert (tmp_path / "x").stat().st_mode == (tmp_path / "y").stat().st_mode
