"""Saving: atomic, without pickle, refused whole if anything is amiss, and going on as if never stopped."""

import json
import os
import warnings
from pathlib import Path

import numpy as np
import pytest

import voronaut as vn
from tests.bonuses.kme import paper
from voronaut.helpers import npz

RNG = np.random.default_rng(0)
FIRST, SECOND = RNG.normal(size=(2, 200, 3))


def trained(**options: object) -> vn.KME:
    kme = paper(3, **{"clusters": 12, "init": "data", **options})  # type: ignore[arg-type]
    kme.update(FIRST + 50)
    kme.step(FIRST[:40] + 50)
    return kme


def same(one: vn.KME, other: vn.KME) -> bool:
    mine, yours = one.state_dict(), other.state_dict()
    return mine.keys() == yours.keys() and all(mine[k].tobytes() == yours[k].tobytes() for k in mine)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("objective", ["sqrt", "log"])
def test_save_load_continue_is_never_having_stopped(tmp_path: Path, dtype: str, objective: str) -> None:
    kme = trained(dtype=dtype, objective=objective, seed=5)
    kme.save(tmp_path / "kme.npz")
    back = vn.load(tmp_path / "kme.npz")
    assert back.params == kme.params and same(back, kme)
    for one in (kme, back):
        one.step(SECOND[:50] + 50)
        one.update(SECOND + 50)
    assert same(back, kme)
    assert back.rewards(FIRST).tobytes() == kme.rewards(FIRST).tobytes()
    assert back.metrics() == kme.metrics()


@pytest.mark.parametrize("made", [vn.KME, vn.RND, vn.RE3, vn.HashCount, vn.NoBonus, lambda dim: vn.RE3(dim, memory=64)])
def test_what_has_seen_nothing_yet_is_saved_and_loaded(made: object, tmp_path: Path) -> None:
    fresh = made(3)  # type: ignore[operator]
    fresh.save(tmp_path / "fresh.npz")
    back = vn.load(tmp_path / "fresh.npz")
    for one in (fresh, back):
        one.update(FIRST)
    np.testing.assert_array_equal(back.rewards(SECOND), fresh.rewards(SECOND))


def test_the_path_is_taken_as_it_is_and_nothing_else_is_left(tmp_path: Path) -> None:
    trained().save(tmp_path / "bonus.bin")
    assert os.listdir(tmp_path) == ["bonus.bin"]


def test_a_crash_while_writing_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, old = tmp_path / "kme.npz", trained()
    old.save(path)

    def full_disk(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(npz.np, "savez", full_disk)
    with pytest.raises(OSError, match="No space"):
        trained(seed=9).save(path)
    assert os.listdir(tmp_path) == ["kme.npz"] and same(vn.load(path), old)


@pytest.mark.parametrize("keep", [0, 1, 100, 0.5, 0.99])
def test_a_truncated_file_is_refused(tmp_path: Path, keep: float) -> None:
    path = tmp_path / "kme.npz"
    trained().save(path)
    whole = path.read_bytes()
    path.write_bytes(whole[: int(keep if keep >= 1 else keep * len(whole))])
    with pytest.raises(ValueError, match=r"kme\.npz"):
        vn.load(path)


def test_foreign_files_are_refused(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("hello")
    np.savez(tmp_path / "other.npz", a=np.zeros(3))
    np.save(tmp_path / "array.npy", np.zeros(3))
    np.savez(tmp_path / "evil.npz", header=np.array([{"a": 1}], dtype=object))
    for name in ("text", "other.npz", "array.npy", "evil.npz"):
        with pytest.raises(ValueError, match="not saved by voronaut"):
            vn.load(tmp_path / name)
    with pytest.raises(FileNotFoundError):
        vn.load(tmp_path / "nothing")


def rewrite(path: Path, change: dict[str, np.ndarray], sign: bool) -> None:
    with np.load(path) as file:
        arrays = {name: file[name] for name in file.files}
    arrays.update(change)
    if sign:
        arrays.pop("digest")
        arrays["digest"] = npz.digest(arrays)
    np.savez(path, **arrays)


def test_a_changed_number_is_noticed(tmp_path: Path) -> None:
    path = tmp_path / "kme.npz"
    trained().save(path)
    rewrite(path, {"state.counts": np.full(12, 2)}, sign=False)
    with pytest.raises(ValueError, match="changed after"):
        vn.load(path)


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"state.counts": np.full(12, 2)}, "counts"),
        ({"state.counts": np.array([2**62 - 1] * 4 + [249] + [1] * 7)}, "less than"),  # wraps around to the true sum
        ({"state.centers": np.zeros((11, 3), np.float32)}, "centers"),
        ({"state.centers": np.full((12, 3), np.nan, np.float32)}, "not finite"),
        ({"state.kept_nearest": np.full(12, 12)}, "kept_nearest"),
        ({"state.extra": np.zeros(1)}, "extra"),
    ],
)
def test_numbers_that_contradict_each_other_are_refused(
    tmp_path: Path, change: dict[str, np.ndarray], word: str
) -> None:
    path = tmp_path / "kme.npz"
    trained().save(path)
    rewrite(path, change, sign=True)
    with pytest.raises(ValueError, match=word):
        vn.load(path)


def test_a_newer_format_and_an_unknown_kind_are_named(tmp_path: Path) -> None:
    path = tmp_path / "kme.npz"
    for change, word in (({"format": 99}, "format 99"), ({"kind": "Oracle"}, "Oracle")):
        trained().save(path)
        with np.load(path) as file:
            header = json.loads(file["header"].tobytes()) | change
        rewrite(path, {"header": np.frombuffer(json.dumps(header).encode(), np.uint8)}, sign=True)
        with pytest.raises(ValueError, match=word):
            vn.load(path)


@pytest.mark.parametrize(("chunk", "words"), [(1, []), (128, ["saved with chunk=128, which is retired"])])
def test_a_file_from_before_chunk_was_retired_loads(tmp_path: Path, chunk: int, words: list[str]) -> None:
    """The sequence was the default and is what is left; anything else is said aloud."""
    path, kme = tmp_path / "kme.npz", trained()
    kme.save(path)
    with np.load(path) as file:
        header = json.loads(file["header"].tobytes())
    header["params"]["chunk"] = chunk
    rewrite(path, {"header": np.frombuffer(json.dumps(header).encode(), np.uint8)}, sign=True)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        back = vn.load(path)
    assert [word in str(warning.message) for word, warning in zip(words, said, strict=True)] == [True] * len(words)
    assert same(back, kme) and back.params == kme.params


def test_a_refused_state_changes_nothing() -> None:
    kme, other = trained(), trained(clusters=13)
    before = kme.state_dict()
    with pytest.raises(ValueError, match="parameters it was saved with"):
        kme.load_state_dict(other.state_dict())
    assert all(array.tobytes() == before[name].tobytes() for name, array in kme.state_dict().items())


def test_features_must_be_given_again(tmp_path: Path) -> None:
    def first_two(states: np.ndarray) -> np.ndarray:
        return states[..., :2]

    kme = paper(2, clusters=4, features=first_two)
    kme.update(FIRST)
    kme.save(tmp_path / "kme.npz")
    with pytest.raises(ValueError, match="features"):
        vn.load(tmp_path / "kme.npz")
    assert same(vn.load(tmp_path / "kme.npz", features=first_two), kme)


@pytest.mark.parametrize(
    "header",
    [
        b"[" * 100_000,
        b"[1]",
        b"\xff",
        b"{}",
        b'{"format": 1}',
        b'{"format": 1, "kind": "KME", "params": 3}',
        b'{"format": 1, "kind": "KME", "params": {"dim": 3, "wings": 2}}',
        b'{"format": 1, "kind": "KME", "params": {"dim": 3, "clusters": 1000000000000000}}',
        b'{"format": 1, "kind": "HashCount", "params": {"dim": 3, "table_bits": 3000}}',
    ],
)
def test_a_crafted_header_is_refused(tmp_path: Path, header: bytes) -> None:
    npz.write(tmp_path / "kme.npz", {"header": np.frombuffer(header, np.uint8)})
    with pytest.raises(ValueError, match=r"kme\.npz|table_bits"):
        vn.load(tmp_path / "kme.npz")


def test_counts_of_hashes_that_wrap_around_are_refused() -> None:
    bonus = vn.HashCount(3, table_bits=4)
    with pytest.raises(ValueError, match="less than"):
        bonus.load_state_dict({**bonus.state_dict(), "counts": np.full(16, 2**60)})
