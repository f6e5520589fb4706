"""`gym:ID` tasks, and the tasks as registered Gymnasium environments."""

import subprocess
import sys
import warnings
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

from voronaut import tasks
from voronaut.tasks.backends.gymnasium import name_of
from voronaut.tasks.base import VectorTask

IDS = [task.gym_id for task in tasks.TASKS.values()]


class Drift(gymnasium.Env[Any, Any]):
    """Adds its action to its state; ends above 3. No bounds on the action."""

    observation_space = gymnasium.spaces.Box(-np.inf, np.inf, (2,), np.float64)
    action_space = gymnasium.spaces.Box(-np.inf, np.inf, (2,), np.float32)

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self.state = self.np_random.uniform(0, 0.1, 2)
        return self.state, {}

    def step(self, action: Any) -> Any:
        assert action.dtype == np.float32
        self.state = self.state + action
        return self.state, -1.0, bool(self.state[0] > 3), False, {}


@pytest.fixture(autouse=True)
def _drift() -> Any:
    gymnasium.register("test/Drift-v0", Drift, max_episode_steps=5)
    yield
    del gymnasium.registry["test/Drift-v0"]


def test_a_gym_task_has_the_same_interface() -> None:
    task = tasks.make("gym:Pendulum-v1", [0, 1], 2)
    assert isinstance(task, VectorTask)
    assert (task.num_envs, task.obs_dim, task.action_dim) == (4, 3, 1)
    assert (task.action_low, task.action_high) == (-2, 2)
    assert task.reset().shape == (4, 3)
    step = task.step(np.full((4, 1), 9.0))
    assert step.next_states.dtype == step.rewards.dtype == np.float32
    np.testing.assert_array_equal(step.rewards, step.dense_rewards)
    task.close()


def test_unbounded_actions_are_not_clipped_and_ends_are_told_apart() -> None:
    task = tasks.make("gym:test/Drift-v0", [0], 2)
    start = task.reset()
    steps = [task.step([[1.5, 0], [-100, 0]]) for _ in range(5)]
    assert [step.terminated.tolist() for step in steps[:3]] == [[False, False], [True, False], [False, False]]
    assert [step.truncated[1] for step in steps] == [False, False, False, False, True]
    np.testing.assert_allclose(steps[1].next_states[0], start[0] + [3, 0], rtol=1e-6)
    assert (steps[1].obs[0] < 0.1).all()
    assert (steps[1].rewards == -1).all()


def test_gym_runs_are_seeded_and_do_not_see_each_other() -> None:
    alone, among = tasks.make("gym:Pendulum-v1", [7], 2), tasks.make("gym:Pendulum-v1", [5, 7], 2)
    starts = among.reset()
    np.testing.assert_array_equal(alone.reset(), starts[2:])
    assert len(np.unique(starts, axis=0)) == 4
    resumed = tasks.make("gym:Pendulum-v1", [7], 2).load_state_dict(alone.state_dict())
    assert (resumed != starts[2:]).any(axis=1).all()


@pytest.mark.parametrize("env_id", ["Blackjack-v1", "FrozenLake-v1"])
def test_other_spaces_are_refused_with_advice(env_id: str) -> None:
    with pytest.raises(ValueError, match=r"a flat Box with one axis is needed.*FlattenObservation"):
        tasks.make(f"gym:{env_id}", [0], 1)


class Spaces(Drift):
    """Drift that says that it has other spaces."""

    def __init__(self, observations: Any = None, actions: Any = None, render_mode: str | None = None) -> None:
        self.observation_space = observations or self.observation_space
        self.action_space, self.render_mode = actions or self.action_space, render_mode

    def step(self, action: Any) -> Any:
        return self.state + action, 1.0, False, False, {}

    def render(self) -> Any:
        return np.zeros((4, 4, 3), np.uint8)


@pytest.mark.parametrize(
    ("observations", "advice"),
    [
        (gymnasium.spaces.Box(0, 255, (8, 8, 3), np.uint8), r"FlattenObservation; .*features="),
        (gymnasium.spaces.Dict({"a": gymnasium.spaces.Box(0, 1, (2,))}), "FlattenObservation .*FilterObservation"),
        (gymnasium.spaces.Discrete(4), "FlattenObservation"),
    ],
)
def test_observations_that_are_not_flat_are_refused_with_the_wrapper(observations: Any, advice: str) -> None:
    name = name_of(lambda: Spaces(observations))
    with pytest.raises(ValueError, match=rf"one axis is needed\. .*{advice}.* vn\.train\(lambda"):
        tasks.make(name, [0], 1)


def test_actions_that_are_neither_are_refused_with_the_wrapper() -> None:
    name = name_of(lambda: Spaces(actions=gymnasium.spaces.MultiDiscrete([2, 3])))
    with pytest.raises(ValueError, match=r"Discrete or a flat Box .*TransformAction"):
        tasks.make(name, [0], 1)


def test_choices_are_whole_numbers_of_the_environment() -> None:
    task = tasks.make(name_of(lambda: Spaces(actions=gymnasium.spaces.Discrete(3, start=5))), [0], 2)
    assert (task.choices, task.action_dim, task.action_low, task.action_high) == (3, 1, 5, 7)
    start = task.reset()
    for actions in ([5, 7], [[5.0], [7.0]], [4, 99]):
        np.testing.assert_allclose(task.step(actions).next_states - start, [[5, 5], [7, 7]], rtol=1e-6)
    assert tasks.make("gym:Pendulum-v1", [0], 1).choices == 0


def test_a_function_or_class_makes_the_environments() -> None:
    assert name_of(Drift) == "env:tests.tasks.test_gymnasium:Drift"
    task = tasks.make(name_of(Drift), [3], 2, episode_steps=2)
    by_id = tasks.make("gym:test/Drift-v0", [3], 2)
    np.testing.assert_array_equal(task.reset(), by_id.reset())
    assert [task.step(np.zeros((2, 2))).truncated.tolist() for _ in range(2)] == [[False, False], [True, True]]
    assert tasks.make("env:tests.tasks.test_gymnasium:Spaces", [0], 1).obs_dim == 2  # not named here before
    with pytest.raises(ValueError, match=r"cannot be found from here.*PYTHONPATH"):
        tasks.make("env:tests.tasks.test_gymnasium:<lambda>1", [0], 1)


class Broken(Drift):
    """Gives something else than it says: at the start, or in its third step."""

    def __init__(self, **given: Any) -> None:
        self.given, self.count = given, 0

    def reset(self, **options: Any) -> Any:
        self.count = 0
        return self.given.get("reset", super().reset(**options))

    def step(self, action: Any) -> Any:
        self.count += 1
        state, reward, *rest = super().step(action * 0)
        if self.count < 3:
            return state, reward, *rest
        return self.given.get("step", (self.given.get("state", state), self.given.get("reward", reward), *rest))


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (
            {"state": np.array([0, np.nan])},
            r"an observation that is not 2 finite numbers, as its space says: array\(.*nan",
        ),
        ({"state": np.zeros(3)}, "an observation that is not 2 finite numbers"),
        ({"state": "here"}, "an observation .*'here'"),
        ({"state": None}, "an observation .*None"),
        ({"reward": float("nan")}, "a reward that is not a finite number: nan"),
        ({"reward": None}, "a reward that is not a finite number: None"),
        ({"reward": [1.0, 2.0]}, "a reward that is not a finite number"),
        ({"step": (np.zeros(2), 1.0, False, {})}, "step must give observation, reward, terminated, truncated and info"),
        ({"reset": np.zeros(2)}, "reset must give an observation and info"),
        ({"reset": (np.zeros(3), {})}, "an observation that is not 2"),
    ],
)
def test_what_an_environment_gives_must_be_what_it_says(given: dict[str, Any], told: str) -> None:
    def broken() -> Broken:
        return Broken(**given)

    def four_steps() -> None:
        task.reset()
        for _ in range(4):
            task.step(np.zeros((2, 2)))

    task = tasks.make(name_of(broken), [0], 2)
    with pytest.raises(ValueError, match=f"broken.*{told}"):
        four_steps()


def test_spaces_of_nothing_are_refused() -> None:
    nothing = gymnasium.spaces.Box(-1, 1, (0,))
    for given in ({"observations": nothing}, {"actions": nothing}):
        with pytest.raises(ValueError, match="at least one number of each"):
            tasks.make(name_of(lambda given=given: Spaces(**given)), [0], 1)


def test_functions_that_do_not_make_one_environment_each_are_told() -> None:
    with pytest.raises(ValueError, match="cannot be found from here: it is no function"):
        tasks.make("env:tests.tasks.test_gymnasium:IDS", [0], 1)
    one = Drift()
    with pytest.raises(ValueError, match="same environment twice"):
        tasks.make(name_of(lambda: one), [0], 2)
    with pytest.raises(ValueError, match=r"without arguments and needs size: .*lambda"):
        tasks.make(name_of(lambda size: one), [0], 2)
    with pytest.raises(ValueError, match=r"one gymnasium\.Env .* got .*dict"):
        tasks.make(name_of(dict), [0], 2)


def test_pictures_of_a_function_s_environment_need_a_render_mode() -> None:
    task = tasks.make(name_of(Spaces), [0], 1, render=True)
    task.reset()
    assert task.render().shape == (4, 4, 3)
    with pytest.raises(RuntimeError, match="render_mode"):
        tasks.make(name_of(lambda: Spaces(None)), [0], 1, render=True).render()


def test_an_unknown_gym_id_is_a_value_error() -> None:
    with pytest.raises(ValueError, match="gym:Pendulom-v1 cannot be made"):
        tasks.make("gym:Pendulom-v1", [0], 1)


@pytest.mark.parametrize("gym_id", IDS)
def test_registered_environments_pass_gymnasium_s_checker(gym_id: str) -> None:
    env = gymnasium.make(gym_id)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*infinity.*|.*symmetric.*|.*render modes.*")
        warnings.simplefilter("ignore", UserWarning)
        check_env(env.unwrapped, skip_render_check=True)
    assert env.spec is not None
    assert env.spec.max_episode_steps == 1000
    env.close()


def test_make_gives_the_sparse_reward_of_the_chosen_variant() -> None:
    envs = [gymnasium.make("voronaut/WalkerRunSparse-v0", threshold=variant) for variant in tasks.VARIANTS]
    for env in envs:
        env.reset(seed=0)
    random = np.random.default_rng(0)
    for _ in range(30):
        action = random.uniform(-1, 1, 6).astype(np.float32)
        for env, threshold in zip(envs, (0.25, 0.5, 0), strict=True):
            _, reward, _, _, info = env.step(action)
            assert reward == (info["dense_reward"] if info["dense_reward"] >= threshold else 0)


def test_make_truncates_at_the_limit_and_seeds_like_the_vector_task() -> None:
    env = gymnasium.make("voronaut/CartpoleSwingupSparse-v0", max_episode_steps=3)
    obs, _ = env.reset(seed=5)
    np.testing.assert_array_equal(obs, tasks.make("cartpole-swingup", [5], 1, backend="dm_control").reset()[0])
    ends = [env.step(np.zeros(1, np.float32))[2:4] for _ in range(3)]
    assert ends == [(False, False), (False, False), (False, True)]
    assert (env.reset()[0] != obs).any()


@pytest.mark.parametrize("mode", [None, "sync"])
@pytest.mark.parametrize("gym_id", IDS)
def test_make_vec_steps(gym_id: str, mode: str | None) -> None:
    envs = gymnasium.make_vec(gym_id, num_envs=2, vectorization_mode=mode, threshold="paper")
    obs, _ = envs.reset(seed=1)
    assert obs in envs.observation_space
    obs, rewards, terminated, truncated, info = envs.step(envs.action_space.sample())
    assert obs in envs.observation_space
    assert rewards.shape == terminated.shape == truncated.shape == info["dense_reward"].shape == (2,)
    envs.close()


def test_make_vec_seeds_as_gymnasium_does() -> None:
    kwargs: dict[str, Any] = {"backend": "dm_control"}
    envs = gymnasium.make_vec("voronaut/CheetahRunSparse-v0", num_envs=2, **kwargs)
    obs, _ = envs.reset(seed=3)
    for index in range(2):
        single, _ = gymnasium.make("voronaut/CheetahRunSparse-v0").reset(seed=3 + index)
        np.testing.assert_array_equal(obs[index], single)
    np.testing.assert_array_equal(envs.reset(seed=[3, None])[0][0], obs[0])


def test_make_vec_gives_the_final_observation() -> None:
    envs = gymnasium.make_vec("voronaut/CheetahRunSparse-v0", num_envs=2, max_episode_steps=2)
    envs.reset(seed=0)
    actions = np.zeros((2, 6), np.float32)
    assert "final_obs" not in envs.step(actions)[-1]
    obs, _, _, truncated, info = envs.step(actions)
    assert truncated.all()
    assert info["_final_obs"].all()
    assert all((info["final_obs"][index] != obs[index]).any() for index in range(2))


def test_an_environment_that_can_draw_leaves_triton_to_be_imported() -> None:
    """A picture's OpenGL library may bring another LLVM, beside which Triton's import ended the process."""
    pytest.importorskip("triton")
    make = "gymnasium.make('voronaut/CheetahRunSparse-v0', render_mode='rgb_array')"
    code = f"import gymnasium, voronaut.tasks as tasks; tasks.TASKS; {make}"
    done = subprocess.run([sys.executable, "-c", f"{code}; import triton"], capture_output=True, text=True, check=False)
    assert done.returncode == 0 or "rendering is not possible here" in done.stderr, done.stderr[-500:]
