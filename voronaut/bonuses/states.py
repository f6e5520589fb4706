"""What every bonus does with the states it is given: flatten them, refuse or set aside bad ones, put rewards back."""

from typing import Any, Literal, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

OnBad = Literal["raise", "drop"]


class Batch(NamedTuple):
    """Usable states and where they came from."""

    states: NDArray[np.floating[Any]]  # (m, dim), every row finite
    good: NDArray[np.bool_] | None  # (n,) which rows of the input these are; None: all
    shape: tuple[int, ...]  # the input's shape without its last axis

    @property
    def bad(self) -> int:
        """How many states were set aside."""
        return 0 if self.good is None else int(self.good.size - self.good.sum())

    def restore(self, rewards: NDArray[Any]) -> NDArray[Any]:
        """Rewards of the usable states (m,) in the input's layout; states set aside earn 0."""
        if self.good is not None:
            full = np.zeros(self.good.size, rewards.dtype)
            full[self.good] = rewards
            rewards = full
        return rewards.reshape(self.shape)


def check_on_bad(on_bad: str) -> OnBad:
    """The option as given, or an error that names both choices."""
    if on_bad in {"raise", "drop"}:
        return cast(OnBad, on_bad)
    raise ValueError(f'on_bad must be "raise" or "drop"; got {on_bad!r}.')


def flatten(states: Any, dim: int) -> tuple[NDArray[Any], tuple[int, ...]]:
    """(..., dim) of any real kind -> (n, dim) of floats, and the shape in front. float16 and integers are widened."""
    array = np.asarray(states)
    if array.dtype.kind not in "fiub":
        raise ValueError(f"states must be real numbers; got dtype {array.dtype}. Flatten dict observations first.")
    if array.ndim == 0 or array.shape[-1] != dim:
        raise ValueError(f"states must end in dim={dim}; got shape {array.shape}. Flatten dict observations first.")
    if array.dtype.kind != "f":
        array = array.astype(np.float64)
    elif array.dtype.itemsize != 4:
        array = array.astype(np.float32 if array.dtype.itemsize == 2 else np.float64, copy=False)
    return array.reshape(int(np.prod(array.shape[:-1])), dim), array.shape[:-1]


def read(
    states: Any, dim: int, *, on_bad: OnBad = "raise", dtype: Any = np.float32, shift: NDArray[np.float64] | None = None
) -> Batch:
    """States less `shift`, taken in their own precision, then cast: bad ones refused, or set aside if `on_bad="drop"`.

    Bad is what is not finite, and what is so large that its squared length overflows `dtype`.
    """
    flat, shape = flatten(states, dim)
    if shift is not None and shift.any():
        flat = flat - shift.astype(flat.dtype)
    limit = np.sqrt(np.finfo(dtype).max / (64 * dim))
    if -limit <= flat.min(initial=0) and flat.max(initial=0) <= limit:  # false for NaN too
        return Batch(np.ascontiguousarray(flat, dtype), None, shape)
    good = (np.abs(flat) <= limit).all(axis=1)
    if on_bad == "raise":
        first = tuple(int(i) for i in np.unravel_index(int(np.argmin(good)), shape))
        raise ValueError(
            f"{(~good).sum()} of {good.size} states are not finite (or beyond ±{limit:.1g}), first at index {first}. "
            'Mend them, or pass on_bad="drop" to pay such states 0 and learn nothing from them.'
        )
    return Batch(np.ascontiguousarray(flat[good], dtype), good, shape)
