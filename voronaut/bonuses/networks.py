"""The JAX core of RND and RE3: pure functions over plain trees of arrays. One run calls them, stacked runs map them."""

import itertools
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from voronaut.helpers.missing import install

try:
    import jax
    import jax.numpy as jnp
    from jax import lax
except ImportError as error:
    raise install("jax", "jax") from error

Array = Any  # a NumPy or a JAX array: the first call carries the former to the device
Layers = list[tuple[Array, Array]]
BETAS, ADAM_EPSILON = (0.9, 0.999), 1e-8
FULL, USUAL = lax.Precision.HIGHEST, lax.Precision.DEFAULT
GROUP = 128  # candidates whose nearest is sought first
ROUNDING = 2.0**-24  # of one float32 operation
SPARE = 4  # neighbours ranked beyond the k-th, so that rounding in the ranking can be noticed


class Learner(NamedTuple):
    """RND's networks and Adam's two moments of the predictor."""

    target: Layers
    predictor: Layers
    first: Layers
    second: Layers
    steps: Array


def orthogonal(rng: np.random.Generator, rows: int, columns: int, gain: float = 2**0.5) -> NDArray[np.float32]:
    """gain · Q with orthonormal rows or columns, uniform over all of them (the sign of R's diagonal is taken out)."""
    long, short = max(rows, columns), min(rows, columns)
    q, r = np.linalg.qr(rng.standard_normal((long, short)))
    q *= np.where(np.diag(r) < 0, -1.0, 1.0)
    return np.asarray(gain * (q if rows == long else q.T), np.float32)


def start(seed: Sequence[int], sizes: Sequence[int]) -> Layers:
    """Fresh layers in NumPy: orthogonal weights, zero biases."""
    rng = np.random.default_rng(list(seed))
    shapes = itertools.pairwise(sizes)
    return [(np.ascontiguousarray(orthogonal(rng, a, b)), np.zeros(b, np.float32)) for a, b in shapes]


def start_learner(seed: int, sizes: Sequence[int]) -> Learner:
    """A target and a predictor from two streams of one seed, Adam at rest."""
    predictor = start((seed, 1), sizes)
    first, second = ([(np.zeros_like(w), np.zeros_like(b)) for w, b in predictor] for _ in range(2))
    return Learner(start((seed, 0), sizes), predictor, first, second, np.zeros((), np.int32))


def to_arrays(layers: Layers, name: str) -> dict[str, NDArray[Any]]:
    """Copies of the layers as arrays for a state dict."""
    arrays: dict[str, NDArray[Any]] = {}
    for i, (weight, bias) in enumerate(layers):
        arrays[f"{name}.{i}.weight"], arrays[f"{name}.{i}.bias"] = np.array(weight), np.array(bias)
    return arrays


def from_arrays(arrays: Mapping[str, NDArray[Any]], name: str, depth: int) -> Layers:
    """The layers that `to_arrays` gave."""
    return [(np.array(arrays[f"{name}.{i}.weight"]), np.array(arrays[f"{name}.{i}.bias"])) for i in range(depth)]


def roomy(n: int) -> int:
    """n rounded up, by an eighth at most above 128: few different sizes are ever compiled."""
    step = max(16, 1 << max(0, (n - 1).bit_length() - 3))
    return -(-n // step) * step


def pad(rows: NDArray[Any], length: int) -> NDArray[Any]:
    """`rows` followed by rows of zeros up to `length`."""
    if len(rows) == length:
        return rows
    return np.concatenate([rows, np.zeros((length - len(rows), *rows.shape[1:]), rows.dtype)])


def forward(layers: Layers, rows: Array, precision: lax.Precision = FULL) -> Array:
    """W₃ relu(W₂ relu(W₁ x)): full float32 products, on a GPU too, if nothing else is said."""
    for weight, bias in layers[:-1]:
        rows = jax.nn.relu(jnp.matmul(rows, weight, precision=precision) + bias)
    weight, bias = layers[-1]
    return jnp.matmul(rows, weight, precision=precision) + bias


def prediction_errors(target: Layers, predictor: Layers, rows: Array, precision: lax.Precision = FULL) -> Array:
    """‖f̂(x) − f(x)‖² / h: (n, d) -> (n,)."""
    fixed = lax.stop_gradient(forward(target, rows, precision))
    return jnp.square(forward(predictor, rows, precision) - fixed).mean(axis=-1)


def distill(learner: Learner, rows: Array, weights: Array, rate: Array) -> tuple[Learner, Array]:
    """One Adam step of the predictor on the weighted mean error of `rows`; also the errors before it."""

    def loss(predictor: Layers) -> tuple[Array, Array]:
        errors = prediction_errors(learner.target, predictor, rows)
        return (weights * errors).sum() / weights.sum(), errors

    (_, errors), slope = jax.value_and_grad(loss, has_aux=True)(learner.predictor)
    steps = learner.steps + 1
    first = jax.tree.map(lambda m, g: BETAS[0] * m + (1 - BETAS[0]) * g, learner.first, slope)
    second = jax.tree.map(lambda v, g: BETAS[1] * v + (1 - BETAS[1]) * g * g, learner.second, slope)
    a, b = (1 - beta ** steps.astype(jnp.float32) for beta in BETAS)
    predictor = jax.tree.map(
        lambda p, m, v: p - rate * (m / a) / (jnp.sqrt(v / b) + ADAM_EPSILON), learner.predictor, first, second
    )
    return Learner(learner.target, predictor, first, second, steps), errors


def nearest(queries: Array, own: Array, candidates: Array, count: Array, k: int, block: int) -> tuple[Array, Array]:
    """‖q − c‖ to the k-th nearest candidate but the query itself (`own`), and whether that is certain: (n,), (n,).

    Candidates beyond `count` do not exist. Ranked by ‖q‖² + ‖c‖² − 2q·c around the candidates' mean, then the first
    k + SPARE measured directly; certain where the bound on the ranking's rounding proves that none was overlooked.
    """
    exists = jnp.arange(len(candidates)) < count
    mean = jnp.where(exists[:, None], candidates, 0).sum(axis=0) / count
    centered = candidates - mean
    squares = jnp.where(exists, jnp.square(centered).sum(axis=1), jnp.inf)
    ranked = min(k + SPARE, len(candidates))

    def some(part: tuple[Array, Array]) -> tuple[Array, Array]:
        rows, indices = part
        length = jnp.square(rows - mean).sum(axis=1)
        product = jnp.matmul(rows - mean, centered.T, precision=lax.Precision.HIGHEST)
        rough = length[:, None] + squares[None, :] - 2 * product
        rough = jnp.where(jnp.arange(len(candidates))[None, :] == indices[:, None], jnp.inf, rough)
        negative, found = lax.top_k(-rough, ranked)
        exact = jnp.square(rows[:, None, :] - candidates[found]).sum(axis=2)
        kth = jnp.sort(jnp.where(jnp.isinf(negative), jnp.inf, exact), axis=1)[:, k - 1]
        reach = length + jnp.square(jnp.sqrt(length) + jnp.sqrt(kth))
        last = -negative.min(axis=1)  # a slice here would make XLA sort every row whole
        slack = 2 * (queries.shape[1] + 8) * ROUNDING * reach
        return jnp.sqrt(kth), (kth + slack <= last) | (kth == 0)

    parts = queries.reshape(-1, block, queries.shape[1]), own.reshape(-1, block)
    distances, certain = lax.map(some, parts)
    return distances.reshape(-1), certain.reshape(-1)


def kth_distance(queries: Array, candidates: Array, count: Array, k: int) -> Array:
    """‖q − c‖ to the k-th nearest of the first `count` candidates, for programs: (n, d), (m, d) -> (n,).

    Ranked as in `nearest`, but with the device's usual products and without the proof that rounding overlooked none.
    The nearest k lie in the k groups whose nearest are nearest: so no row is sorted whole, which is what XLA can make
    of `top_k` over many rows.
    """
    exists = jnp.arange(len(candidates)) < count
    mean = jnp.where(exists[:, None], candidates, 0).sum(axis=0) / jnp.maximum(count, 1)
    centered = candidates - mean
    rough = jnp.square(centered).sum(axis=1) - 2 * jnp.matmul(queries - mean, centered.T)
    filler = ((0, 0), (0, -len(candidates) % GROUP))
    rough = jnp.pad(jnp.where(exists, rough, jnp.inf), filler, constant_values=jnp.inf)
    grouped = rough.reshape(len(queries), -1, GROUP)
    ranked = min(k + SPARE, len(candidates))
    nearest, groups = _least(grouped.min(axis=-1), min(ranked, grouped.shape[1]))
    among = jnp.take_along_axis(grouped, groups[..., None], axis=1)
    among = jnp.where(jnp.isinf(nearest)[..., None], jnp.inf, among).reshape(len(queries), -1)
    distances, inside = _least(among, ranked)
    found = jnp.take_along_axis(groups, inside // GROUP, axis=1) * GROUP + inside % GROUP
    exact = jnp.square(queries[:, None, :] - candidates[jnp.minimum(found, len(candidates) - 1)]).sum(axis=-1)
    return jnp.sqrt(jnp.sort(jnp.where(jnp.isinf(distances), jnp.inf, exact), axis=1)[:, k - 1])


def _least(values: Array, k: int) -> tuple[Array, Array]:
    """The k least of each row and where they are, (n, m) -> (n, k), the least first."""
    found: list[tuple[Array, Array]] = []
    for _ in range(k):
        place = values.argmin(axis=1)
        found.append((values.min(axis=1), place))
        values = jnp.where(jnp.arange(values.shape[1]) == place[:, None], jnp.inf, values)
    least, places = (jnp.stack(part, axis=1) for part in zip(*found, strict=True))
    return least, places


@jax.jit
def stacked(trees: list[Any]) -> Any:
    """Trees of equal shape -> one tree with a leading axis of runs."""
    return jax.tree.map(lambda *leaves: jnp.stack(leaves), *trees)


@partial(jax.jit, static_argnums=1)
def unstacked(tree: Any, runs: int) -> list[Any]:
    """The opposite of `stacked`."""
    return [jax.tree.map(lambda x, i=i: x[i], tree) for i in range(runs)]


to_device = jax.device_put
forward_one, forward_many = jax.jit(forward), jax.jit(jax.vmap(forward))
errors_one, errors_many = jax.jit(prediction_errors), jax.jit(jax.vmap(prediction_errors))
nearest_one = jax.jit(nearest, static_argnames=("k", "block"))
distill_one, distill_many = jax.jit(distill), jax.jit(jax.vmap(distill, in_axes=(0, 0, 0, None)))


@partial(jax.jit, static_argnames=("k", "block"))
def nearest_many(queries: Array, own: Array, candidates: Array, count: Array, k: int, block: int) -> Any:
    """`nearest` for runs side by side, compiled."""
    return jax.vmap(lambda q, o, c, n: nearest(q, o, c, n, k, block))(queries, own, candidates, count)


def on_accelerator() -> bool:
    """Whether JAX computes on something other than the CPU."""
    return jax.default_backend() != "cpu"
