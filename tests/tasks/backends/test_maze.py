"""The maze: walls hold, episodes end at their limit with their true last state, runs are seeded and go on exactly."""

import io
import math
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from voronaut import tasks
from voronaut.tasks.backends.maze import EPISODE_STEPS, MARGIN, MAZE, SPEED, MazeTask, read_plan, walls
from voronaut.tasks.base import Step, VectorTask

SMALL = """
+--+--+
|    G|
+--+  +
|S    |
+--+--+
"""


def play(task: VectorTask, steps: int, seed: int = 0, scale: float = 1.0) -> list[Step]:
    """Random actions, the same for every run of two environments."""
    draws = np.random.default_rng(seed).normal(scale=scale, size=(steps, 2, 2))
    return [task.step(np.tile(actions, (task.num_envs // 2, 1))) for actions in draws]


def stacked(steps: list[Step]) -> list[NDArray[Any]]:
    return [np.array(field) for field in zip(*steps, strict=True)]


def crosses(one: NDArray[Any], other: NDArray[Any], wall: Any) -> bool:
    """Whether the way along x and then y from one point to the other cuts a piece of wall."""
    (x0, y0), (x1, y1) = wall
    if x0 == x1:
        return bool((one[0] - x0) * (other[0] - x0) < 0 and y0 <= one[1] <= y1)
    return bool((one[1] - y0) * (other[1] - y0) < 0 and x0 <= other[0] <= x1)


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 2**31 - 1), st.floats(0.1, 20))
def test_nobody_walks_through_a_wall(seed: int, push: float) -> None:
    task = MazeTask([seed], 4)
    lines, before = walls(task.plan), task.reset().astype(float)
    rng, drift = np.random.default_rng(seed), 0.0
    for t in range(60):
        drift = rng.normal(scale=push, size=(4, 2)) if t % 10 == 0 else drift
        after = task.step(drift + rng.normal(size=(4, 2))).next_states.astype(float)
        assert not any(crosses(a, b, wall) for a, b in zip(before, after, strict=True) for wall in lines)
        assert (np.abs(after - before) <= SPEED + MARGIN + 1e-6).all()
        before = after


def test_the_way_to_the_goal_is_open_and_pays_only_at_its_end() -> None:
    """In a small maze: right and up along the corridor leads to the goal's cell and no shorter way does."""
    task = MazeTask([0], 1, text=SMALL)
    np.testing.assert_allclose(task.plan.progress, [[0, 0.5], [0.5, 1]])
    task.reset()
    up_first = [task.step([[0, 1]]) for _ in range(20)]
    assert max(step.dense_rewards[0] for step in up_first) == 0
    assert up_first[-1].next_states[0, 1] == pytest.approx(0.5 - MARGIN)
    right, up = [task.step([[1, 0]]) for _ in range(9)], [task.step([[0, 1]]) for _ in range(7)]
    assert [step.dense_rewards[0] for step in (right[-1], up[-1])] == [0.5, 1]
    assert [step.rewards[0] for step in (right[-1], up[-1])] == [0, 1]
    assert right[-1].next_states[0, 0] == pytest.approx(1.5 - MARGIN)


def test_every_cell_has_a_way_and_the_goal_is_far() -> None:
    plan = read_plan(MAZE)
    assert (plan.progress == 1).sum() == 1 and (plan.progress == 0).sum() >= 1
    rows, columns = plan.progress.shape
    assert plan.progress[plan.origin[1], plan.origin[0]] < 0.2
    assert len(walls(plan)) > 2 * (rows + columns)
    with pytest.raises(ValueError, match="no way to the goal"):
        read_plan("+--+--+\n|S |G |\n+--+--+")


def test_actions_are_clipped_and_checked() -> None:
    one, two = MazeTask([0], 2), MazeTask([0], 2)
    one.reset(), two.reset()
    np.testing.assert_array_equal(one.step([[9, 0], [0, 9]]).next_states, two.step([[1, 0], [0, 1]]).next_states)
    with pytest.raises(ValueError, match=r"shape \(2, 2\); got \(2, 3\)"):
        one.step(np.zeros((2, 3)))
    with pytest.raises(ValueError, match="must be finite"):
        one.step(np.full((2, 2), np.nan))
    with pytest.raises(RuntimeError, match=r"call reset\(\)"):
        MazeTask([0], 2).step(np.zeros((2, 2)))


def test_the_limit_truncates_and_the_true_final_state_is_delivered() -> None:
    """With a limit of 5 the fifth next state is the one that follows without a limit; obs is a start."""
    long, short = MazeTask([0], 2), MazeTask([0], 2, episode_steps=5)
    np.testing.assert_array_equal(long.reset(), short.reset())
    endless, limited = play(long, 5), play(short, 5)
    np.testing.assert_array_equal(stacked(limited)[1], stacked(endless)[1])
    assert [step.truncated.tolist() for step in limited] == [[False] * 2] * 4 + [[True] * 2]
    assert not limited[-1].terminated.any()
    np.testing.assert_array_equal(limited[-1].obs, long.reset())
    assert (limited[-1].obs != limited[-1].next_states).any(axis=1).all()


def test_the_limit_is_the_maze_s_own_unless_given() -> None:
    task = tasks.make("maze", [0], 2)
    task.reset()
    truncated = np.array([step.truncated for step in play(task, 2 * EPISODE_STEPS)])
    assert np.flatnonzero(truncated.all(axis=1)).tolist() == [EPISODE_STEPS - 1, 2 * EPISODE_STEPS - 1]


def test_what_was_delivered_is_not_written_over() -> None:
    task = MazeTask([0], 2, episode_steps=3)
    task.reset()
    steps = play(task, 7)
    copies = [step.next_states.copy() for step in steps]
    play(task, 7, seed=1)
    for step, copy in zip(steps, copies, strict=True):
        np.testing.assert_array_equal(step.next_states, copy)


def test_runs_do_not_see_each_other_and_all_environments_differ() -> None:
    alone, among = MazeTask([7], 2, episode_steps=4), MazeTask([5, 7, 9], 2, episode_steps=4)
    starts = among.reset()
    np.testing.assert_array_equal(alone.reset(), starts[2:4])
    for single, many in zip(stacked(play(alone, 10)), stacked(play(among, 10)), strict=True):
        np.testing.assert_array_equal(single, many[:, 2:4])
    assert len(np.unique(starts, axis=0)) == 6


@pytest.mark.parametrize("save_at", [0, 25])
def test_it_goes_on_in_every_bit(save_at: int) -> None:
    straight, broken, fresh = (MazeTask([4], 2, episode_steps=20) for _ in range(3))
    np.testing.assert_array_equal(straight.reset(), broken.reset())
    play(straight, save_at)
    play(broken, save_at)
    file = io.BytesIO()
    np.savez(file, allow_pickle=False, **broken.state_dict())  # type: ignore[arg-type]
    file.seek(0)
    with np.load(file, allow_pickle=False) as loaded:
        fresh.load_state_dict(dict(loaded))
    for whole, resumed in zip(stacked(play(straight, 45, 1)), stacked(play(fresh, 45, 1)), strict=True):
        np.testing.assert_array_equal(whole, resumed)


def test_a_state_that_does_not_fit_is_refused_and_changes_nothing() -> None:
    task, other = MazeTask([0], 2), MazeTask([0], 3)
    with pytest.raises(RuntimeError, match=r"call reset\(\)"):
        task.state_dict()
    task.reset(), other.reset()
    before = task.state_dict()
    for wrong in (other.state_dict(), {}):
        with pytest.raises(ValueError, match="do not fit"):
            task.load_state_dict(wrong)
    for key, value in task.state_dict().items():
        np.testing.assert_array_equal(value, before[key])


def test_it_is_found_by_its_name() -> None:
    task = tasks.make("maze", [0, 1], 3)
    assert isinstance(task, VectorTask) and isinstance(task, MazeTask)
    assert (task.num_envs, task.obs_dim, task.action_dim) == (6, 2, 2)
    assert tasks.choose_backend("maze") == "numpy"
    with pytest.raises(ValueError, match="Did you mean 'maze'"):
        tasks.find("maize")


def test_a_picture_shows_the_point_where_it_is() -> None:
    task = tasks.make("maze", [0], 1, render=True)
    task.reset()
    first = task.render()
    for _ in range(5):
        task.step([[0, 1]])
    second = task.render()
    assert first.shape == second.shape == (256, 256, 3) and first.dtype == np.uint8
    blue = [np.argwhere((picture == (59, 111, 182)).all(axis=2)).mean(axis=0) for picture in (first, second)]
    np.testing.assert_allclose(blue[0] - blue[1], [64 * 5 * SPEED, 0], atol=3)


@pytest.mark.filterwarnings("ignore:.*infinity.*")
def test_as_a_gymnasium_environment() -> None:
    env = gymnasium.make("voronaut/Maze-v0", render_mode="rgb_array")
    check_env(env.unwrapped, skip_render_check=True)
    assert env.spec is not None and env.spec.max_episode_steps == EPISODE_STEPS
    obs, _ = env.reset(seed=5)
    np.testing.assert_array_equal(obs, tasks.make("maze", [5], 1).reset()[0])
    ends = [env.step(np.zeros(2, np.float32))[2:4] for _ in range(EPISODE_STEPS)]
    assert ends == [(False, False)] * (EPISODE_STEPS - 1) + [(False, True)]
    assert env.render().shape == (256, 256, 3)  # type: ignore[union-attr]


def test_as_a_gymnasium_vector_environment() -> None:
    envs = gymnasium.make_vec("voronaut/Maze-v0", num_envs=3, max_episode_steps=2)
    obs, _ = envs.reset(seed=3)
    np.testing.assert_array_equal(obs[1], gymnasium.make("voronaut/Maze-v0").reset(seed=4)[0])
    envs.step(np.ones((3, 2), np.float32))
    _, _, _, truncated, info = envs.step(np.ones((3, 2), np.float32))
    assert truncated.all() and math.isclose(info["final_obs"][0][0], obs[0][0] + 2 * SPEED, abs_tol=1e-6)
