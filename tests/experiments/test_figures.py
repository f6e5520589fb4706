"""Every figure redraws from committed files, alone; the page's tables are those of the files."""

import shutil
from pathlib import Path

import pytest
from matplotlib.image import imread

from tests.experiments.toys import plan as small
from voronaut.cli import main
from voronaut.experiments import exploration, parameters, sb3, scale
from voronaut.experiments.common import results, sweep
from voronaut.experiments.common.stats import Interval
from voronaut.experiments.exploration import figures, tables

ROOT = Path(__file__).parents[2]
NAMES = ["returns", "scores", "iqm", "improvement", "discovery", "cost"]


@pytest.fixture(autouse=True)
def at_the_root(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pictures are small here: what takes time is their pixels."""
    monkeypatch.chdir(ROOT)
    monkeypatch.setattr("voronaut.helpers.plotting.DPI", 50)


def test_everything_redraws(tmp_path: Path) -> None:
    said: list[str] = []
    paths = [
        path for each in (exploration, scale, parameters, sb3) for path in each.draw(each.PLAN, tmp_path, said.append)
    ]
    assert [path.stem for path in paths] == [*NAMES, "scale", "parameters", "sb3"] and not said
    assert all(imread(path).std() > 0.01 for path in paths)


def test_committed_results_are_sound() -> None:
    for path in Path("results").rglob("*.json.gz"):
        results.read(path)
    data, troubles = sweep.collect(exploration.PLAN)
    assert not troubles and len(figures.complete(exploration.PLAN, data)) >= 2


def test_the_command_draws_and_names_what_is_damaged(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shutil.copytree("results/exploration", tmp_path / "results")
    broken = tmp_path / "results/cheetah-run-release/kme-3.json.gz"
    broken.write_bytes(b"not a result")
    command = ["reproduce", "exploration", "--draw", "--results", str(tmp_path / "results"), "--figures", str(tmp_path)]
    assert main([*command, "--only", "cheetah-run-release"]) == 0
    said = capsys.readouterr().out
    assert f"not used: {broken}" in said and "4/5" in said and "quadruped" not in said
    assert sorted(path.stem for path in tmp_path.glob("*.png")) == sorted(NAMES)
    plan = exploration.PLAN._replace(folder=tmp_path / "results")
    data, troubles = sweep.collect(plan)
    assert "| PPO + KME | 4 |" in tables.tasks(plan, data)
    assert "kme 4 of 5" in (text := tables.missing(plan, data, troubles)) and str(broken) in text
    done = [cell.name for cell in figures.complete(plan, data)]
    assert "cartpole-swingup-release" in done and "cheetah-run-release" not in done
    rows = [row for row in tables.claims(plan, data).splitlines() if "cheetah-run-release" in row]
    assert "| – |" not in rows[0] and all(row.endswith("| not run yet | – |") for row in rows[1:])  # PPO alone is whole


def test_nothing_run_yet_can_be_drawn(tmp_path: Path) -> None:
    for each in (exploration, scale, parameters, sb3):
        empty = each.PLAN._replace(folder=tmp_path / "none")
        assert all(path.exists() for path in each.draw(empty, tmp_path))
    nothing, troubles = sweep.collect(exploration.PLAN._replace(folder=tmp_path / "none"))
    assert not troubles
    for table in ("tasks", "chances", "iqms", "costs", "claims"):
        assert getattr(tables, table)(exploration.PLAN, nothing)
    assert parameters.computed(parameters.PLAN._replace(folder=tmp_path))["parameters"] == "Nothing has been run yet."


def test_parameters_draw_once_there_is_data(tmp_path: Path) -> None:
    plan = parameters.PLAN._replace(folder=tmp_path / "results")
    for cell in plan.cells:
        (plan.folder / cell.name).mkdir(parents=True)
        config = sweep.config(plan, cell)
        for (method, seed), name in zip(config.runs, config.folders(), strict=True):
            curve = {key: [1.0 + seed, 2.0, 3.0] for key in results.CURVES} | {"env_steps": [1, 10, plan.steps]}
            last = {"kme/count_cv": 0.5, "kme/states": 8.0, "kme/grown_gaps": 4.0, "kme/recomputed_gaps": 2.0}
            content = results.identity(config, method, seed) | {"curve": curve, "last_metrics": last}
            results.write(plan.folder / cell.name / f"{name}.json.gz", content)
    assert parameters.draw(plan, tmp_path)[0].exists()
    text, again = parameters.computed(plan).values()
    assert "| balance κ | 1e-4 | 3 |" in text and "not run" not in text
    assert "| rollout B | 65536 | 3 |" in text and "0.50 [0.50, 0.50]" in text
    order = [text.index(f"| absorb | {way} | 3 |") for way in ("shuffled", "in-order", "online", "online-shuffled")]
    assert order == sorted(order)
    assert "| online | 3 | 0.500 [0.500, 0.500] | 0.250 [0.250, 0.250] |" in again


@pytest.mark.parametrize(("found", "p", "side"), [((0.9, 0.6, 1), 0.01, 1), ((0.9, 0.6, 1), 0.06, 0),
                                                  ((0.1, 0, 0.3), 0.01, -1), ((0.5, 0.2, 0.8), 0.01, 0)])  # fmt: skip
def test_what_counts_as_sure(found: tuple[float, float, float], p: float, side: int) -> None:
    assert tables.sure(Interval(*found), p) == side


def test_the_command_runs_what_is_missing_and_shows_the_grid(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(parameters, "PLAN", small(tmp_path, methods=("none",)))
    monkeypatch.setattr(parameters, "draw", lambda plan, figures: [figures / "drawn.png"])
    assert main(["reproduce", "parameters", "--status"]) == 0
    assert "0/2" in capsys.readouterr().out
    assert main(["reproduce", "parameters", "--only", "run", "--seeds", "1", "--steps", "64", "--figures", "here"]) == 0
    said = capsys.readouterr().out
    assert "here/drawn.png" in said and "the grid is complete" in said
    assert (tmp_path / "results/run/none-0.json.gz").exists()
