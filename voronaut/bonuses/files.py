"""Bonuses on disk: one npz without pickle, written whole or not at all, refused whole if anything is amiss."""

import hashlib
import importlib
import json
import os
import tempfile
import zipfile
from abc import ABC, abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from voronaut.version import __version__

FORMAT = 1
KINDS = {
    "KME": "voronaut.bonuses.kme",
    "RND": "voronaut.bonuses.rnd",
    "RE3": "voronaut.bonuses.re3",
    "HashCount": "voronaut.bonuses.hashcount",
    "NoBonus": "voronaut.bonuses.none",
}
Path_ = str | os.PathLike[str]


class Saved(ABC):
    """A bonus that can be written to a file: its parameters, and what it learned."""

    @property
    @abstractmethod
    def params(self) -> dict[str, Any]:
        """Keyword arguments (plain JSON values) that make this bonus again."""

    @abstractmethod
    def state_dict(self) -> dict[str, NDArray[Any]]:
        """Everything learned, as named arrays."""

    @abstractmethod
    def load_state_dict(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Take over what `state_dict` gave."""

    def save(self, path: Path_) -> None:
        """Write everything to one file. The file at `path` is replaced at once, or stays as it was."""
        header = {
            "format": FORMAT,
            "kind": type(self).__name__,
            "params": self.params,
            "voronaut": __version__,
        }
        text = np.frombuffer(json.dumps(header, sort_keys=True).encode(), np.uint8)
        arrays = {"header": text, **{f"state.{name}": array for name, array in self.state_dict().items()}}
        write_atomically(path, {**arrays, "digest": digest(arrays)})


def digest(arrays: Mapping[str, NDArray[Any]]) -> NDArray[np.uint8]:
    """SHA-256 over names, types, shapes and bytes."""
    total = hashlib.sha256()
    for name in sorted(arrays):
        array = np.ascontiguousarray(arrays[name])
        total.update(f"{name} {array.dtype.str} {array.shape};".encode())
        total.update(array.tobytes())
    return np.frombuffer(total.digest(), np.uint8)


def write_atomically(path: Path_, arrays: Mapping[str, NDArray[Any]]) -> None:
    """An npz under a temporary name in the same folder, then renamed: a kill or a full disk leaves the old file."""
    target = Path(path)
    handle, name = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            np.savez(file, allow_pickle=False, **cast(Any, arrays))
            file.flush()
            os.fsync(file.fileno())
        os.chmod(name, 0o666 & ~current_umask())
        os.replace(name, target)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def current_umask() -> int:
    """The process's umask (which can only be read by setting it)."""
    mask = os.umask(0)
    os.umask(mask)
    return mask


def read_arrays(path: Path_) -> dict[str, NDArray[Any]]:
    """All arrays of a file this module wrote; ValueError for anything else."""
    try:
        with np.load(path, allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
    except (
        zipfile.BadZipFile,
        ValueError,
        EOFError,
        KeyError,
        AttributeError,
        OSError,
        TypeError,
        NotImplementedError,
    ) as error:
        if isinstance(error, FileNotFoundError | IsADirectoryError | PermissionError):
            raise
        raise ValueError(f"{path} is not a bonus saved by voronaut, or it is truncated: {error}") from error
    found = arrays.pop("digest", None)
    if found is None or "header" not in arrays:
        raise ValueError(f"{path} is not a bonus saved by voronaut: it has no header. Save with bonus.save(path).")
    if not np.array_equal(found, digest(arrays)):
        raise ValueError(f"{path} was changed after it was saved (its checksum does not match). Nothing was loaded.")
    return arrays


def load(path: Path_, **extra: Any) -> Any:
    """The bonus saved at `path`, ready to go on. `extra` gives what a file cannot hold, such as `features=`."""
    arrays = read_arrays(path)
    header = json.loads(arrays.pop("header").tobytes())
    if header["format"] != FORMAT:
        raise ValueError(f"{path} has format {header['format']}; this voronaut ({__version__}) reads format {FORMAT}.")
    if header["kind"] not in KINDS:
        raise ValueError(f"{path} holds a {header['kind']!r}; known are {', '.join(KINDS)}.")
    kind = getattr(importlib.import_module(KINDS[header["kind"]]), header["kind"])
    bonus = kind(**{**header["params"], **extra})
    bonus.load_state_dict({name.removeprefix("state."): array for name, array in arrays.items()})
    return bonus


def check_state(state: Mapping[str, NDArray[Any]], expected: Mapping[str, NDArray[Any]], owner: str) -> None:
    """Refuse a state whose names, shapes or kinds are not those of `expected`; lengths of 0 in `expected` are free."""
    if set(state) != set(expected):
        missing, foreign = sorted(set(expected) - set(state)), sorted(set(state) - set(expected))
        raise ValueError(f"this is not the state of a {owner}: missing {missing}, unknown {foreign}.")
    for name, like in expected.items():
        array = np.asarray(state[name])
        fits = len(array.shape) == len(like.shape) and all(
            b in (0, a) for a, b in zip(array.shape, like.shape, strict=True)
        )
        if not fits or array.dtype != like.dtype:
            raise ValueError(
                f"{name} must be {like.dtype} {like.shape}; got {array.dtype} {array.shape}. "
                f"Make the {owner} with the parameters it was saved with."
            )
        if array.dtype.kind == "f" and not np.isfinite(array).all():
            raise ValueError(f"{name} holds numbers that are not finite. Nothing was loaded.")
