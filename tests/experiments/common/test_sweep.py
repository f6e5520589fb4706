"""Bookkeeping of a sweep: what is done, what is missing, what is damaged, and that interruptions change nothing."""

import gzip
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.experiments.toys import CELLS, plan
from voronaut.experiments import exploration, parameters, scale
from voronaut.experiments.common import results, sweep
from voronaut.learners import ppo
from voronaut.training import checkpoint, loop, on_policy, policy
from voronaut.training.population import Population


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The small sweep, run without interruption."""
    folder = tmp_path_factory.mktemp("sweep")
    assert sweep.run(plan(folder), say=lambda text: None, quiet=True)
    return folder


def copied(whole: Path, folder: Path) -> Path:
    """The results of the small sweep elsewhere, without the work that made them."""
    shutil.copytree(whole / "results", folder / "results")
    return folder


def curves(folder: Path) -> dict[Path, dict[str, list[float]]]:
    """Every curve below `folder`, by file."""
    return {
        path.relative_to(folder): {key: values.tolist() for key, values in results.read(path).curve.items()}
        for path in sorted((folder / "results").glob("*/*.gz"))
    }


def test_one_file_per_run(whole: Path) -> None:
    names = {f"{method}-{seed}.json.gz" for method in ("none", "kme") for seed in (0, 1)}
    for cell in CELLS:
        assert {path.name for path in (whole / "results" / cell.name).iterdir()} == names
    about = results.read(whole / "results/run/kme-0.json.gz").about
    assert about["params"]["clusters"] == 10 and about["runs_side_by_side"] == 4 and about["machine"]["python"]
    assert about["median_seconds"]["learn_seconds"] > 0 and about["seconds"]["learn_seconds"] > 0
    assert "the grid is complete" in sweep.status(plan(whole))


def test_interrupted_and_resumed_is_the_same(whole: Path, tmp_path: Path) -> None:
    sittings = 0
    while not sweep.run(plan(tmp_path), budget=0, say=lambda text: None, quiet=True):
        sittings += 1
        assert sittings < 20
        if sittings == 2:
            assert "50%" in sweep.status(plan(tmp_path)) and "left on two cores" in sweep.status(plan(tmp_path))
    assert sittings >= 4
    assert repr(curves(tmp_path)) == repr(curves(whole))  # NaN has a text, and is not equal to itself


class Crash(BaseException):
    """The machine went down."""


def crashing(function: Callable[..., Any], rng: np.random.Generator) -> Callable[..., Any]:
    """The function, now and then cut off before its work or after it."""

    def unsafe(*args: Any, **kwargs: Any) -> Any:
        if rng.random() < 0.06:
            raise Crash
        result = function(*args, **kwargs)
        if rng.random() < 0.06:
            raise Crash
        return result

    return unsafe


def test_cut_off_at_random_points_is_the_same(whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rng, crashes = np.random.default_rng(0), 0
    places = ((on_policy, "collect"), (ppo, "learn"), (Population, "update_stack"), (checkpoint, "save"),
              (policy, "save"), (results, "write"))  # fmt: skip
    for module, name in places:
        monkeypatch.setattr(module, name, crashing(getattr(module, name), rng))
    for _ in range(60):
        try:
            if sweep.run(plan(tmp_path), budget=0, say=lambda text: None, quiet=True):
                break
        except Crash:
            crashes += 1
    assert crashes > 5
    assert repr(curves(tmp_path)) == repr(curves(whole))


def test_a_complete_sweep_runs_nothing(whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loop, "train", None)
    assert sweep.run(plan(copied(whole, tmp_path)), quiet=True)


def test_results_of_two_machines_merge_by_copying(whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one, two = (copied(whole, tmp_path / name) for name in ("one", "two"))
    shutil.rmtree(one / "results/swing")
    for path in (two / "results").glob("run/kme*"):
        path.unlink()
    assert sweep.missing(plan(one), CELLS[0]) is None and sweep.missing(plan(one), CELLS[1]) is not None
    todo = sweep.missing(plan(two), CELLS[0])
    assert todo is not None and [m.label for m in todo.methods] == ["kme"]
    shutil.copytree(two / "results", one / "results", dirs_exist_ok=True)
    monkeypatch.setattr(loop, "train", None)
    assert sweep.run(plan(one), quiet=True) and repr(curves(one)) == repr(curves(whole))


def test_damage_is_named_skipped_and_run_again(whole: Path, tmp_path: Path) -> None:
    here, said = plan(copied(whole, tmp_path), cells=CELLS[:1]), []
    bad, good = (here.folder / "run" / f"kme-{seed}.json.gz" for seed in (1, 0))
    bad.write_bytes(bad.read_bytes()[:200])
    results.write(good, _content(good) | {"notes": ["measured first"]})
    data, troubles = sweep.collect(here)
    assert [r.seed for r in data["run"]["kme"]] == [0] and len(data["run"]["none"]) == 2
    assert len(troubles) == 1 and "kme-1.json.gz" in troubles[0]
    assert "kme-1.json.gz" in sweep.status(here) and "1/2" in sweep.status(here)
    assert sweep.run(here, say=said.append, quiet=True) and "kme" in said[0] and "none" not in said[0]
    assert repr(results.read(bad).curve) == repr(results.read(whole / "results/run/kme-1.json.gz").curve)
    assert results.read(good).about["notes"] == ["measured first"]  # what was sound is kept


def _content(path: Path) -> dict[str, Any]:
    """A result file as `results.write` takes it."""
    result = results.read(path)
    named = {key: getattr(result, key) for key in ("task", "threshold", "method", "seed")}
    curve = {k: [None if np.isnan(x) else x for x in v] for k, v in result.curve.items()}
    return named | result.about | {"curve": curve}


def test_other_experiments_and_shorter_runs_are_not_taken(whole: Path, tmp_path: Path) -> None:
    here = plan(copied(whole, tmp_path))
    shutil.copy(here.folder / "swing/kme-0.json.gz", here.folder / "run/kme-0.json.gz")
    shutil.copy(here.folder / "run/kme-1.json.gz", here.folder / "run/none-0.json.gz")
    data, troubles = sweep.collect(here)
    assert {m: [r.seed for r in rs] for m, rs in data["run"].items()} == {"none": [1], "kme": [1]}
    assert "differs in task" in troubles[1] and "differs in method" in troubles[0]
    longer, (trouble, *_) = sweep.collect(here._replace(steps=300, cells=CELLS[1:]))
    assert not any(longer["swing"].values()) and "256 of 300 steps" in trouble
    shorter = sweep.collect(here._replace(steps=128, cells=CELLS[1:]))[0]["swing"]["kme"][0]
    assert shorter.curve["env_steps"].tolist() == [64, 128] and len(shorter.curve["bonus_mean"]) == 2


def test_a_run_that_is_there_twice_counts_once(whole: Path, tmp_path: Path) -> None:
    here = plan(copied(whole, tmp_path), cells=CELLS[:1])
    result = here.folder / "run/kme-0.json.gz"
    (here.folder / "run/kme-0.json").write_bytes(gzip.decompress(result.read_bytes()))
    assert len(sweep.collect(here)[0]["run"]["kme"]) == 2
    result.unlink()
    assert len(sweep.collect(here)[0]["run"]["kme"]) == 2


def test_the_estimate_knows_that_baselines_are_dear(tmp_path: Path) -> None:
    kme, rnd = (sweep.choose([kind], scale.PLAN._replace(folder=tmp_path)) for kind in ("kme", "rnd"))
    assert "about 10:00 left" in sweep.status(kme)  # 4 weights x 3 seeds x 2 million steps at 40,000 per second
    assert "about 56:24 left" in sweep.status(rnd)


def test_choosing(tmp_path: Path) -> None:
    whole = exploration.PLAN
    assert [c.name for c in sweep.choose(["cheetah-run"], whole).cells] == ["cheetah-run-release", "cheetah-run-paper"]
    assert [c.name for c in sweep.choose(["walker-run-paper"], whole).cells] == ["walker-run-paper"]
    assert sweep.choose([], whole) == whole
    with pytest.raises(ValueError, match="no cell 'walk'"):
        sweep.choose(["walk"], whole)
    with pytest.raises(ValueError, match="no method 'hash'"):
        sweep.make_plan(whole, methods=["hash"])
    some = sweep.make_plan(whole, methods=["re3", "kme"], steps=1e5)
    assert [m.label for m in sweep.config(some, some.cells[0]).methods] == ["kme", "re3"] and some.steps == 100_000


def test_each_experiment_changes_what_it_is_about_and_nothing_else() -> None:
    assert len(exploration.PLAN.cells) == 8 and (exploration.PLAN.seeds, exploration.PLAN.steps) == (5, 5_000_000)
    for cell in scale.PLAN.cells:
        values = [float(m.scale) for m in sweep.config(scale.PLAN, cell).methods]
        assert len(values) == 4 and max(values) / min(values) == pytest.approx(1000)
        assert float(scale.papers(cell.name)) in values
    configs = {cell.name: sweep.config(parameters.PLAN, cell) for cell in parameters.PLAN.cells}
    paper = configs["paper"].methods[0].params
    for name in parameters.VALUES:
        for method in configs[name].methods:
            assert [key for key, value in method.params.items() if paper.get(key) != value] == [name]
            assert method.params.keys() >= paper.keys()
    assert {configs[f"rollout-{size}"].rollout for size in parameters.ROLLOUTS} == {4096, 65536}
