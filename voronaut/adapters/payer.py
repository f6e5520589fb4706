"""What every adapter does between two library calls: pay states, keep them, show them to the bonus later."""

import contextlib
import math
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from voronaut.bonuses import weight
from voronaut.bonuses.weight import Weight

Floats = NDArray[np.floating[Any]]
Scale = weight.Scale
SCALE: Scale = weight.USUAL  # the weight of a bonus where none is given, in every adapter
NEEDED = ("rewards", "update", "metrics", "state_dict", "load_state_dict")


class Payer:
    """β(progress) · r(s) for states as they come, against a bonus that is updated every `update_every` steps.

    Args:
        bonus: anything with `rewards`, `update`, `metrics`, `state_dict` and `load_state_dict`.
        scale: weight of the bonus, β: a number, "falling:0.1" (0.1 times the share of recent episodes in which the
            task paid nothing), or a function of the progress from 0 (start) to 1 (end).
        update_every: vector steps between updates.
        warmup: vector steps that are learned from but not paid.
        total_steps: environment steps of the whole training, from which progress is known. Without it, whoever knows
            the progress sets the attribute `progress`.

    `training` may be set to False, as VecNormalize's.
    """

    def __init__(
        self,
        bonus: Any,
        *,
        scale: Scale = SCALE,
        update_every: int = 1024,
        warmup: int = 0,
        total_steps: int | None = None,
    ) -> None:
        check_bonus(bonus)
        self.bonus, self._weight = bonus, Weight(scale)
        self.update_every = _whole("update_every", update_every, 1)
        self.warmup = _whole("warmup", warmup, 0)
        self.total_steps = None if total_steps is None else _whole("total_steps", total_steps, 1)
        self.progress: float | None = None
        self.steps = self.env_steps = self.updates = 0
        self.training = True
        self._pending: list[Floats] = []

    def pay(self, states: Floats) -> NDArray[np.float64]:
        """(n, d) -> (n,): what the states earn now, times the scale; 0 during the warm-up. Changes nothing."""
        if self.steps < self.warmup or not len(states):
            return np.zeros(len(states))
        return self.weight() * np.asarray(self.bonus.rewards(states), np.float64)

    def keep(self, states: Floats) -> None:
        """One vector step is over and led to these states (n, d), which must be nobody else's memory.

        Nothing is learned and nothing counted while `training` is False.
        """
        if not self.training:
            return
        self._pending.append(states)
        self.steps += 1
        self.env_steps += len(states)
        if self.steps % self.update_every == 0:
            self._update()

    def see(self, rewards: Any, over: Any) -> None:
        """What the task itself paid in a step (n,), or in several (t, n), and where an episode ended with it."""
        if self.training:
            self._weight.see(rewards, over)

    @property
    def scale(self) -> Scale:
        """The weight as it was given."""
        return self._weight.scale

    @property
    def falls(self) -> bool:
        """Whether `see` matters."""
        return self._weight.falls

    def weight(self) -> float:
        """The weight now."""
        if self.total_steps is None:
            return self._weight.at(self.progress)
        return self._weight.at(min(1.0, self.env_steps / self.total_steps))

    def state_dict(self) -> dict[str, NDArray[Any]]:
        """Counters, the states that the bonus has not seen yet, and what a falling weight follows."""
        pending = np.concatenate(self._pending) if self._pending else np.zeros((0, 0))
        progress = math.nan if self.progress is None else self.progress
        counters = np.array([self.steps, self.env_steps, self.updates], np.int64)
        own = {"pending": pending, "counters": counters, "progress": np.array([progress])}
        return own | self._weight.state_dict()

    def load_state_dict(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Go on where `state_dict` was taken; the bonus has a state of its own."""
        self.steps, self.env_steps, self.updates = (int(n) for n in state["counters"])
        self._pending = [state["pending"].copy()] if len(state["pending"]) else []
        progress = float(state["progress"][0])
        self.progress = None if math.isnan(progress) else progress
        self._weight.load_state_dict(state)

    def whole_state(self) -> dict[str, dict[str, NDArray[Any]]]:
        """`state_dict`, and the bonus's own beside it."""
        return {"bonus": self.bonus.state_dict(), "payer": self.state_dict()}

    def load_whole_state(self, state: Mapping[str, Mapping[str, NDArray[Any]]]) -> None:
        """Go on where `whole_state` was taken."""
        self.bonus.load_state_dict(state["bonus"])
        self.load_state_dict(state["payer"])

    def _update(self) -> None:
        states = np.concatenate(self._pending)
        self._pending = []
        self.updates += 1
        if len(states):
            self.bonus.update(states)


class Freezes:
    """What wrappers with a `payer` offer for evaluation: the bonus pays and learns nothing."""

    payer: Payer

    @property
    def bonus(self) -> Any:
        """The bonus in force."""
        return self.payer.bonus

    @property
    def training(self) -> bool:
        """Whether the bonus learns from steps."""
        return self.payer.training

    @training.setter
    def training(self, on: bool) -> None:
        self.payer.training = bool(on)

    @contextlib.contextmanager
    def frozen(self) -> Iterator[None]:
        """`with env.frozen():` steps teach the bonus nothing, as in evaluation."""
        before, self.training = self.training, False
        try:
            yield
        finally:
            self.training = before


def fitting(bonus: Any, dim: int | None) -> Any:
    """The bonus for states of length `dim` (None: not known); a class such as `vn.KME` is made for it."""
    check_bonus(bonus)
    if isinstance(bonus, type):
        if dim is None:
            raise ValueError(
                f"the length of a state is not known here. Make the bonus yourself: {bonus.__name__}(dim=…)."
            )
        return bonus(dim)
    wanted = getattr(bonus, "dim", None)
    if None not in (wanted, dim) and wanted != dim and getattr(bonus, "features", None) is None:
        name = type(bonus).__name__
        raise ValueError(
            f"the bonus is for states of dim={wanted} and those it would see have {dim} numbers. "
            f"Make it {name}(dim={dim}), or pass the class {name} alone: it is then made to fit."
        )
    return bonus


def check_bonus(bonus: Any) -> None:
    """Refuse what is no bonus."""
    lacks = [name for name in NEEDED if not callable(getattr(bonus, name, None))]
    if lacks:
        kind = bonus.__name__ if isinstance(bonus, type) else type(bonus).__name__
        raise TypeError(
            f"a bonus such as vn.KME(dim=…) or vn.KME is needed; {kind} lacks {', '.join(lacks)}. "
            "The environment comes first, the bonus second."
        )


def _whole(name: str, value: Any, least: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
        raise ValueError(f"{name} must be a whole number of at least {least}; got {value!r}.")
    return int(value)
