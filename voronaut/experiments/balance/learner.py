"""Clusters that learn from rollouts: coordinates scaled, half of what is absorbed replayed, one compiled pass."""

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import cdist

from voronaut.clusters import between
from voronaut.experiments.balance import loops
from voronaut.experiments.balance.streams import ENVS

Floats = NDArray[np.float64]
SCALES = ("none", "deviation", "early", "movement")
GROWTH = 10.0  # early scales give way where a coordinate has become this many times as wide


class Choice(NamedTuple):
    """A rule and what goes with it."""

    rule: loops.Options = loops.Options()
    replay: float = 0.5  # share of what is absorbed that is drawn from a sample of all states before
    scale: str = "early"
    clusters: int = 300
    sample: int = 16_384


class Cells(NamedTuple):
    """How frozen clusters share out states."""

    empty: float
    cv: float
    distortion: float


class Learner:
    """Centers and the sample stay in the states' own units; every pass divides by the scales of that moment."""

    def __init__(self, choice: Choice, seed: int) -> None:
        self.choice, self.rng = choice, np.random.default_rng([seed, 3])
        self.rows: Floats = np.empty((0, 0))
        self.seen, self.passes = 0, 0
        self.sums: list[Floats] = []

    def update(self, states: Floats) -> None:
        """Absorb a rollout (n, d), shuffled together with what is replayed."""
        self._measure(states)
        inverse = self.inverse = self._inverse()
        if self.passes == 0:
            chosen = self.rng.permutation(len(states))[np.arange(self.choice.clusters) % len(states)]
            self.memory = loops.start(states[chosen])
        old = round(len(states) * self.choice.replay / (1 - self.choice.replay)) if self.passes else 0
        self.last = np.concatenate([states, self.rows[self.rng.integers(0, len(self.rows), old)]]) if old else states
        held = self.memory.centers.copy()
        scaled = self.memory._replace(centers=held * inverse[:, None])
        loops.absorb(scaled, self.last * inverse, self.rng.permutation(len(self.last)), self.choice.rule)
        stays = inverse == 0  # a coordinate that has not changed so far
        self.memory = scaled._replace(
            centers=np.where(stays[:, None], held, scaled.centers / np.where(stays, 1, inverse)[:, None])
        )
        self._keep(states)
        self.passes += 1

    def clamped(self) -> float:
        """The share of gaps below 0."""
        centers, handicap = self.memory.centers * self.inverse[:, None], loops.handicaps(self.memory, self.choice.rule)
        return float((between(centers.T, handicap) < 0).mean())

    def cells(self, parts: Iterable[Floats]) -> Cells:
        """How the clusters as they are share all these states out; distances in the scales of the last pass."""
        centers, k = (self.memory.centers * self.inverse[:, None]).T, self.choice.clusters
        handicap, mass, spread = loops.handicaps(self.memory, self.choice.rule), np.zeros(k), 0.0
        for block in (each for states in parts for each in np.array_split(states, max(1, len(states) // 4096))):
            distances = cdist(block * self.inverse, centers)
            winner = (distances + handicap).argmin(axis=1)
            mass += np.bincount(winner, minlength=k)
            spread += float((distances[np.arange(len(block)), winner] ** 2).sum())
        return Cells(float((mass == 0).mean()), float(mass.std() / mass.mean()), spread / float(mass.sum()))

    def _measure(self, states: Floats) -> None:
        """Per rollout: mean, variance and mean step of every coordinate."""
        steps = np.abs(states[ENVS:] - states[:-ENVS]).mean(axis=0) if len(states) > ENVS else np.zeros(states.shape[1])
        self.sums.append(np.stack([states.mean(axis=0), states.var(axis=0), steps]))

    def _inverse(self) -> Floats:
        """1/scale of every coordinate, 0 where it has not changed so far."""
        mean, variance, steps = np.stack(self.sums, axis=1)
        if self.choice.scale == "none":
            return np.ones(mean.shape[1])
        scale = np.sqrt(variance.mean(axis=0) + mean.var(axis=0))
        if self.choice.scale == "movement":
            scale = steps.mean(axis=0)
        if self.choice.scale == "early":  # of the first rollout in which the coordinate changes
            first = variance[(variance > 0).argmax(axis=0), np.arange(variance.shape[1])]
            scale = np.maximum(np.sqrt(first), scale / GROWTH)
        moves = scale > 1e-12 * np.abs(mean).max(axis=0)
        return np.where(moves, 1 / np.where(moves, scale, 1.0), 0.0)

    def _keep(self, states: Floats) -> None:
        """A fair sample of all states (Vitter's algorithm R)."""
        place, size = self.seen + np.arange(len(states)), self.choice.sample
        if not len(self.rows):
            self.rows = np.empty((0, states.shape[1]))
        free = min(size - len(self.rows), len(states))
        self.rows = np.concatenate([self.rows, states[:free]])
        slot = (self.rng.random(len(states)) * (place + 1)).astype(np.int64)
        taken = (slot < size) & (np.arange(len(states)) >= free)
        self.rows[slot[taken]] = states[taken]
        self.seen += len(states)
