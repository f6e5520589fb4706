"""The cross-check with Stable-Baselines3: its rows are those of our trainer, runs are kept one by one, all redraws."""

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.experiments.toys import CHOICES
from voronaut.cli import main
from voronaut.experiments import exploration, sb3
from voronaut.experiments.common import results, sweep
from voronaut.experiments.common.sweep import Cell
from voronaut.experiments.sb3 import training

SMALL: dict[str, Any] = {
    "cells": (Cell(sb3.CELL, "cheetah-run", CHOICES),),
    "seeds": 1,
    "steps": 256,
}


def plan(folder: Path) -> sweep.Plan:
    """Two short runs below `folder`."""
    return sb3.PLAN._replace(folder=folder / "sb3", work=folder / "work", **SMALL)


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("sb3")
    assert sb3.run(plan(folder), say=lambda text: None, quiet=True)
    return folder


def test_a_result_file_like_the_others(done: Path) -> None:
    runs, troubles = sweep.collect(plan(done))
    assert not troubles and {label: len(some) for label, some in runs[sb3.CELL].items()} == {"none": 1, "kme": 1}
    (none,), (kme,) = runs[sb3.CELL]["none"], runs[sb3.CELL]["kme"]
    assert kme.curve["env_steps"].tolist() == [64, 128, 192, 256]
    paid = kme.curve["bonus_mean"]
    assert paid[0] == 0 and (paid[1:] != 0).all()  # the first rollout pays nothing
    assert not none.curve["bonus_mean"].any() and none.curve["max_step_reward"].max() > 0
    assert np.isnan(kme.curve["extrinsic_return"]).all()  # no episode is over after 128 steps
    about = kme.about
    assert about["trainer"] == "stable-baselines3" and about["last_metrics"]["kme/updates"] == 4
    assert about["seconds"].keys() == {"collect_seconds", "learn_seconds"} and about["seconds"]["learn_seconds"] > 0


def test_what_is_there_is_kept_and_the_rest_is_run(
    done: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(training, "train", None)
    assert sb3.run(plan(done), quiet=True) and not capsys.readouterr().out
    broken = done / "sb3" / sb3.CELL / "kme-0.json.gz"
    whole = broken.read_bytes()
    broken.write_bytes(whole[:50])
    assert [one.folders() for one in sb3.missing(plan(done), plan(done).cells[0])] == [["kme-0"]]
    two = plan(done)._replace(seeds=2)
    assert [one.folders()[0] for one in sb3.missing(two, two.cells[0])] == ["kme-0", "none-1", "kme-1"]
    assert not sb3.run(plan(done), budget=-1, quiet=True) and "budget" in capsys.readouterr().out
    broken.write_bytes(whole)


def test_the_same_seed_is_the_same_run_and_seeds_share_no_environment(done: Path) -> None:
    config = sweep.config(plan(done), plan(done).cells[0])
    (first,) = sweep.collect(plan(done))[0][sb3.CELL]["none"]
    again = {}
    for seed in (0, 1):
        one = dataclasses.replace(config, methods=config.methods[:1], seeds=(seed,), steps=128)
        rows = training.train(one)
        again[seed] = [results.short(row["max_step_reward"]) for row in rows]
        env = training.environments(one)
        env.seed(seed * config.envs)
        again[f"starts {seed}"] = env.reset().tolist()
    assert again[0] == first.curve["max_step_reward"][:2].tolist() != again[1]
    assert not any(start in again["starts 1"] for start in again["starts 0"])


def test_the_final_state_counts_and_not_the_reset_one(done: Path) -> None:
    recorder = training.Recorder(training.environments(sb3.missing(plan(done / "none"), plan(done).cells[0])[0]))
    recorder._on_rollout_start()
    infos = [{"terminal_observation": np.full(2, 7.0)}, {}]
    recorder.locals = {"infos": infos, "new_obs": np.zeros((2, 2)), "dones": np.array([True, False])}
    recorder._on_step()
    assert recorder._states[0].tolist() == [[7, 7], [0, 0]]


def test_the_command_and_its_figure(
    done: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sb3, "PLAN", plan(done))
    monkeypatch.setattr(exploration.run, "beside", lambda plan, **_: {"none": [], "kme": []})
    assert main(["reproduce", "sb3", "--status"]) == 0 and "the grid is complete" in capsys.readouterr().out
    assert main(["reproduce", "sb3", "--figures", str(done)]) == 0
    assert str(done / "sb3.png") in capsys.readouterr().out and (done / "sb3.png").stat().st_size > 10_000
    assert (
        "| Stable-Baselines3 | PPO + KME | 1 |" in (text := sb3.computed(sb3.PLAN)["sb3"])
        and "| ours | PPO | 0 |" in text
    )


def test_beside_it_stand_our_own_runs_up_to_the_same_step(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(Path(__file__).parents[2])
    ours = exploration.run.beside(sb3.PLAN, methods=sb3.METHODS)
    assert {method: len(some) for method, some in ours.items()} == {"none": 5, "kme": 5}
    last = ours["kme"][0].curve["env_steps"][-1]
    assert sb3.PLAN.steps <= last < sb3.PLAN.steps + 16_384 < exploration.PLAN.steps
