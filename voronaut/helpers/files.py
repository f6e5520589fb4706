"""Files written whole or not at all: under a temporary name in the same folder, then renamed."""

import os
import re
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

try:
    import fcntl
except ImportError:  # not on Windows, where nobody waits for anybody
    fcntl = None  # type: ignore[assignment]

Where = str | os.PathLike[str]
LEFTOVER = re.compile(r"\..+\.[a-z0-9_]{8}\.part")  # what a killed write leaves: .NAME.RANDOM.part


@contextmanager
def replacing(path: Where, *, durable: bool = True) -> Iterator[IO[Any]]:
    """A file to write bytes to, which then takes the place of `path`: a kill or a full disk leaves the old file.

    `durable` waits until the disk has it, so that a crash of the machine leaves one of the two as well.
    """
    target = Path(path)
    name = target.with_name(f".{target.name}.{secrets.token_hex(4)}.part")
    file = name.open("xb")  # with the rights that any new file gets
    try:
        with file:
            yield file
            file.flush()
            if durable:
                os.fsync(file.fileno())
        os.replace(name, target)
    except BaseException:
        name.unlink(missing_ok=True)
        raise


def write_text(path: Where, text: str) -> None:
    """`Path.write_text`, whole or not at all."""
    with replacing(path) as file:
        file.write(text.encode())


@contextmanager
def alone_in(folder: Path) -> Iterator[None]:
    """Wait until no other process is in such a block on this folder, which is made if need be."""
    folder.mkdir(parents=True, exist_ok=True)
    if fcntl is None:
        yield
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        with suppress(OSError):  # a file system without locks keeps nobody out
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def check_writable(path: Path) -> None:
    """ValueError if no file can be written here; to be asked before the work that is to be written."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        new = not path.exists()
        path.open("ab").close()
        if new:
            path.unlink()
    except OSError as error:
        raise ValueError(f"{path} cannot be written: {why_not(error)}. Choose another path.") from error


def why_not(error: OSError) -> str:
    """In words; of a path that leads through a file, not that this file exists."""
    in_the_way = isinstance(error, FileExistsError | NotADirectoryError)
    return "a folder on the way there is a file" if in_the_way else error.strerror or str(error)


def is_leftover(path: Path) -> bool:
    """Whether this is the temporary file of a write that was killed, or is under way."""
    return LEFTOVER.fullmatch(path.name) is not None and path.is_file()
