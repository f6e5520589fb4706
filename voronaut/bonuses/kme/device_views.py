"""A KME's views on a device: everything that learning changes is a tensor there, in a buffer that never moves.

So neither `rewards` nor `update` waits for the device, and a CUDA graph of each sees what the other did. Only the first
update waits, to choose the centers among its states.
"""

import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from voronaut import views as judge
from voronaut.bonuses.kme import frames
from voronaut.bonuses.kme.device import LAST, SLOW, lsr, moments, remember, scrambled, uniform
from voronaut.bonuses.kme.viewed import APART, LOOKED, MEASURED, RATE, least
from voronaut.kernels.gpu import views as kernel
from voronaut.kernels.gpu.dispatch import take_over

Arrays = Mapping[str, NDArray[Any]]

ROWS = 2**24  # states that are paid at once
SHUFFLE, DRAW = 0, 2**40  # where their random numbers begin
LEARNED = ("columns", "centers", "usage", "margin", "absorbed", "deviations", "deviation", "updates", "bad")


class OnDeviceViews:
    """Views, the frame of their states, a sample of the past, and the deviations of rewards, on a device."""

    def __init__(self, learned: Arrays, *, step_size: float, seed: int, sample_size: int, device: Any) -> None:
        """`learned` is what `learned.to_device` or another's `learned` gave."""
        self.device, self.step_size, self.seed, self.size = device, step_size, seed, sample_size
        self.views = kernel.Views(*(self._tensor(learned[name]) for name in LEARNED[:5]))
        self.deviations, self.deviation, self.updates, self.bad = (self._tensor(learned[name]) for name in LEARNED[5:])
        parts = ("frame.states.seen", "frame.states.mean", "frame.states.variance", "frame.deviation", "frame.fixed")
        self.seen, self.mean, self.variance, self.spread, self.fixed = (self._tensor(learned[name]) for name in parts)
        self.frame = kernel.Frame(self._tensor(learned["frame.mean"]), inverse(self.spread), frames.CLIP)
        sample = np.zeros((sample_size, self.mean.shape[0]), learned["centers"].dtype)
        sample[: len(learned["sample"])] = learned["sample"]
        self.sample, self.dtype, self.dim = self._tensor(sample), self.views.centers.dtype, self.mean.shape[0]
        self.weights = self._units() * inverse(self.deviation)
        self.prepared = kernel.prepare(self.views)
        self._key = int(np.random.SeedSequence([seed, 1]).generate_state(1, np.uint64)[0].astype(np.int64))
        self._started = int(learned["frame.states.seen"]) > 0

    def _tensor(self, value: Any) -> Tensor:
        return torch.tensor(value, device=self.device)

    @torch.no_grad()
    def rewards(self, states: Tensor) -> Tensor:
        """Σ_v r_v / σ_v / σ of states (..., d) -> (...,). Bad states earn 0, and all before the first update."""
        parts = [
            kernel.rewards(self.prepared, self.weights, rows, self.step_size, self.frame)
            for rows in torch.split(self._flat(states), ROWS)
        ]
        return torch.cat(parts).reshape(states.shape[:-1])

    @torch.no_grad()
    def update(self, states: Tensor) -> None:
        """One shuffled pass over the states (..., d) and as many of the sample. Bad states are dropped and counted."""
        if not kernel.fused_update(self.views.centers):
            warnings.warn(SLOW, UserWarning, stacklevel=4)
        flat = self._flat(states)
        if not len(flat):
            return
        good = kernel.good_of(self.prepared, flat, self.frame)
        total = good.sum()
        self._refit(flat, good, total)
        rows = kernel.standard(flat, good, self.frame).to(self.dtype)
        mixed, many = self._mixed(rows, good, total)
        self._start(rows, good)
        take_over(self.views, kernel.update(self.views, mixed, many, self.step_size))
        kernel.prepare_again(self.prepared, self.views)
        remember(self.sample, rows, good, self.seen - total, self._key)
        self.updates += total > 0
        self.bad += len(flat) - total
        self._measure(mixed[:MEASURED], many)

    def learned(self) -> dict[str, NDArray[Any]]:
        """Everything learned, on the host, by name; this waits for the device."""
        names = dict(zip(LEARNED, (*self.views, self.deviations, self.deviation, self.updates, self.bad), strict=True))
        names |= {"frame.states.seen": self.seen, "frame.states.mean": self.mean, "frame.fixed": self.fixed}
        names |= {"frame.states.variance": self.variance, "frame.mean": self.frame.mean, "frame.deviation": self.spread}
        arrays = {name: tensor.cpu().numpy().copy() for name, tensor in names.items()}
        kept = min(int(arrays["frame.states.seen"]), self.size)
        return {**arrays, "sample": self.sample.cpu().numpy()[:kept].copy()}

    # Inside

    def _flat(self, states: Tensor) -> Tensor:
        flat = states.reshape(-1, self.dim)
        if flat.dtype in (torch.float32, torch.float64):
            return flat
        return flat.float() if flat.dtype.is_floating_point else flat.double()

    def _refit(self, flat: Tensor, good: Tensor, total: Tensor) -> None:
        """`Standardized.refit`: mean and deviation of all states, refreshed when it is time, and rows brought along."""
        count = self.seen + total
        mean, spread = moments(flat.double(), good)
        old, new = (part.double() / count.clamp(min=1) for part in (self.seen, total))
        delta = mean - self.mean
        self.variance.copy_(self.variance * old + spread * new + delta.square() * old * new)
        self.mean += delta * new
        self.seen.copy_(count)
        due = (count >= (frames.GROWTH * self.fixed).clamp(min=1)) & (total > 0)
        deviation = self.variance.sqrt()
        deviation = torch.where(deviation > 64 * torch.finfo(torch.float64).eps * self.mean.abs(), deviation, 0)
        self._convert(self.mean, deviation, due)
        self.fixed.copy_(torch.where(due, count, self.fixed))

    def _convert(self, mean: Tensor, deviation: Tensor, due: Tensor) -> None:
        """Another frame if it is `due`, and centers and sample in it; the zeros of a first start stay zeros."""
        scale, moves = inverse(deviation), due & (self.fixed > 0)
        for rows, at in ((self.views.centers, self.views.columns[:, None]), (self.sample, slice(None))):
            points = rows.double() * self.spread[at] + self.frame.mean[at]
            moved = ((points - mean[at]) * scale[at]).clamp(-frames.CLIP, frames.CLIP)
            rows.copy_(torch.where(moves, moved.to(rows.dtype), rows))
        for mine, fresh in ((self.frame.mean, mean), (self.frame.scale, scale), (self.spread, deviation)):
            mine.copy_(torch.where(due, fresh, mine))

    def _start(self, rows: Tensor, good: Tensor) -> None:
        """Centers at distinct states of the first batch. Waits for the device, once."""
        if self._started:
            return
        first = rows[good].cpu().numpy()
        if len(first):
            which, clusters = self.views.columns.cpu().numpy(), self.views.usage.shape[1]
            chosen = [judge.start(first[:, own], clusters, self.seed).centers for own in which]
            self.views.centers.copy_(torch.tensor(np.stack(chosen)))
            self._started = True

    def _mixed(self, rows: Tensor, good: Tensor, total: Tensor) -> tuple[Tensor, Tensor]:
        """The states and, but for the first time, as many of the sample, shuffled: the first `many` are to be learned.

        All randomness comes from the seed and the number of updates: no random state to save.
        """
        if self._started:
            again = self.sample[self.draws(len(rows), self.seen - total)]
            rows, good = torch.cat([rows, again]), torch.cat([good, self._places(len(rows)) < total])
        return rows[self.order(good)], good.sum()

    def draws(self, count: int, seen: Tensor) -> Tensor:
        """Places in the sample of `seen` states, with repetition."""
        return (uniform(self._random(count, DRAW)) * seen.clamp(max=self.size)).long()

    def order(self, these: Tensor) -> Tensor:
        """A random order, with what is not among `these` at the end."""
        keys = lsr(self._random(len(these), SHUFFLE), 34)
        return torch.where(these, keys, LAST).sort(stable=True).indices

    def _random(self, count: int, begin: int) -> Tensor:
        """Random whole numbers of this update, (count,)."""
        found: Tensor = scrambled(scrambled(self.seed % 2**62, self.updates), begin + self._places(count))
        return found

    def _places(self, count: int) -> Tensor:
        return torch.arange(count, device=self.device)

    def _measure(self, rows: Tensor, many: Tensor) -> None:
        """σ ← σ + max(0.1, 1/updates) (std − σ), of each view's rewards, then of their sum in these units."""
        these = self._places(len(rows)) < many
        rate = (1 / self.updates.clamp(min=1).double()).clamp(min=RATE) * (many > 0)
        paid = kernel.each(self.prepared, rows, self.step_size).double().t()  # (n, V)
        self.deviations += rate * (moments(paid, these)[1].sqrt() - self.deviations)
        few = self._few(rows[:LOOKED], many.clamp(max=LOOKED))
        bound(self.deviations, least(self.step_size), few)
        units = self._units()
        self.deviation += rate * (moments((paid @ units)[:, None], these)[1][0].sqrt() - self.deviation)
        bound(self.deviation, 1.0, few.all())
        self.weights.copy_(units * inverse(self.deviation))

    def _units(self) -> Tensor:
        """1/σ of each view; 0 where it may be rounding."""
        return inverse(self.deviations * (self.deviations > judge.ROUNDED))

    def _few(self, rows: Tensor, many: Tensor) -> Tensor:
        """`viewed.few_values` of the first `many` rows (n, d), (V,)."""
        columns = self.views.columns
        unlike = 1 + 0.618 * torch.arange(columns.shape[1], device=self.device) % 1
        along = (rows[:, columns] * unlike).sum(dim=2)
        along = torch.where((self._places(len(rows)) < many)[:, None], along, torch.nan).sort(dim=0).values
        values = 1 + (along.diff(dim=0) > APART).sum(dim=0)  # nothing is beyond NaN, which comes last
        return (4 * values <= many) & (2 * values <= self.views.usage.shape[1])


def bound(deviation: Tensor, least: float, where: Tensor) -> None:
    """σ ← max(σ, least) in place, where it is asked for and σ is not 0."""
    deviation.copy_(torch.where(where & (deviation > 0), deviation.clamp(min=least), deviation))


def inverse(deviation: Tensor) -> Tensor:
    """1 / σ, and 0 where σ is 0: what never varied is worth nothing."""
    return torch.where(deviation > 0, 1 / deviation, 0)
