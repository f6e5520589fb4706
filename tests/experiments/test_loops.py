"""The experiments in other people's loops: plan, tables and figures; the runs themselves, very short."""

import json
from pathlib import Path
from typing import Any

import pytest
from matplotlib.image import imread

from voronaut import cli
from voronaut.experiments import loops
from voronaut.experiments.common import jobs as small
from voronaut.experiments.loops import command, door_key, mountain_car


def results(folder: Path, ends: dict[str, float]) -> Path:
    for job in loops.plan():
        if (end := ends.get(job.name.rpartition("-")[0])) is not None:
            rows = [
                {"steps": 10_000, "seconds": 9.0, "return": None},
                {"steps": 20_000, "seconds": 18.0, "return": end},
            ]
            small.write(job, folder, {"curve": rows, "first_goal": None, "goals": 0}, 1.0)
    return folder


def test_the_plan_has_every_method_with_the_seeds_that_are_reported() -> None:
    jobs = loops.plan()
    assert len({(job.part, job.name) for job in jobs}) == len(jobs) == 5 * sum(map(len, loops.METHODS.values()))
    assert {job.given["seed"] for job in jobs} == set(range(100, 105))
    assert json.loads(json.dumps([dict(job.given) for job in jobs]))


def test_tables_and_figures_come_from_files_alone(tmp_path: Path) -> None:
    folder = results(tmp_path / "results", {"pair": 93.0, "sac": 0.0, "none": 0.0, "alone": 0.95})
    tables = loops.computed(folder)
    assert "| 5 of 5 | 93.0, 93.0, 93.0, 93.0, 93.0 | 20,000, 20,000" in tables[loops.CAR]
    assert "| 0 of 5 | 0.0, 0.0, 0.0, 0.0, 0.0 | never, never" in tables[loops.CAR]
    assert "not run yet" in tables[loops.CAR] and "| 5 of 5 | 0.95" in tables[loops.DOOR]
    paths = loops.draw(folder, tmp_path)
    assert [path.name for path in paths] == ["mountain_car.png", "mountain_car_command.png", "door_key.png"]
    assert all(imread(path).std() > 0.01 for path in paths)


def test_what_was_evaluated_at_the_end_counts_more_than_the_last_episodes(tmp_path: Path) -> None:
    [job] = [job for job in loops.plan() if (job.part, job.name) == (loops.COMMAND, "kme-100")]
    row = {"steps": 4096, "seconds": 9.0, "return": 88.0}
    small.write(job, tmp_path, {"curve": [row], "evaluated": 94.0}, 1.0)
    assert "| the pair | 1 of 1 | 94.0 | never |" in loops.computed(tmp_path)[loops.COMMAND]


def test_runs_of_an_earlier_pair_are_kept_and_not_run_again(tmp_path: Path) -> None:
    folder = results(tmp_path / "results", {"pair-uniform": -1.0})
    assert "-1.0, -1.0" in loops.computed(folder)[loops.CAR]
    assert loops.draw(folder, tmp_path) == []
    said: list[str] = []
    arguments = ["reproduce", "loops", "--only", "mountain-car", "--status", "--results", str(folder)]
    assert loops.reproduce(cli.parser().parse_args(arguments), said.append) == 0
    assert "0 of 15" in said[-1]


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ("loops --only nonsense", "no part or job 'nonsense'; parts: mountain-car, mountain-car-command, door-key, or"),
        ("loops --processes 0", "--processes must be 1 or more"), ("entropy --work x", "entropy has no --method"),
        ("loops --method kme", "loops has no --method"), ("noise --draw", "noise has no --draw"),
    ],
)  # fmt: skip
def test_nonsense_is_refused_before_anything_runs(given: str, told: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["reproduce", *given.split()]) == 2
    assert told in capsys.readouterr().err


def test_what_was_not_run_is_not_drawn(tmp_path: Path) -> None:
    assert loops.draw(tmp_path, tmp_path) == []
    assert "not run yet" in loops.computed(tmp_path)[loops.DOOR]


@pytest.mark.parametrize("method", ["pair", "sac"])
@pytest.mark.parametrize("normalize", [True, False])
def test_a_short_run_on_the_mountain(method: str, normalize: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("stable_baselines3")
    monkeypatch.setattr(mountain_car, "EVERY", 60)
    monkeypatch.setattr(mountain_car, "EPISODES", 1)
    settings: dict[str, Any] = {"learning_starts": 40, "batch_size": 8, "policy_kwargs": {"net_arch": [4]}}
    got = mountain_car.run(method, seed=3, steps=128, envs=4, normalize=normalize, settings=settings)
    assert [each["steps"] for each in got["curve"]] == [60, 120]
    assert settings["policy_kwargs"] == {"net_arch": [4]}  # a result is known by what was given
    assert all(each["return"] < 90 for each in got["curve"]) and got["goals"] == 0


def test_a_short_run_of_the_command_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command, "EPISODES", 1)
    got = command.run("none", seed=3, steps=512, rollout=256)
    assert [each["steps"] for each in got["curve"]] == [256, 512]
    assert all(each["return"] is None and each["goals"] == 0 for each in got["curve"])
    assert -100 < got["evaluated"] <= 0


@pytest.mark.parametrize("scale", [0.01, 0.0])
def test_a_short_run_at_the_door(scale: float, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("stable_baselines3")
    pytest.importorskip("minigrid")
    monkeypatch.setattr(door_key, "EACH", 1)
    got = door_key.run("MiniGrid-DoorKey-5x5-v0", scale, seed=3, steps=4096)
    assert [each["steps"] for each in got["curve"]] == [2048, 4096]
    assert all(each["return"] is None or 0 <= each["return"] <= 1 for each in got["curve"])
