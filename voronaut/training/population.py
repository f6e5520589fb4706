"""The bonuses of all runs: what a rollout earns before the agents learn from it, and the bonuses' own learning after.

From a turn to the kernel: turn → Population.pay → pay_stack → Stack.rewards → _each → KME.rewards → kernel.rewards.
"""

import inspect
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from voronaut.bonuses import bonus_class
from voronaut.bonuses.base import Bonus, SideBySide
from voronaut.bonuses.weight import EPISODES, Weight
from voronaut.helpers.machine import cores
from voronaut.helpers.threads import share_out
from voronaut.training.checkpoint import nest, part

if TYPE_CHECKING:
    from voronaut.training.config import Config, Method

ABSORB, SHUFFLED, ONLINE = "absorb", "shuffled", "online"  # Algorithm 2, or Algorithm 1: state by state, as they came
LARGE = 1e15  # a state beyond is bad for some bonus
OF_EXPLOITER = 20  # episodes that a falling weight looks back on with SAC: the exploiter's alone count, which are fewer
SHORT, FEW = 4096, 3  # with fewer states than this a bonus is mostly Python, and more threads wait for each other


class Stack:
    """Bonuses of one kind as one, each with its own states and seed. The members always hold what they learned.

    `threads` share the loop on a CPU (KME's kernels and JAX release the GIL). Bonuses that can be computed side by side
    (`SideBySide`) and differ in nothing but the seed are one program on an accelerator; `mapped` forces that on or off.
    """

    def __init__(self, members: Sequence[Bonus], *, threads: int = 1, mapped: bool | None = None) -> None:
        kinds = {type(member) for member in members}
        if len(kinds) != 1:
            names = sorted(kind.__name__ for kind in kinds)
            raise ValueError(f"a stack needs bonuses of one kind; got {names or 'none'}. Make one stack for each kind.")
        if mapped and not _alike(members):
            raise ValueError("mapped=True needs RND or RE3 with equal parameters but for the seed. Leave mapped out.")
        self.members, self.threads = list(members), threads
        self.dim = members[0].dim
        self._mapped = mapped

    def rewards(self, next_states: Any) -> NDArray[np.floating[Any]]:
        """(runs, ..., dim) -> (runs, ...): what each run's states would earn from its own bonus."""
        states = self._checked(next_states)
        if not self._one_program(states):
            return np.stack(self._each(self._kind.rewards, states))
        flat = states.reshape(len(self.members), -1, self.dim)
        paid: NDArray[np.floating[Any]] = self._kind.rewards_many(self.members, flat)
        return paid.reshape(states.shape[:-1])

    def update(self, next_states: Any) -> None:
        """Each run's bonus learns from its own states (runs, ..., dim)."""
        states = self._checked(next_states)
        if self._one_program(states):
            self._kind.update_many(self.members, states.reshape(len(self.members), -1, self.dim))
        else:
            self._all_or_none(self._kind.update, states, states)

    def step(self, next_states: Any, orders: Sequence[NDArray[np.int64]] | None = None) -> NDArray[np.float32]:
        """Algorithm 1: each run's states (runs, ..., dim) are paid and absorbed one by one -> (runs, ...).

        As they came, or in an order for each run; each reward goes back to its own state either way.
        """
        states = self._checked(next_states)
        flat = states.reshape(len(self.members), -1, self.dim)
        orders = [np.arange(flat.shape[1])] * len(flat) if orders is None else orders
        shuffled = [own[order] for own, order in zip(flat, orders, strict=True)]
        paid = np.empty(flat.shape[:-1], np.float32)
        walked = self._all_or_none(self._kind.step, shuffled, states)
        for run, (order, rewards) in enumerate(zip(orders, walked, strict=True)):
            paid[run, order] = rewards
        return paid.reshape(states.shape[:-1])

    def metrics(self) -> list[dict[str, float]]:
        """One flat dict for each run."""
        return [member.metrics() for member in self.members]

    @property
    def _kind(self) -> Any:
        return type(self.members[0])

    def _checked(self, next_states: Any) -> NDArray[Any]:
        states = np.asarray(next_states)
        if states.ndim < 2 or len(states) != len(self.members) or states.shape[-1] != self.dim:
            raise ValueError(
                f"states must be (runs, ..., dim) = ({len(self.members)}, ..., {self.dim}); got shape {states.shape}. "
                "Put the axis of runs first."
            )
        return states

    def _one_program(self, states: NDArray[Any]) -> bool:
        """Not on a CPU, where the loop is as fast, nor for bad states (runs would differ in length). Cheapest first."""
        if self._mapped is False or not (self._mapped or _on_accelerator()):
            return False
        return states.size > 0 and _alike(self.members) and _clean(states)

    def _all_or_none(self, learn: Callable[[Any, NDArray[Any]], Any], parts: Any, states: NDArray[Any]) -> list[Any]:
        """`_each`, but if bad states of one run are refused, no run has learned."""
        if _clean(states):
            return self._each(learn, parts)
        before = [member.state_dict() for member in self.members]
        try:
            return self._each(learn, parts)
        except ValueError:
            for member, learned in zip(self.members, before, strict=True):
                member.load_state_dict(learned)
            raise

    def _each(self, act: Callable[[Any, NDArray[Any]], Any], states: Sequence[Any] | NDArray[Any]) -> list[Any]:
        threads = self.threads if states[0].size >= SHORT * self.dim else min(self.threads, FEW)
        if threads < 2:
            return [act(member, own) for member, own in zip(self.members, states, strict=True)]
        return share_out("bonuses", threads, act, self.members, states)


class Population:
    """Bonuses of every run, (runs, ...) arrays in and out, in the order of `config.runs`; one stack per method."""

    def __init__(self, config: "Config", dim: int) -> None:
        self.config = config
        threads = min(len(config.seeds), cores())
        self.stacks = [
            Stack([self._make(method, dim, seed) for seed in config.seeds], threads=threads)
            for method in config.methods
        ]
        remembered = OF_EXPLOITER if config.learner == "sac" else EPISODES
        self.weights = [Weight(method.scale, remembered) for method, _ in config.runs]

    def see(self, rewards: NDArray[np.float32], over: NDArray[np.bool_]) -> None:
        """Show every run's weight what the task paid in a rollout, (runs, t, n), and where episodes ended."""
        for weight, own, ends in zip(self.weights, rewards, over, strict=True):
            weight.see(own, ends)

    def scales(self, rollout: int) -> NDArray[np.float64]:
        """β of every run in this rollout. The first pays nothing: clusters and predictors know nothing yet."""
        progress = rollout / max(self.config.rollouts - 1, 1)
        return np.array([weight.at(progress) if rollout else 0.0 for weight in self.weights])

    def pay(self, next_states: NDArray[np.float32], rollout: int) -> tuple[NDArray[np.float32], NDArray[np.float64]]:
        """What every state earns, (runs, t, n), and the seconds that took, by method."""
        paid, took = np.empty(next_states.shape[:-1], np.float32), []
        for absorb, stack, rows in self._groups():
            started = time.perf_counter()
            paid[rows] = self.pay_stack(stack, next_states[rows], absorb, rollout)
            took.append(time.perf_counter() - started)
        return paid, np.array(took)

    def rewards(self, states: NDArray[np.float32], runs: slice) -> NDArray[np.float32]:
        """What states (some runs, n, d) would earn from these runs' bonuses; changes nothing."""
        if runs.stop - runs.start == 1:  # a lane of its own, after every vector step: no stack need be made
            return np.asarray(self.members()[runs.start].rewards(states[0]), np.float32)[None]
        threads = min(cores(), runs.stop - runs.start)
        return np.asarray(Stack(self.members()[runs], threads=threads).rewards(states), np.float32)

    def absorb(self, next_states: NDArray[np.float32], rollout: int) -> NDArray[np.float64]:
        """Let every bonus learn from its own run's states; the seconds that took, by method."""
        took = []
        for absorb, stack, rows in self._groups():
            started = time.perf_counter()
            self.update_stack(stack, next_states[rows], absorb, rollout)
            took.append(time.perf_counter() - started)
        return np.array(took)

    def pay_stack(self, stack: Stack, states: NDArray[np.float32], absorb: str, rollout: int) -> NDArray[Any]:
        """One method's states (seeds, t, n, d) -> (seeds, t, n). Online this is also when its bonuses learn."""
        return stack.step(states) if absorb == ONLINE else stack.rewards(states)

    def update_stack(self, stack: Stack, states: NDArray[np.float32], absorb: str, rollout: int) -> None:
        """Let one method's bonuses learn, unless they did when they paid."""
        if absorb != ONLINE:
            stack.update(states)

    def metrics(self) -> list[dict[str, float]]:
        """Each run's metrics, named <bonus>/<metric>."""
        return [
            {f"{m.kind}/{name}": value for name, value in metrics.items()}
            for m, each in zip(self.config.methods, self.stacks, strict=True)
            for metrics in each.metrics()
        ]

    def members(self) -> list[Any]:
        """The bonus of every run."""
        return [bonus for each in self.stacks for bonus in each.members]

    def state_dict(self) -> dict[str, NDArray[Any]]:
        """All bonuses."""
        arrays: dict[str, NDArray[Any]] = {}
        for index, bonus in enumerate(self.members()):
            arrays |= nest(str(index), bonus.state_dict()) | nest(f"weight{index}", self.weights[index].state_dict())
        return arrays

    def load_state_dict(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Take over all bonuses."""
        for index, bonus in enumerate(self.members()):
            bonus.load_state_dict(part(state, str(index)))
            self.weights[index].load_state_dict(part(state, f"weight{index}"))

    def _make(self, method: "Method", dim: int, seed: int) -> Any:
        """A run's bonus; one that can use several threads gets the cores that the other seeds leave."""
        kind = bonus_class(method.kind)
        spare = {"threads": max(1, cores() // len(self.config.seeds))}
        known = inspect.signature(kind.__init__).parameters
        own = {k: v for k, v in method.params.items() if k != ABSORB}
        return kind(dim=dim, seed=seed, **{k: v for k, v in spare.items() if k in known} | own)

    def _groups(self) -> Iterator[tuple[str, Stack, slice]]:
        """How each method absorbs, its stack, and which of all runs are its."""
        count = len(self.config.seeds)
        for index, (method, stack) in enumerate(zip(self.config.methods, self.stacks, strict=True)):
            yield method.params.get(ABSORB, SHUFFLED), stack, slice(index * count, (index + 1) * count)


def check_absorb(name: Any) -> str:
    """How a rollout is absorbed, or a ValueError."""
    if name not in (SHUFFLED, ONLINE):
        raise ValueError(f"{ABSORB} must be {SHUFFLED} (Algorithm 2) or {ONLINE} (Algorithm 1); got {name!r}.")
    return str(name)


def _alike(members: Sequence[Any]) -> bool:
    """Whether the members can be computed side by side: of a kind that can, and different in nothing but the seed."""
    if not isinstance(members[0], SideBySide):
        return False
    first, *others = [{**member.params, "seed": 0} for member in members]
    return all(other == first for other in others)


def _clean(states: NDArray[Any]) -> bool:
    """Whether no bonus would call any of these states bad; false for NaN too."""
    return bool(states.min(initial=0) >= -LARGE and states.max(initial=0) <= LARGE)


def _on_accelerator() -> bool:
    from voronaut.bonuses.networks import on_accelerator

    return on_accelerator()
