"""What the checks share: states to try, and comparisons."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

Factory = Callable[..., Any]
DIM = 5
SEED = 3
ROWS, COLUMNS = 12, 8  # a small rollout (t, n), more than enough states for a neighbour search
TOLERANCE = 1e-4  # relative: float32 sums in another order


def promises(bonus: Any, name: str) -> bool:
    """What a bonus says of itself; it learns, pays, and pays each state alone, unless it says otherwise."""
    return bool(getattr(bonus, name, name != "batchwise"))


def keeps(bonus: Any, protocol: Any) -> bool:
    """Whether a bonus has what an optional protocol of `bonuses.base` asks for."""
    return isinstance(bonus, protocol)


def region(center: float, seed: int, count: int = ROWS * COLUMNS, dim: int = DIM) -> NDArray[np.float32]:
    """States around (center, -center, center, …): regions of opposite sign are equally far from the origin."""
    signs = np.where(np.arange(dim) % 2, -1.0, 1.0)
    noise = np.random.default_rng([seed, count]).normal(scale=0.5, size=(count, dim))
    return (center * signs + noise).astype(np.float32)


def trained(factory: Factory, states: NDArray[Any], times: int = 3, seed: int = SEED) -> Any:
    """A fresh bonus that has seen `states` a few times."""
    bonus = factory(dim=states.shape[-1], seed=seed)
    for _ in range(times):
        bonus.update(states)
    return bonus


def frozen(bonus: Any) -> dict[str, tuple[str, tuple[int, ...], bytes]]:
    """The state as bytes."""
    state = {name: np.asarray(array) for name, array in bonus.state_dict().items()}
    return {name: (array.dtype.str, array.shape, array.tobytes()) for name, array in state.items()}


def equal_bits(a: Any, b: Any) -> bool:
    """Same shape, type and bytes."""
    x, y = np.asarray(a), np.asarray(b)
    return x.dtype == y.dtype and x.shape == y.shape and x.tobytes() == y.tobytes()


def close(a: Any, b: Any) -> bool:
    """Equal up to float32 sums in another order, relative to the largest."""
    x, y = np.asarray(a, np.float64), np.asarray(b, np.float64)
    if x.shape != y.shape:
        return False
    size = max(np.abs(x).max(initial=0), np.abs(y).max(initial=0))
    return bool(np.abs(x - y).max(initial=0) <= TOLERANCE * size)


def demand(holds: Any, message: str) -> None:
    """An AssertionError that no optimisation flag takes away."""
    if not holds:
        raise AssertionError(message)


def refused(act: Callable[[], Any]) -> bool:
    """Whether the call raised."""
    try:
        act()
    except Exception:
        return True
    return False
