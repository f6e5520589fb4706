"""What the report reads: whole, partial, running, damaged and foreign folders; and what it says of them."""

import gzip
import html
import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.report import toys
from voronaut.cli import main
from voronaut.experiments.common import results
from voronaut.helpers import npz
from voronaut.report import command, content, report, trained
from voronaut.report.records import Reading

NOW = 2e9


def read(*folders: Path, age: float = 1.0) -> Reading:
    """Read, `age` seconds after the last line of every log."""
    for folder in folders:
        for path in folder.rglob("progress.jsonl"):
            os.utime(path, (NOW - age, NOW - age))
    return command.read(list(folders), NOW)


def test_a_finished_experiment_is_read_as_it_was_written(tmp_path: Path) -> None:
    reading = read(toys.experiment(tmp_path / "toy"))
    assert reading.troubles == []
    assert [run.name for run in reading.runs] == ["toy/kme-0", "toy/kme-1", "toy/none-0", "toy/none-1"]
    run = reading.runs[1]
    assert (run.task, run.method, run.kind, run.seed, run.state, run.wanted) == (
        "gym:Toy-v0",
        "kme",
        "kme",
        1,
        "finished",
        8,
    )
    assert run.steps.tolist() == [100.0 * n for n in range(1, 9)]
    assert np.isnan(run.columns["extrinsic_return"][0]) and run.columns["extrinsic_return"][-1] == 81
    assert run.shared == {"collect": 0.1, "bonus": 0.01, "learn": 0.05}  # 4 runs side by side, 2 of the method


@pytest.mark.parametrize(("age", "state"), [(1.0, "running"), (1e6, "stopped")])
def test_a_run_under_way_and_one_that_stopped(tmp_path: Path, age: float, state: str) -> None:
    folder = toys.experiment(tmp_path / "toy", done=3)
    with (folder / "kme-0" / "progress.jsonl").open("a") as file:
        file.write('{"env_steps": 400, "extrinsic_re')
    reading = read(folder, age=age)
    assert reading.troubles == []  # a line under way is no damage
    assert {(run.state, len(run.steps)) for run in reading.runs} == {(state, 3)}


def test_a_log_that_lost_lines_after_the_end_is_told_from_one_under_way(tmp_path: Path) -> None:
    folder = toys.experiment(tmp_path / "toy")
    toys.log(folder / "kme-0" / "progress.jsonl", [toys.row(1, 0, "kme")])
    assert [run.state for run in read(folder).runs] == ["cut", "finished", "finished", "finished"]


def test_damage_is_named_and_the_rest_is_shown(tmp_path: Path) -> None:
    folder = toys.experiment(tmp_path / "toy")
    path = folder / "kme-0" / "progress.jsonl"
    lines = path.read_text().splitlines()
    path.write_text(
        "\n".join([lines[0], "\x00\x00 gibberish", '["no", "dict"]', lines[1], lines[0], *lines[2:]]) + "\n"
    )
    (folder / "none-1" / "progress.jsonl").unlink()
    (folder / "kme-1" / "bonus.npz").unlink()
    reading = read(folder)
    said = "\n".join(reading.troubles)
    assert f"{path} is damaged: 3 of its lines" in said and "line 2, 3, 5" in said
    assert "none-1/progress.jsonl is missing" in said and "kme-1/bonus.npz is missing" in said
    assert len(reading.troubles) == 3
    assert [len(run.steps) for run in reading.runs] == [8, 8, 8]


@pytest.mark.parametrize("text", [None, "{ half", "[]", '{"methods": 3}', '{"methods": []}'])
def test_without_a_sound_config_names_are_guessed(tmp_path: Path, text: str | None) -> None:
    folder = toys.experiment(tmp_path / "toy")
    (folder / "config.json").unlink()
    if text is not None:
        (folder / "config.json").write_text(text)
    reading = read(folder)
    assert {(run.task, run.method, run.seed, run.state) for run in reading.runs} == {
        ("toy", method, seed, "unknown") for method in ("kme", "none") for seed in (0, 1)
    }
    assert len(reading.troubles) == 1 and "config.json" in reading.troubles[0] and "guessed" in reading.troubles[0]


def test_folders_may_overlap_nest_and_be_single_runs(tmp_path: Path) -> None:
    one, two = toys.experiment(tmp_path / "a" / "toy"), toys.experiment(tmp_path / "b" / "toy", task="gym:Other-v0")
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "config.json").write_text('{"model": "something else"}')
    assert len(read(tmp_path, one, two).runs) == 8
    assert [run.name for run in read(one / "kme-1").runs] == ["toy/kme-1"]
    assert len({run.name for run in read(one, two).runs}) == 8


def test_runs_of_one_name_are_not_averaged_unless_they_are_of_one_method(tmp_path: Path) -> None:
    one, two = toys.experiment(tmp_path / "one"), toys.experiment(tmp_path / "two", seeds=1)
    names = {run.method for run in content.distinct(read(one, two).runs)}
    assert names == {"kme (one)", "kme (two)", "none (one)", "none (two)"}
    three = toys.config(seeds=4)
    three["seeds"] = [2, 3]
    (two / "config.json").write_text(json.dumps(three))
    for method in ("kme", "none"):
        (two / f"{method}-0").rename(two / f"{method}-2")
        toys.log(two / f"{method}-3" / "progress.jsonl", [toys.row(1, 3, method)])
    merged = content.distinct(read(one, two).runs)
    assert {run.method for run in merged} == {"kme", "none"} and len(merged) == 8


def test_result_files(tmp_path: Path) -> None:
    curve = {key: [1.0, 2.0, None] for key in results.CURVES} | {"env_steps": [100, 200, 300]}
    seconds = dict.fromkeys(results.SECONDS, 0.6)
    for seed in (0, 1):
        about = {"task": "cheetah-run", "threshold": "paper", "method": "kme", "seed": seed, "steps": 300,
                 "rollout": 100, "params": {"clusters": 6}, "scale": "0.01", "seconds": seconds,
                 "median_seconds": seconds,
                 "runs_side_by_side": 6, "last_metrics": {"kme/entropy": None}, "curve": curve}  # fmt: skip
        results.write(tmp_path / f"kme-{seed}.json.gz", about)
    (tmp_path / "none-0.json.gz").write_bytes(b"broken")
    reading = read(tmp_path)
    assert [(r.task, r.method, r.seed, r.state) for r in reading.runs] == [
        ("cheetah-run (paper threshold)", "kme", seed, "finished") for seed in (0, 1)
    ]
    assert reading.runs[0].shared == pytest.approx({"collect": 0.1, "bonus": 0.3, "learn": 0.1})
    assert len(reading.troubles) == 1 and "none-0.json.gz" in reading.troubles[0]


NESTED = st.recursive(
    st.none() | st.floats() | st.text(max_size=5),
    lambda inner: st.dictionaries(st.sampled_from(["env_steps", "x"]), inner),
)


@settings(max_examples=40)
@given(st.binary(max_size=300) | st.text(max_size=300).map(str.encode) | NESTED.map(json.dumps).map(str.encode))
def test_no_file_breaks_the_reader(tmp_path_factory: pytest.TempPathFactory, content: bytes) -> None:
    path = tmp_path_factory.mktemp("log") / "progress.jsonl"
    path.write_bytes(content + b"\n" + b'{"env_steps": 1e300}\n')
    columns, _ = trained.read_log(path)
    assert len({len(values) for values in columns.values()}) == 1
    assert (np.diff(columns["env_steps"]) > 0).all() and not np.isinf(columns["env_steps"]).any()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda path: None, "does not exist"),
        (lambda path: path.write_text("x"), "is not a folder"),
        (lambda path: path.mkdir(), "there are no runs in"),
        (lambda path: toys.log(path / "kme-0" / "progress.jsonl", []), "holds no rollout yet"),
    ],
)
def test_mistakes_get_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str], make: Any, message: str) -> None:
    make(tmp_path / "runs")
    assert main(["report", str(tmp_path / "runs"), "--out", str(tmp_path / "page.html")]) == 2
    said = capsys.readouterr().err
    assert message in said and str(tmp_path / "runs") in said and said.count("\n") == 1
    assert not (tmp_path / "page.html").exists()


@pytest.mark.parametrize("name", ["folder", "file.txt/page.html"])
def test_a_page_that_cannot_be_written(tmp_path: Path, name: str) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "file.txt").write_text("mine")
    with pytest.raises(ValueError, match="cannot be written"):
        report([toys.experiment(tmp_path / "toy", maps=False)], tmp_path / name)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["file.txt", "folder", "toy"]


DEEP = "[" * 100_000
ZEROS = {"": np.zeros((6, 4), np.int16), "_middle": np.zeros(4), "_half": np.ones(4)}
SNAPSHOT = {name + end: array for name in ("centers", "states") for end, array in ZEROS.items()}
BAD_FILES = {
    "config.json": DEEP,
    "kme-0/progress.jsonl": DEEP + "\n",
    "kme-0/bonus.npz": {"header": np.frombuffer(DEEP.encode(), np.uint8)},
    "kme-1/bonus.npz": {"header": np.frombuffer(b'{"format": 1, "kind": "KME", "params": {"k": 1}}', np.uint8)},
    "none-0/clusters/000001.npz": {"counts": np.array(3)},
    "none-1/clusters/000001.npz": {**SNAPSHOT, "counts": np.array([2**62] * 6)},
    "bad.json.gz": gzip.compress(DEEP.encode()),
}


@pytest.mark.parametrize("name", BAD_FILES)
def test_one_bad_file_is_a_note_on_the_page(tmp_path: Path, name: str) -> None:
    folder = toys.experiment(tmp_path / "toy", maps=not name.endswith("bonus.npz"))
    content = BAD_FILES[name]
    if isinstance(content, dict):
        npz.write(folder / name, content)
    else:
        (folder / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    page = report([folder], tmp_path / "page.html", now=NOW).read_text()
    assert name in html.unescape(page)
