"""The replay: windows by hand, every transition as likely, rewards found again, files that give the same rows back."""

from pathlib import Path

import jax
import numpy as np
import pytest
from numpy.typing import NDArray

from voronaut.training import pair, replay

SHAPE = replay.Shape(rows=40, envs=3, obs_dim=2, action_dim=1)
DISCOUNT = 0.9


def history(rows: int, *, ends: int = 5, terminates: bool = False) -> replay.Transition:
    """(1, rows, 3, …): environment e at step t is at (e, t); episodes end after `ends` steps, e steps apart."""
    t, e = np.meshgrid(np.arange(rows), np.arange(3), indexing="ij")
    over = (t + e) % ends == ends - 1
    at = np.stack([e, t], axis=-1).astype(np.float32)
    led_to = np.stack([e, t + 1 + 1000 * over], axis=-1).astype(np.float32)  # a final state is no first state
    rewards = np.where((t == 7) & (e == 1) | (t == 20) & (e == 2), 1.0, 0.0).astype(np.float32)
    none = np.zeros_like(over)
    flags = (over, none) if terminates else (none, over)
    return replay.Transition(*(x[None] for x in (at, at[..., :1] / 10, led_to, rewards, *flags)))


def filled(happened: replay.Transition, shape: replay.Shape = SHAPE) -> replay.Replay:
    """What was inserted row by row, stacked as one run."""
    made = replay.empty(1, shape)
    insert = jax.jit(jax.vmap(replay.insert))
    for t in range(happened.rewards.shape[1]):
        made = insert(made, jax.tree.map(lambda x, t=t: x[:, t], happened))
    return made


def drawn(made: replay.Replay, count: int = 4000, *, steps: int = 3, near_reward: float = 0.0) -> replay.Windows:
    one = jax.tree.map(lambda x: x[0], made)
    return replay.draw(one, jax.random.key(0), shape=(count,), steps=steps, near_reward=near_reward)


def starts(windows: replay.Windows) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """(t, e) of each window's first step."""
    return tuple(np.asarray(windows.observations)[:, i].astype(int) for i in (1, 0))  # type: ignore[return-value]


@pytest.mark.parametrize("terminates", [False, True])
def test_windows_stop_where_episodes_end_and_go_on_from_the_true_final_state(terminates: bool) -> None:
    windows = drawn(filled(history(30, terminates=terminates)))
    last, discounts = replay.ends(windows, DISCOUNT)
    for (t, e), state, discount in zip(zip(*starts(windows), strict=True), last, discounts, strict=True):
        until_end = 5 - (t + e) % 5
        length = min(3, until_end, 30 - t)  # what comes after the newest row is not known
        over = length == until_end
        assert tuple(state) == (e, t + length + 1000 * over)
        assert discount == pytest.approx(0.0 if over and terminates else DISCOUNT**length)


def test_the_return_of_a_window_is_the_discounted_sum_of_its_own_rewards() -> None:
    windows = drawn(filled(history(30)))
    got = replay.returns(windows, windows.rewards, DISCOUNT)
    for t, e, total in zip(*starts(windows), got, strict=True):
        wanted = 0.0
        for i in range(3):
            wanted += DISCOUNT**i * float((t + i, e) in ((7, 1), (20, 2)))
            if (t + i + e) % 5 == 4:
                break
        assert total == pytest.approx(wanted)
    assert np.asarray(got).any()  # or nothing was shown


def test_every_transition_is_as_likely_and_none_that_is_not_there() -> None:
    t, e = starts(drawn(filled(history(20)), 30_000, steps=1))
    counts = np.bincount(t * 3 + e, minlength=60)
    assert len(counts) == 60 and (np.abs(counts - 500) < 5 * np.sqrt(500)).all()


def test_a_share_of_a_batch_starts_shortly_before_a_reward_once_there_is_one() -> None:
    t, e = starts(drawn(filled(history(30)), 400, near_reward=0.25))
    near = ((e == 1) & (t <= 7)) | ((e == 2) & (t <= 20))
    assert near[:100].all() and not near[100:].all()
    assert {1, 2} == set(e[:100]) and t[:100][e[:100] == 2].min() == 0  # 40 steps before the 20th: cut at the first
    t, e = starts(drawn(filled(history(6)), 400, near_reward=0.25))  # no reward so far
    assert {0, 1, 2} == set(e[:100])


def test_the_ring_of_rewarded_steps_keeps_the_newest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replay, "REMEMBERED", 4)
    happened = history(12)
    happened = happened._replace(rewards=np.ones_like(happened.rewards))
    made = filled(happened)
    assert int(made.rewards[0]) == 36
    places = {tuple(row) for row in np.asarray(made.rewarded[0])}
    assert places == {(10, 2), (11, 0), (11, 1), (11, 2)}


def same(one: replay.Replay, other: replay.Replay) -> None:
    for a, b in zip(jax.tree.leaves(one), jax.tree.leaves(other), strict=True):
        np.testing.assert_array_equal(a, b)


def save(folder: Path, happened: replay.Transition, ends: tuple[int, ...]) -> None:
    for start, end in zip((0, *ends), ends, strict=False):
        replay.append(folder, [jax.tree.map(lambda x, s=start, e=end: x[:, s:e], happened)], start)


@pytest.mark.parametrize("saves", [(30,), (10, 30), (1, 2, 17, 30)])
def test_files_give_the_same_replay_back(tmp_path: Path, saves: tuple[int, ...]) -> None:
    happened = history(30)
    save(tmp_path, happened, saves)
    [again] = replay.restore([replay.empty(1, SHAPE)], tmp_path, 30, [happened.next_states[:, -1]])
    same(filled(happened), again)


@pytest.mark.parametrize("saves", [(30,), (30, 34)])
def test_an_episode_that_is_begun_anew_at_a_resume_ends_there(tmp_path: Path, saves: tuple[int, ...]) -> None:
    """At the resume that is under way, and at one before, of which only the files tell."""
    happened = history(34)
    happened.observations[:, 30:] += 500  # what came after the checkpoint was another episode
    happened.next_states[:, 30:] += 500
    save(tmp_path, happened, saves)
    then = (happened.observations[:, 30:31] if saves[-1] == 30 else happened.next_states[:, -1:])[:, 0]
    [again] = replay.restore([replay.empty(1, SHAPE)], tmp_path, saves[-1], [then])
    windows = drawn(again)
    t, e = starts(windows)
    before = (t < 30) & (e < 500)
    assert (np.asarray(windows.next_states)[before][np.asarray(windows.alive)[before]][:, 0] < 500).all()
    last = before & (t == 29)
    assert last.any() and (np.asarray(windows.alive)[last].sum(axis=1) == 1).all()
    assert np.asarray(again.rows.truncated)[0, 29].all() and not np.asarray(again.rows.truncated)[0, 28].all()
    assert not np.asarray(windows.terminated)[last].any()  # it was cut off: values go on from its last state


def test_rows_after_the_checkpoint_that_is_gone_on_from_do_not_count(tmp_path: Path) -> None:
    save(tmp_path, history(30), (10, 30))
    [again] = replay.restore([replay.empty(1, SHAPE)], tmp_path, 10, [history(10).next_states[:, -1]])
    assert int(again.steps[0]) == 10
    with pytest.raises(ValueError, match="30 rows; the checkpoint was made after 12"):
        replay.restore([replay.empty(1, SHAPE)], tmp_path, 12, [history(10).next_states[:, -1]])


def test_files_hold_a_state_once(tmp_path: Path) -> None:
    replay.append(tmp_path, [history(30)], 0)
    said = replay.disk(SHAPE._replace(rows=30))
    assert said == 30 * 3 * (4 * (2 + 1 + 1) + 2)  # observations, actions, rewards and two flags
    finals = 4 * (18 * 2 + 3 * 2)
    assert said < next(tmp_path.iterdir()).stat().st_size < said + finals + 3000  # names and headers


SHORT = replay.Shape(rows=40, envs=3, obs_dim=2, action_dim=1, block=8)  # five blocks


def rewarding(rows: int, *places: tuple[int, int]) -> replay.Transition:
    """`history` with reward at these (t, e) alone."""
    happened = history(rows, ends=10)
    rewards = np.zeros_like(happened.rewards)
    for t, e in places:
        rewards[0, t, e] = 1.0
    return happened._replace(rewards=rewards)


def remembered(made: replay.Replay, env: int) -> set[int]:
    return set(np.asarray(made.times[0, :, env]).tolist())


def forgetful(happened: replay.Transition, shape: replay.Shape) -> list[set[int]]:
    """By hand: the steps of each environment that are left, block by block."""
    left = []
    for env in range(shape.envs):
        over, rewards = happened.truncated[0, :, env], happened.rewards[0, :, env]
        episode = np.concatenate([[0], np.cumsum(over)[:-1]])
        blocks: list[list[int]] = []
        for t in range(len(over)):
            if t % shape.block == 0:
                if len(blocks) == shape.rows // shape.block:
                    seen = set(episode[:t][rewards[:t] > 0])
                    plain = [b for b in blocks if not seen & set(episode[b])]
                    blocks.remove(min(plain or blocks))
                blocks.append([])
            blocks[-1].append(t)
        left.append({t for block in blocks for t in block})
    return left


def test_the_oldest_go_and_episodes_with_a_reward_last() -> None:
    rng = np.random.default_rng(0)
    for share, old in ((0.0, False), (0.01, True), (0.05, True), (1.0, False)):
        places = np.argwhere(rng.random((200, 3)) < share)
        happened = rewarding(200, *map(tuple, places))
        made, wanted = filled(happened, SHORT), forgetful(happened, SHORT)
        assert [remembered(made, env) for env in range(3)] == wanted
        assert any(min(left) < 160 for left in wanted) == old


def test_what_is_drawn_from_a_full_memory_is_whole() -> None:
    windows = drawn(filled(rewarding(197, (21, 1), (95, 2), (96, 2)), SHORT), 3000, near_reward=0.25)
    t, e = starts(windows)
    assert set(t[e == 0]) == set(range(157, 197))
    alive, led_to = np.asarray(windows.alive), np.asarray(windows.next_states)
    for i in range(3):
        ended = (t + i + e) % 10 == 9
        right = led_to[:, i] == np.stack([e, t + i + 1 + 1000 * ended], axis=-1)
        assert right[alive[:, i]].all()
    near = np.arange(3000) < 750
    assert set(e[near]) == {1, 2} and (t[near & (e == 1)] <= 21).all() and (t[near & (e == 2)] <= 96).all()
    assert len(set(t[near & (e == 1)])) > 5


def test_a_reward_that_is_forgotten_is_not_drawn() -> None:
    first = [(t, 1) for t in range(60)]
    assert set(starts(drawn(filled(rewarding(60, *first), SHORT), near_reward=1.0))[1]) == {1}
    t, e = starts(drawn(filled(rewarding(200, *first), SHORT), near_reward=1.0))
    assert {0, 1, 2} == set(e) and t[e == 1].min() < 60  # anything is drawn for a row that was written over


def test_the_share_before_rewards_is_kept_where_most_rewards_are_forgotten() -> None:
    laps = [(t, 2) for t in range(400) if t % 10 == t // 40]  # each at other rows; a tenth of them is remembered
    made = filled(rewarding(400, *laps), SHORT)
    settings = pair.settings({"memory": 120, "near_reward": 0.5, "batch": 1000, "gradient_steps": 1})
    windows = pair.programs(settings, (1, 2), (0.0, 1.0), None).draw(np.zeros(1, np.uint32), 0, made)
    drawn_from = np.asarray(windows.observations)[0, 0, :, 0].astype(int)
    assert (drawn_from[:500] == 2).mean() > 0.8 and (drawn_from[500:] == 2).mean() < 0.4


@pytest.mark.parametrize("saves", [(200,), (3, 100, 197, 200)])
def test_files_give_a_full_memory_back(tmp_path: Path, saves: tuple[int, ...]) -> None:
    happened = rewarding(200, (21, 1), (95, 2), (96, 2))
    save(tmp_path, happened, saves)
    [again] = replay.restore([replay.empty(1, SHORT)], tmp_path, 200, [happened.next_states[:, -1]])
    same(filled(happened, SHORT), again)


def test_memory_is_cut_in_whole_blocks() -> None:
    whole = replay.Shape(62_500, 16, 17, 6)
    assert whole.within(0) == whole == whole.within(2_000_000)
    assert whole.within(100_000).rows == 49 * 128 and whole.within(1).rows == 256
    assert replay.memory(whole) == 170_000_000


@pytest.mark.parametrize("rows", [1, 2])
def test_a_window_does_not_go_on_into_rows_that_nothing_was_written_to(rows: int) -> None:
    windows = drawn(filled(history(rows)), 100)
    assert set(np.asarray(windows.alive).sum(axis=1)) == set(range(1, rows + 1))
