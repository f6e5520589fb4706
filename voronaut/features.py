"""From images to the vectors that a bonus sees."""

import math
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

# Deviation: every layer has stride 2, RE3's only the first: a frame of 84 × 84 costs a seventh of the products.
FILTERS, LAYERS, KERNEL, STRIDE = 32, 4, 3, 2


class RandomConv:
    """(…, *shape) -> (…, dim): a convolutional network whose weights are drawn once and never trained.

    Random filters keep images that differ apart, and that is all that clustering asks for; they know nothing about
    what in an image matters. RE3 (Seo et al., 2021) measures novelty in such features. Up to four layers of 32 filters
    of 3 × 3 with relu, then a linear map and a standardised vector, so that brightness alone does not count.

    Give it to a wrapper, `features=vn.features.RandomConv(env.observation_space.shape)`, or to a bonus,
    `vn.KME(64, features=RandomConv(shape))`. NumPy arrays, torch tensors (on their device) and JAX arrays give their
    own kind back. uint8 is divided by 255.

    Args:
        shape: of one image: (height, width), with channels last or first (the shorter of the two ends).
        dim: length of the vector.
        seed: of the weights; equal seeds give equal features.
    """

    def __init__(self, shape: Sequence[int], dim: int = 64, seed: int = 0) -> None:
        self.shape, self.dim, self.seed = _checked(shape), dim, seed
        self.weights = _weights(_image(self.shape), dim, np.random.default_rng(seed))
        self._placed: dict[Any, list[Any]] = {}

    def __call__(self, images: Any) -> Any:
        """Features of a batch of any shape."""
        lead = tuple(images.shape[: -len(self.shape)])
        if tuple(images.shape[len(lead) :]) != self.shape:
            raise ValueError(f"images must end in {self.shape}; got shape {tuple(images.shape)}.")
        *filters, last = self._on(images)
        x = self._channels_last(images.reshape(math.prod(lead), *self.shape))
        for each in filters:
            x = _convolved(x, each)
            x = x * (x > 0)
        x = x.reshape(-1, last.shape[0]) @ last
        x = x - x.mean(-1)[:, None]
        return (x / ((x * x).mean(-1)[:, None] + 1e-6) ** 0.5).reshape((*lead, self.dim))

    def _channels_last(self, images: Any) -> Any:
        """(n, height, width, channels) in float32, between 0 and 1 if they were bytes."""
        as_bytes = str(images.dtype).endswith("uint8")
        x = images.astype("float32") if hasattr(images, "astype") else images.float()
        x = x / 255 if as_bytes else x
        if x.ndim == 3:
            return x[..., None]
        return x if self.shape[2] <= self.shape[0] else x.swapaxes(1, 2).swapaxes(2, 3)

    def _on(self, images: Any) -> list[Any]:
        """The weights where the images are, as what they are."""
        if isinstance(images, np.ndarray):
            return self.weights
        torch = sys.modules.get("torch")
        if torch is not None and isinstance(images, torch.Tensor):
            if images.device not in self._placed:
                self._placed[images.device] = [torch.as_tensor(w, device=images.device) for w in self.weights]
            return self._placed[images.device]
        import jax.numpy as jnp

        return [jnp.asarray(w) for w in self.weights]


def _convolved(x: Any, weights: Any) -> Any:
    """Σ_ij x[i::2, j::2] W_ij: (n, h, w, c) -> (n, h', w', filters), in any of the three libraries."""
    high, wide = (size - (size - KERNEL) % STRIDE for size in x.shape[1:3])
    total: Any = 0
    for i in range(KERNEL):
        for j in range(KERNEL):
            rows, columns = slice(i, high - KERNEL + 1 + i, STRIDE), slice(j, wide - KERNEL + 1 + j, STRIDE)
            total = total + x[:, rows, columns] @ weights[i, j]
    return total


def _weights(image: tuple[int, int, int], dim: int, rng: np.random.Generator) -> list[NDArray[np.float32]]:
    """Filters (3, 3, in, 32) of as many layers as fit, and the last map; He's deviation √(2 / inputs)."""
    high, wide, channels = image
    made: list[NDArray[np.float32]] = []
    while len(made) < LAYERS and min(high, wide) >= KERNEL:
        made.append(_drawn(rng, (KERNEL, KERNEL, channels, FILTERS), KERNEL * KERNEL * channels))
        high, wide, channels = (high - KERNEL) // STRIDE + 1, (wide - KERNEL) // STRIDE + 1, FILTERS
    return [*made, _drawn(rng, (high * wide * channels, dim), high * wide * channels)]


def _drawn(rng: np.random.Generator, shape: tuple[int, ...], inputs: int) -> NDArray[np.float32]:
    return np.asarray(rng.standard_normal(shape) * np.sqrt(2 / inputs), np.float32)


def _image(shape: tuple[int, ...]) -> tuple[int, int, int]:
    """Height, width, channels."""
    if len(shape) == 2:
        return shape[0], shape[1], 1
    first, second, third = shape
    return (first, second, third) if third <= first else (second, third, first)


def _checked(shape: Sequence[int]) -> tuple[int, ...]:
    whole = tuple(int(n) for n in shape)
    if len(whole) not in (2, 3) or min(whole) < 1:
        raise ValueError(f"shape must be (height, width) or those with channels; got {tuple(shape)}.")
    return whole
