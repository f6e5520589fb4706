"""Many KMEs of equal size as one XLA program, and KME inside a program of others, for machines with an accelerator."""

import importlib.util
import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from voronaut.bonuses.kme import many_views
from voronaut.bonuses.kme.balanced import Balanced

if TYPE_CHECKING:
    from voronaut.bonuses.kme import KME


def rewards(members: Sequence["KME"], states: NDArray[Any]) -> NDArray[Any]:
    """(runs, n, dim) -> (runs, n): what each run's states earn from its own clusters."""
    from voronaut.kernels import xla

    for member in members:
        member._sync()
    if any(member._empty for member in members) or members[0].settings.replay:
        return np.stack([member.rewards(own) for member, own in zip(members, states, strict=True)])
    own = np.stack([member._read(part).states for member, part in zip(members, states, strict=True)])
    if members[0].settings.views:
        return many_views.rewards(members, own)
    floors = np.array([_of(member).floor for member in members])
    return xla.rewards_runs(*_clusters(members), own, _of(members[0]).rules, floors)


def update(members: Sequence["KME"], states: NDArray[Any]) -> None:
    """One shuffled pass of each run's clusters over its own states (runs, n, dim)."""
    from voronaut.kernels import xla

    if members[0].settings.replay or on_cores():
        with ThreadPoolExecutor(min(len(members), os.cpu_count() or 1)) as pool:
            list(pool.map(type(members[0]).update, members, states))
        return
    own = np.stack([member._ready(part).states for member, part in zip(members, states, strict=True)])
    if members[0].settings.views:
        many_views.update(members, own)
        return
    shuffled = np.stack([part[member._order(len(part))] for member, part in zip(members, own, strict=True)])
    centers, counts = xla.update_runs(*_clusters(members), shuffled, _of(members[0]).rules)
    for run, member in enumerate(members):
        _of(member).take(centers[run], counts[run])
        member._absorbed(own[run])


class Frozen(NamedTuple):
    """Clusters as they are, for programs that pay by them."""

    centers: NDArray[Any]
    lead: NDArray[np.int32]  # counts above the least
    origin: NDArray[np.float32]
    step_size: NDArray[Any]
    balance: NDArray[Any]
    floor: NDArray[Any]
    is_log: NDArray[np.bool_]
    ready: NDArray[np.bool_]


def frozen(member: "KME") -> Frozen | many_views.Frozen | None:
    """What `pay` needs; None for a KME with features, and for the paper's memory with options of its own."""
    member._sync()
    if member.settings.views and member.features is None:
        return many_views.frozen(member)
    if member.settings.normalize or member.features is not None:
        return None
    own, dtype = _of(member), member.settings.dtype
    step_size, balance, floor = (np.asarray(x, dtype) for x in own.rules[:2] + own.rules[3:])
    lead = (own.counts - own.counts.min()).astype(np.int32)
    origin = np.asarray(member._frame.to_states(np.zeros((1, member.dim)))[0], np.float32)
    is_log, ready = np.asarray(member.settings.objective == "log"), np.asarray(not member._empty)
    return Frozen(own.centers, lead, origin, step_size, balance, floor, is_log, ready)


def pay(frozen: Frozen | many_views.Frozen, states: Any) -> Any:
    """(n, dim) -> (n,): rewards of float32 states, inside a program."""
    if isinstance(frozen, many_views.Frozen):
        return many_views.pay(frozen, states)
    import jax
    import jax.numpy as jnp

    from voronaut.kernels.xla import kmeans

    clusters = kmeans.Clusters(frozen.centers, frozen.lead)  # type: ignore[arg-type]
    relative = (states - frozen.origin).astype(frozen.centers.dtype)
    good = jnp.isfinite(relative).all(axis=1)
    chosen = {"step_size": frozen.step_size, "balance": frozen.balance, "floor": frozen.floor}
    by = [lambda own, name=name: kmeans.rewards(clusters, own, objective=name, **chosen) for name in ("sqrt", "log")]
    paid = jax.lax.cond(frozen.is_log, by[1], by[0], jnp.where(good[:, None], relative, 0))
    return jnp.where(good & frozen.ready, paid, 0)


def _clusters(members: Sequence["KME"]) -> tuple[NDArray[Any], NDArray[np.int64]]:
    return np.stack([_of(member).centers for member in members]), np.stack([_of(member).counts for member in members])


def on_cores() -> bool:
    """Whether numba is there: then the cores beside an accelerator absorb a sequence sooner than the accelerator."""
    return importlib.util.find_spec("numba") is not None


def _of(member: "KME") -> Balanced:
    own = member._memory
    assert isinstance(own, Balanced)
    return own
