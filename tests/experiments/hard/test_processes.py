"""Groups of runs in processes of their own: all are trained, one that fails hurts no other, and a stop is a stop."""

import dataclasses
import itertools
import json
import multiprocessing
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.experiments.toys import trained
from voronaut.cli import main
from voronaut.experiments.hard import processes, run, settings
from voronaut.experiments.hard.processes import Group
from voronaut.experiments.hard.settings import Wanted


def group(name: str, cell: str = "cartpole") -> Group:
    config = settings.configured(settings.CELLS[cell], settings.METHODS["none"], [100, 101], {})
    [method] = config.methods
    return Group(settings.CELLS[cell], dataclasses.replace(config, methods=(dataclasses.replace(method, label=name),)))


def told(folder: Path) -> dict[str, Any]:
    return {path.stem: json.loads(path.read_text()) for path in folder.glob("*.json")}


def go(folder: Path, *groups: Group, **how: Any) -> bool:
    return processes.run(groups, folder, folder, 2, train=trained, **{"say": lambda text: None, **how})


def test_all_are_trained_each_in_a_process_with_its_cores(tmp_path: Path) -> None:
    assert go(tmp_path, group("a"), group("b"), group("c", "walker-0.5"), deadline=time.monotonic() + 100)
    found = told(tmp_path)
    assert set(found) == {"cartpole-a", "cartpole-b", "walker-0.5-c"}
    assert len({each["pid"] for each in found.values()} | {os.getpid()}) == 4
    shares = [processes.share(slot, 2) for slot in range(2)]
    assert all(each["cores"] in shares and 0 < each["seconds"] < 100 for each in found.values())


def test_a_group_that_fails_hurts_no_other_and_is_named(tmp_path: Path) -> None:
    said: list[str] = []
    with pytest.raises(ChildProcessError, match=r"cartpole:\w+, seeds 100, 101 \(exit status .*cartpole:\w+, "):
        go(tmp_path, *map(group, ("fails", "dies", "a", "b")), say=said.append)
    assert set(told(tmp_path)) == {"cartpole-fails", "cartpole-dies", "cartpole-a", "cartpole-b"}
    assert sorted(text.split(", seeds")[0] for text in said) == ["cartpole:dies", "cartpole:fails"]


def test_every_method_is_a_group_and_long_runs_are_several() -> None:
    cells = settings.EVERY
    [config] = run.groups(cells["humanoid-0.2"], [Wanted("humanoid-0.2", ("kme", "rnd"), settings.FIVE)], {}, {})
    names = [each.name for each in processes.split(cells["humanoid-0.2"], config)]
    assert names == [
        f"humanoid-0.2:{m}, seeds {seeds}" for m in ("kme", "rnd") for seeds in ("100, 101, 102", "103, 104")
    ]
    alone = processes.split(cells["humanoid-0.2-5M"], config)
    assert [each.config.seeds for each in alone] == 2 * [(seed,) for seed in settings.FIVE]
    left = dataclasses.replace(config, seeds=(103, 104))  # once the others are done it is the same group, and goes on
    assert processes.split(cells["humanoid-0.2"], left)[0].config.seeds == (103, 104)
    [short] = run.groups(cells["cheetah-0.25"], [Wanted("cheetah-0.25", ("rnd",), settings.FIVE)], {}, {})
    assert [each.config for each in processes.split(cells["cheetah-0.25"], short)] == [short]


def test_nothing_is_begun_after_a_stop(tmp_path: Path) -> None:
    assert not go(tmp_path, group("a"), deadline=time.monotonic() - 1)
    assert not told(tmp_path)
    assert not processes.run([group("a"), group("stops", "walker-0.5")], tmp_path, tmp_path, 1, train=trained)
    assert set(told(tmp_path)) == {"walker-0.5-stops"}


def test_who_goes_on_after_another_stopped_is_told_to_stop_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A group ends at a checkpoint by itself; Ctrl-C comes after that, while another is waiting for a signal."""
    asked = itertools.count()

    @contextmanager
    def later() -> Iterator[Callable[[], bool]]:
        yield lambda: (tmp_path / "cartpole-stops.json").exists() and next(asked) > 2

    monkeypatch.setattr(processes.loop, "interrupts", later)
    os.mkfifo(tmp_path / "pipe")
    assert not go(tmp_path, group("waits", "walker-0.5"), group("stops"), group("a"))
    assert set(told(tmp_path)) <= {"cartpole-stops", "cartpole-a"}


def test_no_further_group_is_begun_where_the_time_would_not_do(tmp_path: Path) -> None:
    soon = time.monotonic() + processes.BEGINNING - 1
    assert not processes.run([group("a"), group("b")], tmp_path, tmp_path, 1, deadline=soon, train=trained)
    assert set(told(tmp_path)) == {"cartpole-b"}


def test_no_group_outlives_who_began_it(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    beginner = multiprocessing.get_context("spawn").Process(target=go, args=(tmp_path, group("waits")))
    beginner.start()
    with (tmp_path / "pipe").open() as pipe:
        assert pipe.readline() == "begun\n"
        beginner.kill()
        assert pipe.read() == ""  # the end: nobody has it open any more
    beginner.join()


@given(st.integers(1, 40), st.integers(1, 20))
def test_every_core_is_somebodys(cores: int, count: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "sched_getaffinity", lambda _: set(range(3, 3 + cores)))
        shares = [processes.share(slot, count) for slot in range(count)]
    assert set().union(*shares) == set(range(3, 3 + cores)) and all(shares)
    if count <= cores:
        assert sum(map(len, shares)) == cores and max(map(len, shares)) - min(map(len, shares)) <= 1


def test_the_command_takes_one_process_or_more(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    base = ["reproduce", "hard", "--results", str(tmp_path / "r"), "--work", str(tmp_path / "w"), "--cells", "cartpole"]
    assert main([*base, "--processes", "0"]) == 2
    assert "--processes must be 1 or more" in capsys.readouterr().err
