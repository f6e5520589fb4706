"""Entropy by coding: every point is scored by mixtures that have not learned from it yet; the best mixture counts.

Experts are mixtures of 1, 16 and k Gaussians, each over the straight and over the Gaussianised points. The entropy is
the least of the experts' mean −ln p over the recent half of the stream, where the models are good. Each of these means
is, in expectation, an upper bound on a stationary stream's entropy; the least of six is lower by less than their error.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from voronaut.entropy.clustering import partition
from voronaut.entropy.mixture.gaussians import CHUNK, Mixture
from voronaut.entropy.mixture.paths import Gaussianized, Straight
from voronaut.entropy.mixture.tally import Tally

Floats = NDArray[np.float64]

SIZES = 1, 16  # components of the small experts beside the large one
FOLDS = 4  # 2 where points are many
MANY = 4096
ENOUGH = 40  # points from which the Gaussianising maps can be fitted
ROUNDS = 3  # of EM over the first points
FLOOR = 1e-6  # least standard deviation of a component, of the whole: float32 sees no finer
FEED = 16  # first points per component from which a stream starts with all components: more will come
SPARE = 4  # first points per free number of a component (mean and variances): fewer components where points are few


class Expert(NamedTuple):
    """A path, the mixture at its end, and the scores of the points before they were learned."""

    path: Straight
    mixture: Mixture
    tally: Tally

    @property
    def name(self) -> str:
        count = self.mixture.size
        return f"{count} Gaussian{'s' if count > 1 else ''}, {self.path.name}"


class MixtureMeter:
    """Scores and learns standardised points (n, d); started by the first of them."""

    def __init__(self, first: Floats, clusters: int, gaussianize: bool, seed: int) -> None:
        self.seen = self._first = len(first)
        gaussianize = gaussianize and len(first) >= ENOUGH
        self.paths = _paths(first, gaussianize)
        sizes, fed = _sizes(len(first), first.shape[1], clusters)
        self.experts = [
            Expert(path, mixture, Tally()) for path in self.paths for mixture in _mixtures(path, first, sizes, seed)
        ]
        for expert, scores in zip(self.experts, _held_out(first, fed, gaussianize, seed), strict=True):
            for chunk in np.array_split(scores, max(1, len(scores) // CHUNK)):
                expert.tally.add(chunk)

    def absorb(self, points: Floats) -> None:
        """Score, then learn."""
        for path in self.paths:
            columns, jacobian = path.learn(points, self.seen)
            for expert in self.experts:
                if expert.path is path:
                    expert.tally.add(-(expert.mixture.absorb(columns) + jacobian))
        self.seen += len(points)

    def best(self) -> Expert:
        """The expert with the least mean."""
        return min(self.experts, key=lambda expert: self._reading(expert)[0])

    def _reading(self, expert: Expert) -> tuple[float, float]:
        """Mean and error: of the recent half, or of all that was held out while there are only the first points."""
        return expert.tally.read(1.0 if self.seen == self._first else 0.5)[:2]

    @property
    def expert(self) -> str:
        """The name of the best."""
        return self.best().name

    def read(self) -> tuple[float, float]:
        """Entropy of the standardised points and its standard error, in nats."""
        return self._reading(self.best())

    def log_density(self, points: Floats) -> Floats:
        """ln p of standardised points (n, d) by the best expert."""
        return _score(self.best(), points)


def _score(expert: Expert, points: Floats) -> Floats:
    columns, jacobian = expert.path.columns(points, np.float64)
    return np.asarray(expert.mixture.log_density(columns.T) + jacobian)


def _quick(expert: Expert, points: Floats) -> Floats:
    """The same in float32."""
    columns, jacobian = expert.path.columns(points)
    return np.asarray(expert.mixture.score(columns) + jacobian)


def _paths(first: Floats, gaussianize: bool) -> list[Straight]:
    return [Straight(first), Gaussianized(first)] if gaussianize else [Straight(first)]


def _sizes(points: int, dim: int, clusters: int) -> tuple[list[int], list[int]]:
    """Components of each expert, and as many of them as so few points can feed, for the held-out scores."""
    sizes = [*(size for size in SIZES if size < clusters), clusters]
    most = max(1, points // (SPARE * (dim + 2)))
    if points < FEED * clusters:
        sizes = sorted({min(size, most) for size in sizes})
    return sizes, [min(size, most) for size in sizes]


def _mixtures(path: Straight, first: Floats, sizes: list[int], seed: int) -> list[Mixture]:
    points = np.ascontiguousarray(path.columns(first)[0].T)
    made = []
    for size in sizes:
        mixture = Mixture(points, partition(points, size, seed), size, FLOOR)
        mixture.settle(points, ROUNDS)
        made.append(mixture)
    return made


def _held_out(first: Floats, sizes: list[int], gaussianize: bool, seed: int) -> list[Any]:
    """−ln p of the first points under each expert, learned from the other folds."""
    folds = FOLDS if len(first) < MANY else 2
    fold = np.random.default_rng([seed, 1]).permutation(len(first)) % folds
    scores: list[list[Floats]] = []
    for f in range(min(folds, len(first))):
        train, test = first[fold != f], first[fold == f]
        experts = [
            Expert(path, mixture, Tally())
            for path in _paths(train, gaussianize)
            for mixture in _mixtures(path, train, sizes, seed)
        ]
        scores.append([-_quick(expert, test) for expert in experts])
    return [np.concatenate(parts) for parts in zip(*scores, strict=True)]
