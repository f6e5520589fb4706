"""x ← f(x W + b), layer by layer: small networks as plain trees of arrays, and how their weights are drawn."""

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from voronaut.bonuses.networks import on_accelerator, orthogonal

Array = Any  # a NumPy array between calls, a jax.Array inside a program
Floats = NDArray[np.floating[Any]]
Rngs = Sequence[np.random.Generator]


class Layer(NamedTuple):
    weight: Array  # (runs, in, out)
    bias: Array  # (runs, out)


def net(rng: np.random.Generator, sizes: Sequence[int], head_gain: float) -> tuple[Layer, ...]:
    """Layers of one run, fresh: orthogonal weights, gain √2 in hidden layers and `head_gain` in the last; biases 0."""
    gains = [math.sqrt(2)] * (len(sizes) - 2) + [head_gain]
    shapes = zip(sizes[:-1], sizes[1:], gains, strict=True)
    return tuple(Layer(orthogonal(rng, a, b, gain), np.zeros(b, np.float32)) for a, b, gain in shapes)


def forward(layers: tuple[Layer, ...], x: Array, activation: Callable[[Array], Array]) -> Array:
    """The network of one run, without the run axis, inside a program; the last layer has no activation."""
    *hidden, head = layers  # "highest": an accelerator would round products to 10 bits by default
    for layer in hidden:
        x = activation(jnp.matmul(x, layer.weight, precision="highest") + layer.bias)
    return jnp.matmul(x, head.weight, precision="highest") + head.bias


def side_by_side(function: Callable[[Any, Any], Any], networks: Any, shared: Any) -> Any:
    """function(network, shared) of stacked networks that all see the same.

    One product for all wants their first weights beside each other. A CPU gains by that; an accelerator copies them
    to and fro at every gradient step, and is 15 % faster with a copy of what is shared for each.
    """
    if not on_accelerator():
        return jax.vmap(function, in_axes=(0, None))(networks, shared)
    count = len(jax.tree.leaves(networks)[0])
    return jax.vmap(function)(networks, jax.tree.map(lambda x: jnp.broadcast_to(x, (count, *x.shape)), shared))
