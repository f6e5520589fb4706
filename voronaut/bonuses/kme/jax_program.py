"""KME as part of a JAX program: the memory as it is, a pytree of arrays, and what states earn from it."""

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from voronaut.bonuses.kme.balanced import Balanced
from voronaut.bonuses.kme.frames import CLIP, Standardized
from voronaut.bonuses.kme.viewed import Viewed, inverse

if TYPE_CHECKING:
    from voronaut.bonuses.kme import KME


class Clusters(NamedTuple):
    """The paper's memory."""

    centers: NDArray[Any]
    lead: NDArray[np.int32]  # counts above the least
    origin: NDArray[np.float32]
    step_size: NDArray[Any]
    balance: NDArray[Any]
    floor: NDArray[Any]
    is_log: NDArray[np.bool_]
    ready: NDArray[np.bool_]


class Views(NamedTuple):
    """Views. Before the first update every weight is 0, so nothing is paid."""

    columns: NDArray[np.int32]
    centers: NDArray[Any]
    weights: NDArray[Any]
    mean: NDArray[Any]  # of the states, (d,)
    unit: NDArray[Any]  # 1/deviation, 0 for a coordinate that has not changed
    step_size: NDArray[Any]


def frozen(member: "KME") -> Clusters | Views | None:
    """What `pay` needs; None for a KME with features, and for the paper's memory in units of its own."""
    member._sync()
    own = member._memory
    if member.settings.normalize or member.features is not None:
        return None
    return _clusters(member, own) if isinstance(own, Balanced) else _views(member, own)


def _clusters(member: "KME", own: Balanced) -> Clusters:
    dtype = member.settings.dtype
    step_size, balance, floor = (np.asarray(x, dtype) for x in own.rules[:2] + own.rules[3:])
    lead = (own.counts - own.counts.min()).astype(np.int32)
    origin = np.asarray(member._frame.to_states(np.zeros((1, member.dim)))[0], np.float32)
    is_log, ready = np.asarray(member.settings.objective == "log"), np.asarray(not member._empty)
    return Clusters(own.centers, lead, origin, step_size, balance, floor, is_log, ready)


def _views(member: "KME", own: Viewed) -> Views:
    frame, dtype = member._frame, member.settings.dtype
    assert isinstance(frame, Standardized)
    weights = own.weights() * (not member._empty)
    numbers = (weights, frame.mean, inverse(frame.deviation), np.array(member.settings.step_size))
    return Views(own.columns.astype(np.int32), own.centers, *(x.astype(dtype) for x in numbers))


def pay(frozen: Clusters | Views, states: Any) -> Any:
    """(n, dim) -> (n,): rewards of float32 states, inside a program. Bad states earn 0."""
    return _pay_views(frozen, states) if isinstance(frozen, Views) else _pay_clusters(frozen, states)


def _pay_clusters(frozen: Clusters, states: Any) -> Any:
    import jax
    import jax.numpy as jnp

    from voronaut.kernels.xla import kmeans

    clusters = kmeans.Clusters(frozen.centers, frozen.lead)  # type: ignore[arg-type]
    relative = jnp.asarray(states - frozen.origin, frozen.centers.dtype)
    good = jnp.isfinite((relative**2).sum(axis=1))  # what has no square has no distance
    chosen = {"step_size": frozen.step_size, "balance": frozen.balance, "floor": frozen.floor}
    by = [lambda own, name=name: kmeans.rewards(clusters, own, objective=name, **chosen) for name in ("sqrt", "log")]
    paid = jax.lax.cond(frozen.is_log, by[1], by[0], jnp.where(good[:, None], relative, 0))
    return jnp.where(good & frozen.ready, paid, 0)


def _pay_views(frozen: Views, states: Any) -> Any:
    import jax.numpy as jnp

    from voronaut.kernels.xla import views

    good = jnp.isfinite(states).all(axis=1)
    own = jnp.clip((states - frozen.mean) * frozen.unit, -CLIP, CLIP).astype(frozen.centers.dtype)
    known = views.Views(frozen.columns, frozen.centers)
    paid = views.rewards(known, frozen.weights, jnp.where(good[:, None], own, 0), frozen.step_size)
    return jnp.where(good, paid, 0)
