"""β, what a bonus weighs beside the task's reward: a number, a line over the training, a function of the progress,
or a number that falls as the task pays by itself.

    "falling:0.1"   0.1 times the share of the last hundred or so episodes in which the task paid nothing.

A bonus that goes on at full weight beside a reward that has been found keeps an agent from settling on it; one that is
gone for good leaves an agent alone that has lost it again. An episode is paid if one of its rewards was above 0.
"""

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

Scale = float | str | Callable[[float], float]
FALLING, LINEAR = "falling", "linear"
USUAL = "falling:0.1"  # where none is given: in every adapter, and in training with PPO
EPISODES = 100  # that are remembered, if nothing else is said
FORMS = (
    "use a number of at least 0 such as 0.01, linear:FROM:TO such as linear:0.01:0, or falling:NUMBER such as "
    "falling:0.1"
)


class Weight:
    """The weight of one run's bonus, and what it follows: how many of its last `remembered` episodes were paid."""

    def __init__(self, scale: Scale, remembered: int = EPISODES) -> None:
        self.scale, self.remembered = checked(scale), remembered
        self.falls = isinstance(self.scale, str) and self.scale.startswith(FALLING)
        self.paid, self.episodes = 0.0, 0  # share of recent episodes, and how many there have been
        self._met: NDArray[np.bool_] = np.zeros(0, bool)  # whether each episode under way was paid

    def see(self, rewards: Any, over: Any) -> None:
        """The task's rewards (n,) of n environments' step, or (t, n) of several, and where an episode ended with it."""
        if not self.falls:
            return
        above, over = np.atleast_2d(rewards) > 0, np.atleast_2d(over).astype(bool)
        met = self._met if len(self._met) == over.shape[1] else np.zeros(over.shape[1], bool)
        begun = 0
        for end in np.flatnonzero(over.any(axis=1)):
            met = met | above[begun : end + 1].any(axis=0)
            for each in met[over[end]]:
                self.episodes += 1
                self.paid += (float(each) - self.paid) / min(self.episodes, self.remembered)
            met, begun = met & ~over[end], int(end) + 1
        self._met = met | above[begun:].any(axis=0)

    def begin_anew(self) -> None:
        """All episodes under way were given up for new ones, which nothing has paid yet."""
        self._met = np.zeros(0, bool)

    def at(self, progress: float | None) -> float:
        """β at a progress from 0 (start) to 1 (end); only lines and functions need to know it."""
        if isinstance(self.scale, float):
            return self.scale
        if self.falls:
            return _numbers(self.scale)[0] * (1 - self.paid)
        if not callable(self.scale) and not self.scale.startswith(LINEAR):
            return _numbers(self.scale)[0]
        if progress is None:
            raise ValueError(
                "scale depends on the progress, which is not known. Pass total_steps=…, or let the training loop set "
                "it (Stable-Baselines3: add a BonusCallback)."
            )
        if callable(self.scale):
            return float(self.scale(progress))
        begin, end = _numbers(self.scale)
        return begin + (end - begin) * progress

    def state_dict(self) -> dict[str, NDArray[Any]]:
        """What was seen of the task's rewards; nothing where it does not matter."""
        if not self.falls:
            return {}
        return {"paid": np.array([self.paid]), "episodes": np.array([self.episodes]), "met": self._met.copy()}

    def load_state_dict(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Go on where `state_dict` was taken; a state from before there was anything to see begins anew."""
        if self.falls and "paid" in state:
            self.paid, self.episodes = float(state["paid"][0]), int(state["episodes"][0])
            self._met = state["met"].astype(bool)


def checked(scale: Scale) -> Scale:
    """The scale if it can be read, numbers as floats."""
    if callable(scale):
        return scale
    if isinstance(scale, str):
        _numbers(scale)
        return scale
    if isinstance(scale, bool) or not isinstance(scale, int | float | np.number) or not 0 <= scale < math.inf:
        raise ValueError(
            f"scale must be a finite number of at least 0, a text or a function of the progress; got {scale!r}: "
            f"{FORMS}."
        )
    return float(scale)


def _numbers(text: Any) -> list[float]:
    """The numbers of a scale that is a text."""
    kind, _, rest = str(text).partition(":")
    known = {FALLING: 1, LINEAR: 2}
    try:
        numbers = [float(part) for part in rest.split(":")] if kind in known else [float(text)]
    except ValueError:
        raise ValueError(f"{text!r} is no scale: {FORMS}.") from None
    if len(numbers) != known.get(kind, 1) or not all(0 <= number < math.inf for number in numbers):
        raise ValueError(f"{text!r} is no scale: {FORMS}.")
    return numbers
