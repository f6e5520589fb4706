"""TorchRL: `BonusTransform` for environments writes `intrinsic_reward` and, if asked, adds it to `reward`;
`BonusReplayTransform` for replay buffers pays what states are worth when they are sampled."""

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from voronaut.adapters.observations import Features, checked_features, looks_like_image, mapped, rows_of
from voronaut.adapters.payer import SCALE, Payer, Scale, check_bonus, fitting
from voronaut.helpers.missing import missing

try:
    import torch
    from tensordict import TensorDictBase  # type: ignore[import-untyped, unused-ignore]
    from torchrl.data import Unbounded  # type: ignore[import-untyped, unused-ignore]
    from torchrl.envs import Transform  # type: ignore[import-untyped, unused-ignore]
except ModuleNotFoundError as error:
    raise missing(error, {"torch", "tensordict", "torchrl"}, "torchrl", "torchrl") from error


class BonusTransform(Transform):  # type: ignore[misc]  # TorchRL has no types
    """Writes `intrinsic_reward` = scale · r(s), s being the observation that the action led to, never a reset one.

    Belongs in an environment, around all of its workers: `TransformedEnv(SerialEnv(…), BonusTransform(bonus))`. Rewards
    are paid against the bonus as it is; every `update_every` steps it learns from all states since the last time.
    `env.state_dict()` carries the bonus. Evaluate in an environment without this transform, or `with
    transform.frozen():`, which teaches the bonus nothing. (`training` is torch's and says nothing about that.)

    Args:
        bonus: such as `vn.KME(dim=17)`, or the class `vn.KME`, which is made for the observations once the transform is
            in an environment.
        scale: weight of the bonus, β: a number, or a function of the progress from 0 (start) to 1 (end).
        update_every: steps of the (batched) environment between updates of the bonus.
        warmup: steps at the beginning that are learned from but not paid.
        add_to_reward: add it to `reward` too; the environment's own is then kept under `extrinsic_reward`.
        in_keys: observations that the bonus sees, joined to one vector.
        out_key: where the bonus is written.
        reward_key: where the reward is.
        features: function from a batch of observations (n, …), a dict of them for several keys, to vectors (n, dim).
        total_steps: environment steps of the training, for a `scale` that is a function.
    """

    def __init__(
        self,
        bonus: Any,
        *,
        scale: Scale = SCALE,
        update_every: int = 1024,
        warmup: int = 0,
        add_to_reward: bool = False,
        in_keys: Sequence[Any] = ("observation",),
        out_key: Any = "intrinsic_reward",
        reward_key: Any = "reward",
        features: Features | None = None,
        total_steps: int | None = None,
    ) -> None:
        super().__init__(in_keys=list(in_keys), out_keys=[out_key] + ["extrinsic_reward"] * add_to_reward)
        check_bonus(bonus)
        self.reward_key, self.add_to_reward, self.features = reward_key, add_to_reward, features
        timing = {"update_every": update_every, "warmup": warmup, "total_steps": total_steps}
        self._options: Any = {"scale": scale, **timing}
        self._given, self._payer = bonus, None if isinstance(bonus, type) else Payer(bonus, **self._options)

    @property
    def payer(self) -> Payer:
        """What pays; a class is made into a bonus when it is first asked for."""
        if self._payer is None:
            self._payer = Payer(fitting(self._given, self._dim()), **self._options)
        return self._payer

    @property
    def bonus(self) -> Any:
        """The bonus in force."""
        return self.payer.bonus

    @contextlib.contextmanager
    def frozen(self) -> Iterator[None]:
        """Steps inside teach the bonus nothing."""
        before, self.payer.training = self.payer.training, False
        try:
            yield
        finally:
            self.payer.training = before

    def transform_reward_spec(self, reward_spec: Any) -> Any:
        """The new entries look like the reward. Here the environment is known, and the bonus must fit it."""
        self._check_place()
        like = reward_spec[self.reward_key]
        for key in self.out_keys:
            reward_spec[key] = Unbounded(shape=like.shape, device=like.device, dtype=like.dtype)
        return reward_spec

    def get_extra_state(self) -> dict[str, dict[str, torch.Tensor]]:
        """For `state_dict`: the bonus and what it has not seen yet."""
        tensors: dict[str, Any] = mapped(lambda array: torch.from_numpy(np.array(array)), self.payer.whole_state())
        return tensors

    def set_extra_state(self, state: Mapping[str, Mapping[str, torch.Tensor]]) -> None:
        """For `load_state_dict`."""
        self.payer.load_whole_state(mapped(lambda tensor: tensor.cpu().numpy().copy(), state))

    def _step(self, tensordict: TensorDictBase, next_tensordict: TensorDictBase) -> TensorDictBase:
        stepped = _stepped(tensordict, next_tensordict)
        states = self._states(next_tensordict)[stepped]
        paid = np.zeros(len(stepped))
        paid[stepped] = self.payer.pay(states)
        if self.payer.falls and self.reward_key in next_tensordict.keys(True):
            told = (next_tensordict.get(key).detach().cpu().numpy() for key in (self.reward_key, "done"))
            self.payer.see(*(each.reshape(-1) * stepped for each in told))
        self.payer.keep(states)  # whatever `training` says: TorchRL puts every transform of an environment in eval mode
        return self._written(next_tensordict, paid, self.add_to_reward)

    def _written(self, following: TensorDictBase, paid: NDArray[Any], add: bool) -> TensorDictBase:
        """What was paid, under its own key and, if asked, in the reward, the environment's own kept beside it."""
        reward = following.get(self.reward_key, None)
        if reward is None:  # some environments have none, which is no hindrance to a key of its own
            reward = torch.zeros(*following.batch_size, 1, device=following.get(self.in_keys[0]).device)
        intrinsic = torch.as_tensor(paid, dtype=reward.dtype, device=reward.device).reshape(reward.shape)
        following.set(self.out_keys[0], intrinsic)
        if add:
            following.set("extrinsic_reward", reward)
            following.set(self.reward_key, reward + intrinsic)
        return following

    def _states(self, tensordict: TensorDictBase) -> NDArray[Any]:
        """Observations of any batch shape -> states (n, d) in memory of their own."""
        axes = len(tensordict.batch_size)
        whole = {key: tensordict.get(key).detach() for key in self.in_keys}
        parts = {key: tensor.reshape(-1, *tensor.shape[axes:]) for key, tensor in whole.items()}
        if self.features is None:
            rows = torch.cat([rows_of(f"the observation {key!r}", part) for key, part in parts.items()], -1)
            return rows.cpu().numpy().copy()
        seen = self.features(parts if len(parts) > 1 else parts[self.in_keys[0]])
        states = np.array(seen.detach().cpu() if isinstance(seen, torch.Tensor) else seen)
        return checked_features(states, len(next(iter(parts.values()))))

    def _dim(self) -> int | None:
        """Numbers in a state, if the environment around says it and no function makes the states."""
        parent = self.parent
        if parent is None or self.features is not None:
            return None
        axes = len(parent.batch_size)
        specs = [parent.observation_spec[key] for key in self.in_keys]
        if any(looks_like_image(spec.shape[axes:], spec.dtype) for spec in specs):
            return None
        return sum(int(spec.shape[axes:].numel()) for spec in specs)

    def _check_place(self) -> None:
        there = list(self.parent.observation_spec.keys(True, True))
        if lost := [key for key in self.in_keys if key not in there]:
            raise ValueError(
                f"the environment has no observation {', '.join(map(repr, lost))}; there are {there}. Pass in_keys=."
            )
        if not isinstance(self._given, type):
            fitting(self._given, self._dim())
        around: Any = self.container.transform if self.container is not None else self
        inside = getattr(around, "transforms", [self])
        if sum(isinstance(each, BonusTransform) for each in inside) > 1:
            raise ValueError("the environment has two BonusTransforms: it would be paid twice. Leave one out.")

    def _check_batched_worker_compat(self) -> None:
        raise ValueError(
            "BonusTransform inside a worker of SerialEnv or ParallelEnv: every worker would have a bonus of its own. "
            "Put it around them: TransformedEnv(ParallelEnv(…), BonusTransform(…))."
        )


class BonusReplayTransform(Transform):  # type: ignore[misc]
    """In a replay buffer: every sampled batch is paid by the bonus as it is now, added to its `reward`.

    The environment has the `BonusTransform`, which learns from what is new and must not add to the reward itself.
    `intrinsic_reward` and `extrinsic_reward` of the batch are what was added to what.

    Args:
        recorder: the `BonusTransform` of the environment.
    """

    def __init__(self, recorder: BonusTransform) -> None:
        super().__init__()
        if not isinstance(recorder, BonusTransform):
            raise TypeError(
                f"BonusReplayTransform needs the BonusTransform of the environment; got {type(recorder).__name__}."
            )
        if recorder.add_to_reward:
            raise ValueError(
                "paid twice: the environment's BonusTransform adds to the reward and the replay would add again. "
                "Leave add_to_reward=True out."
            )
        self._recorder = [recorder]  # in a list: as a module of this one its bonus would be saved twice

    def forward(self, tensordict: TensorDictBase) -> TensorDictBase:
        """A sampled batch, paid."""
        recorder, following = self._recorder[0], tensordict.get("next")
        recorder._written(following, recorder.payer.pay(recorder._states(following)), add=True)
        return tensordict


def _stepped(tensordict: TensorDictBase, next_tensordict: TensorDictBase) -> NDArray[np.bool_]:
    """Which environments took their action, (n,): batched environments may leave some out."""
    partial = tensordict.get("_step", None)
    if partial is None:
        return np.ones(next_tensordict.batch_size.numel(), bool)
    return np.asarray(partial.cpu().numpy(), bool).reshape(-1)
