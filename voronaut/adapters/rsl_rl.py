"""rsl_rl: `add_bonus(runner, bonus)` pays its PPO from one bonus, and keeps the bonus in the runner's checkpoints."""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from voronaut.adapters.observations import Features, looks_like_image, mapped, rows_of
from voronaut.adapters.payer import SCALE, Payer, Scale, check_bonus, fitting
from voronaut.bonuses.base import TakesTensors
from voronaut.helpers.missing import missing

try:
    import torch
    from rsl_rl.algorithms import PPO  # type: ignore[import-untyped, unused-ignore]
except ModuleNotFoundError as error:
    raise missing(error, {"torch", "rsl_rl"}, "rsl-rl-lib", "rsl") from error

Final = str | Callable[[Any, Mapping[str, Any]], Any] | None
HOOKED = ("process_env_step", "compute_returns", "update", "save", "load")


def add_bonus(
    runner: Any,
    bonus: Any,
    *,
    scale: Scale = SCALE,
    warmup: int = 0,
    keys: Sequence[str] | None = None,
    features: Features | None = None,
    final: Final = "final_obs",
    total_steps: int | None = None,
) -> "RunnerBonus":
    """Add scale · r(s) to the rewards that the runner's PPO learns from, s being the state that the action led to.

    Call it once, after the runner is made and before `runner.load` or `runner.learn`.

    Args:
        runner: an `OnPolicyRunner` (one process) with PPO.
        bonus: such as `vn.KME(dim=48, init="data")`, or the class `vn.KME`, which is then made for the observations.
        scale: weight of the bonus, β: a number, or a function of the progress from 0 (start) to 1 (end).
        warmup: rollouts at the beginning that are learned from but not paid.
        keys: observation groups that the bonus sees, joined to one vector. None: those of the actor.
        features: function from the observations (a TensorDict; with `keys` the joined tensor) to tensors (n, dim).
        final: where the last observations of ended episodes are: a key of `extras`, or a function of the observations
            and `extras`; in either case observations of all environments, of which only the ended ones are used. None:
            nowhere; then steps that end an episode earn no bonus and are not learned from.
        total_steps: environment steps of the training, for a `scale` that is a function.
    """
    check_bonus(bonus)
    if not isinstance(getattr(runner, "alg", None), PPO):
        raise TypeError(f"add_bonus wants an OnPolicyRunner with PPO; got {type(runner).__name__}.")
    if hasattr(runner.alg, "bonus"):
        raise ValueError("this runner has a bonus already. Make a new runner for another one.")
    if runner.is_distributed:
        raise ValueError("add_bonus works in one process; several would cluster apart. Train on one GPU.")
    chosen = _keys(runner, keys, features)
    bonus = fitting(bonus, _dim(runner.alg.storage.observations, chosen, features))
    payer = Payer(bonus, scale=scale, update_every=1, warmup=warmup, total_steps=total_steps)
    return RunnerBonus(runner, payer, chosen, features, final)


class RunnerBonus:
    """What `add_bonus` put in place: it notes states as they come, pays them before the advantages, then learns.

    The bonus is frozen during a rollout, so all of it is paid at once: one call where rsl_rl computes returns, one
    after PPO's update. Rewards change in PPO's storage only: the returns that rsl_rl logs are the environment's.
    """

    def __init__(
        self, runner: Any, payer: Payer, keys: list[str] | None, features: Features | None, final: Final
    ) -> None:
        self.runner, self.alg, self.payer = runner, runner.alg, payer
        self.keys, self.features, self.final = keys, features, final
        self.paid: torch.Tensor | None = None  # (t, n) of the last rollout, scaled
        self._states: torch.Tensor | None = None  # (t, n, d) of this rollout
        self._task = torch.zeros(0)  # (t, n) what the task paid in it
        self._plain = {name: getattr(self.alg, name) for name in HOOKED}
        for name in HOOKED:  # on this object alone: other runners in the process stay as they are
            setattr(self.alg, name, getattr(self, f"_{name}"))
        self.alg.bonus = payer.bonus

    @property
    def bonus(self) -> Any:
        """The bonus in force."""
        return self.payer.bonus

    # PPO's methods, with the bonus in them

    def _process_env_step(self, obs: Any, rewards: Any, dones: torch.Tensor, extras: dict[str, Any]) -> None:
        states, storage = self._led_to(obs, dones, extras), self.alg.storage
        if self._states is None:
            with torch.inference_mode(False):  # a tensor that may also be used where gradients are taken
                room = (storage.num_transitions_per_env, *states.shape)
                self._states = torch.zeros(room, dtype=states.dtype, device=states.device)
                self._task = torch.zeros(room[:2], device=states.device)
        if storage.step < len(self._states):  # else the storage itself says that it is full
            self._states[storage.step].copy_(states)
            self._task[storage.step].copy_(rewards.reshape(-1))
        self._plain["process_env_step"](obs, rewards, dones, extras)

    def _compute_returns(self, obs: Any) -> None:
        with torch.inference_mode(False), torch.no_grad():
            self.paid = self._pay()
        self.alg.storage.rewards += self.paid[..., None]
        self._plain["compute_returns"](obs)

    def _update(self) -> dict[str, float]:
        losses: dict[str, float] = self._plain["update"]()
        with torch.no_grad():
            self._learn()
        self._log()
        return losses

    def _save(self) -> dict[str, Any]:
        state = mapped(lambda array: torch.as_tensor(array).detach().cpu().clone(), self.payer.whole_state())
        return {**self._plain["save"](), "bonus": state}

    def _load(self, loaded: dict[str, Any], load_cfg: dict[str, Any] | None, strict: bool) -> bool:
        if load_cfg is None or load_cfg.get("bonus"):
            if "bonus" not in loaded:
                raise ValueError(
                    "this checkpoint holds no bonus: it was saved by a runner without add_bonus. To start with a fresh "
                    "bonus, name what to load: load_cfg={'actor': True, 'critic': True, 'optimizer': True, "
                    "'iteration': True}."
                )
            self.payer.load_whole_state(mapped(lambda tensor: np.array(tensor.cpu().numpy()), loaded["bonus"]))
        return bool(self._plain["load"](loaded, load_cfg, strict))

    # What they need

    def _led_to(self, obs: Any, dones: torch.Tensor, extras: Mapping[str, Any]) -> torch.Tensor:
        """States (n, d) that the actions led to: the last ones of ended episodes, not those after the reset."""
        states = self._vectors(obs)
        if self.final is None:
            return states
        last = self.final(obs, extras) if callable(self.final) else extras.get(self.final)
        if last is None:
            if bool(dones.any()):
                raise ValueError(_lost(self.final))
            return states
        finals = self._vectors(last).to(states.device)
        if finals.shape != states.shape:
            raise ValueError(
                f"final observations must be of all {len(states)} environments, {tuple(states.shape)}; got "
                f"{tuple(finals.shape)}. Pass final=, a function of (obs, extras) that puts each in its row."
            )
        return torch.where(dones.reshape(-1, 1).bool(), finals, states)

    def _vectors(self, obs: Any) -> torch.Tensor:
        if self.keys is not None and not isinstance(obs, torch.Tensor):
            obs = torch.cat([rows_of(f"the observation group {key!r}", obs[key]) for key in self.keys], dim=-1)
        states: torch.Tensor = obs if self.features is None else self.features(obs)
        if not isinstance(states, torch.Tensor) or states.ndim != 2:
            raise ValueError(f"features must give a tensor (n, dim); got {getattr(states, 'shape', type(states))}.")
        return states.detach()

    def _pay(self) -> torch.Tensor:
        """(t, n): what the states of this rollout earn, times the scale."""
        states = self._rollout()
        rewards = self.alg.storage.rewards[..., 0]
        if self.payer.steps < self.payer.warmup:
            return torch.zeros_like(rewards)
        if self.payer.falls:  # the storage's rewards hold what is expected after a time limit: not the task's
            self.payer.see(self._task.cpu().numpy(), self._unknown().cpu().numpy())
        earned = torch.as_tensor(self.bonus.rewards(self._given(states)), dtype=rewards.dtype, device=rewards.device)
        paid = self.payer.weight() * earned
        return torch.where(self._unknown(), 0, paid) if self.final is None else paid

    def _learn(self) -> None:
        states = self._rollout()
        shown = states.flatten(0, 1) if self.final is not None else states[~self._unknown()]
        self._states = None  # the bonus may keep what it is shown
        if len(shown):
            self.bonus.update(self._given(shown))
        self.payer.steps += 1
        self.payer.updates += 1
        self.payer.env_steps += states.shape[0] * states.shape[1]

    def _rollout(self) -> torch.Tensor:
        if self._states is None:
            raise RuntimeError("no step was taken since the last update: nothing to pay or to learn from.")
        return self._states

    def _unknown(self) -> torch.Tensor:
        """(t, n): steps that ended an episode."""
        return self.alg.storage.dones[..., 0].bool()  # type: ignore[no-any-return]

    def _given(self, states: torch.Tensor) -> Any:
        """States as the bonus wants them: where they are, or on the CPU."""
        return states if isinstance(self.bonus, TakesTensors) else states.cpu().numpy()

    def _log(self) -> None:
        """Among what rsl_rl logs of this iteration: the mean pay (scaled), and the bonus's metrics."""
        logger = self.runner.logger
        if logger.writer is not None and self.paid is not None:
            metrics = {f"Bonus/{name}": value for name, value in self.bonus.metrics().items()}
            logger.ep_extras.append({"Bonus/paid": self.paid.mean(), **metrics})


def _keys(runner: Any, keys: Sequence[str] | None, features: Features | None) -> list[str] | None:
    """The observation groups to join; None: a function takes all of them."""
    if isinstance(keys, str):
        raise TypeError(f"keys must be a list of names; got {keys!r}. Write keys=[{keys!r}].")
    if keys is None:
        return None if features is not None else list(runner.cfg["obs_groups"]["actor"])
    there = set(runner.alg.storage.observations.keys())
    if not keys or not set(keys) <= there:
        raise ValueError(f"keys={list(keys)} must name some of the observation groups; there are {sorted(there)}.")
    return list(keys)


def _dim(observations: Any, keys: list[str] | None, features: Features | None) -> int | None:
    """Numbers in a state, from the storage (t, n, …); None if a function makes the states or an image is among them."""
    if keys is None or features is not None:
        return None
    groups = [(observations[key].shape[2:], observations[key].dtype) for key in keys]
    if any(looks_like_image(*group) for group in groups):
        return None
    return sum(int(math.prod(shape)) for shape, _ in groups)


def _lost(final: Any) -> str:
    return (
        f"episodes ended and their final states are not known ({final!r} is not in extras): the bonus would be paid "
        "for the reset state. Isaac Lab gives them with compute_final_obs=True in the environment's config. Otherwise "
        "pass final=, a key of extras or a function of (obs, extras), or final=None: steps that end an episode then "
        "earn no bonus."
    )
