"""The one interface to many environments stepped together, and what its backends share."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float32]
Flags = NDArray[np.bool_]
State = dict[str, NDArray[Any]]


class Step(NamedTuple):
    """What one step of n environments gives. `obs` and `next_states` may be one array: do not write into them."""

    obs: Array  # (n, d) what the policy sees next: the first observation of a new episode where one ended
    next_states: Array  # (n, d) the state the action led to: the true final state where an episode ended
    rewards: Array  # (n,) sparse: 0 below the task's threshold
    dense_rewards: Array  # (n,) before the threshold
    terminated: Flags  # (n,)
    truncated: Flags  # (n,) ended by the step limit


@runtime_checkable
class VectorTask(Protocol):
    """n environments of one task, run-major: environment e of run r has index r * envs_per_seed + e."""

    num_envs: int
    obs_dim: int
    action_dim: int
    choices: int  # 0 where actions are continuous; else an action is one of so many whole numbers from `action_low` on
    action_low: NDArray[np.float64]
    action_high: NDArray[np.float64]
    resumes_exactly: bool

    def reset(self) -> Array:
        """Start a new episode everywhere -> obs (n, d)."""

    def step(self, actions: Any) -> Step:
        """Clip the actions (n, a) to the bounds and take them; episodes that end start anew."""

    def state_dict(self) -> State:
        """What is needed to go on from here, as plain arrays."""

    def load_state_dict(self, state: Mapping[str, NDArray[Any]]) -> Array:
        """Go on from `state_dict` (exactly, or else with new episodes) -> the observations to act on."""

    def render(self, index: int = 0) -> NDArray[np.uint8]:
        """A picture (height, width, 3) of one environment; the task must have been made with render=True."""

    def close(self) -> None:
        """Free the environments."""


@runtime_checkable
class StepsInHalves(Protocol):
    """A task whose environments run by themselves: between `begin` and `finish` there is time for something else."""

    def begin(self, actions: Any) -> None:
        """Clip the actions (n, a) to the bounds and let all environments take them, without waiting for any."""

    def finish(self) -> Step:
        """Wait for them; `step` is one after the other."""


def env_seeds(seeds: Sequence[int], envs_per_seed: int, generation: int = 0) -> list[int]:
    """One 31-bit seed per environment from (run seed, index in the run) alone, so that runs do not see each other.

    The generation counts how often a run was resumed: its new episodes must not repeat the first ones.
    """
    if not len(seeds) or min(seeds) < 0 or envs_per_seed < 1:
        raise ValueError(
            f"at least one seed >= 0 and one environment per seed are needed; got {list(seeds)} and {envs_per_seed}."
        )
    keys = [(int(seed), index, generation) for seed in seeds for index in range(envs_per_seed)]
    return [int(np.random.SeedSequence(key).generate_state(1)[0] >> 1) for key in keys]


def bounded(actions: Any, low: NDArray[np.float64], high: NDArray[np.float64], num_envs: int) -> NDArray[np.float64]:
    """The actions as float64, clipped to the bounds; an infinite bound clips nothing."""
    actions = np.asarray(actions, np.float64)
    if actions.shape != (num_envs, len(low)):
        raise ValueError(f"actions must have shape {(num_envs, len(low))}; got {actions.shape}.")
    if not np.isfinite(actions).all():
        raise ValueError("actions must be finite; got NaN or infinity. The policy has diverged: lower its step size.")
    clipped: NDArray[np.float64] = np.minimum(np.maximum(actions, low), high)
    return clipped


def sparse(dense: Array, threshold: float) -> Array:
    """Rewards below the threshold become 0, the others stay as they are (compared in float32)."""
    return np.where(dense >= np.float32(threshold), dense, np.float32(0))


def check_fits(state: Mapping[str, NDArray[Any]], own: State) -> None:
    """ValueError unless the state has the arrays of `own`, in their shapes."""
    wrong = [key for key, value in own.items() if key not in state or state[key].shape != value.shape]
    if wrong:
        came = {key: state[key].shape if key in state else None for key in wrong}
        wanted = {key: own[key].shape for key in wrong}
        raise ValueError(f"the saved environments do not fit: got {came}, need {wanted}. Same task, seeds and envs?")
