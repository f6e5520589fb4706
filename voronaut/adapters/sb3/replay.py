"""Replay buffers that pay the bonus as it is when they are sampled, not as it was when the state was new."""

import copy
from typing import Any

import numpy as np
from numpy.typing import NDArray
from stable_baselines3.common.buffers import DictReplayBuffer, ReplayBuffer
from stable_baselines3.common.vec_env import VecNormalize
from stable_baselines3.her.her_replay_buffer import HerReplayBuffer

from voronaut.adapters.observations import Reader, mapped
from voronaut.adapters.payer import Payer
from voronaut.adapters.sb3.env import RECORDER, BonusVecEnv
from voronaut.adapters.sb3.near_reward import Memory, NearReward

RATE = 0.002  # of the bonus's running deviation, per batch
LEAST = 1e-8  # a deviation below is none: nothing is paid
NO_FINALS = (
    "optimize_memory_usage=True keeps no final states, so the last step of every episode would be paid for "
    "the reset state. Leave it out."
)


class _PaysWhenSampled(ReplayBuffer):
    """In front of a replay buffer: meets the recording `BonusVecEnv` through `infos` and pays with its bonus."""

    _recorder: BonusVecEnv | None = None
    last_bonus = 0.0  # mean over the last batch

    def __init__(self, *args: Any, optimize_memory_usage: bool = False, **kwargs: Any) -> None:
        if optimize_memory_usage:
            raise ValueError(NO_FINALS)
        super().__init__(*args, **kwargs)

    def add(self, *args: Any, **kwargs: Any) -> None:
        """Store a transition; its reward is the environment's own."""
        infos = kwargs["infos"] if "infos" in kwargs else args[5]
        self._find_bonus(infos)
        infos[0].pop(RECORDER)  # a buffer that keeps infos would keep, and copy, the whole environment
        super().add(*args, **kwargs)

    def _get_samples(self, batch_inds: NDArray[Any], env: VecNormalize | None = None) -> Any:
        return self._paid(super()._get_samples(batch_inds, None), env)

    def _paid(self, raw: Any, env: VecNormalize | None) -> Any:
        """Transitions with (normalised) reward + scale · r(s), s as the bonus sees it, r as it is now."""
        if self._recorder is None:
            raise RuntimeError("this replay buffer has met no environment yet: let the model collect a step first.")
        next_obs = _arrays(raw.next_observations)
        bonus = self._recorder.payer.pay(self._recorder.states_of(next_obs)).reshape(-1, 1)
        self.last_bonus = float(bonus.mean()) if bonus.size else self.last_bonus
        # The spread of returns that VecNormalize knows is the environment's alone: the bonus is added after it.
        rewards = self._normalize_reward(_arrays(raw.rewards), env) + bonus
        return raw._replace(
            observations=mapped(self.to_torch, self._normalize_obs(_arrays(raw.observations), env)),
            next_observations=mapped(self.to_torch, self._normalize_obs(next_obs, env)),
            rewards=self.to_torch(rewards.astype(np.float32)),
        )

    def __getstate__(self) -> dict[str, Any]:
        """Without the environment, which is found again at the next step."""
        state: Any = super().__getstate__()
        return {name: value for name, value in state.items() if name != "_recorder"}

    def _find_bonus(self, infos: Any) -> None:
        recorder = infos[0].get(RECORDER)
        if recorder is self._recorder and recorder is not None:
            return
        if "bonus" in infos[0]:
            raise ValueError(
                "paid twice: BonusVecEnv has paid this step and BonusReplayBuffer would pay it again. "
                "Make the wrapper BonusVecEnv(env, bonus, pay=False), or use the usual replay buffer."
            )
        if recorder is None:
            raise ValueError(
                "BonusReplayBuffer needs a bonus: wrap the environment: BonusVecEnv(env, bonus, pay=False)."
            )
        self._check_spaces(recorder)
        self._recorder, recorder.paid_by_replay = recorder, True

    def _check_spaces(self, recorder: BonusVecEnv) -> None:
        if _shapes(recorder.observation_space) != _shapes(self.observation_space):
            raise ValueError(
                f"the replay buffer holds {self.observation_space} and the bonus saw {recorder.observation_space}. "
                "Put BonusVecEnv outside the wrappers that change observations (VecFrameStack, VecTransposeImage)."
            )


class BonusReplayBuffer(_PaysWhenSampled):
    """`SAC(…, env, replay_buffer_class=BonusReplayBuffer)` with `env = BonusVecEnv(…, pay=False)`."""


class BonusDictReplayBuffer(_PaysWhenSampled, DictReplayBuffer):
    """The same for Dict observations."""


class BonusHerReplayBuffer(_PaysWhenSampled, HerReplayBuffer):
    """The same with hindsight: steps whose goal and reward are made up when sampled are paid like all others."""

    def _get_real_samples(self, batch_indices: Any, env_indices: Any, env: VecNormalize | None = None) -> Any:
        return self._paid(super()._get_real_samples(batch_indices, env_indices, None), env)

    def _get_virtual_samples(self, batch_indices: Any, env_indices: Any, env: VecNormalize | None = None) -> Any:
        return self._paid(super()._get_virtual_samples(batch_indices, env_indices, None), env)


class PaidReplay(Memory):
    """Another model's replay in which every reward comes with b/σ: the bonus as it is now in its running deviations.

    Sampling is the replay's own, so windows of n steps and Dict observations are paid as well. The task's reward is
    normalised as the replay does it, the bonus is not.
    """

    def __init__(self, replay: ReplayBuffer, near: NearReward, payer: Payer, reader: Reader) -> None:
        super().__init__(replay, near)
        self.payer, self.reader = payer, reader
        self.units: NDArray[np.float64] = np.zeros(2)  # σ, and from how many batches it is known
        self.last_bonus = 0.0  # mean over the last batch, in deviations

    def uniform(self, count: int, env: VecNormalize | None) -> Any:
        """So many steps of the whole replay, paid; they tell the deviation."""
        return self._view(self.replay, _Paid(self, self.replay, env, self._measured)).sample(count, env)

    def chosen(self, drawn: Any, env: VecNormalize | None) -> Any:
        """What was drawn from before rewards, paid."""
        return super().chosen(self._view(drawn, _Paid(self, drawn, env, self._paid)), env)

    def size(self) -> int:
        """Vector steps in it."""
        return int(self.replay.size())

    def newest(self) -> NDArray[Any]:
        """States (n, d) that the last actions led to."""
        return self.reader(self._last(self.replay.next_observations))

    def newest_seen(self) -> Any:
        """Observations (n, …) in which the last actions were taken."""
        return self._last(self.replay.observations)

    def _last(self, observations: Any) -> Any:
        return mapped(lambda array: array[(self.replay.pos - 1) % self.replay.buffer_size], observations)

    def worth(self, source: Any, index: Any, shape: tuple[int, ...]) -> NDArray[np.float64]:
        """b of the transitions at `index` of a replay's arrays, which select `shape`."""
        chosen = mapped(lambda array: array[index].reshape(-1, *array.shape[2:]), source.next_observations)
        return self.payer.pay(self.reader(chosen)).reshape(shape)

    def _measured(self, raw: NDArray[np.float64]) -> NDArray[np.float64]:
        if (spread := float(raw.std())) > LEAST:
            known = self.units[1] + 1
            self.units = np.array([self.units[0] + max(RATE, 1 / known) * (spread - self.units[0]), known])
        paid = self._paid(raw)
        self.last_bonus = float(paid.mean())
        return paid

    def _paid(self, raw: NDArray[np.float64]) -> NDArray[np.float64]:
        return raw / self.units[0] if self.units[1] else np.zeros(raw.shape)

    @staticmethod
    def _view(source: Any, rewards: "_Paid") -> Any:
        view: Any = copy.copy(source)  # shares the arrays
        view.rewards, view._normalize_reward = rewards, _as_it_is
        return view


class _Paid:
    """The rewards of a replay as an array that is computed where it is looked at."""

    def __init__(self, paid: PaidReplay, source: Any, env: VecNormalize | None, unit: Any) -> None:
        self.paid, self.source, self.env, self.unit = paid, source, env, unit

    def __getitem__(self, index: Any) -> NDArray[np.float32]:
        own = self.paid.replay._normalize_reward(self.source.rewards[index], self.env)
        return np.asarray(own + self.unit(self.paid.worth(self.source, index, own.shape)), np.float32)


def check_replay(replay: Any) -> None:
    """Refuse replays that cannot be paid when they are sampled."""
    if getattr(replay, "optimize_memory_usage", False):
        raise ValueError(NO_FINALS)
    if isinstance(replay, _PaysWhenSampled | HerReplayBuffer):
        raise ValueError(
            f"a pair pays its replay itself and cannot use {type(replay).__name__}. Leave replay_buffer_class out."
        )


def _as_it_is(rewards: Any, env: Any = None) -> Any:
    return rewards


def _arrays(tensors: Any) -> Any:
    return mapped(lambda tensor: tensor.cpu().numpy(), tensors)


def _shapes(space: Any) -> Any:
    inside = getattr(space, "spaces", None)
    return {key: one.shape for key, one in inside.items()} if isinstance(inside, dict) else space.shape
