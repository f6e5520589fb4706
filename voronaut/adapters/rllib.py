"""RLlib, new API stack: `add_bonus(config, bonus)` pays PPO's learners, however many there are, from one clustering;
for SAC and DQN it pays what is drawn from the replay (`rllib_replay.py`)."""

import copy
import hashlib
import time
import zlib
from collections.abc import Mapping, Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from voronaut.adapters.observations import Features, Reader, mapped
from voronaut.adapters.payer import SCALE, Payer, Scale, check_bonus, fitting
from voronaut.helpers.missing import missing

try:
    from ray import cloudpickle  # type: ignore[import-not-found, unused-ignore]
    from ray.rllib.algorithms.dqn import DQNConfig  # type: ignore[import-not-found, unused-ignore]
    from ray.rllib.algorithms.ppo import PPOConfig  # type: ignore[import-not-found, unused-ignore]
    from ray.rllib.algorithms.ppo.torch.ppo_torch_learner import (  # type: ignore[import-not-found, unused-ignore]
        PPOTorchLearner,
    )
    from ray.rllib.algorithms.sac import SACConfig  # type: ignore[import-not-found, unused-ignore]
    from ray.rllib.connectors.connector_v2 import ConnectorV2  # type: ignore[import-not-found, unused-ignore]
    from ray.rllib.core.columns import Columns  # type: ignore[import-not-found, unused-ignore]
    from ray.rllib.env.multi_agent_episode import MultiAgentEpisode  # type: ignore[import-not-found, unused-ignore]
    from ray.rllib.utils.metrics import ALL_MODULES  # type: ignore[import-not-found, unused-ignore]
except ModuleNotFoundError as error:
    raise missing(error, {"ray"}, "ray", "rllib") from error

PAYS = "pays_bonus"  # an attribute of the functions that `add_bonus` puts into a config
COMPONENT = "bonus"  # its name in a learner's state, and in the results under learners/__all_modules__
ARTIFICIAL = "_added_loss_mask_for_valid_episode_ts"  # RLlib's sign that every episode got one step more at its end


def add_bonus(
    config: Any,
    bonus: Any,
    *,
    scale: Scale = SCALE,
    warmup: int = 0,
    keys: Sequence[str] | None = None,
    features: Features | None = None,
    total_steps: int | None = None,
    update_every: int = 1024,
) -> Any:
    """The config, changed so that the bonus is paid: by PPO's learners, or by the replay of SAC and DQN.

    PPO's learners pay their episodes, learn the bonus together and keep it in checkpoints. A replay pays each sampled
    step by the bonus as it is at that moment; RLlib keeps no replay in checkpoints, nor this bonus: save `bonus_of`.

    Args:
        config: a `PPOConfig`, `SACConfig` or `DQNConfig` (new API stack, one agent). A learner connector of PPO's runs
            before the bonus.
        bonus: such as `vn.KME(dim=17)`, or, if the config has an observation_space, the class `vn.KME`, which is then
            made to fit. Learners work on copies; `bonus_of(algorithm)` shows what was learned.
        scale: weight of the bonus, β: a number, or a function of the progress from 0 (start) to 1 (end).
        warmup: training iterations (with a replay: steps) at the beginning that are learned from but not paid.
        keys: of Dict observations, what the bonus sees, joined to one vector.
        features: function from a batch of observations (n, …) to vectors (n, dim).
        total_steps: environment steps of the training, for a `scale` that is a function.
        update_every: environment steps between updates of the bonus, with a replay; PPO's learns once per iteration.
    """
    _check_unpaid(config)
    if isinstance(config, SACConfig | DQNConfig):
        more = {"warmup": warmup, "total_steps": total_steps, "update_every": update_every}
        return _paid_by_replay(config, bonus, keys=keys, features=features, scale=scale, **more)
    if not isinstance(config, PPOConfig):
        raise TypeError(f"add_bonus needs a config of PPO, SAC or DQN; got {type(config).__name__}.")
    options: Any = {"scale": scale, "warmup": warmup, "keys": keys, "features": features, "total_steps": total_steps}
    space = getattr(config, "observation_space", None)
    bonus = fitting(bonus, None if space is None else Reader(space, keys, features).dim)
    BonusConnector(bonus, **options)  # refuses bad options here rather than on a distant learner
    before, packed = config._learner_connector, zlib.compress(cloudpickle.dumps(bonus))  # the config goes to everybody

    def connectors(*spaces: Any) -> list[Any]:
        made = before(*spaces) if before is not None else []
        own = BonusConnector(cloudpickle.loads(zlib.decompress(packed)), **options)
        return [*(made if isinstance(made, list | tuple) else [made]), own]

    setattr(connectors, PAYS, True)
    return config.learners(learner_connector=connectors, learner_class=_keeping(config.learner_class))


def _check_unpaid(config: Any) -> None:
    begin = getattr(config, "callbacks_on_algorithm_init", None) or []
    places = [getattr(config, "_learner_connector", None), *(begin if isinstance(begin, list) else [begin])]
    if any(hasattr(place, PAYS) for place in places):
        raise ValueError("this config has a bonus already: it would be paid twice. Add one bonus to a fresh config.")


def _paid_by_replay(config: Any, bonus: Any, **options: Any) -> Any:
    check_bonus(bonus)
    packed, before = zlib.compress(cloudpickle.dumps(bonus)), config.callbacks_on_algorithm_init or []

    def begin(algorithm: Any, **_: Any) -> None:
        from voronaut.adapters.rllib_replay import ReplayBonus

        ReplayBonus(algorithm, cloudpickle.loads(zlib.decompress(packed)), **options)

    setattr(begin, PAYS, True)
    return config.callbacks(on_algorithm_init=[*(before if isinstance(before, list) else [before]), begin])


def bonus_of(algorithm: Any) -> Any:
    """A copy of the bonus as the replay holds it, or the first learner; all other learners hold the same."""
    if hasattr(algorithm, "replay_bonus"):
        return copy.deepcopy(algorithm.replay_bonus.payer.bonus)
    results = algorithm.learner_group.foreach_learner(lambda learner: learner.bonus_connector.payer.bonus)
    return copy.deepcopy(next(iter(results)).get())


class BonusConnector(ConnectorV2):  # type: ignore[misc, unused-ignore]
    """Rewards + scale · r(s), s being the state each action led to, in the train batch before advantages are made.

    Episodes themselves stay as they are, so the returns that RLlib logs are the environment's. Then all learners update
    their copies of the bonus with the states of all learners, in an order that does not depend on who had which.
    `add_bonus` puts it in place; by hand, use a learner class with `KeepsBonus` for checkpoints to hold the bonus.
    `options` are scale, warmup and total_steps, as there.
    """

    def __init__(
        self, bonus: Any, *, keys: Sequence[str] | None = None, features: Features | None = None, **options: Any
    ) -> None:
        super().__init__()
        self.payer = Payer(copy.deepcopy(bonus), update_every=1, **options)
        self.keys, self.features = keys, features
        self._team = Team()
        self.differed = 0  # updates after which learners did not agree, and took over the first one's bonus

    def __call__(
        self, *, batch: Any, episodes: list[Any], shared_data: Any = None, metrics: Any = None, **_: Any
    ) -> Any:
        """Pay these episodes, and learn from those of all learners."""
        started = time.perf_counter()
        artificial = bool((shared_data or {}).get(ARTIFICIAL))
        steps = [len(episode) - artificial for episode in episodes]
        try:
            states = self._states(episodes, steps)
            paid = self.payer.pay(states)
        except Exception as error:
            self._team.gather(f"{type(error).__name__}: {error}")  # nobody shall wait for this learner's states
            raise
        shards = self._team.gather(states)
        extrinsic = self._pay(batch, episodes, steps, paid)
        self._learn(shards)
        self._see(episodes, steps)
        if metrics is not None:
            values = {"paid": paid.mean(), "extrinsic_reward": extrinsic, "differed": self.differed}
            self._log(metrics, {**values, "seconds": time.perf_counter() - started})
        return batch

    def get_state(self, components: Any = None, *, not_components: Any = None, **_: Any) -> dict[str, Any]:
        """What the bonus learned, and how far the training is."""
        return self.payer.whole_state()

    def set_state(self, state: Mapping[str, Any]) -> None:
        """Go on where `get_state` was called."""
        self.payer.load_whole_state(state)

    def _states(self, episodes: list[Any], steps: list[int]) -> NDArray[Any]:
        """The states that the actions led to (n, d), an episode's true final one among them."""
        if isinstance(episodes[0], MultiAgentEpisode):
            raise TypeError("the bonus is for one agent; these are multi-agent episodes. Give each agent its own PPO.")
        parts = [episode.get_observations(slice(1, n + 1)) for episode, n in zip(episodes, steps, strict=True)]
        observations = joined(parts)
        return Reader(_space_of(observations), self.keys, self.features)(observations)

    def _pay(self, batch: Any, episodes: list[Any], steps: list[int], paid: NDArray[Any]) -> float:
        """Fill the column of rewards, with 0 for an artificial step. Returns the mean of the environment's own."""
        own = [np.asarray(episode.get_rewards(slice(0, len(episode))), np.float32) for episode in episodes]
        bonuses = np.split(paid, np.cumsum(steps)[:-1])
        for episode, rewards, n, bonus in zip(episodes, own, steps, bonuses, strict=True):
            total = np.concatenate([rewards[:n] + bonus, rewards[n:]]).astype(np.float32)
            self.add_n_batch_items(batch, Columns.REWARDS, total, len(total), episode)
        return sum(float(rewards.sum()) for rewards in own) / max(sum(steps), 1)

    def _see(self, episodes: list[Any], steps: list[int]) -> None:
        """Let a falling weight know which episodes of all learners were paid; a piece of one counts as one."""
        if self.payer.falls:
            mine = [
                float(np.max(episode.get_rewards(slice(0, n)), initial=0))
                for episode, n in zip(episodes, steps, strict=True)
            ]
            every = np.concatenate(self._team.gather(np.array(mine)))
            self.payer.see(every[:, None], np.ones((len(every), 1), bool))

    def _learn(self, shards: list[Any]) -> None:
        failed = [shard for shard in shards if isinstance(shard, str)]
        if failed:
            raise RuntimeError(f"another learner could not pay its episodes. {failed[0]}")
        self.payer.keep(in_common_order(np.concatenate(shards), self.payer.updates))
        digests = self._team.gather(_digest(self.payer.bonus.state_dict()))
        if len(set(digests)) > 1:  # unlike processors may round differently
            self.payer.bonus.load_state_dict(self._team.from_first(self.payer.bonus.state_dict()))
            self.differed += 1

    def _log(self, metrics: Any, values: dict[str, Any]) -> None:
        known = self.payer.bonus.metrics() if self._team.rank == 0 else {}
        for name, value in (values | known).items():
            # All modules: RLlib takes every other name at the top for a module whose weights are to be sent around.
            metrics.log_value((ALL_MODULES, COMPONENT, name), float(value), window=1)


class KeepsBonus:
    """For a learner class, before its base: `class Mine(KeepsBonus, PPOTorchLearner)`. Its state holds the bonus."""

    @property
    def bonus_connector(self) -> BonusConnector:
        """The piece of this learner's pipeline that pays."""
        pieces: list[Any] = self._learner_connector.connectors  # type: ignore[attr-defined]
        found: BonusConnector = next(piece for piece in pieces if isinstance(piece, BonusConnector))
        return found

    def get_state(self, components: Any = None, *, not_components: Any = None, **kwargs: Any) -> dict[str, Any]:
        """The learner's state, and the bonus unless only other components are asked for."""
        base: Any = super()
        state: dict[str, Any] = base.get_state(components, not_components=not_components, **kwargs)
        if self._check_component(COMPONENT, components, not_components):  # type: ignore[attr-defined]
            state[COMPONENT] = self.bonus_connector.get_state()
        return state

    def set_state(self, state: dict[str, Any]) -> None:
        """Take over a state; one without a bonus leaves the bonus as it is."""
        base: Any = super()
        base.set_state(state)
        if COMPONENT in state:
            self.bonus_connector.set_state(state[COMPONENT])


class BonusPPOLearner(KeepsBonus, PPOTorchLearner):  # type: ignore[misc, unused-ignore]
    """RLlib's PPO learner with the bonus in its state."""


class Team:
    """The learners of one algorithm, a process each; alone where there is one."""

    def __init__(self) -> None:
        self._group: Any = None

    @property
    def rank(self) -> int:
        """The number of this learner, from 0."""
        return int(self._torch().get_rank()) if self._size > 1 else 0

    def gather(self, own: Any) -> list[Any]:
        """What every learner gave, in the order of their ranks. All must call it."""
        if self._size == 1:
            return [own]
        everyone: list[Any] = [None] * self._size
        self._torch().all_gather_object(everyone, own, group=self._cpu_group())
        return everyone

    def from_first(self, own: Any) -> Any:
        """What the first learner gave. All must call it."""
        holder = [own]
        self._torch().broadcast_object_list(holder, src=0, group=self._cpu_group())
        return holder[0]

    @property
    def _size(self) -> int:
        torch = self._torch()
        return int(torch.get_world_size()) if torch.is_available() and torch.is_initialized() else 1

    def _cpu_group(self) -> Any:
        """Of gloo, because states are in main memory; RLlib's own group is NCCL where learners have GPUs."""
        if self._group is None:
            self._group = self._torch().new_group(backend="gloo")
        return self._group

    @staticmethod
    def _torch() -> Any:
        import torch.distributed

        return torch.distributed


def in_common_order(states: NDArray[Any], number: int) -> NDArray[Any]:
    """The same rows in an order that depends on the rows and the number of the update alone."""
    rows = np.ascontiguousarray(states)
    as_bytes = rows.view(np.dtype((np.void, rows.itemsize * rows.shape[1]))).reshape(-1)
    # Shuffled after sorting: a bonus may keep only the last states of an update, and those must be fair ones.
    return rows[np.argsort(as_bytes)][np.random.default_rng(number).permutation(len(rows))]


def _keeping(learner_class: Any) -> Any:
    if learner_class is PPOTorchLearner:
        return BonusPPOLearner
    if not issubclass(learner_class, KeepsBonus):
        raise TypeError(
            f"{learner_class.__name__} would leave the bonus out of checkpoints. Derive it from both: "
            f"class Mine(voronaut.adapters.rllib.KeepsBonus, {learner_class.__name__})."
        )
    return learner_class


def joined(parts: list[Any]) -> Any:
    """Batches of observations as one batch."""
    return mapped(lambda *arrays: np.concatenate([np.asarray(array) for array in arrays]), *parts)


def _space_of(observations: Any) -> Any:
    """As much of the space as a Reader asks for; RLlib does not tell learners the environment's."""
    if isinstance(observations, Mapping):
        return SimpleNamespace(spaces={key: _space_of(part) for key, part in observations.items()})
    labels = observations.ndim == 1 and observations.dtype.kind in "iu"  # of a Discrete space of unknown size
    return SimpleNamespace(shape=None if labels else observations.shape[1:], dtype=observations.dtype, high=None)


def _digest(state: Mapping[str, Any]) -> bytes:
    total = hashlib.blake2b(digest_size=16)
    for name in sorted(state):
        total.update(name.encode() + np.asarray(state[name]).tobytes())
    return total.digest()
