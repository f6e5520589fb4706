"""The table: names, thresholds, and errors that help."""

import numpy as np
import pytest

from voronaut import tasks
from voronaut.tasks.base import bounded, env_seeds, sparse


def test_thresholds_are_the_release_s_and_the_paper_s() -> None:
    release = [task.threshold("release") for task in tasks.TASKS.values()]
    paper = [task.threshold("paper") for task in tasks.TASKS.values()]
    assert list(tasks.TASKS) == [
        "cheetah-run",
        "walker-run",
        "quadruped-run",
        "humanoid-run",
        "cartpole-swingup",
        "acrobot-swingup",
    ]
    assert release == [0.25, 0.25, 0.7, 0.2, 0, 0]
    assert paper == [0.5, 0.5, 0.7, 0.2, 0, 0]
    assert not any(task.threshold("dense") for task in tasks.TASKS.values())


def test_a_reward_at_the_threshold_is_kept_and_one_below_is_0() -> None:
    dense = np.array([0, 0.1, np.nextafter(np.float32(0.25), np.float32(0)), 0.25, 0.3, 1], np.float32)
    np.testing.assert_array_equal(sparse(dense, 0.25), np.array([0, 0, 0, 0.25, 0.3, 1], np.float32))
    np.testing.assert_array_equal(sparse(dense, 0.0), dense)


def test_thresholds_hold_for_float32_rewards() -> None:
    for threshold in (0.7, 0.2):
        assert sparse(np.array([threshold], np.float32), threshold) == np.float32(threshold)


@pytest.mark.parametrize(
    ("name", "nearest"),
    [("cheeta-run", "cheetah-run"), ("Humanoid-Run", "humanoid-run"), ("cartpole", "cartpole-swingup")],
)
def test_an_unknown_task_suggests_the_nearest(name: str, nearest: str) -> None:
    with pytest.raises(ValueError, match=f"Did you mean '{nearest}'"):
        tasks.find(name)
    with pytest.raises(ValueError, match=nearest):
        tasks.make(name, [0])


def test_a_hopeless_name_lists_the_tasks() -> None:
    with pytest.raises(ValueError, match=r"no task 'xyz'. Tasks: cheetah-run.*gym:ID"):
        tasks.find("xyz")


def test_unknown_choices_are_refused() -> None:
    with pytest.raises(ValueError, match="threshold must be one of release, paper, dense; got 'best'"):
        tasks.make("cheetah-run", [0], threshold="best")
    with pytest.raises(ValueError, match="backend must be one of auto, dm_control, envpool; got 'brax'"):
        tasks.make("cheetah-run", [0], backend="brax")
    with pytest.raises(ValueError, match="gives no pictures"):
        tasks.make("cheetah-run", [0], backend="envpool", render=True)


@pytest.mark.parametrize(
    ("name", "meant"),
    [("MountainCarContinuous-v0", "gym:MountainCarContinuous-v0"), ("Pendulum", "gym:Pendulum-v1"),
     ("mountaincarcontinuous", "gym:MountainCarContinuous-v0"), ("My/Own-v3", "gym:My/Own-v3"),
     ("cheetah", "cheetah-run")],
)  # fmt: skip
def test_an_unknown_task_that_gymnasium_may_know(name: str, meant: str) -> None:
    with pytest.raises(ValueError, match=f"there is no task '{name}'. Did you mean '{meant}'?"):
        tasks.make(name, [0])


def test_env_seeds_depend_on_run_and_index_alone() -> None:
    assert env_seeds([3, 5], 4)[4:] == env_seeds([5], 4) == env_seeds([5], 6)[:4]
    assert len(set(env_seeds(range(20), 16))) == 320
    assert env_seeds([5], 4) != env_seeds([5], 4, generation=1)
    assert all(0 <= seed < 2**31 for seed in env_seeds(range(20), 16))


@pytest.mark.parametrize("arguments", [([], 4), ([-1], 4), ([0], 0)])
def test_bad_seeds_are_refused(arguments: tuple[list[int], int]) -> None:
    with pytest.raises(ValueError, match="at least one seed"):
        env_seeds(*arguments)


def test_actions_are_clipped_and_checked() -> None:
    low, high = np.array([-1.0, -np.inf]), np.array([0.5, np.inf])
    np.testing.assert_array_equal(bounded([[-3, -3], [3, 3]], low, high, 2), [[-1, -3], [0.5, 3]])
    with pytest.raises(ValueError, match=r"shape \(2, 2\); got \(2, 3\)"):
        bounded(np.zeros((2, 3)), low, high, 2)
    with pytest.raises(ValueError, match="must be finite"):
        bounded([[0, np.nan], [0, 0]], low, high, 2)
