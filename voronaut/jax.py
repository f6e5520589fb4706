"""KME inside jit: pure functions `init`, `rewards`, `update` and `metrics` of one pytree, with the numbers of `vn.KME`.

They can be jitted, scanned, and vmapped over runs, each with clusters and, if wanted, with a step size and a balance of
its own. `to_kme` and `from_kme` lead to `vn.KME` and back, for saving, the entropy, and everything else.
"""

import math
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np

from voronaut.bonuses.kme import KME
from voronaut.entropy.cells import log_ball
from voronaut.helpers.missing import missing
from voronaut.kernels.rules import LOG_FLOOR

try:
    import jax
    import jax.numpy as jnp
except ModuleNotFoundError as error:
    raise missing(error, {"jax", "jaxlib"}, "jax", "jax") from error

from voronaut.kernels.xla import kmeans, stream

__all__ = ["State", "from_kme", "init", "metrics", "rewards", "to_kme", "update"]

Array = jax.Array
PLAIN = {"dim", "clusters", "step_size", "balance", "objective", "init", "seed", "dtype", "threads", "on_bad"}


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class State:
    """All that was learned, and the numbers it is learned with. `dataclasses.replace(state, balance=…)` changes one."""

    centers: Array  # (k, d) μ, less the origin
    counts: Array  # (k,) n, from 1; 32 bits unless JAX has 64: a cluster holds 2^31 − 1 states
    origin: Array  # (d,) a point near the states, so that float32 works at any offset
    floor: Array  # () where "log" is cut off
    sample: Array  # (size, d) a fair sample of all states, less the origin
    updates: Array  # ()
    bad: Array  # () states that were not finite
    step_size: Array  # () α
    balance: Array  # () κ
    objective: str = field(metadata={"static": True})
    init: str = field(metadata={"static": True})


def init(
    dim: int,
    *,
    clusters: int = 300,
    step_size: float = 0.05,
    balance: float = 1e-4,
    objective: Literal["sqrt", "log"] = "sqrt",
    init: Literal["zeros", "data"] = "zeros",
    dtype: Literal["float32", "float64"] = "float32",
) -> State:
    """Clusters that have seen nothing. Arguments as in `vn.KME`; "data" starts at states of the first update.

    float64 needs `jax.config.update("jax_enable_x64", True)`.
    """
    fresh = KME(
        dim, clusters=clusters, step_size=step_size, balance=balance, objective=objective, init=init, dtype=dtype
    )
    return from_kme(fresh)


def rewards(state: State, next_states: Any, *, block: int = 4096) -> Array:
    """(..., d) -> (...,): what each state would earn against the clusters as they are (Eq. 2). Bad states earn 0.

    Memory is O(block · k). Ask once for a whole rollout rather than at each step: every call measures all gaps anew.
    """
    flat, shape = _flat(state, next_states)
    relative, good = _relative(state, flat)
    paid = kmeans.rewards(
        _clusters(state), relative, step_size=state.step_size, balance=state.balance, objective=state.objective,
        floor=state.floor, block=block,
    )  # fmt: skip
    return jnp.where(good & _has_clusters(state), paid, 0).reshape(shape)


def update(state: State, next_states: Any, key: Array, *, chunk: int | None = None) -> State:
    """One shuffled pass of online k-means over the states (..., d), one after the other (Eqs. 4 to 6).

    `chunk` states are treated at once (None: 1 on a CPU, 64 on an accelerator), which changes how long it takes and
    nothing else. States that are not finite are passed over and counted; no gradient goes through.
    """
    flat, _ = _flat(state, next_states)
    if isinstance(key, int):
        raise TypeError(
            f"key must be a JAX key; got {key!r}. Write jax.random.key({key!r}), and split it for each update."
        )
    if not len(flat):
        return state
    chances = jax.random.uniform(key, (4, len(flat)))  # one draw for all: each costs more to compile than to run
    flat = jax.lax.stop_gradient(flat)[jnp.argsort(chances[0])]
    state = _recentred(state, flat)
    states, good = _relative(state, flat)
    seen = _seen(state)
    state = _started(state, states, good, chances[1])
    numbers = {"step_size": state.step_size, "balance": state.balance}
    clusters = kmeans.update(_clusters(state), states, **numbers, chunk=chunk, good=good)
    return replace(
        state,
        centers=clusters.centers,
        counts=clusters.counts,
        floor=_floor(state, clusters),
        sample=stream.resample(state.sample, seen, states, good, chances[2:]),
        updates=state.updates + good.any(),
        bad=state.bad + (~good).sum(dtype=state.bad.dtype),
    )


def metrics(state: State) -> dict[str, Array]:
    """A flat dict of scalars under the names of `vn.KME.metrics()`; the entropy is `to_kme(state).entropy()`."""
    _flat(state, jnp.zeros((0, state.centers.shape[-1])))
    gaps, masses = kmeans.gaps(_clusters(state), state.balance), _masses(state)
    dim, counts = state.centers.shape[1], state.counts.astype(state.centers.dtype)
    logs = dim * jnp.log(jnp.maximum(gaps, np.finfo(gaps.dtype).tiny)).mean()
    return {
        "objective": kmeans.concave(gaps, state.objective, state.floor).sum(),
        "entropy_bound": jnp.where(gaps.min() > 0, logs + log_ball(dim) - dim * math.log(2), -jnp.inf),
        "gap_mean": gaps.mean(),
        "gap_min": gaps.min(),
        "clamped_gaps": (gaps < 0).sum(),
        "empty_cells": (masses == 0).mean(),
        "cell_mass_cv": masses.std() / jnp.maximum(masses.mean(), 1e-12),
        "count_cv": counts.std() / counts.mean(),
        "states": _seen(state),
        "bad_states": state.bad,
        "updates": state.updates,
    }


def to_kme(state: State, *, seed: int = 0, on_bad: Literal["raise", "drop"] = "drop") -> KME:
    """The same clusters as a `vn.KME`: `to_kme(state).save(path)`, `.entropy()`, `.metrics()`."""
    _flat(state, np.zeros((0, state.centers.shape[-1])))
    host: State = jax.device_get(state)
    chosen: Any = {"objective": host.objective, "init": host.init, "dtype": host.centers.dtype.name}
    numbers: Any = {"step_size": _plain(host.step_size), "balance": _plain(host.balance)}
    kme = KME(host.centers.shape[1], clusters=len(host.counts), seed=seed, on_bad=on_bad, **chosen, **numbers)
    counts = np.asarray(host.counts, np.int64)
    seen = int(counts.sum()) - len(counts)
    learned = {
        "centers": np.array(host.centers),
        "counts": counts,
        "origin": np.asarray(host.origin, np.float64),
        "floor": np.array([_plain(host.floor)]),
        "totals": np.array([seen, int(host.updates), int(host.bad), 0, 0]),
        "sample": np.array(host.sample[:seen]),
    }
    kme.load_state_dict({**kme.state_dict(), **learned})
    return kme


def from_kme(kme: KME) -> State:
    """The clusters of a `vn.KME` as a pytree: `from_kme(vn.load(path))`. What `kme.step` counted stays behind."""
    chosen, learned = kme.settings, kme.state_dict()
    dtype = jnp.dtype(chosen.dtype)
    if dtype == jnp.float64 and jnp.zeros((), float).dtype != dtype:
        raise ValueError(
            'dtype="float64" and JAX computes in 32 bits. Call jax.config.update("jax_enable_x64", True) first.'
        )
    _check_plain(kme.params)
    sample = np.zeros((max(16_384, 32 * chosen.clusters), chosen.dim), dtype)
    sample[: len(learned["sample"])] = learned["sample"]
    whole = jnp.zeros((), int).dtype
    _, updates, bad = (int(number) for number in learned["totals"][:3])
    return State(
        centers=jnp.asarray(learned["centers"], dtype),
        counts=jnp.asarray(learned["counts"], whole),
        origin=jnp.asarray(learned["origin"], dtype),
        floor=jnp.asarray(learned["floor"][0], dtype),
        sample=jnp.asarray(sample),
        updates=jnp.asarray(updates, whole),
        bad=jnp.asarray(bad, whole),
        step_size=jnp.asarray(chosen.step_size, dtype),
        balance=jnp.asarray(chosen.balance, dtype),
        objective=chosen.objective,
        init=chosen.init,
    )


# Inside


def _flat(state: State, states: Any) -> tuple[Array, tuple[int, ...]]:
    """(..., d) -> (n, d) floats, at least as wide as float32, and the shape in front."""
    if state.centers.ndim != 2:
        raise ValueError(
            f"this state holds runs side by side, centers {state.centers.shape}. jax.vmap over its leading axis, "
            "or take one run: jax.tree.map(lambda leaf: leaf[0], state)."
        )
    array, dim = jnp.asarray(states), state.centers.shape[1]
    if jnp.issubdtype(array.dtype, jnp.complexfloating):
        raise ValueError(f"states must be real numbers; got dtype {array.dtype}.")
    if array.ndim == 0 or array.shape[-1] != dim:
        raise ValueError(f"states must end in dim={dim}; got shape {array.shape}. Flatten dict observations first.")
    wide = jnp.promote_types(array.dtype, jnp.float32)
    return array.reshape(math.prod(array.shape[:-1]), dim).astype(wide), array.shape[:-1]


def _relative(state: State, flat: Array) -> tuple[Array, Array]:
    """States less the origin, subtracted in their own precision; 0 where they are bad."""
    relative = (flat - state.origin.astype(flat.dtype)).astype(state.centers.dtype)
    good = stream.good_rows(relative)
    return jnp.where(good[:, None], relative, 0), good


def _clusters(state: State) -> kmeans.Clusters:
    return kmeans.Clusters(state.centers, state.counts)


def _seen(state: State) -> Array:
    """States absorbed so far, a float: a sum of counts may pass 2^31."""
    return (state.counts - 1).astype(jnp.float32).sum()


def _has_clusters(state: State) -> Array:
    return jnp.asarray(state.init != "data") | (state.updates > 0)


def _recentred(state: State, flat: Array) -> State:
    """Move the reference point if states are far from it. Looked at when the number of states seen doubles."""
    if state.centers.dtype != jnp.float32:
        return state
    relative, good = _relative(state, flat)
    seen, new = _seen(state), good.sum()
    by = stream.offset(state.centers, state.counts.astype(jnp.float32))  # what was seen, as the clusters keep it
    by = jnp.where(seen == 0, stream.offset(relative, good.astype(jnp.float32)), by)
    doubled = jnp.floor(jnp.log2(seen + new)) > jnp.floor(jnp.log2(jnp.maximum(seen, 1)))
    origin = state.origin + jnp.where((new > 0) & ((seen == 0) | doubled), by, 0)
    moved = origin - state.origin
    sample = jnp.where(_filled(state)[:, None], state.sample - moved, 0)
    return replace(state, origin=origin, centers=state.centers - moved, sample=sample)


def _started(state: State, states: Array, good: Array, chances: Array) -> State:
    """With init="data" and nothing absorbed yet: clusters at states of this batch."""
    if state.init != "data":
        return state
    centers = stream.first_centers(states, good, len(state.counts), chances)
    return replace(state, centers=jnp.where(_has_clusters(state), state.centers, centers))


def _floor(state: State, clusters: kmeans.Clusters) -> Array:
    """A thousandth of the mean gap, for "log"; "sqrt" needs none."""
    if state.objective == "sqrt":
        return state.floor
    mean = jnp.maximum(kmeans.gaps(clusters, state.balance), 0).mean()
    return jnp.where(mean > 0, LOG_FLOOR * mean, 1)


def _masses(state: State) -> Array:
    """How many states of the sample are in each cell (k,)."""
    weight = kmeans.weights(_clusters(state), state.balance, state.counts.min())
    chosen = jax.lax.map(lambda row: kmeans.assign(_clusters(state), weight, row), state.sample, batch_size=4096)
    cell = jnp.where(_filled(state), chosen, len(state.counts))
    return jnp.zeros(len(state.counts)).at[cell].add(1, mode="drop")


def _filled(state: State) -> Array:
    """Which rows of the sample hold a state."""
    return jnp.arange(len(state.sample)) < _seen(state)


def _check_plain(params: dict[str, Any]) -> None:
    """Refuse a KME with options that these functions do not know."""
    usual = KME(params["dim"], balance=1e-4).params
    other = {name: value for name, value in params.items() if name not in PLAIN and value != usual.get(name)}
    other |= {name: params[name] for name in ("step_size", "balance") if not isinstance(params[name], float)}
    if other:
        given = ", ".join(f"{name}={value!r}" for name, value in other.items())
        raise ValueError(
            f"voronaut.jax does not know {given}. Make the KME without; apply features= to the states yourself."
        )


def _plain(number: Any) -> float:
    """The Python number that was meant: 0.05, not float32's 0.05000000074505806."""
    return float(str(np.asarray(number)[()]))
