"""The entropy experiments: samplers and rivals that are what they say, drawing."""

import argparse
import json
import math
from pathlib import Path

import numpy as np
import pytest

from voronaut import cli
from voronaut.entropy.stream import ESTIMATOR_VERSION
from voronaut.experiments import entropy
from voronaut.experiments.common import jobs
from voronaut.experiments.entropy import density, errors, orders, shift, steps, walks
from voronaut.experiments.entropy.errors import rivals, run

KEPT = Path(__file__).parents[3] / "results" / "entropy"


def test_cheap_jobs_come_first(tmp_path: Path) -> None:
    plan = entropy.plan()
    assert [job.seconds for job in jobs.missing(plan, tmp_path)] == sorted(job.seconds for job in plan)
    names = [jobs.path_of(job, tmp_path) for job in plan]
    assert len(set(names)) == len(names)


def test_parts_and_jobs_are_chosen_by_name() -> None:
    plan = entropy.plan(seeds=1)
    assert {job.part for job in jobs.choose(plan, ["walks"])} == {"walks"}
    assert all(job.name.startswith("ball-2") for job in jobs.choose(plan, ["accuracy/ball-2"]))
    with pytest.raises(ValueError, match="no part or job 'runs'; parts: orders, steps"):
        jobs.choose(plan, ["runs"])


# What the jobs do, small


def test_every_kind_of_job_gives_plain_values(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(density, "SAMPLES", 10_000)
    told = [
        orders.work(cloud="two", way="zeros", seed=0, points=2_000, batch=1_000),
        orders.work(cloud="uniform", way="auto", seed=1, points=2_000, batch=1_000),
        steps.work(dim=2, init="data", seed=0, points=500, watched=20),
        walks.work(sampler="metropolis", dim=2, variance=0.01, seed=0, points=2_000, batch=1_000),
        density.work(shape="wave", dim=1, clusters=5, seed=0, points=10_000),
        run.work(law="beta", dim=2, method="moments", seed=0, points=10_000),
        run.beside(law="beta", dim=2, method="knn", seed=0, points=10_000),
    ]
    for result in told:
        assert json.loads(json.dumps(result, allow_nan=False)) == result
    assert told[0]["points"] == [1_000, 2_000] and len(told[0]["centers"]) == 300 and told[1]["centers"] == []
    assert abs(told[5]["error"][-1]) < 0.2 and abs(told[6]["error"][-1]) < 0.05


def test_results_of_an_older_estimator_are_told(tmp_path: Path) -> None:
    job = next(job for job in errors.jobs() if job.given["method"] == "bound")
    for version, count in ((ESTIMATOR_VERSION, 0), (ESTIMATOR_VERSION - 1, 1)):
        jobs.write(job, tmp_path / "r", {"estimator": version}, 1.0)
        said: list[str] = []
        entropy.reproduce(options(tmp_path, status=True), said.append)
        assert sum("1 results are of an older estimator" in line and job.name in line for line in said) == count


@pytest.mark.parametrize("name", ["ball-2-mixture-0", "gamma-8-mixture-0", "rotated_laplace-17-moments-0"])
def test_kept_errors_come_again(name: str) -> None:
    """At the first checkpoint. Fails when the estimator's numbers change: then raise ESTIMATOR_VERSION."""
    kept = json.loads((KEPT / "accuracy" / f"{name}.json").read_text())
    if kept["result"]["estimator"] < ESTIMATOR_VERSION:
        pytest.skip("kept results are of an older estimator")
    told = run.work(**{**kept["given"], "points": 10_000})
    for key in ("error", "std"):
        assert told[key] == pytest.approx(kept["result"][key][:1], abs=2e-3)
    assert told["estimator"] == kept["result"]["estimator"] and {"voronaut", "date"} <= set(kept["machine"])


def test_shift_counts_cells_in_use() -> None:
    told = shift.work(dim=2, shift=3.0, way="auto", scale=1.0, seed=0, settle=20_000, follow=10_000)
    assert told["cv"] < 0.5 and len(told["used_after"]) == 1 and 0 < told["used_after"][0] <= 1


@pytest.mark.parametrize("name", orders.CLOUDS)
def test_entropies_of_the_clouds_are_true(name: str) -> None:
    cloud = orders.CLOUDS[name]
    points = cloud.sample(20_000, np.random.default_rng(0))
    assert rivals.neighbours(points) == pytest.approx(cloud.entropy(), abs=0.03)


def test_clouds_are_listed_by_falling_entropy() -> None:
    values = [cloud.entropy() for cloud in orders.CLOUDS.values()]
    assert values == sorted(values, reverse=True)


def test_metropolis_has_the_variance_and_the_releases_walk_half_of_it() -> None:
    seen = {}
    for name, sampler in walks.SAMPLERS.items():
        walks.seed_walks(0)
        place, out = np.zeros(2), np.empty((200_000, 2))
        sampler(place, 1e-3, out)
        seen[name] = out.var()
    assert seen["metropolis"] == pytest.approx(1e-3, rel=0.15)
    assert seen["release"] == pytest.approx(0.5e-3, rel=0.15)


def test_the_releases_walk_falls_back_to_0_in_64_dimensions() -> None:
    walks.seed_walks(0)
    place, out = np.zeros(64), np.empty((300, 64))
    resets = walks.until_accepted(place, 1e-5, out)
    assert resets == (np.abs(out).sum(axis=1) == 0).sum() > 0


@pytest.mark.parametrize("dim", [2, 12])
def test_neighbours_by_tree_and_by_loop_are_the_same(dim: int) -> None:
    points = np.random.default_rng(0).normal(size=(300, dim))
    loop = np.sqrt(rivals.by_loop(np.ascontiguousarray(points.T)))
    np.testing.assert_allclose(loop, rivals.by_tree(points), rtol=1e-12)


@pytest.mark.parametrize("name", rivals.RIVALS)
def test_rivals_know_a_gaussian(name: str) -> None:
    points = 3 * np.random.default_rng(0).normal(size=(4_000, 2))
    truth = math.log(2 * math.pi * math.e) + 2 * math.log(3)
    assert rivals.RIVALS[name](points) == pytest.approx(truth, abs=0.08)


# Orders


def test_from_when_on_an_order_is_right() -> None:
    found = {
        f"orders/{name}-auto-0": {"points": [1, 2, 3, 4], "objective": [1.0 * (rank == 0), -rank, rank, -rank]}
        for rank, name in enumerate(orders.CLOUDS)
    }
    assert orders.ordered(found, "auto", 0) == {1: False, 2: True, 3: False, 4: True}
    assert orders.right_from(found, "auto", 0) == 4
    assert orders.right_from(found, "zeros", 0) is None


# What is kept: the claims of the page


def test_with_data_init_every_order_is_right_from_20k_points() -> None:
    found = jobs.collect(orders.jobs(), KEPT)
    for way in ("data", "auto"):
        firsts = [orders.right_from(found, way, seed) for seed in range(orders.SEEDS)]
        assert all(first is not None and first <= 20_000 for first in firsts), (way, firsts)


def test_result_files_are_small() -> None:
    sizes = [path.stat().st_size for path in KEPT.rglob("*.json")]
    assert sizes and max(sizes) < 20_000 and sum(sizes) < 3_000_000


# The command


def options(tmp_path: Path, **given: object) -> argparse.Namespace:
    arguments = ["reproduce", "entropy", "--results", str(tmp_path / "r"), "--figures", str(tmp_path / "f")]
    parsed = cli.parser().parse_args(arguments)
    return argparse.Namespace(**{**vars(parsed), **given})


def test_reproduce_runs_draws_and_says_what_is_missing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(entropy, "draw", lambda folder, figures: [figures / "drawn.png"])
    given = {"only": ["orders/two-auto"], "seeds": 1, "steps": 2e3}
    assert entropy.reproduce(options(tmp_path, **given)) == 0
    assert (tmp_path / "r/orders/two-auto-0.json").exists()
    said = capsys.readouterr().out
    assert "f/drawn.png" in said and "all is done" in said
    assert entropy.reproduce(options(tmp_path, status=True)) == 0
    assert "orders" in capsys.readouterr().out
    for wrong in (["--method", "kme"], ["--only", "nothing"], ["--processes", "0"]):
        assert cli.main(["reproduce", "entropy", *wrong]) == 2


def test_every_figure_draws_from_what_is_kept_and_from_nothing(tmp_path: Path) -> None:
    drawn = entropy.draw(KEPT, tmp_path)
    assert {path.name for path in drawn} == {
        "orders.png", "points.png", "walks.png", "recomputed.png", "shift.png", "density.png", "accuracy.png",
        "memory.png", "data.png",
    }  # fmt: skip
    assert all(path.stat().st_size > 10_000 for path in drawn)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("voronaut.helpers.plotting.save_small", lambda *_: None)
        assert len(entropy.draw(tmp_path / "nothing", tmp_path)) == len(drawn)
