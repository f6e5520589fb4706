"""Named arrays in one file: no pickle, written whole or not at all, refused whole if anything is amiss."""

import errno
import hashlib
import json
import math
import os
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, cast

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from voronaut.helpers import files

SHORTAGES = {errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EAGAIN, errno.EINTR, errno.ESTALE}  # of the machine
Arrays = dict[str, NDArray[Any]]
Where = files.Where


def write(path: Where, arrays: Mapping[str, NDArray[Any]], *, durable: bool = True) -> None:
    """Write all arrays and a checksum of them; see `files.replacing`."""
    with files.replacing(path, durable=durable) as file:
        np.savez(file, allow_pickle=False, **cast(Any, {**arrays, "digest": digest(arrays)}))


def read(path: Where) -> Arrays:
    """What `write` wrote; ValueError for a file that is truncated, foreign or changed."""
    with refusing(path, MemoryError):  # no more is asked for than the file is long: the machine has too little
        arrays = _unpack(path)
        found = arrays.pop("digest", None)
        if found is None:
            raise ValueError("it has no checksum")
        if not np.array_equal(found, digest(arrays)):
            raise ValueError("it was changed after it was saved: its checksum does not match")
    return arrays


@contextmanager
def refusing(path: Where, *passing: type[Exception]) -> Iterator[None]:
    """Whatever is wrong inside a file, of any type but those `passing`, becomes a ValueError that names the file.

    Too many open files and the like say nothing about this one, and go through.
    """
    usual = FileNotFoundError, IsADirectoryError, PermissionError, ImportError
    through: tuple[type[Exception], ...] = (*usual, *passing)
    try:
        yield
    except through:
        raise
    except Exception as error:  # zipfile, zlib, numpy, tokenize and json between them raise about fifteen types
        if isinstance(error, OSError) and error.errno in SHORTAGES:
            raise
        what = str(error) or type(error).__name__
        raise ValueError(f"{path} was not saved by voronaut, or it is damaged: {what}. Nothing was loaded.") from error


def read_json(path: Where, array: NDArray[Any]) -> dict[str, Any]:
    """The plain values that an array of a file holds as JSON; ValueError if it holds anything else."""
    with refusing(path):
        return dict(json.loads(array.tobytes()))


def _unpack(path: Where) -> Arrays:
    """All arrays. Sizes are compared before anything is read: no file takes more memory than it is long."""
    with zipfile.ZipFile(path) as file:
        members = file.infolist()
        if sum(member.file_size for member in members) > os.path.getsize(path):
            raise ValueError("it is compressed or says that it holds more than it does")
        return {member.filename.removesuffix(".npy"): array(file, member) for member in members}


def array(file: zipfile.ZipFile, member: zipfile.ZipInfo) -> NDArray[Any]:
    """One array of an archive, if it is as large as its header says: else nothing is unpacked."""
    with file.open(member) as stream:
        version = npy.read_magic(stream)
        read_header = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
        shape, _, dtype = read_header(stream)
        if math.prod(shape) * dtype.itemsize != member.file_size - stream.tell():
            raise ValueError(f"{member.filename} says that it is {dtype} {shape}, and is not as long")
        stream.seek(0)
        found = np.asarray(npy.read_array(stream, allow_pickle=False))
        stream.read()  # to the end, where the zip's own checksum is compared
        return found


def digest(arrays: Mapping[str, NDArray[Any]]) -> NDArray[np.uint8]:
    """SHA-256 over names, types, shapes and bytes."""
    total = hashlib.sha256()
    for name in sorted(arrays):
        array = np.ascontiguousarray(arrays[name])
        total.update(f"{name} {array.dtype.str} {array.shape};".encode())
        total.update(array.data)
    return np.frombuffer(total.digest(), np.uint8)
