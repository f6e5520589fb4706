"""`voronaut entropy`: every kind of file, every kind of mistake."""

import io
import json
import zipfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from voronaut import cli
from voronaut.entropy import command, readers
from voronaut.entropy.laws import LAWS, Law
from voronaut.helpers import machine

FAST = ["--clusters", "20"]


@pytest.fixture
def law() -> Law:
    return LAWS["gaussian"](2)


@pytest.fixture
def rows(law: Law) -> np.ndarray:
    return law.sample(3000, 0)


def write(path: Path, rows: np.ndarray) -> None:
    if path.suffix == ".npy":
        np.save(path, rows)
    elif path.suffix == ".npz":
        np.savez(path, x=rows)
    elif path.suffix == ".parquet":
        arrow = pytest.importorskip("pyarrow")
        parquet = pytest.importorskip("pyarrow.parquet")
        parquet.write_table(arrow.table({"a": rows[:, 0], "b": rows[:, 1]}), path)
    else:
        mark = {".csv": ",", ".tsv": "\t", ".txt": " "}[path.suffix]
        np.savetxt(
            path, rows, delimiter=mark, header=mark.join(["a", "b"]) if path.suffix == ".csv" else "", comments=""
        )


def run(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    code = cli.main(["entropy", *words])
    out = capsys.readouterr()
    return code, out.out, out.err


@pytest.mark.parametrize("suffix", [".npy", ".npz", ".csv", ".tsv", ".txt", ".parquet"])
def test_every_format(
    suffix: str, tmp_path: Path, rows: np.ndarray, law: Law, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / f"rows{suffix}"
    write(path, rows)
    code, out, _ = run(capsys, str(path), "--json", *FAST)
    reading = json.loads(out)
    assert code == 0 and reading["rows"] == 3000 and reading["entropy"] == pytest.approx(law.entropy, abs=0.1)
    assert reading["effective_dim"] == pytest.approx(2, abs=0.01)


def test_the_report(tmp_path: Path, rows: np.ndarray, capsys: pytest.CaptureFixture[str]) -> None:
    wide = np.column_stack([rows, np.ones(len(rows)), rows[:, 0] * 3, np.arange(len(rows)) % 4])
    path = tmp_path / "rows.csv"
    np.savetxt(path, wide, delimiter=",", header="x,y,one,again,turn", comments="")
    code, out, _ = run(capsys, str(path), *FAST)
    assert code == 0 and " ± " in out and "nats" in out and "effective dim" in out
    assert "column 2 (one): constant" in out and "column 3 (again): a copy of column 0" in out
    assert "resolution     column 4 (turn)" in out


def test_the_plot(tmp_path: Path, rows: np.ndarray, capsys: pytest.CaptureFixture[str]) -> None:
    write(tmp_path / "rows.npy", rows)
    assert run(capsys, str(tmp_path / "rows.npy"), "--plot", str(tmp_path / "out.png"), *FAST)[0] == 0
    assert (tmp_path / "out.png").stat().st_size > 5000


@pytest.mark.parametrize("name", ["folder", "file/x.png", "x.nope", "x", "n" * 300 + ".png"])
def test_a_plot_that_cannot_be_written_is_told_before_anything_is_read(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").touch()
    monkeypatch.setattr(command, "open_rows", lambda *_: pytest.fail("rows were read"))
    code, out, error = run(capsys, str(tmp_path / "rows.npy"), "--plot", str(tmp_path / name))
    assert code == 2 and out == "" and name in error and len(error.strip().splitlines()) == 1
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "folder"]


def test_stdin_tells_as_it_goes(
    rows: np.ndarray, law: Law, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    text = "\n".join(" ".join(map(str, row)) for row in rows)
    monkeypatch.setattr("sys.stdin", io.StringIO(text))
    code, out, _ = run(capsys, "-", *FAST)
    told = [line for line in out.splitlines() if " rows  " in line]
    assert code == 0 and [line.split()[0] for line in told] == ["1,000", "2,000"]
    assert float(told[-1].split()[2]) == pytest.approx(law.entropy, abs=0.15)


@pytest.mark.parametrize("suffix", [".npy", ".csv", ".parquet"])
def test_rows_of_a_file_are_shuffled(
    suffix: str, tmp_path: Path, rows: np.ndarray, law: Law, capsys: pytest.CaptureFixture[str]
) -> None:
    write(tmp_path / f"sorted{suffix}", rows[np.argsort(rows[:, 0])])
    out = run(capsys, str(tmp_path / f"sorted{suffix}"), "--json", *FAST)[1]
    assert json.loads(out)["entropy"] == pytest.approx(law.entropy, abs=0.1)


@pytest.mark.parametrize(("count", "room"), [(1, 10), (40, 10), (3, 10_000), (2, 2)])
def test_the_pool_keeps_every_row_and_never_more_than_its_room(count: int, room: int) -> None:
    taken = [0]

    def chunks() -> Iterator[np.ndarray]:
        for start in range(0, 100 * count, 100):
            taken[0] += 100
            yield np.arange(start, start + 100.0)[:, None]

    given = 0
    seen = []
    for chunk in readers.pooled(chunks(), room):
        assert taken[0] - given <= room + readers.CHUNK + 100
        given += len(chunk)
        seen.append(chunk)
    assert np.array_equal(np.sort(np.concatenate(seen), axis=0)[:, 0], np.arange(100.0 * count))
    assert count == 1 or not np.array_equal(np.concatenate(seen)[:, 0], np.arange(100.0 * count))


def test_columns_are_chosen_by_name_or_place(
    tmp_path: Path, rows: np.ndarray, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = [f'"{i}, day",{a!r},{b!r},7' for i, (a, b) in enumerate(rows.tolist())]
    (tmp_path / "log.csv").write_text("\n".join(['"time, UTC",a,b,one', *lines]))
    write(tmp_path / "rows.npy", rows)
    wanted = json.loads(run(capsys, str(tmp_path / "rows.npy"), "--json", *FAST)[1])["entropy"]
    for columns in ("a,b", "1,2", "b, a"):
        code, out, error = run(capsys, str(tmp_path / "log.csv"), "--columns", columns, "--json", *FAST)
        assert code == 0 and json.loads(out)["entropy"] == pytest.approx(wanted, abs=0.05), error
    out = run(capsys, str(tmp_path / "log.csv"), "--columns", "b,one", *FAST)[1]
    assert "dropped        column 3 (one): constant" in out
    assert "'time' is none of the 4 columns (time, UTC, a, b, one)" in run(
        capsys, str(tmp_path / "log.csv"), "--columns", "time")[2]  # fmt: skip


def test_a_row_that_is_too_long_is_told_also_when_columns_are_chosen(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "long.csv").write_text("a,b,c\n1,2,3\n4,5,6,7\n")
    assert "line 3: 4 columns" in run(capsys, str(tmp_path / "long.csv"), "--columns", "a,b")[2]


MISTAKES = {
    "ragged.csv": ("1,2\n3,4\n5\n", "line 3: 1 columns, but the first line has 2"),
    "text.csv": ("a,b\n1,2\n3,x\n", "line 3: column 1 (b) is 'x', which is not a number"),
    "hole.csv": ("a,b\n1,2\n\n3,\n4,5\n", "line 4: column 1 (b) is empty or NaN. Remove such rows"),
    "nan.csv": ("1,2\n3,nan\n", "line 2: column 1 is empty or NaN"),
    "far.csv": ("1,2\n-inf,3\n", "line 2: column 0 is infinite"),
    "comma.csv": ("a;b\n1,5;2\n", "'1,5', which is not a number. Write decimal points, not commas."),
    "date.csv": (
        "day,b\n2026-01-01,2\n",
        "'2026-01-01', which is not a number. Choose columns of numbers, here --columns b.",
    ),
    "first.csv": (
        "name,a,b\nx,1,2\ny,3,4\n",
        "column 0 (name) is 'x', which is not a number. Choose columns of numbers, here --columns a,b.",
    ),
    "third.csv": ("1,2,x\n3,4,y\n", "Choose columns of numbers, here --columns 0,1."),
    "words.csv": ("a,b\n1,2\nx,y\n", "column 0 (a) is 'x', which is not a number. No column of this line is."),
    "few.csv": ("1,2,3\n4,5,6\n", "2 rows are too few for 3 columns"),
    "head.csv": ("a,b\n", "too few"),
    "empty.csv": ("", "is empty"),
    "junk.npy": ("junk", "not a NumPy file"),
    "junk.parquet": ("junk", "not a parquet file"),
    "what.xls": ("1", ".xls cannot be read. Give .npy"),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_mistakes_are_one_line_and_code_2(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text, message = MISTAKES[name]
    (tmp_path / name).write_text(text)
    code, _, error = run(capsys, str(tmp_path / name))
    assert code == 2 and message in error and len(error.strip().splitlines()) == 1


def test_more_mistakes(tmp_path: Path, rows: np.ndarray, capsys: pytest.CaptureFixture[str]) -> None:
    np.savez(tmp_path / "two.npz", x=rows.copy(), y=rows.copy())
    np.save(tmp_path / "cube.npy", np.zeros((2, 2, 2)))
    np.save(tmp_path / "words.npy", np.array(["a"]))
    np.save(tmp_path / "empty.npy", np.zeros((0, 3)))
    rows[5, 1] = np.inf
    np.save(tmp_path / "bad.npy", rows)
    for words, message in (
        (["none.npy"], "no such file"),
        ([""], "is a folder"),
        (["two.npz"], "choose one with --key"),
        (["two.npz", "--key", "z"], "has no array 'z'"),
        (["cube.npy"], "reshape it first"),
        (["words.npy"], "numbers are needed"),
        (["empty.npy"], "is empty: its shape is (0, 3)"),
        (["bad.npy"], "row 5: column 1 is infinite"),
        (["cube.npy", "--key", "x"], "--key chooses an array of an .npz file"),
        (["two.npz", "--key", "x", "--columns", "0,2"], "'2' is none of the 2 columns"),
        (["two.npz", "--key", "x", "--columns", "0,0"], "'0' is there already"),
        (["two.npz", "--key", "x", "--method", "guess"], "method must be one of"),
    ):
        code, _, error = run(capsys, str(tmp_path / words[0]), *words[1:])
        assert code == 2 and message in error
    assert run(capsys, str(tmp_path / "two.npz"), "--key", "y", *FAST)[0] == 0


def header(text: str) -> bytes:
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text.encode()


CRAFTED = {
    "a shape beyond all memory": header("{'descr': '<f8', 'fortran_order': False, 'shape': (1000000000000,), }"),
    "a shape beyond all numbers": header(f"{{'descr': '<f8', 'fortran_order': False, 'shape': ({10**30},), }}"),
    "a negative shape": header("{'descr': '<f8', 'fortran_order': False, 'shape': (-1,), }"),
    "brackets without end": header("(" * 9000),
    "no shape": header("{'descr': '<f8', }"),
    "Python objects": header("{'descr': '|O', 'fortran_order': False, 'shape': (1,), }") + b"cos\n",
    "no array": b"hello",
}


@pytest.mark.parametrize("what", CRAFTED)
@pytest.mark.parametrize("suffix", [".npy", ".npz"])
def test_a_crafted_file_is_one_line_and_code_2(
    what: str, suffix: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / f"x{suffix}"
    if suffix == ".npy":
        path.write_bytes(CRAFTED[what])
    else:
        with zipfile.ZipFile(path, "w") as file:
            file.writestr("x.npy", CRAFTED[what])
    code, _, error = run(capsys, str(path))
    assert code == 2 and "is not a NumPy file of numbers" in error and len(error.strip().splitlines()) == 1


@pytest.mark.parametrize("suffix", [".npy", ".npz"])
def test_a_flipped_bit_has_one_kind_of_error(suffix: str, tmp_path: Path) -> None:
    """`np.load` alone has five: among them tokenize.TokenError and SyntaxError."""
    write(tmp_path / f"x{suffix}", np.random.default_rng(0).normal(size=(30, 2)))
    whole, refused = (tmp_path / f"x{suffix}").read_bytes(), 0
    start = whole.find(b"\x93NUMPY")
    for bit in range(0, 8 * 128, 3):
        broken = bytearray(whole)
        broken[start + bit // 8] ^= 1 << bit % 8
        (tmp_path / f"y{suffix}").write_bytes(broken)
        try:
            with readers.open_rows(str(tmp_path / f"y{suffix}"), readers.Wanted(strict=False)) as source:
                list(source.chunks)
        except ValueError:
            refused += 1
    assert refused > 200


def test_an_array_that_unpacks_to_more_than_the_memory_is_not_unpacked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    np.savez_compressed(tmp_path / "zeros.npz", x=np.zeros((200_000, 2)))
    monkeypatch.setattr(machine, "memory", lambda: 3_000_000)
    code, _, error = run(capsys, str(tmp_path / "zeros.npz"))
    assert code == 2 and "x unpacks to 3.2 MB" in error and "Save it as .npy" in error


def test_far_rows_are_told(tmp_path: Path, rows: np.ndarray, capsys: pytest.CaptureFixture[str]) -> None:
    rows[7, 1] = 1e9
    np.save(tmp_path / "far.npy", rows)
    code, out, _ = run(capsys, str(tmp_path / "far.npy"), *FAST)
    assert code == 0 and "far rows       1 " in out


def test_bad_rows_can_be_dropped(tmp_path: Path, rows: np.ndarray, capsys: pytest.CaptureFixture[str]) -> None:
    rows[7, 1] = np.inf
    write(tmp_path / "rows.csv", rows)
    code, out, _ = run(capsys, str(tmp_path / "rows.csv"), "--drop-bad", *FAST)
    assert code == 0 and "bad rows       1 left out" in out


def test_ctrl_c_ends_a_stream_with_its_report(
    rows: np.ndarray, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def lines() -> Iterator[str]:
        yield from (" ".join(map(str, row)) for row in rows[:600])
        raise KeyboardInterrupt

    monkeypatch.setattr("sys.stdin", lines())
    code, out, _ = run(capsys, "-", *FAST)
    assert code == 0 and "500 of 2 columns" in out


def test_readings_are_of_round_numbers_of_rows() -> None:
    sizes = [len(part) for part in command.cut(iter([np.zeros((4096, 1)), np.zeros((4096, 1))]))]
    assert np.cumsum(sizes).tolist() == [1000, 2000, 4096, 5000, 8192]
