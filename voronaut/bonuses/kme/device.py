"""A KME's clusters on a device: everything that learning changes is a tensor there, in a buffer that never moves.

So neither `rewards` nor `update` waits for the device, and a CUDA graph of each sees what the other did.
"""

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from voronaut.bonuses.kme.balanced import Balanced
from voronaut.bonuses.kme.frames import Shifted
from voronaut.helpers.missing import pip
from voronaut.kernels import gpu as kernel
from voronaut.kernels.rules import FAR

if TYPE_CHECKING:
    from voronaut.bonuses.kme import KME

FACTORS = (0x9E3779B97F4A7C15 - 2**64, 0xBF58476D1CE4E5B9 - 2**64, 0x94D049BB133111EB - 2**64)
LAST = 2**31 - 1  # where bad states are sorted to
ROWS = 2**24  # states that are paid at once: what they need besides is free again before the next
NUMBERS = 2**24  # that are converted at once
SLOW = (
    "on this device updates go state by state, which is slow: they are fast in float32 with Triton "
    f"({pip('gpu')}), and on the CPU (next_states.cpu())."
)


class OnDevice:
    """The clusters of a KME on a device, and everything else that learning changes."""

    def __init__(self, kme: "KME", device: Any) -> None:
        s, own = kme.settings, kme._memory
        assert isinstance(own, Balanced) and isinstance(kme._frame, Shifted)
        self.device, self.dim, self.init, self.seed = device, s.dim, s.init, s.seed
        self.rules = own.rules
        self.dtype = torch.float32 if s.dtype == "float32" else torch.float64
        self._key = int(kme._reservoir._key.astype(np.int64))
        self._size, seen = kme._reservoir.size, kme._reservoir.seen
        sample = np.zeros((self._size, s.dim), s.dtype)
        sample[: len(kme._reservoir.sample)] = kme._reservoir.sample
        self.centers, self.counts, self.sample = (self._tensor(x) for x in (own.centers, own.counts, sample))
        self.origin = self._tensor(kme._frame.origin)
        self.floor, self.seen = self._tensor(np.float64(own.floor)), self._tensor(np.int64(seen))
        self.updates, self.bad = self._tensor(np.int64(kme._updates)), self._tensor(np.int64(kme._bad))
        self.limit, self._started = kernel.limit_of(self.dtype, s.dim), seen > 0
        self.prepared = kernel.prepare(self.centers, self.counts, self.rules, self.floor)

    def _tensor(self, value: Any) -> Tensor:
        return torch.tensor(value, device=self.device)

    @torch.no_grad()
    def rewards(self, states: Tensor) -> Tensor:
        """(..., d) -> (...,): what each state would earn. Bad states earn 0."""
        rows = states.reshape(-1, self.dim)
        size = ROWS if rows.dtype == self.dtype else 1 + NUMBERS // self.dim
        parts = [self._pay(rows[start : start + size]) for start in range(0, max(1, len(rows)), size)]
        paid = parts[0] if len(parts) == 1 else torch.cat(parts)
        if self.init == "data" and not self._started:
            paid = torch.where(self.seen > 0, paid, 0)
        return paid.reshape(states.shape[:-1])

    @torch.no_grad()
    def update(self, states: Tensor) -> None:
        """One shuffled pass of online k-means over the states (..., d). Bad states are dropped and counted."""
        if not kernel.wholly_fused(self.centers):
            warnings.warn(SLOW, UserWarning, stacklevel=5)
        flat = self._flat(states)
        if not len(flat):
            return
        self._recentre(flat)
        relative, good = self._relative(flat)
        total = good.sum()
        order = torch.where(good, self.shuffle(len(flat)), LAST).sort(stable=True).indices
        mixed = torch.where(good[:, None], relative, 0)[order]
        self._start(mixed, total)
        moved = kernel.update(self.centers, self.counts, mixed, total, self.rules)
        self.centers.copy_(moved[0])
        self.counts.copy_(moved[1])
        remember(self.sample, relative, good, self.seen, self._key)
        self.seen += total
        self.bad += len(flat) - total
        self.updates += 1
        self._prepare_again()

    def learned(self) -> dict[str, NDArray[Any]]:
        """Everything learned, on the host; this waits for the device."""
        names = ("centers", "counts", "origin", "floor", "seen", "updates", "bad")
        arrays = {name: getattr(self, name).cpu().numpy() for name in names}
        return {**arrays, "sample": self.sample.cpu().numpy()[: min(int(arrays["seen"]), self._size)]}

    # Inside

    def _pay(self, states: Tensor) -> Tensor:
        flat, shift = self._flat(states), self.origin
        if flat.dtype == torch.float64 and self.dtype == torch.float32:  # an offset is taken off before rounding
            flat, shift = (flat - shift).float(), torch.zeros_like(shift)
        return kernel.rewards(self.prepared, flat, shift.to(flat.dtype))

    def _flat(self, states: Tensor) -> Tensor:
        flat = states.reshape(-1, self.dim)
        return flat if flat.dtype in (torch.float32, torch.float64) else flat.float()

    def _relative(self, flat: Tensor) -> tuple[Tensor, Tensor]:
        """States relative to the origin, and which of them are good."""
        relative = flat - self.origin.to(flat.dtype)
        return relative.to(self.dtype), (relative.abs() <= self.limit).all(dim=1)

    def _recentre(self, flat: Tensor) -> None:
        """Another origin if the states are far from this one, looked at when the number of states seen doubles."""
        if self.dtype != torch.float32:
            return
        relative, good = self._relative(flat)
        first = self.seen == 0
        due = first | (exponent(self.seen + good.sum()) > exponent(self.seen))
        mean, spread = centre(relative, good)
        kept = torch.arange(self._size, device=self.device) < self.seen
        old_mean, old_spread = centre(self.sample, kept)
        mean, spread = torch.where(first, mean, old_mean), torch.where(first, spread, old_spread)
        far = due & (mean.norm() > FAR * spread)
        moved = torch.where(far, (self.origin + mean).float().double(), self.origin)
        by = moved - self.origin
        self.centers.copy_(self.centers - by)
        self.sample.copy_(torch.where(kept[:, None], self.sample - by, self.sample))
        self.origin.copy_(moved)

    def _start(self, mixed: Tensor, total: Tensor) -> None:
        """init="data": centers at distinct states of the first batch. Waits for the device, once."""
        if self.init != "data" or self._started:
            return
        good = int(total)
        if good:
            distinct = torch.unique(mixed[:good], dim=0)
            chosen = np.random.default_rng([self.seed, 2**32]).permutation(len(distinct))
            self.centers.copy_(distinct[torch.tensor(np.resize(chosen, len(self.centers)), device=self.device)])
            self._started = True

    def shuffle(self, size: int) -> Tensor:
        """Random keys from the seed and the number of updates alone: no random state to save."""
        place = torch.arange(size, device=self.device)
        keys: Tensor = scrambled(scrambled(self.seed % 2**62, self.updates), place)
        return (keys >> 33) & LAST

    def _prepare_again(self) -> None:
        """The clusters as `rewards` wants them, in the buffers of those before."""
        now = (self.prepared, self.centers, self.counts, self.rules, self.floor)
        kernel.prepare_again(*now)
        self.floor.copy_(kernel.floor_of(self.prepared.gaps))
        if self.prepared.log:  # which is cut off at a share of the gaps just found
            kernel.prepare_again(*now)


def remember(sample: Tensor, rows: Tensor, good: Tensor, seen: Tensor, key: int) -> None:
    """The fair sample of all states, as `Reservoir.add` takes it, with the good ones of these rows. OUT: sample."""
    size = len(sample)
    place = seen + good.cumsum(dim=0) - 1
    slot = torch.where(place < size, place, (uniform(scrambled(key, place)) * (place + 1)).long())
    slot = torch.where(good & (slot < size), slot, size)
    row = torch.arange(len(rows), device=rows.device)
    last = torch.full((size + 1,), -1, device=rows.device).scatter_reduce(0, slot, row, "amax")[:-1]
    sample.copy_(torch.where(last[:, None] >= 0, rows[last.clamp(min=0)], sample))


def moments(rows: Tensor, these: Tensor) -> tuple[Tensor, Tensor]:
    """Mean and variance of some rows; 0 of none."""
    share = these.double() / these.sum().clamp(min=1)
    wide = torch.where(these[:, None], rows, 0)
    mean = share @ wide
    return mean, share @ (wide - mean).square()


def centre(rows: Tensor, these: Tensor) -> tuple[Tensor, Tensor]:
    """Mean of some rows and the length of their standard deviation, float64."""
    mean, variance = moments(rows.double(), these)
    return mean, variance.sum().sqrt()


def uniform(random: Tensor) -> Tensor:
    """Random whole numbers as numbers in [0, 1)."""
    return lsr(random, 11).double() * 2.0**-53


def exponent(whole: Tensor) -> Tensor:
    """The number of bits of a whole number."""
    return torch.frexp(whole.double()).exponent


def lsr(z: Tensor, by: int) -> Tensor:
    """A shift to the right that brings in zeros."""
    return (z >> by) & ((1 << (64 - by)) - 1)


def scrambled(key: Any, place: Any) -> Any:
    """SplitMix64 of key + place, as `reservoir.uniform` has it."""
    z = key + (place + 1) * FACTORS[0]
    z = (z ^ lsr(z, 30)) * FACTORS[1]
    z = (z ^ lsr(z, 27)) * FACTORS[2]
    return z ^ lsr(z, 31)
