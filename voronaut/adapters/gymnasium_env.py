"""Gymnasium environments, one or many, whose rewards include a bonus; for loops that compute advantages themselves."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from voronaut.adapters import files
from voronaut.adapters.observations import Features, Reader, mapped
from voronaut.adapters.payer import SCALE, Freezes, Payer, Scale, fitting
from voronaut.helpers import npz
from voronaut.helpers.missing import missing

try:
    import gymnasium
    import gymnasium.utils
    from gymnasium.vector import AutoresetMode, SyncVectorEnv, VectorEnv, VectorWrapper
except ModuleNotFoundError as error:
    raise missing(error, {"gymnasium"}, "gymnasium", "train") from error

Step = tuple[Any, Any, Any, Any, dict[str, Any]]


class BonusVectorEnv(Freezes, VectorWrapper):
    """Adds scale · r(s) to each reward of a VectorEnv, s being the state that the action led to.

    True final states in every autoreset mode: `info["final_obs"]` in SAME_STEP, the observation itself in NEXT_STEP and
    DISABLED. The step by which NEXT_STEP resets an environment took no action: it is not paid and not learned from.
    `info` gets `bonus` (what was paid) and `extrinsic_reward` (the environment's own), (n,) each. For returns without
    the bonus put RecordEpisodeStatistics inside.

    Args:
        env: the environments.
        bonus: such as `vn.KME(dim=17)`, or the class `vn.KME`, which is then made for the observations.
        scale: weight of the bonus, β: a number, or a function of the progress from 0 (start) to 1 (end).
        update_every: vector steps between updates of the bonus, each with all states since the last one.
        warmup: vector steps at the beginning that are learned from but not paid.
        features: function from a batch of observations to the vectors (n, dim) that the bonus sees.
        keys: of Dict observations, to be joined to one vector.
        total_steps: environment steps of the training, for a `scale` that is a function.
        autoreset_mode: if the environment's metadata does not tell.
    """

    def __init__(
        self,
        env: Any,
        bonus: Any,
        *,
        scale: Scale = SCALE,
        update_every: int = 1024,
        warmup: int = 0,
        features: Features | None = None,
        keys: Sequence[str] | None = None,
        total_steps: int | None = None,
        autoreset_mode: AutoresetMode | str | None = None,
    ) -> None:
        if not isinstance(env, VectorEnv):
            raise TypeError(f"BonusVectorEnv wraps a VectorEnv; got {type(env).__name__}. For one Env take BonusEnv.")
        check_unpaid(env)
        super().__init__(env)
        self.reader = Reader(env.single_observation_space, keys, features)
        bonus = fitting(bonus, self.reader.dim)
        self.payer = Payer(bonus, scale=scale, update_every=update_every, warmup=warmup, total_steps=total_steps)
        self.autoreset_mode = _mode(env, autoreset_mode)
        self._ended: NDArray[np.bool_] = np.zeros(env.num_envs, bool)

    def reset(self, *, seed: Any = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Start episodes, everywhere or where options["reset_mask"] says."""
        chosen = (options or {}).get("reset_mask")
        chosen = None if chosen is None else np.array(chosen, bool)  # the environment takes it out of the options
        result = self.env.reset(seed=seed, options=options)
        self._ended[chosen if chosen is not None else slice(None)] = False
        return result

    def step(self, actions: Any) -> Step:
        """Take the actions; rewards come back with the bonus."""
        obs, rewards, terminated, truncated, info = self.env.step(actions)
        ended = np.asarray(terminated, bool) | np.asarray(truncated, bool)
        # Which environments took their action, (n,): not those that NEXT_STEP resets instead.
        resets = self.autoreset_mode == AutoresetMode.NEXT_STEP
        real = ~self._ended if resets else np.ones(self.num_envs, bool)
        states = self.reader(obs, self._finals(ended & real, info))[real]
        bonus = np.zeros(self.num_envs)
        bonus[real] = self.payer.pay(states)
        self.payer.see(np.where(real, rewards, 0), ended & real)
        self.payer.keep(states)
        self._ended = ended
        info = {**info, "bonus": bonus, "_bonus": real, "extrinsic_reward": rewards, "_extrinsic_reward": real.copy()}
        return obs, rewards + bonus.astype(np.asarray(rewards).dtype), terminated, truncated, info

    def save(self, path: npz.Where) -> None:
        """Write settings, bonus and pending states to one file without pickle."""
        mode = self.autoreset_mode.value
        files.save(path, "BonusVectorEnv", self.payer, self.reader, autoreset_mode=mode)

    @staticmethod
    def load(path: npz.Where, env: Any, **given: Any) -> "BonusVectorEnv":
        """The wrapper saved at `path` around `env`. What a file cannot hold is given: bonus=, features=, scale=."""
        kept = files.SavedAdapter(path, "BonusVectorEnv", **given)
        loaded = BonusVectorEnv(env, **kept.settings)
        kept.restore(loaded.payer)
        return loaded

    def _finals(self, ended: NDArray[np.bool_], info: Mapping[str, Any]) -> dict[int, Any]:
        if self.autoreset_mode != AutoresetMode.SAME_STEP or not ended.any():
            return {}
        final = info.get("final_obs")
        if final is None:
            raise ValueError(
                "episodes ended and info has no 'final_obs', which SAME_STEP environments give: the bonus would be "
                "paid for the reset state. If the environment resets otherwise, pass autoreset_mode=."
            )
        return {int(i): _row(final, int(i)) for i in np.flatnonzero(ended)}


class BonusEnv(Freezes, gymnasium.Wrapper, gymnasium.utils.RecordConstructorArgs):
    """The same for one `gymnasium.Env`; `info` gets `bonus` and `extrinsic_reward`. Arguments as above."""

    def __init__(
        self,
        env: Any,
        bonus: Any,
        *,
        scale: Scale = SCALE,
        update_every: int = 1024,
        warmup: int = 0,
        features: Features | None = None,
        keys: Sequence[str] | None = None,
        total_steps: int | None = None,
    ) -> None:
        if not isinstance(env, gymnasium.Env):
            raise TypeError(f"BonusEnv wraps one Env; got {type(env).__name__}. For a VectorEnv take BonusVectorEnv.")
        check_unpaid(env)
        gymnasium.utils.RecordConstructorArgs.__init__(  # for env.spec, with a copy of the bonus as it came
            self, bonus=bonus, scale=scale, update_every=update_every, warmup=warmup, features=features, keys=keys,
            total_steps=total_steps,
        )  # fmt: skip
        gymnasium.Wrapper.__init__(self, env)
        self.reader = Reader(env.observation_space, keys, features)
        bonus = fitting(bonus, self.reader.dim)
        self.payer = Payer(bonus, scale=scale, update_every=update_every, warmup=warmup, total_steps=total_steps)

    def step(self, action: Any) -> Step:
        """Take the action; the reward comes back with the bonus."""
        obs, reward, terminated, truncated, info = self.env.step(action)
        states = self.reader(mapped(lambda array: np.asarray(array)[None], obs))
        bonus = float(self.payer.pay(states)[0])
        self.payer.see(float(reward), terminated or truncated)
        self.payer.keep(states)
        info = {**info, "bonus": bonus, "extrinsic_reward": float(reward)}
        return obs, float(reward) + bonus, terminated, truncated, info

    def save(self, path: npz.Where) -> None:
        """Write settings, bonus and pending states to one file without pickle."""
        files.save(path, "BonusEnv", self.payer, self.reader)

    @staticmethod
    def load(path: npz.Where, env: Any, **given: Any) -> "BonusEnv":
        """The wrapper saved at `path` around `env`. What a file cannot hold is given: bonus=, features=, scale=."""
        kept = files.SavedAdapter(path, "BonusEnv", **given)
        loaded = BonusEnv(env, **kept.settings)
        kept.restore(loaded.payer)
        return loaded


def check_unpaid(env: Any) -> None:
    """Refuse an environment that a bonus pays already, around it or in one of its parts."""
    while isinstance(env, gymnasium.Wrapper | VectorWrapper):
        if isinstance(env, Freezes):
            raise ValueError(
                f"the environment is already in a {type(env).__name__}: it would be paid twice. Wrap it once."
            )
        env = env.env
    for each in env.envs if isinstance(env, SyncVectorEnv) else ():
        check_unpaid(each)


def _mode(env: Any, given: AutoresetMode | str | None) -> AutoresetMode:
    found = given if given is not None else env.metadata.get("autoreset_mode")
    if found is None:
        raise ValueError(
            "the environment does not say how it starts new episodes (metadata['autoreset_mode']). Pass "
            f"autoreset_mode= one of {', '.join(str(mode) for mode in AutoresetMode)}."
        )
    return AutoresetMode(found)


def _row(final: Any, i: int) -> Any:
    """The last observation of environment i, from an array of observations or a dict of arrays."""
    if isinstance(final, Mapping):
        return {key: values[i] for key, values in final.items() if not key.startswith("_")}
    return final[i]
