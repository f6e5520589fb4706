"""What every bonus does with states of any library: read and flatten them, set aside bad ones, put rewards back."""

import functools
import math
from typing import Any, Literal, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

OnBad = Literal["raise", "drop"]
PLAIN = "fd"  # float32 and float64: what most states are, and nothing more to ask
NARROW = ("bfloat16", "float8_e4m3fn", "float8_e5m2")  # JAX's, which NumPy takes for raw bytes


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


def is_tensor(states: Any) -> bool:
    """Whether this is a torch tensor, without importing torch."""
    return type(states).__module__.partition(".")[0] == "torch"


def plain(states: Any) -> Any:
    """A tensor without its graph, in a precision that NumPy has; anything else as it is."""
    if not is_tensor(states):
        return states
    import torch

    return states.detach().float() if states.dtype == torch.bfloat16 else states.detach()


def like(states: Any, rewards: NDArray[Any]) -> Any:
    """Rewards of the kind that the states are: a tensor where they are, or the array."""
    if not is_tensor(states):
        return rewards
    import torch

    return torch.from_numpy(np.ascontiguousarray(rewards)).to(states.device)


def as_array(states: Any) -> NDArray[Any]:
    """States from any library as an array of a kind that NumPy knows; what a mask hides becomes NaN."""
    if type(states) is np.ndarray and states.dtype.char in PLAIN:
        return states
    if is_tensor(states):
        states = plain(states).cpu()
    array = np.asarray(states)
    if array.dtype.name in NARROW:
        array = array.astype(np.float32)
    if np.ma.is_masked(states):
        whole = array.dtype.kind != "f"
        array = np.where(np.ma.getmaskarray(states), np.nan, array.astype(np.float64) if whole else array)
    return array


def flatten(states: Any, dim: int) -> tuple[NDArray[Any], tuple[int, ...]]:
    """(..., dim) of any real kind -> (n, dim) of floats, and the shape in front. float16 and integers are widened."""
    array = as_array(states)
    if array.dtype.kind not in "fiub":
        raise ValueError(f"states must be real numbers; got dtype {array.dtype}. Flatten dict observations first.")
    if array.ndim == 0 or array.shape[-1] != dim:
        raise ValueError(f"states must end in dim={dim}; got shape {array.shape}. Flatten dict observations first.")
    if array.dtype.kind != "f":
        array = array.astype(np.float64)
    elif array.dtype.itemsize != 4:
        array = array.astype(np.float32 if array.dtype.itemsize == 2 else np.float64, copy=False)
    return array.reshape(math.prod(array.shape[:-1]), dim), array.shape[:-1]


@functools.cache
def largest(dim: int, dtype: Any) -> float:
    """A number beyond is bad: the squared length of a state would overflow `dtype`."""
    return np.sqrt(np.finfo(dtype).max / (64 * dim))  # type: ignore[no-any-return]


def read(
    states: Any, dim: int, *, on_bad: OnBad = "raise", dtype: Any = np.float32, shift: NDArray[np.float64] | None = None
) -> Batch:
    """States less `shift`, taken in their own precision, then cast: bad ones refused, or set aside if `on_bad="drop"`.

    Bad is what is not finite, and what is so large that its squared length overflows `dtype`.
    """
    flat, shape = flatten(states, dim)
    if shift is not None and shift.any():
        flat = flat - shift.astype(flat.dtype)
    limit = largest(dim, dtype)
    if -limit <= flat.min(initial=0) and flat.max(initial=0) <= limit:  # false for NaN too
        return Batch(np.ascontiguousarray(flat, dtype), None, shape)
    good = (np.abs(flat) <= limit).all(axis=1)
    if on_bad == "raise":
        first = tuple(int(i) for i in np.unravel_index(int(np.argmin(good)), shape))
        raise ValueError(
            f"{(~good).sum()} of {good.size} states are not finite (or masked, or beyond ±{limit:.1g}), "
            f"first at index {first}. "
            'Mend them, or pass on_bad="drop" to pay such states 0 and learn nothing from them.'
        )
    return Batch(np.ascontiguousarray(flat[good], dtype), good, shape)
