"""Many KMEs with views as one XLA program, and a KME with views inside a program of others."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from voronaut.bonuses.kme.frames import CLIP, Standardized
from voronaut.bonuses.kme.viewed import MEASURED, inverse

if TYPE_CHECKING:
    from voronaut.bonuses.kme import KME


def rewards(members: Sequence["KME"], own: NDArray[Any]) -> NDArray[Any]:
    """(runs, n, dim) standardised states -> (runs, n): what each run's states earn from its own views."""
    from voronaut.kernels.xla import views

    weights = np.stack([_of(member).weights() for member in members]).astype(own.dtype)
    return views.rewards_runs(stacked(members), weights, own, _step_size(members))


def update(members: Sequence["KME"], own: NDArray[Any]) -> None:
    """A pass over new states (runs, n, dim) and as many old ones, in blocks (`kernels.xla.views` says why)."""
    from voronaut.kernels.xla import views

    n, alpha = own.shape[1], _step_size(members)
    rows, counts = np.zeros((len(own), 2 * n, own.shape[2]), own.dtype), np.zeros(len(own), np.int64)
    for run, (member, fresh) in enumerate(zip(members, own, strict=True)):
        mixed = member._with_replayed(fresh)
        rows[run, : len(mixed)], counts[run] = mixed[member._order(len(mixed))], len(mixed)
    after = views.update_runs(stacked(members), rows, counts, alpha, views.BLOCK)
    paid = views.each_runs(after, rows[:, : min(n, MEASURED)], alpha)
    for run, member in enumerate(members):
        _of(member).take(views.Views(*(leaf[run] for leaf in after)))
        _of(member).measure(paid[run])
        member._absorbed(own[run])


class Frozen(NamedTuple):
    """Views as they are, for programs that pay by them."""

    columns: NDArray[np.int32]
    centers: NDArray[Any]
    weights: NDArray[Any]
    mean: NDArray[Any]  # of the states, (d,)
    unit: NDArray[Any]  # 1/deviation, 0 for a coordinate that has not changed
    step_size: NDArray[Any]


def frozen(member: "KME") -> Frozen:
    """What `pay` needs. Before the first update every weight is 0, so nothing is paid."""
    own, frame, dtype = _of(member), member._frame, member.settings.dtype
    assert isinstance(frame, Standardized)
    weights = own.weights() * (not member._empty)
    numbers = (weights, frame.mean, inverse(frame.deviation), np.array(member.settings.step_size))
    return Frozen(own.columns.astype(np.int32), own.centers, *(x.astype(dtype) for x in numbers))


def pay(frozen: Frozen, states: Any) -> Any:
    """(n, dim) -> (n,): rewards of float32 states, inside a program."""
    import jax.numpy as jnp

    from voronaut.kernels.xla import views

    good, nothing = jnp.isfinite(states).all(axis=1), jnp.zeros(0)
    own = jnp.clip((states - frozen.mean) * frozen.unit, -CLIP, CLIP).astype(frozen.centers.dtype)
    known = views.Views(frozen.columns, frozen.centers, nothing, nothing, nothing)
    paid = views.rewards(known, frozen.weights, jnp.where(good[:, None], own, 0), frozen.step_size)
    return jnp.where(good, paid, 0)


def stacked(members: Sequence["KME"]) -> Any:
    """The views of all members as the kernel takes them, axis 0 the run."""
    from voronaut.kernels.xla import views

    own = [_of(member) for member in members]
    columns, centers, usage, margins = (
        np.stack([getattr(each, name) for each in own]) for name in ("columns", "centers", "usage", "margins")
    )
    return views.Views(columns, centers, usage, margins, np.array([each.seen for each in own]))


def _of(member: "KME") -> Any:
    return member._memory


def _step_size(members: Sequence["KME"]) -> float:
    return float(members[0].settings.step_size)
