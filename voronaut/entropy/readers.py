"""Rows from files in chunks: npy (memory-mapped), npz, csv and other text, parquet, lines on stdin."""

import math
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import chain, islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Rows = NDArray[np.float64]

CHUNK = 4096
SUFFIXES = ".npy, .npz, .csv, .tsv, .txt, .parquet, or - for lines on stdin"


class Source(NamedTuple):
    """Chunks of rows, how many rows there will be (None: not known), and the columns' names (empty: none)."""

    chunks: Iterator[Rows]
    total: int | None
    names: list[str]

    def name(self, column: int) -> str:
        """`3 (speed)`, or `3`."""
        return f"{column} ({self.names[column]})" if column < len(self.names) else str(column)


@contextmanager
def open_rows(file: str, key: str | None = None) -> Iterator[Source]:
    """The rows of a file, or of stdin for "-"."""
    path = Path(file)
    suffix = path.suffix.lower()
    if file != "-" and not path.is_file():
        raise FileNotFoundError(f"{file}: {'is a folder' if path.is_dir() else 'no such file'}.")
    if file == "-":
        yield _text(sys.stdin, "stdin")
    elif suffix in (".npy", ".npz"):
        yield _array(_load(path, key), file)
    elif suffix == ".parquet":
        yield _parquet(path)
    elif suffix in (".csv", ".tsv", ".txt"):
        with path.open(encoding="utf-8-sig", errors="replace") as lines:
            yield _text(lines, file)
    else:
        raise ValueError(f"{file}: what is a {suffix or 'file without a suffix'}? Known are {SUFFIXES}.")


def _load(path: Path, key: str | None) -> Any:
    try:
        loaded = np.load(path, mmap_mode="r" if path.suffix == ".npy" else None, allow_pickle=False)
    except (ValueError, OSError, EOFError):
        raise ValueError(f"{path} is no NumPy file of numbers: it is damaged, or holds Python objects.") from None
    if isinstance(loaded, np.ndarray):
        return loaded
    names = list(loaded.files)
    if key is None and len(names) != 1:
        raise ValueError(f"{path} holds {len(names)} arrays ({', '.join(names)}): choose one with --key NAME.")
    if key is not None and key not in names:
        raise ValueError(f"{path} has no array {key!r}; it has {', '.join(names)}.")
    return loaded[key or names[0]]


def _array(array: Any, file: str) -> Source:
    """Rows in an order that hops through the whole array, i ↦ a i mod n: near rows of a log resemble each other."""
    if array.dtype.kind not in "fiub":
        raise ValueError(f"{file} holds {array.dtype}; numbers are needed.")
    if array.ndim not in (1, 2):
        raise ValueError(f"{file} has shape {array.shape}; (rows, columns) is needed: reshape it first.")
    n = len(array)
    hop = max(1, int(n * 0.6180339887))
    while math.gcd(hop, n) != 1:
        hop += 1

    def chunks() -> Iterator[Rows]:
        for start in range(0, n, CHUNK):
            places = np.arange(start, min(start + CHUNK, n)) * hop % n
            yield np.asarray(array[places], np.float64).reshape(len(places), -1)

    return Source(chunks(), n, [])


def _parquet(path: Path) -> Source:
    try:
        from pyarrow import parquet, types
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "pyarrow":
            raise
        raise ImportError("pyarrow is missing. Install it with: pip install 'voronaut[parquet]'") from error
    try:
        table = parquet.ParquetFile(path)
    except (ValueError, OSError) as error:
        raise ValueError(f"{path} is no parquet file: {error}") from None
    schema = table.schema_arrow
    numeric = (types.is_integer, types.is_floating, types.is_boolean, types.is_decimal)
    text = [field.name for field in schema if not any(is_kind(field.type) for is_kind in numeric)]
    if text:
        raise ValueError(f"{path}: column {', '.join(text)} is not numeric. Drop it first.")

    def chunks() -> Iterator[Rows]:
        for batch in table.iter_batches(CHUNK):
            columns = [column.cast("float64").to_numpy(zero_copy_only=False) for column in batch.columns]
            yield np.stack(columns, axis=1).astype(np.float64)

    return Source(chunks(), table.metadata.num_rows, list(schema.names))


def _text(lines: Iterable[str], file: str) -> Source:
    """Lines of numbers between commas, semicolons, tabs or blanks; a first line without numbers names the columns."""
    numbered = ((i, line) for i, line in enumerate(lines, 1) if line.strip() and not line.startswith("#"))
    first = next(numbered, None)
    if first is None:
        raise ValueError(f"{file} is empty.")
    mark = next((c for c in (",", ";", "\t") if c in first[1]), None)
    words = [word.strip().strip('"') for word in first[1].strip("\r\n").split(mark)]
    if all(_number(word) is None for word in words):
        return Source(_parse(numbered, mark, len(words), words, file), None, words)
    return Source(_parse(chain([first], numbered), mark, len(words), [], file), None, [])


def _parse(
    numbered: Iterator[tuple[int, str]], mark: str | None, width: int, names: list[str], file: str
) -> Iterator[Rows]:
    """Chunks whose ends fall on 1, 2 and 5 times powers of ten, so that a slow stream can be read as it goes."""
    seen = 0
    while chunk := list(islice(numbered, min(CHUNK, _milestone(seen) - seen))):
        seen += len(chunk)
        try:
            rows = np.loadtxt([line for _, line in chunk], delimiter=mark, ndmin=2, comments=None)
        except ValueError:
            rows = np.array([_row(i, line, mark, width, names, file) for i, line in chunk])
        if rows.shape[1] != width:
            _row(*chunk[0], mark, width, names, file)
        yield rows


def _milestone(seen: int) -> int:
    """The next of 100, 200, 500, 1000, ... after `seen`."""
    power = 100
    while True:
        for factor in (1, 2, 5):
            if factor * power > seen:
                return factor * power
        power *= 10


def _row(line_number: int, line: str, mark: str | None, width: int, names: list[str], file: str) -> list[float]:
    """One line read with care, for its error; an empty field is NaN."""
    words = [word.strip() for word in line.strip("\r\n").split(mark)]
    if len(words) != width:
        raise ValueError(f"{file}, line {line_number}: {len(words)} columns, but the first line has {width}.")
    numbers = [math.nan if word == "" else _number(word) for word in words]
    if None in numbers:
        column = numbers.index(None)
        label = f" ({names[column]})" if names else ""
        raise ValueError(
            f"{file}, line {line_number}: column {column}{label} is {words[column]!r}, which is no number."
        )
    return [float(number) for number in numbers if number is not None]


def _number(word: str) -> float | None:
    try:
        return float(word.strip('"'))
    except ValueError:
        return None
