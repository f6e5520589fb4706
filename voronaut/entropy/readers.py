"""Rows from files in chunks: npy (memory-mapped), npz, csv and other text, parquet, lines on stdin."""

import csv
import math
import sys
import zipfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain, islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from voronaut.helpers import machine, npz
from voronaut.helpers.missing import require

Rows = NDArray[np.float64]

CHUNK = 4096
POOL = 1 << 23  # numbers (64 MB) that are held to shuffle rows which come in order
MARKS = sorted(factor * 10**power for factor in (1, 2, 5) for power in range(2, 18))  # rows at which to look
SUFFIXES = ".npy, .npz, .csv, .tsv, .txt, .parquet, or - for lines on stdin"


class Source(NamedTuple):
    """Chunks of rows, how many rows there will be (None: not known), and which columns they have."""

    chunks: Iterator[Rows]
    total: int | None
    columns: list[int]  # their places in the file
    names: list[str]  # of all columns of the file; empty: it has none

    def name(self, column: int) -> str:
        """`3 (speed)`, or `3`: the place in the file of a column of the chunks."""
        return _name(self.columns[column], self.names)


class Wanted(NamedTuple):
    """What is asked of a file: an array of it, some columns, and whether rows that are not finite are an error."""

    key: str | None = None
    columns: str | None = None
    strict: bool = True


@contextmanager
def open_rows(file: str, wanted: Wanted) -> Iterator[Source]:
    """The rows of a file in a shuffled order, or those of stdin ("-") as they come."""
    path = Path(file)
    suffix = path.suffix.lower()
    if file != "-" and not path.is_file():
        raise FileNotFoundError(f"{file}: {'is a folder' if path.is_dir() else 'no such file'}.")
    if wanted.key is not None and suffix != ".npz":
        raise ValueError(f"{file}: --key chooses an array of an .npz file; leave it out.")
    if file == "-":
        yield _text(sys.stdin, "stdin", wanted)
    elif suffix in (".npy", ".npz"):
        yield _array(_load(path, wanted.key), file, wanted)
    elif suffix == ".parquet":
        yield _shuffled(_parquet(path, wanted))
    elif suffix in (".csv", ".tsv", ".txt"):
        with path.open(encoding="utf-8-sig", errors="replace") as lines:
            yield _shuffled(_text(lines, file, wanted))
    else:
        raise ValueError(f"{file}: {suffix or 'a name without a suffix'} cannot be read. Give {SUFFIXES}.")


def _shuffled(source: Source) -> Source:
    """The same rows through a pool: wholly shuffled if they fit into it, else mixed with those around them."""
    return source._replace(chunks=pooled(source.chunks, max(POOL // max(len(source.columns), 1), 2 * CHUNK)))


def pooled(chunks: Iterator[Rows], room: int) -> Iterator[Rows]:
    """Every chunk is a random draw from the pool, whose place new rows take; at the end the pool is emptied."""
    rng, held, size = np.random.default_rng(0), list[Rows](), 0
    for chunk in chunks:
        held.append(chunk)
        size += len(chunk)
        if size >= room + CHUNK:  # joined once in a while, not for every chunk
            pool = rng.permutation(np.concatenate(held))
            yield from (pool[at : at + CHUNK] for at in range(0, size - room // 2, CHUNK))
            held = [pool[-(-(size - room // 2) // CHUNK) * CHUNK :]]
            size = len(held[0])
    if held:
        pool = rng.permutation(np.concatenate(held))
        yield from (pool[at : at + CHUNK] for at in range(0, len(pool), CHUNK))


def _pick(columns: str | None, names: Sequence[str], width: int, file: str) -> list[int]:
    """Places of the columns asked for, by name or by place; all if nothing is asked."""
    if columns is None:
        return list(range(width))
    picked = []
    for word in (word.strip() for word in columns.split(",")):
        place = names.index(word) if word in names else int(word) if word.isdecimal() else width
        if place >= width or place in picked:
            known = ", ".join(names[:20]) or "no names"
            why = "is there already" if place in picked else f"is none of the {width} columns ({known})"
            raise ValueError(f"{file}: --columns {word!r} {why}. Give names, or places from 0 on: 0,2.")
        picked.append(place)
    return picked


def _name(place: int, names: Sequence[str]) -> str:
    return f"{place} ({names[place]})" if place < len(names) else str(place)


def _refuse_bad(rows: Rows, wanted: Wanted, what_rows: str, places: Sequence[int], columns: Sequence[str]) -> None:
    """An error that names the first number that is not finite, if such rows are not to be left out."""
    if wanted.strict and not np.isfinite(rows).all():
        row, column = (int(places[0]) for places in np.nonzero(~np.isfinite(rows)))
        what = "empty or NaN" if np.isnan(rows[row, column]) else "infinite"
        raise ValueError(
            f"{what_rows} {places[row]}: column {columns[column]} is {what}. Remove such rows, or leave them out: "
            "--drop-bad."
        )


def _load(path: Path, key: str | None) -> Any:
    with _one_error(path):
        if path.suffix.lower() == ".npy":
            return np.load(path, mmap_mode="r", allow_pickle=False)
        with zipfile.ZipFile(path) as file:
            members = {member.filename.removesuffix(".npy"): member for member in file.infolist()}
    if key is None and len(members) != 1:
        raise ValueError(f"{path} holds {len(members)} arrays ({', '.join(members)}): choose one with --key NAME.")
    if key is not None and key not in members:
        raise ValueError(f"{path} has no array {key!r}; it has {', '.join(members)}.")
    name = key or next(iter(members))
    size = members[name].file_size
    if size > machine.memory() / 2:
        raise ValueError(
            f"{path}: {name} unpacks to {size / 1e6:.1f} MB. Save it as .npy, which is read piece by piece."
        )
    with _one_error(path), zipfile.ZipFile(path) as file:
        return npz.array(file, members[name])


@contextmanager
def _one_error(path: Path) -> Iterator[None]:
    """Whatever is wrong inside a file is a ValueError: zipfile, zlib, numpy and tokenize have about fifteen types."""
    try:
        yield
    except PermissionError:
        raise
    except Exception:
        raise ValueError(f"{path} is not a NumPy file of numbers: it is damaged, or holds Python objects.") from None


def _array(array: Any, file: str, wanted: Wanted) -> Source:
    """Rows in an order that hops through the whole array, i ↦ a i mod n: near rows of a log resemble each other."""
    if array.dtype.kind not in "fiub":
        raise ValueError(f"{file} holds {array.dtype}; real numbers are needed.")
    if 0 in array.shape:
        raise ValueError(f"{file} is empty: its shape is {array.shape}.")
    if array.ndim not in (1, 2):
        raise ValueError(f"{file} has shape {array.shape}; (rows, columns) is needed: reshape it first.")
    n = len(array)
    picked = _pick(wanted.columns, [], 1 if array.ndim == 1 else array.shape[1], file)
    hop = max(1, int(n * 0.6180339887))
    while math.gcd(hop, n) != 1:
        hop += 1

    def chunks() -> Iterator[Rows]:
        for start in range(0, n, CHUNK):
            places = np.arange(start, min(start + CHUNK, n)) * hop % n
            rows = np.asarray(array[places], np.float64).reshape(len(places), -1)[:, picked]
            _refuse_bad(rows, wanted, f"{file}, row", places.tolist(), [str(j) for j in picked])
            yield rows

    return Source(chunks(), n, picked, [])


def _parquet(path: Path, wanted: Wanted) -> Source:
    parquet, types = (require(f"pyarrow.{name}", "parquet") for name in ("parquet", "types"))
    try:
        table = parquet.ParquetFile(path)
    except (ValueError, OSError) as error:
        raise ValueError(f"{path} is not a parquet file: {error}") from None
    schema = table.schema_arrow
    picked = _pick(wanted.columns, schema.names, len(schema), str(path))
    names, numeric = list(schema.names), (types.is_integer, types.is_floating, types.is_boolean, types.is_decimal)
    text = [names[place] for place in picked if not any(kind(schema.field(place).type) for kind in numeric)]
    if text:
        raise ValueError(f"{path}: column {', '.join(text)} is not numeric. Choose others with --columns NAME,NAME.")

    def chunks() -> Iterator[Rows]:
        seen = 0
        for batch in table.iter_batches(CHUNK, columns=[names[place] for place in picked]):
            columns = [batch.column(names[place]).cast("float64").to_numpy(zero_copy_only=False) for place in picked]
            rows = np.stack(columns, axis=1).astype(np.float64)
            places = range(seen, seen + len(rows))
            _refuse_bad(rows, wanted, f"{path}, row", places, [_name(j, names) for j in picked])
            seen += len(rows)
            yield rows

    return Source(chunks(), table.metadata.num_rows, picked, names)


class Layout(NamedTuple):
    """How lines of text are cut, and which of their columns are wanted."""

    file: str
    mark: str | None
    width: int
    names: list[str]
    picked: list[int]
    wanted: Wanted


def _text(lines: Iterable[str], file: str, wanted: Wanted) -> Source:
    """Lines of numbers between commas, semicolons, tabs or blanks; a first line without numbers names the columns."""
    numbered = ((i, line) for i, line in enumerate(lines, 1) if line.strip() and not line.startswith("#"))
    first = next(numbered, None)
    if first is None:
        raise ValueError(f"{file} is empty.")
    mark = next((c for c in (",", ";", "\t") if c in first[1]), None)
    words = _words(first[1], mark)
    named = all(_number(word) is None for word in words)
    names = words if named else []
    layout = Layout(file, mark, len(words), names, _pick(wanted.columns, names, len(words), file), wanted)
    return Source(_parse(numbered if named else chain([first], numbered), layout), None, layout.picked, names)


def _words(line: str, mark: str | None) -> list[str]:
    """The fields of a line; a mark between quotes divides nothing."""
    if mark is None:
        return [word.strip('"') for word in line.split()]
    return [word.strip() for word in next(csv.reader([line.strip("\r\n")], delimiter=mark, skipinitialspace=True))]


def _parse(numbered: Iterator[tuple[int, str]], layout: Layout) -> Iterator[Rows]:
    """Chunks whose ends fall on 1, 2 and 5 times powers of ten, so that a slow stream can be read as it goes."""
    seen = 0
    while chunk := list(islice(numbered, min(CHUNK, next(mark for mark in MARKS if mark > seen) - seen))):
        seen += len(chunk)
        rows = _numbers(chunk, layout)
        columns = [_name(j, layout.names) for j in layout.picked]
        _refuse_bad(rows, layout.wanted, f"{layout.file}, line", [i for i, _ in chunk], columns)
        yield rows


def _numbers(chunk: list[tuple[int, str]], layout: Layout) -> Rows:
    """Quickly if every line is plain; else line by line, for the error and for empty fields."""
    lines, mark, everything = [line for _, line in chunk], layout.mark, len(layout.picked) == layout.width
    sound = everything or (mark is not None and all(line.count(mark) == layout.width - 1 for line in lines))
    try:
        rows = np.loadtxt(lines, delimiter=mark, ndmin=2, comments=None, quotechar='"',
                          usecols=None if everything else layout.picked) if sound else None  # fmt: skip
    except ValueError:
        rows = None
    if rows is None or rows.shape[1] != len(layout.picked):
        return np.array([_row(i, line, layout) for i, line in chunk])
    return rows[:, layout.picked] if everything else rows


def _row(line_number: int, line: str, layout: Layout) -> list[float]:
    """One line read with care; an empty field is NaN."""
    words, where = _words(line, layout.mark), f"{layout.file}, line {line_number}"
    if len(words) != layout.width:
        raise ValueError(f"{where}: {len(words)} columns, but the first line has {layout.width}.")
    numbers = []
    for place in layout.picked:
        number = math.nan if words[place] == "" else _number(words[place])
        if number is None:
            said = f"{where}: column {_name(place, layout.names)} is {words[place]!r}, which is not a number."
            raise ValueError(f"{said} {_repair(words, place, layout)}")
        numbers.append(number)
    return numbers


def _repair(words: Sequence[str], place: int, layout: Layout) -> str:
    """What to do about a word where a number should be: the columns that do have one in this line."""
    if _number(words[place].replace(",", ".")) is not None:
        return "Write decimal points, not commas."
    good = [layout.names[j] if layout.names else str(j) for j in layout.picked if _number(words[j]) is not None]
    return f"Choose columns of numbers, here --columns {','.join(good)}." if good else "No column of this line is."


def _number(word: str) -> float | None:
    try:
        return float(word)
    except ValueError:
        return None
