"""`BonusVecEnv`: Stable-Baselines3 environments whose rewards include a bonus, before advantages are computed."""

import inspect
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from voronaut.adapters import files, gymnasium_env
from voronaut.adapters.observations import Features, Reader
from voronaut.adapters.payer import SCALE, Freezes, Payer, Scale, fitting
from voronaut.helpers import npz
from voronaut.helpers.missing import missing

try:
    from stable_baselines3.common.vec_env import (
        DummyVecEnv,
        SubprocVecEnv,
        VecEnv,
        VecEnvWrapper,
        VecNormalize,
        unwrap_vec_normalize,
    )
    from stable_baselines3.common.vec_env.base_vec_env import VecEnvObs, VecEnvStepReturn
except ModuleNotFoundError as error:
    raise missing(error, {"stable_baselines3", "torch"}, "stable-baselines3", "sb3") from error

RECORDER = "bonus_recorder"
OUTSIDE = (
    "this BonusVecEnv is used outside of learn(), and steps there teach the bonus too. To evaluate, write "
    "`with env.frozen():` or set env.training = False; in a training loop of your own set env.training = True."
)
UNPAID = (
    "BonusVecEnv(…, pay=False) only records states, and no replay buffer has come to pay them. Give the model "
    "replay_buffer_class=BonusReplayBuffer, or leave pay=False out."
)


class BonusVecEnv(Freezes, VecEnvWrapper):
    """Adds scale · r(s) to the reward of each step, s being the state that the action led to.

    Rewards are paid against the bonus as it is; every `update_every` vector steps, after that step was paid, the bonus
    learns from all states since the last time. At the end of an episode s is the true final state, never the reset one.
    `infos[i]` gets `bonus` (what was paid), `extrinsic_reward` (the environment's own) and, at an episode's end,
    `extrinsic_return`.

    Args:
        venv: vectorised environments. A Monitor or VecMonitor inside keeps logging the environment's own returns.
        bonus: such as `vn.KME(dim=17)`, or the class `vn.KME`, which is then made for the observations.
        scale: weight of the bonus, β: a number, or a function of the progress from 0 (start) to 1 (end).
        update_every: vector steps between updates of the bonus.
        warmup: vector steps at the beginning that are learned from but not paid.
        features: function from a batch of observations to the vectors (n, dim) that the bonus sees.
        keys: of Dict observations, to be joined to one vector.
        total_steps: environment steps of the training, for a `scale` that is a function; or use a BonusCallback.
        pay: False only records states, for a `BonusReplayBuffer` that pays when it is sampled.
    """

    def __init__(
        self,
        venv: VecEnv,
        bonus: Any,
        *,
        scale: Scale = SCALE,
        update_every: int = 1024,
        warmup: int = 0,
        features: Features | None = None,
        keys: Sequence[str] | None = None,
        total_steps: int | None = None,
        pay: bool = True,
    ) -> None:
        _check_env(venv)
        super().__init__(venv)
        self.reader = Reader(venv.observation_space, keys, features)
        bonus = fitting(bonus, self.reader.dim)
        self.payer = Payer(bonus, scale=scale, update_every=update_every, warmup=warmup, total_steps=total_steps)
        self.pays = pay
        self.paid_by_replay = False  # until a replay buffer that pays has come
        self._watched = True  # until one has warned, or `training` is set by hand
        self.last_bonus: NDArray[np.float64] = np.zeros(self.num_envs)
        self._returns: NDArray[np.float64] = np.zeros(self.num_envs)
        self._normalize: VecNormalize | None = unwrap_vec_normalize(venv)

    def reset(self) -> VecEnvObs:
        """Start episodes everywhere; the states of the last ones are kept for the next update."""
        self._returns[:] = 0
        if self._watched and self.training and getattr(self.bonus, "learns", True) and not _learning():
            self._watched = False
            warnings.warn(OUTSIDE, stacklevel=2)
        return self.venv.reset()

    def step_wait(self) -> VecEnvStepReturn:
        """Take the actions; rewards come back with the bonus."""
        if not (self.pays or self.paid_by_replay) and self.payer.steps == 1:
            warnings.warn(UNPAID, stacklevel=2)
        obs, rewards, dones, infos = self.venv.step_wait()
        states = self.reader(obs, _finals(dones, infos))
        extrinsic = rewards if self._normalize is None else self._normalize.get_original_reward()
        if self.pays:
            self.last_bonus = self.payer.pay(states)
            rewards = (rewards + self.last_bonus).astype(rewards.dtype)
            self._tell_normalize()
        self.payer.see(extrinsic, dones)
        self.payer.keep(states)
        self._tell(infos, extrinsic, dones)
        return obs, rewards, dones, infos

    @property
    def training(self) -> bool:
        """Whether the bonus learns from steps, as VecNormalize's. Setting it also says that you see to it yourself."""
        return self.payer.training

    @training.setter
    def training(self, on: bool) -> None:
        self.payer.training, self._watched = bool(on), False

    def env_method(self, method_name: str, *args: Any, indices: Any = None, **kwargs: Any) -> list[Any]:
        """Call a method of the environments; `compute_reward` has no bonus in it and is refused where one is paid."""
        if method_name == "compute_reward" and self.pays:
            raise ValueError(
                "HerReplayBuffer makes up goals and rewards when it is sampled, so most steps would come back without "
                "the bonus that was paid. Make the wrapper BonusVecEnv(env, bonus, pay=False) and take "
                "replay_buffer_class=BonusHerReplayBuffer, which pays every sampled step."
            )
        return self.venv.env_method(method_name, *args, indices=indices, **kwargs)

    def states_of(self, observations: Any) -> NDArray[Any]:
        """Unnormalised observations (n, ...), as a replay buffer keeps them, -> states as the bonus saw them."""
        if self._normalize is not None:
            observations = self._normalize.normalize_obs(observations)
        return self.reader(observations)

    def save(self, path: npz.Where) -> None:
        """Write settings, bonus and pending states to one file without pickle."""
        files.save(path, "BonusVecEnv", self.payer, self.reader, pay=self.pays)

    @staticmethod
    def load(
        path: npz.Where,
        venv: VecEnv,
        *,
        bonus: Any = None,
        features: Features | None = None,
        scale: Scale | None = None,
    ) -> "BonusVecEnv":
        """The wrapper saved at `path` around `venv`. Functions, and bonuses not Voronaut's own, must be given again."""
        kept = files.SavedAdapter(path, "BonusVecEnv", bonus=bonus, features=features, scale=scale)
        env = BonusVecEnv(venv, **kept.settings)
        kept.restore(env.payer)
        return env

    def _tell(self, infos: Sequence[dict[str, Any]], extrinsic: NDArray[Any], dones: NDArray[Any]) -> None:
        """Say in the infos what came from where."""
        self._returns += extrinsic
        for info, own in zip(infos, extrinsic.tolist(), strict=True):
            info["extrinsic_reward"] = own
        if self.pays:
            for info, paid in zip(infos, self.last_bonus.tolist(), strict=True):
                info["bonus"] = paid
        else:
            infos[0][RECORDER] = self
        for i in np.flatnonzero(dones).tolist():
            episode = infos[i].get("episode")  # of a monitor inside: its return is not touched by any wrapper
            infos[i]["extrinsic_return"] = float(episode["r"] if episode else self._returns[i])
            self._returns[i] = 0

    def _tell_normalize(self) -> None:
        """Off-policy algorithms store the reward that VecNormalize was given; below this wrapper it has no bonus yet.

        They normalise it when sampling, so the bonus goes in multiplied by the present spread of the returns.
        """
        if self._normalize is not None:
            paid = self._normalize.unnormalize_reward(self.last_bonus)
            self._normalize.old_reward = (self._normalize.old_reward + paid).astype(np.float32)


def _check_env(venv: Any) -> None:
    if not isinstance(venv, VecEnv):
        raise TypeError(
            f"BonusVecEnv wraps a VecEnv; got {type(venv).__name__}. "
            "Make one with stable_baselines3.common.env_util.make_vec_env, or DummyVecEnv([lambda: env])."
        )
    check_unpaid(venv)


def _learning() -> bool:
    """Whether this call comes from a model's `learn` and from no evaluation inside it."""
    frame = inspect.currentframe()
    while frame is not None and frame.f_code.co_name not in {"_setup_learn", "evaluate_policy"}:
        frame = frame.f_back
    return frame is not None and frame.f_code.co_name == "_setup_learn"


def check_unpaid(env: Any) -> None:
    """Refuse environments in which a bonus is paid already."""
    while isinstance(env, VecEnvWrapper):
        if isinstance(env, BonusVecEnv):
            raise ValueError("the environment is already in a BonusVecEnv: it would be paid twice. Wrap it once.")
        env = env.venv
    if isinstance(env, DummyVecEnv | SubprocVecEnv) and any(env.env_is_wrapped(gymnasium_env.BonusEnv)):
        raise ValueError("the environments are already in a BonusEnv: they would be paid twice. Wrap them once.")
    gymnasium_env.check_unpaid(env)


def _finals(dones: NDArray[Any], infos: Sequence[dict[str, Any]]) -> dict[int, Any]:
    """The true last observation of each episode that ended."""
    ended: list[int] = np.flatnonzero(dones).tolist()
    lost = [i for i in ended if infos[i].get("terminal_observation") is None]
    if lost:
        raise ValueError(
            f"episodes ended in environments {lost} and infos has no 'terminal_observation': the bonus would be paid "
            "for the reset state. Let the VecEnv put the last observation there, as DummyVecEnv does."
        )
    return {i: infos[i]["terminal_observation"] for i in ended}
