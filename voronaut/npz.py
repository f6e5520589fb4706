"""Named arrays in one file: no pickle, written whole or not at all, refused whole if anything is amiss."""

import hashlib
import os
import tempfile
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

Arrays = dict[str, NDArray[Any]]
Where = str | os.PathLike[str]


def write(path: Where, arrays: Mapping[str, NDArray[Any]]) -> None:
    """Write under a temporary name in the same folder, then rename: a kill or a full disk leaves the old file."""
    target = Path(path)
    handle, name = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            np.savez(file, allow_pickle=False, **cast(Any, {**arrays, "digest": digest(arrays)}))
            file.flush()
            os.fsync(file.fileno())
        os.chmod(name, 0o666 & ~_umask())
        os.replace(name, target)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def read(path: Where) -> Arrays:
    """What `write` wrote; ValueError for a file that is truncated, foreign or changed."""
    try:
        with np.load(path, allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
    except (FileNotFoundError, IsADirectoryError, PermissionError):
        raise
    except (
        zipfile.BadZipFile,
        ValueError,
        EOFError,
        KeyError,
        AttributeError,
        OSError,
        TypeError,
        RuntimeError,
    ) as error:
        raise ValueError(f"{path} was not saved by voronaut, or it is truncated: {error}") from error
    found = arrays.pop("digest", None)
    if found is None:
        raise ValueError(f"{path} was not saved by voronaut: it has no checksum.")
    if not np.array_equal(found, digest(arrays)):
        raise ValueError(f"{path} was changed after it was saved (its checksum does not match). Nothing was loaded.")
    return arrays


def digest(arrays: Mapping[str, NDArray[Any]]) -> NDArray[np.uint8]:
    """SHA-256 over names, types, shapes and bytes."""
    total = hashlib.sha256()
    for name in sorted(arrays):
        array = np.ascontiguousarray(arrays[name])
        total.update(f"{name} {array.dtype.str} {array.shape};".encode())
        total.update(array.data)
    return np.frombuffer(total.digest(), np.uint8)


def _umask() -> int:
    """The process's umask (which can only be read by setting it)."""
    mask = os.umask(0)
    os.umask(mask)
    return mask
