"""The hard tasks: a cell in seconds, stopped and gone on with, judged beside the training, and told from its files."""

import contextlib
import dataclasses
import itertools
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.training.toys import Counter
from voronaut.cli import main
from voronaut.experiments import hard
from voronaut.experiments.hard import figures, film, hopper, judge, results, run, settings, tables
from voronaut.helpers import npz
from voronaut.tasks import make
from voronaut.training import off_policy, policy
from voronaut.training.config import Config
from voronaut.training.off_policy import SACTrainer

CELL = settings.CELLS["cartpole"]._replace(steps=512)
TINY = {"width": 8, "batch": 8, "gradient_steps": 1, "random_steps": 64, "absorb_every": 4}
SEEDS = (100, 101)


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Turns of 128 steps, evaluations of two episodes, and nothing said."""
    monkeypatch.setattr(settings, "ROLLOUT", 128)
    monkeypatch.setattr(judge, "EPISODES", 2)
    monkeypatch.setattr(judge, "make", lambda task, seeds, envs, **_: Counter(len(seeds) * envs, limit=5))
    monkeypatch.setattr(run, "make", lambda task, seeds, envs, **_: Counter(len(seeds) * envs, limit=5))


def wanted(*methods: str) -> list[settings.Wanted]:
    return [settings.Wanted("cartpole", methods, SEEDS)]


def configs(*methods: str) -> list[Config]:
    return run.groups(CELL, wanted(*methods), {}, TINY)


def go(folder: Path, *methods: str, deadline: float | None = None) -> bool:
    given = (folder / "work", folder / "results")
    return run.run(CELL, configs(*methods), *given, deadline=deadline, say=lambda text: None)


def lines(folder: Path, name: str) -> list[Any]:
    """A result without its seconds."""
    about, *rows = [json.loads(line) for line in (folder / "results/cartpole" / f"{name}.jsonl").open()]
    return [{key: about[key] for key in ("rewarded", "evaluations", "settings")}, *(row[:-1] for row in rows)]


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Callable[[], Path]:
    """Both main methods, run once in one go, inside the first test that asks."""
    folder = tmp_path_factory.mktemp("hard")

    def once() -> Path:
        assert (folder / "results").exists() or go(folder, "none", "kme")
        return folder

    return once


def test_what_is_stopped_goes_on_to_the_same_results(whole: Callable[[], Path], tmp_path: Path) -> None:
    for _ in range(3):
        assert not go(tmp_path, "none", "kme", deadline=0.0)
    assert set(run.under_way(tmp_path / "work", "cartpole").values()) == {0.75}
    assert go(tmp_path, "none", "kme")
    for name in ("none-100", "kme-101"):
        assert lines(tmp_path, name) == lines(whole(), name)
    assert not list((tmp_path / "work").rglob("checkpoints/*"))


def test_a_run_whose_checkpoints_cannot_be_read_is_not_begun_again_unasked(tmp_path: Path) -> None:
    for _ in range(2):
        assert not go(tmp_path, "none", deadline=0.0)
    [place] = (tmp_path / "work").rglob("checkpoints")
    for path in place.glob("*.npz"):
        path.write_bytes(path.read_bytes()[:-100])
    for _ in range(2):  # also when it is asked again
        with pytest.raises(ValueError, match=r"holds no checkpoint that can be read. Remove .* to begin again"):
            go(tmp_path, "none")


def test_what_another_command_has_finished_meanwhile_is_not_trained_again(
    whole: Callable[[], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    there = shutil.copytree(whole() / "results", tmp_path / "results")
    monkeypatch.setattr(run, "SACTrainer", None)  # nothing begins
    assert go(tmp_path, "none", "kme")
    path = results.path_of(there, "cartpole", "kme", 101)
    path.write_text(path.read_text()[:300])
    with pytest.raises(TypeError):
        go(tmp_path, "none", "kme")


def test_a_damaged_policy_takes_no_result_along(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "results" / results.POLICIES).mkdir(parents=True)
    (tmp_path / "results" / results.POLICIES / "cartpole.npz").write_text("no policy")
    said: list[str] = []
    assert run.run(CELL, configs("none"), tmp_path / "work", tmp_path / "results", say=said.append)
    assert len(list((tmp_path / "results/cartpole").iterdir())) == 2
    assert any("none-100 was not compared" in text for text in said)


def test_evaluations_of_a_shorter_run_do_not_count(tmp_path: Path) -> None:
    """One of 20 turns is evaluated after the 19th and stopped there; the one of 24 that goes on is not."""
    [one] = configs("none")
    shorter, longer = (dataclasses.replace(one, steps=128 * turns) for turns in (20, 24))
    asked, (work, out) = itertools.count(1), (tmp_path / "work", tmp_path / "results")
    assert not run.train(CELL, shorter, work, out, lambda takes: next(asked) == 19, lambda text: None)
    assert min(judge.judged(20)) == 19 and min(judge.judged(24)) > 20
    assert run.train(CELL, longer, work, out, lambda takes: False, lambda text: None)
    for path in (out / "cartpole").iterdir():
        steps = [steps for steps, _ in results.read(path).about["evaluations"]]
        assert steps == [128 * turn for turn in sorted(set(judge.judged(24)))]


def test_a_result_tells_what_was_run_and_found(whole: Callable[[], Path]) -> None:
    found = results.find(whole() / "results", wanted("none", "kme"), {"cartpole": CELL}, TINY)
    assert not found.troubles
    kme = found.runs["cartpole"]["kme"][100]
    assert kme.curve["env_steps"].tolist() == [128, 256, 384, 512]
    assert kme.about["settings"]["learner"]["agent"]["width"] == 8 and kme.about["machine"]["voronaut"]
    assert kme.about["rewarded"] == {  # every step of these environments is paid: all 16 in the first vector step
        "1": {"step": 16, "by": "random actions"},
        "100": {"step": 112, "by": "exploiter"},
    }
    assert [steps for steps, _ in kme.about["evaluations"]] == [512]
    assert results.score(kme) == pytest.approx(1.5)  # 0.1 + … + 0.5 in five steps
    assert results.final(kme) == pytest.approx(1.5) and results.half(kme) == 128
    assert results.first(kme, 100) == 112


def test_other_settings_are_another_experiment(whole: Callable[[], Path], tmp_path: Path) -> None:
    there = whole() / "results"
    found = results.find(there, wanted("kme"), {"cartpole": CELL}, TINY | {"width": 16})
    assert not found.runs["cartpole"]["kme"] and "differs in learner" in found.troubles[0]
    longer = results.find(there, wanted("kme"), {"cartpole": CELL._replace(steps=1024)}, TINY)
    assert "differs in steps" in longer.troubles[0]
    shutil.copytree(there, tmp_path / "copy")
    path = results.path_of(tmp_path / "copy", "cartpole", "kme", 100)
    path.write_text(path.read_text()[:300])
    broken = results.find(tmp_path / "copy", wanted("kme"), {"cartpole": CELL}, TINY)
    assert list(broken.runs["cartpole"]["kme"]) == [101] and "damaged" in broken.troubles[0]
    assert [one.seeds for one in run.groups(CELL, wanted("kme"), broken.runs["cartpole"], TINY)] == [(100,)]


def test_runs_that_would_differ_from_what_was_frozen_are_not_begun(tmp_path: Path) -> None:
    [one] = configs("kme")
    told = {"cartpole/kme": {**settings.resolved(one), "seeds": [100]}}
    (tmp_path / settings.FROZEN).write_text(json.dumps(told))
    run.check_frozen(CELL, [one], tmp_path)
    with pytest.raises(ValueError, match=r"cartpole:kme would differ from .* in learner\. Choose other --results"):
        run.check_frozen(CELL, run.groups(CELL, wanted("kme"), {}, {}), tmp_path)


def test_what_was_frozen_names_an_option_that_is_retired_since(whole: Callable[[], Path], tmp_path: Path) -> None:
    """Settings and results of before hold replay=0.0; anything but 0 is another experiment."""
    [one] = configs("kme")
    there = shutil.copytree(whole() / "results", tmp_path / "copy")
    path = results.path_of(there, "cartpole", "kme", 100)
    for replay, differs in ((0.0, False), (0.5, True)):
        told = {"cartpole/kme": {**settings.resolved(one), "seeds": [100]}}
        told["cartpole/kme"]["params"]["replay"] = replay
        (tmp_path / settings.FROZEN).write_text(json.dumps(told))
        with pytest.raises(ValueError, match="in params") if differs else contextlib.nullcontext():
            run.check_frozen(CELL, [one], tmp_path)
        first, *rest = path.read_text().splitlines()
        about = json.loads(first)
        about["settings"]["params"]["replay"] = replay
        path.write_text("\n".join([json.dumps(about), *rest]) + "\n")
        found = results.find(there, wanted("kme"), {"cartpole": CELL}, TINY)
        assert (100 in found.runs["cartpole"]["kme"]) != differs


def test_the_frozen_settings_are_those_of_today(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(settings, "ROLLOUT", 10240)
    for name, given in settings.frozen(Path("results/hard")).items():
        cell, method = name.split("/")
        mine = settings.resolved(settings.configured(settings.EVERY[cell], settings.METHODS[method], [0], {}))
        assert {**mine, "seeds": given["seeds"]} == given, name


def test_what_was_frozen_stays_when_more_is(tmp_path: Path) -> None:
    told = json.loads(settings.freeze(tmp_path).read_text())
    assert len(told) == sum(len(wanted.methods) for wanted in settings.PLANS)
    chosen = {**told["cartpole/kme"], "scale": "7"}
    before = {"cartpole/kme": chosen, "cartpole/planned-no-more": chosen}
    (tmp_path / settings.FROZEN).write_text(json.dumps(before))
    assert json.loads(settings.freeze(tmp_path).read_text()) == {**told, **before}


def test_methods_with_the_same_learner_are_one_experiment() -> None:
    together = configs("none", "kme", "zero", "not-near-reward", "one-1")
    names = [[method.label for method in one.methods] for one in together]
    assert names == [["none", "kme", "zero"], ["not-near-reward"], ["one-1"]]
    assert together[1].numbers["near_reward"] == 0 and not together[2].pair


def test_several_experiments_train_beside_each_other(tmp_path: Path) -> None:
    assert go(tmp_path, "kme", "not-near-reward")
    assert len(list((tmp_path / "results/cartpole").iterdir())) == 4


def test_evaluations_lie_in_the_last_tenth_and_end_with_the_run() -> None:
    assert judge.judged(98) == [91, 93, 95, 97, 98]
    assert judge.judged(196) == [181, 185, 189, 193, 196]
    assert judge.judged(4) == [4] * 5


def test_every_run_is_judged_by_its_own_policy(tmp_path: Path) -> None:
    [one] = configs("none", "kme")
    trainer = SACTrainer(one, Counter(4 * one.envs, limit=5))  # type: ignore[arg-type]
    folders = [tmp_path / name for name in one.folders()]
    for each in folders:
        each.mkdir()
    trainer.turn(), trainer.turn()
    before = trainer.lanes[0].run
    trainer.save_policies(folders)
    observations = np.random.default_rng(0).standard_normal((4, 3, 2))
    given = policy.load_many(folders)(observations)
    alone = [policy.load(each).act(x) for each, x in zip(folders, observations, strict=True)]
    np.testing.assert_allclose(given, alone, rtol=1e-5, atol=1e-7)
    drawn = policy.load_many(folders)(observations, rng=np.random.default_rng(1))
    noisy = policy.load(folders[0]).act(observations[0], rng=np.random.default_rng(1))
    np.testing.assert_allclose(drawn[0], noisy, rtol=1e-5, atol=1e-7)  # the first run has the first numbers
    assert np.ptp(given, axis=0).min() > 0  # they differ from run to run
    assert judge.evaluate(one, policy.load_many(folders), 1).shape == (4, 2)
    assert trainer.lanes[0].run is before


def test_the_step_of_a_reward_is_where_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    [one] = configs("kme")
    task = Counter(2 * one.envs, limit=50)
    trainer, book = SACTrainer(one, task), run.Book([], [{}, {}], [], {}, [])
    step = task.step
    calls: list[int] = []

    def sparse(actions: Any) -> Any:
        """The second run's last environment is paid from the eleventh vector step on."""
        calls.append(1)
        paid = np.zeros(task.num_envs, np.float32)
        paid[-1] = len(calls) > 10
        return step(actions)._replace(rewards=paid)

    monkeypatch.setattr(task, "step", sparse)
    for _ in range(2):
        before = trainer.rewarded.copy()
        trainer.turn()
        run.discover(trainer, book, before)
    assert book.rewarded == [{}, {"1": {"step": 11 * 16, "by": "explorer"}}]


def test_the_best_policy_of_a_cell_is_kept(whole: Callable[[], Path], tmp_path: Path) -> None:
    path = whole() / "results/policies/cartpole.npz"
    told = npz.read_json(path, npz.read(path)["about"])
    assert told["run"]["cell"] == "cartpole" and told["run"]["return"] == pytest.approx(1.5)
    assert results.best_policy("cartpole-swingup", path.parents[1]) == path and policy.load(path).task == CELL.task
    shutil.copytree(path.parent, tmp_path / "policies")
    about = {"method": "kme", "seed": 7, "evaluations": [[512, [1.0]]]}
    assert results.keep_best(tmp_path, "cartpole", about, path) is None
    better = about | {"evaluations": [[512, [2.0]]]}
    assert results.keep_best(tmp_path, "cartpole", better | {"method": "zero"}, path) is None
    assert results.keep_best(tmp_path, "cartpole", better, path)
    assert npz.read(path)["weight0"].dtype == np.float16
    with pytest.raises(ValueError, match=r"no hard/cartpol; there are hard/cheetah-0\.25"):
        results.best_policy("cartpol", tmp_path)
    with pytest.raises(ValueError, match="no policy of acrobot yet"):
        results.best_policy("acrobot", tmp_path)


def test_gaits_become_a_strip_and_humanoids_a_film(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Image = pytest.importorskip("PIL.Image")
    for cell in ("cheetah-0.25", film.CELL):
        (tmp_path / "policies").mkdir(exist_ok=True)
        (tmp_path / f"policies/{cell}.npz").touch()
    noise = np.random.default_rng(0).integers(0, 255, (200, 48, 160, 3), dtype=np.uint8)
    monkeypatch.setattr(film, "pictures", lambda file: noise)
    film.main(tmp_path, tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {"policies", "gaits.png", "humanoid.webp"}
    with Image.open(tmp_path / "humanoid.webp") as made:
        assert made.n_frames == 100


def test_the_page_and_figures_of_nothing_of_some_and_of_all(
    whole: Callable[[], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = tables.computed(tmp_path)
    assert texts["sentences"] == tables.NOTHING and "kme 0 of 5" in texts["missing"]
    assert figures.draw(tmp_path, tmp_path / "figures")[0].stat().st_size > 10_000
    some = results.find(whole() / "results", wanted("none", "kme"), {"cartpole": CELL}, TINY)
    monkeypatch.setattr(results, "find", lambda folder: some._replace(runs={c: {} for c in hard.EVERY} | some.runs))
    texts = tables.computed(tmp_path)
    assert (
        "Of 1 cells that were run with both, the pair with KME has a higher mean score than SAC alone in 0"
        in texts["sentences"]
    )
    assert "| 2 [2, 2], 2 seeds | 2 [2, 2], 2 seeds | 2, 2 | 0.50 [0.50, 0.50] | 1.000 |" in texts["scores"]
    assert "random actions 2" in texts["discovery"] and "cartpole, seeds done: none 2 of 5" in texts["missing"]
    assert len(figures.draw(tmp_path, tmp_path / "some")) == 8
    run_ = some.runs["cartpole"]["kme"][100]
    every = {
        cell: {m: dict.fromkeys(range(5), run_) for each in settings.PLANS if each.cell == cell for m in each.methods}
        for cell in settings.EVERY
    }
    monkeypatch.setattr(results, "find", lambda folder: results.Found(every, []))
    texts = tables.computed(tmp_path)
    assert "Still to be run" not in texts["missing"] and "Of 8 cells" in texts["sentences"]
    assert len(texts["further"].splitlines()) == 5
    assert "| pair + KME | 2 [2, 2], 5 seeds | 2, 2, 2, 2, 2 | 0.00 (0.00 to 0.00), 5 of 5 seeds |" in texts["new"]
    assert len(texts["ablations"].splitlines()) == 3 + len(settings.ABLATIONS)
    shown = tables.dense(tmp_path)["dense"]
    assert "| Humanoid run, dense reward | 2 [2, 2], 5 seeds | 2 [2, 2], 5 seeds | 117 |" in shown
    assert len(figures.draw(tmp_path, tmp_path / "all")) == 8


def test_the_hopper_is_paid_beyond_two_metres_and_falls() -> None:
    env = hopper.make()
    env.reset(seed=0)
    paid, over = zip(*[env.step(env.action_space.sample() * 0)[1:3] for _ in range(200)], strict=True)
    assert any(over) and not any(paid)
    env.reset(seed=0)
    env.unwrapped.data.qpos[0] = hopper.FAR + 1
    assert env.step(env.action_space.sample() * 0)[1] == 1
    assert hopper.make(render_mode="rgb_array").render_mode == "rgb_array"
    made = make(settings.HOPPER, [0], 2)
    assert (made.obs_dim, made.action_dim, made.num_envs) == (settings.DIMS[settings.HOPPER], 3, 2)


def test_what_is_asked_for(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    base = ["reproduce", "hard", "--status", "--results", str(tmp_path / "r"), "--work", str(tmp_path / "w")]
    assert main([*base, "--cells", "cartpole:kme+none,walker-0.5", "--seeds", "100-102,7"]) == 0
    said = capsys.readouterr().out
    assert "cartpole       kme 0/4, none 0/4" in said and "walker-0.5     none 0/4, kme 0/4" in said
    assert main([*base, "--method", "kme"]) == 0 and "walker-0.5     kme 0/5" in capsys.readouterr().out
    assert main([*base, "--cells", "cartpole,cartpole:kme+kme,hopper-far:kme"]) == 0
    said = capsys.readouterr().out
    assert "cartpole       none 0/5, kme 0/5\n" in said
    assert "minutes left on one H200 with 16 cores and 4 minutes left on two cores" in said
    assert main(base) == 0 and "hopper-far     none 0/3, kme 0/3, kme-whole 0/3, zero 0/3" in capsys.readouterr().out
    assert "not frozen" in said or "nothing is frozen yet" in said
    for words, complaint in (
        (["--cells", "cartpol"], "cells: cheetah-0.25"),
        (["--cells", "cartpole:kmee"], "methods: none, kme"),
        (["--cells", "cartpole:rnd"], "Give --seeds"),
        (["--seeds", "5"], "--seeds 100-104"),
        (["--kme.clusters", "5"], r"only --sac"),
        (["--cells", ","], "--cells names no cell"),
        (["--sac.foo", "3"], "sac has no 'foo'"),
        (["--sac.batch", "0"], "batch, gradient_steps"),
        (["--results", __file__], "is a file"),
    ):
        assert main([*base, *words]) == 2
        assert complaint in capsys.readouterr().err
    assert main(["reproduce", "exploration", "--cells", "cartpole"]) == 2 and main(["eval", "hard/no"]) == 2


def test_the_plan_asks_for_what_there_is() -> None:
    for each in settings.PLANS:
        assert each.cell in settings.EVERY and set(each.methods) <= set(settings.METHODS)
        assert min(each.seeds) >= 100
    asked = [(each.cell, method) for each in settings.PLANS for method in each.methods]
    assert len(set(asked)) == len(asked)
    assert hard.computed is tables.computed and not off_policy.on_accelerator()
