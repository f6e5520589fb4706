"""What a person sees of a run: the same numbers in progress.jsonl, TensorBoard and Weights & Biases, all explained."""

import json
import math
import re
import sys
import time
from pathlib import Path
from typing import Any

import pytest

import voronaut as vn
from voronaut.bonuses import BONUSES, bonus_class
from voronaut.cli import main
from voronaut.training import command, loop
from voronaut.training.api import configure
from voronaut.training.config import Config
from voronaut.training.watching import board, logs

GLOSSARY = Path(__file__).parents[3] / "docs" / "metrics.md"
SMALL = {
    "kme": {"clusters": 5, "init": "data"},
    "rnd": {"hidden": 8, "features": 4},
    "re3": {"hidden": 8, "features": 4},
    "hash": {"table_bits": 6},
}


def config(**choices: Any) -> Config:
    """Every bonus in the maze, three tiny rollouts."""
    given: dict[str, Any] = {"bonuses": ["none", *SMALL], "options": SMALL, "seeds": 1, "steps": 384}
    return configure("maze", **given | {"rollout": 128, "envs": 2} | choices)


def two() -> Config:
    return config(bonuses=["none", "kme"], options={"kme": SMALL["kme"]})


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("logs") / "run"
    assert loop.train(config(), out)
    return out


def glossary() -> dict[str, set[str]]:
    """The names explained in each section's table, by the section's heading."""
    parts = re.split(r"^## `(.+?)`$", GLOSSARY.read_text(), flags=re.MULTILINE)
    columns = [re.findall(r"^\|([^|]*)\|", text, re.MULTILINE) for text in parts[2::2]]
    names = [set(re.findall(r"`([a-z_]+)`", " ".join(column))) for column in columns]
    return dict(zip(parts[1::2], names, strict=True))


def test_the_glossary_explains_every_number_of_progress_jsonl(finished: Path) -> None:
    rows = [row for name in config().folders() for row in logs.read(finished / name / "progress.jsonl")]
    keys = {key for row in rows for key in row}
    plain = {key for key in keys if "/" not in key}
    assert plain <= glossary()["progress.jsonl"]
    assert glossary()["progress.jsonl"] - plain == {"episodes_restarted"}
    for key in keys - plain:
        bonus, _, name = key.partition("/")
        assert name in glossary()[f"{bonus}.metrics()"], key


@pytest.mark.parametrize("name", [name for name in BONUSES if name not in ("none", "zero")])
def test_the_glossary_explains_every_metric_and_no_other(name: str) -> None:
    metrics = bonus_class(name)(dim=2, **SMALL.get(name, {})).metrics().keys()
    only_sometimes = {"kme": {"balance", "count_cv", "grown_gaps", "recomputed_gaps"}}.get(name, set())
    assert metrics <= glossary()[f"{name}.metrics()"] <= metrics | only_sometimes


def test_the_glossary_names_the_group_of_every_number(finished: Path) -> None:
    row = logs.read(finished / "none-0" / "progress.jsonl")[-1]
    lines = GLOSSARY.read_text().split("## `progress.jsonl`")[1].splitlines()
    for key in row.keys() - {"env_steps"}:
        line = next(line for line in lines if f"`{key}`" in line)
        assert line.split("|")[2].strip() == board.tag(key).partition("/")[0], key


def events(folder: Path) -> Any:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    return EventAccumulator(str(folder)).Reload()


def expected(folder: Path) -> dict[str, list[tuple[int, float]]]:
    """(env_steps, value) of every tag, from progress.jsonl."""
    found: dict[str, list[tuple[int, float]]] = {}
    for row in logs.read(folder / "progress.jsonl"):
        for key, value in row.items():
            if key != "env_steps" and value is not None:
                found.setdefault(board.tag(key), []).append((row["env_steps"], float(value)))
    return found


def test_tensorboard_has_the_same_numbers(finished: Path) -> None:
    for name in config().folders():
        wanted, board_ = expected(finished / name), events(finished / name)
        assert set(board_.Tags()["scalars"]) == wanted.keys()
        for tag, points in wanted.items():
            got = [(event.step, event.value) for event in board_.Scalars(tag)]
            assert [step for step, _ in got] == [step for step, _ in points]
            assert [value for _, value in got] == pytest.approx([value for _, value in points], rel=1e-6)


def test_tensorboard_has_a_page_whose_charts_all_show_something(finished: Path) -> None:
    from tensorboard.plugins.custom_scalar import layout_pb2, metadata

    board_ = events(finished / "kme-0")
    tensor = board_.Tensors(metadata.CONFIG_SUMMARY_TAG)[0].tensor_proto
    layout = layout_pb2.Layout.FromString(tensor.string_val[0])
    assert [category.title for category in layout.category] == list(board.charts("ppo"))
    tags = {*board_.Tags()["scalars"], "return/extrinsic_return"}  # no episode ends in so short a run
    for category in layout.category:
        for chart in category.chart:
            for pattern in chart.multiline.tag:
                assert any(re.match(pattern, tag) for tag in tags), pattern


def test_numbers_without_a_name_in_json_are_null_and_in_no_chart(tmp_path: Path) -> None:
    row = {"env_steps": 3, "state_entropy": -math.inf, "extrinsic_return": None, "bonus_mean": math.nan, "scale": 0.5}
    assert board.scalars(row) == {"bonus/scale": 0.5}
    log = logs.RunLog(tmp_path, 0)
    log.write(row)
    log.close()
    wanted = {"env_steps": 3, "state_entropy": None, "extrinsic_return": None, "bonus_mean": None, "scale": 0.5}
    assert logs.read(tmp_path / "progress.jsonl") == [wanted]


def test_a_log_shorter_than_its_checkpoint_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="has 0 lines, but the checkpoint was made after 2"):
        logs.RunLog(tmp_path, 2)


def sent(folder: Path) -> tuple[list[str], list[dict[str, Any]]]:
    """The ids and the history of the offline runs of Weights & Biases in a run's folder, oldest first."""
    from wandb.proto import wandb_internal_pb2
    from wandb.sdk.internal import datastore

    ids, history = [], []
    for path in sorted(folder.glob("wandb/offline-run-*/*.wandb"), key=lambda path: path.stat().st_mtime_ns):
        store = datastore.DataStore()
        store.open_for_scan(str(path))
        while (data := store.scan_data()) is not None:
            record = wandb_internal_pb2.Record.FromString(data)
            if record.WhichOneof("record_type") == "run":
                ids.append(record.run.run_id)
            if record.WhichOneof("record_type") == "history":
                items = {i.key or "/".join(i.nested_key): json.loads(i.value_json) for i in record.history.item}
                history.append(items)
    return ids, history


def test_weights_and_biases_offline_has_the_same_numbers_and_resumes_the_same_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wandb = pytest.importorskip("wandb")
    for name, value in {"WANDB_MODE": "offline", "WANDB_ERROR_REPORTING": "false"}.items():
        monkeypatch.setenv(name, value)
    out, train = tmp_path / "run", loop.train

    def stopped(*arguments: Any, **options: Any) -> bool:
        return train(*arguments, **options, deadline=time.monotonic() - 1)

    monkeypatch.setattr(loop, "train", stopped)
    assert command.train(two(), out, resume=False, quiet=True, wandb="tests") == 130
    monkeypatch.setattr(loop, "train", train)
    assert command.train(two(), out, resume=True, quiet=True, wandb="tests") == 0
    wandb.teardown()  # returns when everything is on disk
    for name in two().folders():
        ids, history = sent(out / name)
        assert set(ids) == {(out / name / "wandb_id.txt").read_text().strip()}
        assert len(ids) == 2
        got: dict[str, list[tuple[int, float]]] = {}
        for row in history:
            for key, value in row.items():
                if not key.startswith("_") and key != "env_steps":
                    got.setdefault(key, []).append((row["env_steps"], value))
        assert got == expected(out / name)


def test_weights_and_biases_is_not_touched_unless_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "wandb", None)
    assert command.train(two(), tmp_path / "without", resume=False, quiet=True) == 0
    words = ["train", "maze", "--seeds", "1", "--steps", "64", "--rollout", "32", "--envs", "2", "--out"]
    assert main([*words, str(tmp_path / "with"), "--wandb", "--quiet"]) == 2
    assert not (tmp_path / "with").exists()
    with pytest.raises(ImportError, match=r"wandb is missing. Install it with: pip install .*\[wandb\]'"):
        vn.train("maze", out=tmp_path / "python", steps=64, rollout=32, envs=2, wandb="tests", quiet=True)


@pytest.mark.parametrize("line", ['{"env_steps": ', "[" * 100_000, "7", ""])
def test_a_damaged_line_is_named_by_file_and_number(line: str, tmp_path: Path) -> None:
    path = tmp_path / logs.NAME
    path.write_text('{"env_steps": 1}\n{"env_steps": 2}\n' + line + "\n")
    for go in (lambda: logs.read(path), lambda: logs.RunLog(tmp_path, 3)):
        with pytest.raises(ValueError, match=rf"{logs.NAME} is damaged in line 3: (?!.*line 1)(?!.*line 2)"):
            go()
    assert len(path.read_text().splitlines()) == 3  # nothing was cut


def test_a_log_that_does_not_say_where_it_ends_is_not_gone_on_with(tmp_path: Path) -> None:
    path = tmp_path / logs.NAME
    path.write_text('{"env_steps": 1}\n{"steps": 2}\n')
    with pytest.raises(ValueError, match=r"is damaged in line 2: it has no env_steps\. Repair it, or"):
        logs.RunLog(tmp_path, 2)
    assert len(path.read_text().splitlines()) == 2
