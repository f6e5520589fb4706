"""SAC, alone and as a pair: who is paid what, who drives what, and that a resume is the uninterrupted run."""

import itertools
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import jax
import numpy as np
import pytest

from tests.training.toys import Counter, small
from voronaut.cli import main
from voronaut.training import checkpoint, folder, loop, off_policy, pair, policy, replay
from voronaut.training.config import Config
from voronaut.training.off_policy import SACTrainer
from voronaut.training.watching import board, logs

TINY = {"width": 8, "batch": 8, "gradient_steps": 2, "random_steps": 32, "absorb_every": 4}
SECONDS = {"collect_seconds", "bonus_seconds", "learn_seconds"}


def config(**choices: Any) -> Config:
    """Cheetah: four environments, turns of 32 steps, the first of which is random."""
    kme = {"clusters": 8, "scale": choices.pop("scale", 1)}
    options = {"kme": kme, "sac": TINY | choices.pop("numbers", {})}
    names = choices.get("bonuses", ["kme"])
    options = {name: given for name, given in options.items() if name == "sac" or name in names}
    given = {"learner": "sac", "bonuses": names, "seeds": 1, "steps": 128, "rollout": 32, "envs": 4, "options": options}
    return small(**(given | choices))


def counting(done: int = 0, **choices: Any) -> SACTrainer:
    """A trainer of environments that count, after some turns."""
    made = config(task="gym:unused", **choices)
    trainer = SACTrainer(made, Counter(len(made.runs) * made.envs, limit=5))
    for _ in range(done):
        trainer.turn()
    return trainer


def same(one: list[dict[str, Any]], other: list[dict[str, Any]]) -> None:
    """Equal but for seconds, and for the bonus's metrics, which are written with each checkpoint."""
    assert [numbers(row) for row in one] == [numbers(row) for row in other]


def numbers(row: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in row.items() if key not in SECONDS and "/" not in key}


def test_the_replay_holds_what_happened_and_the_true_final_states() -> None:
    rows = counting(2).lanes[0].replay.rows
    counts, led_to = np.asarray(rows.observations[0, :16, :, 1]), np.asarray(rows.next_states[0, :16, :, 1])
    np.testing.assert_array_equal(led_to, counts + 1)
    np.testing.assert_array_equal(np.asarray(rows.truncated[0, :16]), led_to == 5)
    np.testing.assert_allclose(np.asarray(rows.rewards[0, :16]), led_to / 10, rtol=1e-6)


def test_both_policies_have_their_environments_and_their_returns() -> None:
    trainer = counting(numbers={"explorer_share": 0.25})
    assert trainer.lanes[0].shares == (3, 1)
    [row] = trainer.turn()
    assert row["episodes"] == 4 and row["extrinsic_return"] == row["explorer_return"] == pytest.approx(1.5)
    assert row["max_step_reward"] == pytest.approx(1.0)  # dense; the toy's sparse reward is half of it
    assert row["rewarded_steps"] == 32


def test_environments_change_hands_at_the_end_of_an_episode_once_a_hundred_steps_were_rewarded(tmp_path: Path) -> None:
    """Every step of these is rewarded, four at a time, and episodes have five: the twenty-fifth ends with a hundred."""
    numbers = {"explorer_share": 0.75, "explorer_share_after": 0.25}
    trainer = counting(3, numbers=numbers)
    assert trainer.lanes[0].shares == (3, 3) and trainer.explores.tolist() == [[False, True, True, True]]
    trainer.turn()
    assert trainer.explores.tolist() == [[False, False, False, True]]
    assert [len(trainer.finished[0][who]) for who in (pair.EXPLOITER, pair.EXPLORER)] == [1 + 3, 3 + 1]  # 25 and 30
    checkpoint.save(tmp_path, 4, trainer.state_dict(checkpoint.chunks(tmp_path)))
    other = counting(numbers=numbers)
    found = checkpoint.newest(tmp_path, 4, print)
    assert found is not None
    other.load_state_dict(found, checkpoint.chunks(tmp_path))
    assert other.explores.tolist() == trainer.explores.tolist()


def test_each_environment_is_driven_by_whose_it_is() -> None:
    trainer = counting(2, numbers={"explorer_share": 0.75, "explorer_share_after": 0.25})
    [lane], observations = trainer.lanes, np.random.default_rng(0).normal(size=(1, 4, 2)).astype(np.float32)
    alone = [np.asarray(lane.act(observations, np.full((1, 4), explores), 9)) for explores in (False, True)]
    for explores in ([False, True, True, True], [False, False, False, True], [False, True, False, True]):
        acted = np.asarray(lane.act(observations, np.array([explores]), 9))
        expected = np.where(np.array(explores)[:, None], alone[1], alone[0])
        np.testing.assert_array_equal(acted, expected)
    assert (alone[0][:, :3] != 0).all() and (alone[1][:, 1:] != 0).all()


def test_seconds_of_the_log_are_those_that_passed(monkeypatch: pytest.MonkeyPatch) -> None:
    """By a clock that ticks once whenever it is asked, and a hundred times where stats are read: that waits."""
    ticks, trainer = itertools.count(1000), counting()
    read = type(trainer.lanes[0]).numbers
    monkeypatch.setattr(off_policy.time, "perf_counter", lambda: float(next(ticks)))
    monkeypatch.setattr(type(trainer.lanes[0]), "numbers", lambda *at: [next(ticks) for _ in range(100)] and read(*at))
    for _ in range(3):
        began = next(ticks)
        [row] = trainer.turn()
        assert row["collect_seconds"] > 0 and row["bonus_seconds"] >= 0 and row["learn_seconds"] > 100
        assert sum(row[name] for name in SECONDS) < next(ticks) - began


@pytest.mark.parametrize("bonus", ["kme", "zero"])  # paid before learning begins, and inside the program
def test_what_steps_in_halves_is_learned_beside_and_nothing_else_changes(
    bonus: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain, order = counting(3, bonuses=[bonus]), []
    halves = counting(bonuses=[bonus])
    halves.task = InHalves(order, halves.task.num_envs, limit=5)
    for name in ("learn", "draw_and_learn"):
        given = getattr(pair.Lane, name)
        monkeypatch.setattr(pair.Lane, name, lambda *at, given=given: (order.append("learn"), given(*at))[1])
    for _ in range(3):
        halves.turn()
    assert order == ["begin", "finish"] * 8 + ["begin", "learn", "finish"] * 16  # a turn is random
    for one, other in zip(*(jax.tree.leaves(each.lanes[0].run) for each in (plain, halves)), strict=True):
        np.testing.assert_array_equal(one, other)


class InHalves(Counter):
    """Writes down when it begins and when it is waited for."""

    def __init__(self, order: list[str], num_envs: int, limit: int) -> None:
        super().__init__(num_envs, limit)
        self.order = order

    def begin(self, actions: Any) -> None:
        self.order.append("begin")
        self.taken = actions

    def finish(self) -> Any:
        self.order.append("finish")
        return super().step(self.taken)

    def step(self, actions: Any) -> Any:
        self.begin(actions)
        return self.finish()


@pytest.mark.parametrize(
    ("bonus", "paired", "shares"), [("none", True, (4,)), ("zero", True, (2, 2)), ("kme", False, (4,))]
)
def test_who_is_there(bonus: str, paired: bool, shares: tuple[int, ...]) -> None:
    trainer = counting(bonuses=[bonus], pair=paired)
    assert trainer.lanes[0].shares == shares
    assert trainer.lanes[0].run.agents.log_temperature.shape == (1, len(shares))


@pytest.mark.parametrize(("own", "weight"), [(1.0, 1.0), (0.0, 1.0), (1.0, 0.25)])
def test_the_exploiter_is_paid_by_the_task_alone_and_the_explorer_by_both(
    own: float, weight: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: list[Any] = []
    learn = pair.sac.learn

    def watched(agent: Any, batch: Any, key: Any, settings: Any) -> Any:
        jax.debug.callback(lambda *x: given.append(x), batch.rewards, batch.discounts)
        return learn(agent, batch, key, settings)

    monkeypatch.setattr(pair.sac, "learn", watched)
    settings = {"discount": 0.5, "explorer_task": own, "polyak": 0.01 * weight}  # its own: nothing compiled is there
    lane = counting(2, numbers=settings).lanes[0]
    states, lane.weight = lane.draw(1000), np.array([weight], np.float32)
    assert states.shape == (1, 2 * 8 * 3, 2)
    given.clear()
    lane.learn(np.full(states.shape[:2], 7.0, np.float32), 1000)
    jax.block_until_ready(lane.run)
    jax.effects_barrier()
    paid = sorted(float(np.mean(rewards)) for rewards, _ in given)
    windows = jax.tree.map(lambda x: np.asarray(x[0]), lane.windows)
    powers = 0.5 ** np.arange(3) * windows.alive
    task, bonus = (windows.rewards * powers).sum(-1), 7.0 / float(lane.run.deviation[0]) * powers.sum(-1)
    assert paid == pytest.approx(
        sorted(float(x[step].mean()) for x in (task, own * task + weight * bonus) for step in range(2)), 1e-4
    )


def test_a_weight_falls_as_the_exploiters_episodes_are_paid(tmp_path: Path) -> None:
    """Two environments are the exploiter's: the first is never paid by the task, the second from the second turn on."""

    def begun() -> SACTrainer:
        trainer = counting(scale="falling:2")
        step = trainer.task.step

        def sparse(actions: Any) -> Any:
            given = step(actions)
            return given._replace(rewards=given.rewards * np.array([0, trainer.done > 0, 1, 1]))

        trainer.task.step = sparse  # type: ignore[method-assign]
        return trainer

    trainer, paid = begun(), 0.0
    [row] = trainer.turn()
    assert row["scale"] == 2 and trainer.bonuses.weights[0].episodes == 2  # of eight steps each, episodes have five
    [row] = trainer.turn()
    for n, met in enumerate([0, 0, 0, 1, 0, 1], 1):
        paid += (met - paid) / n
    assert row["scale"] == pytest.approx(2 * (1 - paid))
    trainer._weigh(99)
    np.testing.assert_allclose(trainer.lanes[0].weight, [2 * (1 - paid)], rtol=1e-6)
    checkpoint.save(tmp_path, 2, trainer.state_dict(checkpoint.chunks(tmp_path)))
    other, found = begun(), checkpoint.newest(tmp_path, 2, print)
    assert found is not None
    other.load_state_dict(found, checkpoint.chunks(tmp_path))
    assert other.turn()[0]["scale"] == trainer.turn()[0]["scale"] < row["scale"]


def test_a_weight_can_be_a_line_over_the_training() -> None:
    trainer = counting(scale="linear:1:0")
    assert [trainer.turn()[0]["scale"] for _ in range(4)] == pytest.approx([25 / 32, 17 / 32, 9 / 32, 1 / 32])
    assert counting(bonuses=["none"]).turn()[0]["scale"] == 0


def test_every_batch_is_paid_by_the_bonus_as_it_is_now() -> None:
    trainer = counting(3)
    lane, member = trainer.lanes[0], trainer.bonuses.members()[0]
    states, before = np.asarray(lane.draw(77)), float(lane.run.deviation[0])
    trainer._learn_outside(77)  # draws the same windows: keys are made of the seed and the vector step
    now, rate = member.rewards(states[0]).std(), max(0.016, 1 / int(lane.run.batches[0]))
    assert now > 0 and float(lane.run.deviation[0]) == pytest.approx(before + rate * (now - before), rel=1e-4)


def test_a_stored_bonus_stays_what_a_state_earned_when_it_was_met(monkeypatch: pytest.MonkeyPatch) -> None:
    trainer = counting(2, pair="stored")
    lane, member, paid = trainer.lanes[0], trainer.bonuses.members()[0], []
    rewards = trainer.bonuses.rewards

    def watched(states: Any, runs: slice) -> Any:
        paid.append(rewards(states, runs))
        return paid[-1]

    monkeypatch.setattr(trainer.bonuses, "rewards", watched)
    kept = np.asarray(lane.replay.rows.bonus[0, :16])
    trainer.turn()
    after = np.asarray(lane.replay.rows.bonus[0])
    np.testing.assert_array_equal(after[:16], kept)
    np.testing.assert_array_equal(after[16:24], np.concatenate(paid))
    assert lane.inside and kept.std() > 0
    assert not np.allclose(member.rewards(np.asarray(lane.replay.rows.next_states[0, :16])), kept)


@pytest.mark.parametrize("bonus", ["kme", "rnd", "re3"])
def test_a_bonus_inside_the_program_pays_the_same(bonus: str, monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = {"kme": {"clusters": 8}, "rnd": {"hidden": 8, "features": 4}, "re3": {"hidden": 8, "memory": 64}}
    given: dict[str, Any] = {"bonuses": [bonus], "options": {bonus: sizes[bonus], "sac": TINY}}
    other = counting(2, **given)
    rows = [other.turn()]
    monkeypatch.setattr(off_policy, "on_accelerator", lambda: True)
    there = counting(2, **given)
    assert there.lanes[0].inside and there.lanes[0].frozen is not None
    rows.append(there.turn())
    for here, now in zip(*rows, strict=True):
        for name in numbers(here):
            assert here[name] == (None if now[name] is None else pytest.approx(now[name], rel=1e-3, abs=1e-4)), name


def test_a_bonus_inside_the_program_may_learn_after_the_agents(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(off_policy, "on_accelerator", lambda: True)
    trainer = counting(numbers={"random_steps": 4, "absorb_every": 64})  # a turn has eight vector steps
    [row] = trainer.turn()
    assert trainer.lanes[0].inside and row["bonus_mean"] == 0 and np.isfinite(row["critic_loss"])


@pytest.mark.parametrize(
    ("options", "inside"),
    [
        ({}, True), ({"views": 1}, True), ({"balance": 1e-4}, True),
        ({"balance": 1e-4, "normalize": True}, False),
    ],
)  # fmt: skip
def test_a_bonus_that_cannot_be_in_a_program_is_paid_by_the_host(
    options: dict[str, Any], inside: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(off_policy, "on_accelerator", lambda: True)
    made = config(task="gym:unused", options={"kme": {"clusters": 8} | options, "sac": TINY})
    trainer = SACTrainer(made, Counter(made.envs, limit=5))
    trainer.turn()  # the random one: the bonus has learned, and is shown to its lane
    assert (trainer.lanes[0].frozen is not None) == trainer.lanes[0].inside == inside


def test_a_resumed_run_is_the_uninterrupted_one(tmp_path: Path) -> None:
    made = config(bonuses=["none", "zero", "kme", "hash"])
    whole, cut = tmp_path / "whole", tmp_path / "cut"
    loop.train(made, whole)
    with pytest.raises(loop.Stopped):
        loop.train(made, cut, deadline=0.0)
    for _ in range(2):
        with pytest.raises(loop.Stopped):
            loop.train(made, cut, resume=True, deadline=0.0)
    loop.train(made, cut, resume=True)
    for name in made.folders():
        same(*(logs.read(out / name / logs.NAME) for out in (whole, cut)))
        for file in ("policy.npz", "bonus.npz"):
            assert (whole / name / file).read_bytes() == (cut / name / file).read_bytes()
    assert [path.name for path in checkpoint.saved(cut / "checkpoints")] == ["000004.npz"]


def test_a_checkpoint_of_runs_that_were_grouped_otherwise_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = config(bonuses=["zero"], seeds=2)
    with monkeypatch.context() as patch, pytest.raises(loop.Stopped):
        patch.setattr(off_policy, "_grouped", lambda config: [(config.methods[0], list(config.seeds))])
        loop.train(made, tmp_path / "one", deadline=0.0)
    with pytest.raises(ValueError, match="Go on where it was begun"):
        loop.train(made, tmp_path / "one", resume=True)


@pytest.mark.parametrize("paired", [True, "stored"])
def test_more_steps_later_are_the_longer_run_to_the_bit(paired: bool | str, tmp_path: Path) -> None:
    made = config(bonuses=["zero", "kme"], pair=paired)
    whole, short = tmp_path / "whole", tmp_path / "short"
    loop.train(made, whole)
    loop.train(config(bonuses=["zero", "kme"], pair=paired, steps=64), short)
    assert loop.train(made, short, resume=True)
    for name in made.folders():
        same(*(logs.read(out / name / logs.NAME) for out in (whole, short)))
        for file in ("policy.npz", "explorer.npz", "bonus.npz"):
            assert (whole / name / file).read_bytes() == (short / name / file).read_bytes()


def test_a_memory_that_forgets_says_so_and_resumes_to_the_bit(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    few = {"memory": "1e3", "gradient_steps": 1, "random_steps": 1100}
    made, short = (config(task="maze", backend="auto", rollout=512, steps=n, numbers=few) for n in (2048, 1024))
    whole, cut = tmp_path / "whole", tmp_path / "cut"
    loop.train(short, cut)
    assert capsys.readouterr().err == ""
    loop.train(made, whole)
    assert "each run remembers 1,024 of its 2,048 steps: the oldest go" in capsys.readouterr().err
    for _ in range(2):
        with suppress(loop.Stopped):
            loop.train(made, cut, resume=True, deadline=0.0)
    assert (cut / "notes.txt").read_text() == (whole / "notes.txt").read_text()
    same(*(logs.read(out / "kme-0" / logs.NAME) for out in (whole, cut)))
    for file in ("policy.npz", "explorer.npz", "bonus.npz"):
        assert (whole / "kme-0" / file).read_bytes() == (cut / "kme-0" / file).read_bytes()


def test_a_replay_that_there_is_no_room_for_is_told_with_what_fits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replay, "device_memory", lambda: 8e8)
    with pytest.raises(ValueError, match=r"take 3\.0 GB, and there are 0\.8 GB .* --sac\.memory 1\.1e7 "):
        counting(bonuses=["none", "zero"], steps=5e7)
    monkeypatch.setattr(replay, "device_memory", lambda: 4e9)
    monkeypatch.setattr(off_policy, "Lane", lambda *_: SimpleNamespace(seeds=[0], shares=(4,)))
    counting(bonuses=["none", "zero"], steps=5e7)


def test_a_run_does_not_depend_on_those_beside_it(tmp_path: Path) -> None:
    loop.train(config(bonuses=["kme"], seeds=[3]), tmp_path / "alone")
    loop.train(config(bonuses=["none", "kme"], seeds=[2, 3]), tmp_path / "beside")
    same(*(logs.read(tmp_path / out / "kme-3" / logs.NAME) for out in ("alone", "beside")))


def test_both_policies_are_saved_as_they_act(tmp_path: Path) -> None:
    trainer = counting(3)
    trainer.save_policies([tmp_path])
    lane, states = trainer.lanes[0], np.array([[0.0, 3.0], [2.0, 1.0]], np.float32)
    for agent, name in enumerate((policy.NAME, policy.EXPLORER)):
        actor = jax.tree.map(lambda x, a=agent: x[0, a], lane.run.agents.actor)
        scale = jax.tree.map(lambda x: x[0], lane.run.scale)
        mean, _ = pair.sac.moments(actor, pair.standardised(states, scale), trainer.settings.agent)
        np.testing.assert_allclose(policy.load(tmp_path / name).act(states), np.tanh(mean), atol=1e-5)
    assert policy.load(tmp_path).task == "gym:unused"
    sampled = policy.load(tmp_path).act(states, rng=np.random.default_rng(0))
    assert (np.abs(sampled) <= 1).all() and not np.allclose(sampled, policy.load(tmp_path).act(states))


def test_actions_reach_the_bounds_of_the_task() -> None:
    trainer = counting()
    trainer.task.action_low, trainer.task.action_high = np.array([-2.0]), np.array([6.0])
    seen: list[Any] = []
    step = trainer.task.step
    trainer.task.step = lambda actions: (seen.append(actions), step(actions))[1]  # type: ignore[method-assign]
    trainer.turn()
    assert np.min(seen) < -1.5 and np.max(seen) > 5.5 and np.min(seen) >= -2 and np.max(seen) <= 6
    kept = np.asarray(trainer.lanes[0].replay.rows.actions)
    assert np.abs(kept).max() <= 1


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--sac.widht", "128"], "Did you mean 'width'"),
        (["--sac.size", "tiny"], "Sizes: usual, small"),
        (["--learner", "dqn"], "learner must be ppo or sac"),
        (["--ppo.clip", "0.1"], "Add --learner ppo"),
        (["--envs", "1", "--rollout", "32"], "at least 2"),
        (["--sac.batch", "0"], "must be at least 1"),
        (["--sac.memory", "-5"], "0 for all"),
        (["--sac.memory", "much"], "number of transitions"),
        (["--sac.explorer_share", "1"], "between 0 and 1"),
        (["--sac.explorer_share", "0"], "between 0 and 1"),
        (["--sac.explorer_share_after", "1"], "between 0 and 1, or be 0"),
        (["--sac.near_reward", "1.1"], "within [0, 1]"),
        (["--sac.discount", "1"], "within [0, 1)"),
        (["--sac.discount", "much"], "discount must be a number, such as 0.99; got 'much'"),
        (["--sac.discount", "nan"], "discount must be a number"),
        (["--sac.target_entropy", "much"], "target_entropy must be a number"),
        (["--sac.explorer_share_after", "much"], "explorer_share_after must be a number"),
        (["--sac.width", "1.5"], "width must be a whole number, such as 256; got 1.5"),
        (["--sac.log_std", "5"], "log_std must be numbers in brackets, such as (-5.0, 2.0); got 5"),
        (["--sac.log_std", "(0,'x')"], "log_std must be numbers in brackets"),
        (["--sac.log_std", "(1,)"], "and log_std (lower, upper)"),
        (["--learner", "ppo", "--ppo.learning_rate", "much"], "learning_rate must be a number"),
        (["--learner", "ppo", "--ppo.epochs", "1.5"], "epochs must be a whole number"),
        (["--learner", "ppo", "--ppo.hidden", "64"], "hidden must be numbers in brackets, such as (64, 64)"),
    ],
)
def test_nonsense_is_refused_with_what_to_do(
    words: list[str], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    base = ["train", "cheetah-run", "--out", str(tmp_path / "x"), "--steps", "64", "--rollout", "64"]
    learner = [] if "--learner" in words else ["--learner", "sac"]
    assert main([*base, *learner, *words]) == 2
    assert said in capsys.readouterr().err
    assert not (tmp_path / "x").exists()


def test_the_glossary_explains_every_number_and_the_board_has_a_group_for_it() -> None:
    names = {key for row in counting(3).turn() for key in row}
    text = (Path(__file__).parents[2] / "docs" / "metrics.md").read_text().split("## `progress.jsonl`")
    assert {name for name in names if f"`{name}`" not in "".join(text[1:])} == set()
    for name in names - {"env_steps"}:
        group = board.tag(name).partition("/")[0]
        assert group != "ppo"
        assert any(
            line.split("|")[2].strip() == group for line in "".join(text[1:]).splitlines() if f"`{name}`" in line
        )


def test_files_of_ppo_do_not_mention_learners() -> None:
    assert not {"learner", "pair", "numbers"} & set(small().to_json())
    assert small(options={"ppo": {"clip": "0.1"}}).numbers == {"clip": 0.1}


def test_what_the_disk_must_hold_is_said_before_the_start(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    trainer = counting(bonuses=["none", "zero"])
    assert trainer.disk == 2 * 128 * (4 * (2 + 1 + 1) + 2)
    trainer.disk = int(3e9)
    monkeypatch.setattr(folder.shutil, "disk_usage", lambda _: SimpleNamespace(free=4e9))
    folder.check_room(trainer, tmp_path)
    assert "grows to 3.0 GB; remove it when all is done" in capsys.readouterr().err
    monkeypatch.setattr(folder.shutil, "disk_usage", lambda _: SimpleNamespace(free=2e9))
    with pytest.raises(ValueError, match=r"3\.0 GB, and the disk has 2\.0 GB left\. Choose another folder"):
        folder.check_room(trainer, tmp_path)


def test_chunks_are_where_the_checkpoint_looks(tmp_path: Path) -> None:
    trainer = counting(2)
    state = trainer.state_dict(checkpoint.chunks(tmp_path)) | {"rollout": np.array(2)}
    again = counting()
    again.load_state_dict(state, checkpoint.chunks(tmp_path))
    same(trainer.turn(), again.turn())
