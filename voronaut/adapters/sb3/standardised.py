"""(x − mean) / deviation inside the policy: observations in their own unit, for networks that would miss small ones.

The statistics are part of the policy, so that they are saved and loaded with the model and `predict` takes
observations as they are.
"""

import inspect
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from gymnasium import spaces
from numpy.typing import NDArray
from stable_baselines3.common.running_mean_std import RunningMeanStd
from stable_baselines3.common.torch_layers import FlattenExtractor

CLIP = 10.0  # deviations
LEAST = 1e-12  # a variance below is none: such a coordinate stays in its own unit


class Standardised(FlattenExtractor):
    """clip((x − μ) / σ, ±10) of every number of an observation; a features extractor of Stable-Baselines3.

    The names of its buffers begin with "running_", which is how SB3 knows what target networks take over at once.
    """

    running_mean: torch.Tensor
    running_deviation: torch.Tensor

    def __init__(self, observation_space: spaces.Space[Any]) -> None:
        super().__init__(observation_space)
        self.register_buffer("running_mean", torch.zeros(self.features_dim))
        self.register_buffer("running_deviation", torch.ones(self.features_dim))

    def forward(self, observations: torch.Tensor) -> torch.Tensor:
        """(n, …) -> (n, d)."""
        rows: torch.Tensor = super().forward(observations)
        return ((rows - self.running_mean) / self.running_deviation).clamp(-CLIP, CLIP)


class Statistics:
    """Mean and variance of all observations, and the extractors of several models that follow them."""

    def __init__(self, models: Sequence[Any]) -> None:
        inside = (module for model in models for module in model.policy.modules())
        self.followers = [module for module in inside if isinstance(module, Standardised)]
        self.seen = RunningMeanStd(epsilon=0.0, shape=models[0].observation_space.shape if self.followers else ())

    def see(self, observations: NDArray[Any]) -> None:
        """(n, …) more of them."""
        if self.followers:
            self.seen.update(observations)
            self._tell()

    def state(self) -> NDArray[np.float64]:
        """For a file: mean, variance and count in a row."""
        return np.concatenate([np.ravel(self.seen.mean), np.ravel(self.seen.var), [self.seen.count]])

    def restore(self, state: NDArray[np.float64]) -> None:
        """Go on with what `state` gave."""
        shape = np.shape(self.seen.mean)
        mean, variance = np.split(state[:-1], 2)
        self.seen.mean, self.seen.var, self.seen.count = mean.reshape(shape), variance.reshape(shape), float(state[-1])

    def _tell(self) -> None:
        known = np.ravel(self.seen.var) > LEAST
        mean = torch.as_tensor(np.where(known, np.ravel(self.seen.mean), 0), dtype=torch.float32)
        deviation = torch.as_tensor(np.sqrt(np.where(known, np.ravel(self.seen.var), 1)), dtype=torch.float32)
        for each in self.followers:
            each.running_mean.copy_(mean)
            each.running_deviation.copy_(deviation)


def can_standardise(model: Any) -> bool:
    """Whether a model that is not set up yet can: vectors that nobody standardises, no extractor of anybody's own."""
    space, parameters = model.observation_space, inspect.signature(model.policy_class).parameters
    vectors = isinstance(space, spaces.Box) and space.dtype != np.uint8
    extractor = parameters.get("features_extractor_class")
    flat = extractor is not None and extractor.default is FlattenExtractor
    normalised = model.get_vec_normalize_env()
    free = normalised is None or not normalised.norm_obs
    return vectors and flat and free and "features_extractor_class" not in model.policy_kwargs
