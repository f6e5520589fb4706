"""What every backend keeps: final states, limits, seeds, and going on from a saved state."""

import io
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from voronaut import tasks
from voronaut.tasks.base import Step, VectorTask

BACKENDS = ["dm_control", "envpool"]


@pytest.fixture(params=BACKENDS)
def backend(request: pytest.FixtureRequest) -> str:
    if request.param == "envpool":
        pytest.importorskip("envpool")
    return str(request.param)


def make(name: str, backend: str, seeds: list[int], envs: int = 2, **options: Any) -> VectorTask:
    return tasks.make(name, seeds, envs, backend=backend, threads=1, **options)


def play(task: VectorTask, steps: int, seed: int = 0) -> list[Step]:
    """Random actions, the same for every run."""
    random, runs = np.random.default_rng(seed), task.num_envs // 2
    draws = random.uniform(-1, 1, (steps, 2, task.action_dim))
    return [task.step(np.tile(actions, (runs, 1))) for actions in draws]


def stacked(steps: list[Step]) -> list[NDArray[Any]]:
    return [np.array(field) for field in zip(*steps, strict=True)]


@pytest.mark.parametrize("name", tasks.TASKS)
def test_every_task_steps(name: str, backend: str) -> None:
    task = make(name, backend, [0, 1])
    assert isinstance(task, VectorTask)
    obs = task.reset()
    assert obs.shape == (4, task.obs_dim)
    assert obs.dtype == np.float32
    for step in play(task, 3):
        assert step.obs.shape == step.next_states.shape == obs.shape
        assert step.obs.dtype == step.next_states.dtype == step.rewards.dtype == step.dense_rewards.dtype == np.float32
        assert step.terminated.dtype == step.truncated.dtype == np.bool_
        assert step.rewards.shape == step.dense_rewards.shape == step.terminated.shape == step.truncated.shape == (4,)
        assert np.isfinite(step.next_states).all()
        assert not (step.terminated | step.truncated).any()
    task.close()


@pytest.mark.parametrize("name", ["cheetah-run", "quadruped-run"])
def test_the_final_state_is_delivered_and_the_next_episode_starts(name: str, backend: str) -> None:
    """With a limit of 5 the fifth next state is the one that follows without a limit; obs is a start."""
    long, short = make(name, backend, [0]), make(name, backend, [0], episode_steps=5)
    np.testing.assert_array_equal(long.reset(), short.reset())
    endless, limited = play(long, 5), play(short, 5)
    np.testing.assert_array_equal(stacked(limited)[1], stacked(endless)[1])
    np.testing.assert_array_equal(stacked(limited)[3], stacked(endless)[3])
    last = limited[-1]
    assert last.truncated.all()
    assert not last.terminated.any()
    np.testing.assert_array_equal(last.obs, long.reset())
    assert (last.obs != last.next_states).any(axis=1).all()
    after, expected = play(short, 1, seed=1)[0], play(long, 1, seed=1)[0]
    for got, wanted in zip(after, expected, strict=True):
        np.testing.assert_array_equal(got, wanted)


def test_an_episode_is_truncated_after_1000_steps(backend: str) -> None:
    task = make("cartpole-swingup", backend, [0])
    task.reset()
    truncated = np.array([step.truncated for step in play(task, 2002)])
    assert np.flatnonzero(truncated.all(axis=1)).tolist() == [999, 1999]
    assert truncated.sum() == 4


def test_a_run_is_the_same_alone_and_among_others(backend: str) -> None:
    alone, among = (
        make("cheetah-run", backend, [7], episode_steps=4),
        make("cheetah-run", backend, [5, 7, 9], episode_steps=4),
    )
    np.testing.assert_array_equal(alone.reset(), among.reset()[2:4])
    for single, many in zip(stacked(play(alone, 10)), stacked(play(among, 10)), strict=True):
        np.testing.assert_array_equal(single, many[:, 2:4])


def test_same_seed_same_episodes_and_all_environments_differ(backend: str) -> None:
    first, second, other = (make("walker-run", backend, seeds, 4) for seeds in ([1, 2], [1, 2], [3, 4]))
    starts = first.reset()
    np.testing.assert_array_equal(starts, second.reset())
    assert len(np.unique(np.concatenate([starts, other.reset()]), axis=0)) == 16


def test_actions_are_clipped_in_step(backend: str) -> None:
    one, two = make("quadruped-run", backend, [0]), make("quadruped-run", backend, [0])
    one.reset(), two.reset()
    step, clipped = one.step(np.full((2, 12), 5.0)), two.step(np.tile(one.action_high, (2, 1)))
    np.testing.assert_array_equal(step.next_states, clipped.next_states)
    assert two.action_high.max() == 1.1


def test_step_before_reset_is_refused(backend: str) -> None:
    task = make("cheetah-run", backend, [0])
    with pytest.raises(RuntimeError, match=r"call reset\(\)"):
        task.step(np.zeros((2, 6)))


def through_npz(state: dict[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    """The state as it comes back from a file, without pickle."""
    file = io.BytesIO()
    np.savez(file, **state)
    file.seek(0)
    with np.load(file, allow_pickle=False) as loaded:
        return dict(loaded)


@pytest.mark.parametrize("name", tasks.TASKS)
@pytest.mark.parametrize("save_at", [0, 25])
def test_a_task_goes_on_in_every_bit(name: str, save_at: int, backend: str) -> None:
    """Saved in the middle of an episode (25) and at its start (0), loaded into fresh environments, across two ends."""
    straight, broken, fresh = (make(name, backend, [4], episode_steps=20) for _ in range(3))
    starts = broken.reset()
    np.testing.assert_array_equal(straight.reset(), starts)
    starts[:] = 0  # the caller's to change
    play(straight, save_at)
    play(broken, save_at)
    obs = fresh.load_state_dict(through_npz(broken.state_dict()))
    assert fresh.resumes_exactly
    np.testing.assert_array_equal(obs, straight.state_dict()["obs"])
    for whole, resumed in zip(stacked(play(straight, 45, 1)), stacked(play(fresh, 45, 1)), strict=True):
        np.testing.assert_array_equal(whole, resumed)
    for key, value in straight.state_dict().items():
        np.testing.assert_array_equal(value, fresh.state_dict()[key], err_msg=key)


def test_a_state_that_does_not_fit_is_refused_and_changes_nothing(backend: str) -> None:
    task, other = make("cheetah-run", backend, [0]), make("walker-run", backend, [0])
    task.reset(), other.reset()
    before = task.state_dict()
    with pytest.raises(ValueError, match="do not fit"):
        task.load_state_dict(other.state_dict())
    with pytest.raises(ValueError, match="do not fit"):
        task.load_state_dict({})
    for key, value in task.state_dict().items():
        np.testing.assert_array_equal(value, before[key])


@pytest.mark.parametrize("lost", ["actions", "bits"])
def test_envpool_starts_new_episodes_where_the_old_cannot_be_played_again(lost: str) -> None:
    """A state without actions, as older versions saved it; or one that another processor would play otherwise."""
    pytest.importorskip("envpool")
    task, fresh, again = (make("cheetah-run", "envpool", [0]) for _ in range(3))
    starts = task.reset()

    def saved(task: VectorTask) -> dict[str, Any]:
        state = through_npz(task.state_dict())
        return {"generation": state["generation"]} if lost == "actions" else state | {"obs": state["obs"] + 1e-6}

    state = saved(task)
    resumed = fresh.load_state_dict(state)
    assert not fresh.resumes_exactly
    assert (resumed != starts).any(axis=1).all()
    np.testing.assert_array_equal(resumed, again.load_state_dict(state))
    assert (again.load_state_dict(saved(fresh)) != resumed).any(axis=1).all()
    assert play(fresh, 1)[0].next_states.shape == (2, 17)


def test_envpool_resets_only_the_environments_that_ended() -> None:
    """Environments fall out of step when some are reset alone; each still gets its own start and limit."""
    pytest.importorskip("envpool")
    task: Any = make("cartpole-swingup", "envpool", [0, 1], episode_steps=6)
    task.reset()
    play(task, 2)
    task._restart(np.array([1, 3], np.int32), np.empty((4, 5), np.float32))
    steps = play(task, 6)
    assert [np.flatnonzero(step.truncated).tolist() for step in steps] == [[], [], [], [0, 2], [], [1, 3]]
    for step in (steps[3], steps[5]):
        moved = (step.obs != step.next_states).any(axis=1)
        np.testing.assert_array_equal(moved, step.truncated)
