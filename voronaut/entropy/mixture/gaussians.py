"""p(x) = Σ_j w_j N(x; μ_j, V_g diag(σ_j²) V_gᵀ): Gaussians, about d of which share a frame V_g, learned in one pass.

Stepwise EM (Cappé and Moulines 2009): the sufficient statistics are running means over chunks, s ← (1 − γ_t) s + γ_t ŝ
with γ_t = (t + t₀)^−0.7. A chunk is scored before it is learned, so the mean score of a stationary stream is, in
expectation, no better than the truth: its negative is an upper bound on the entropy. About 6kd numbers are kept.
"""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from voronaut.entropy.mixture.softmax import normalise

Floats = NDArray[np.float64]
Singles = NDArray[np.float32]

CHUNK = 1024  # points per E step: their responsibilities fit the second-level cache
STEP = 4096  # points per M step
DECAY = 0.7  # of γ_t
PRIOR = 8.0  # points' worth of the group's mean variance in every component's own
RIDGE = 0.1  # times d² / n: points' worth of a round group, for groups of few points
EARLY, LOOK = 32, 2  # M steps in which all points tell how to turn the frames; then one chunk in every other step
ROOM = 1.12  # of d: components that share a frame
CLEAR = 8.0  # times the median gap between neighbours: where clusters of centers part
REFRESH = 1.5  # frames are turned when this many times as many chunks have been seen as at the last turn


class Mixture:
    """The mixture, its statistics and one pass of learning over float32 points (d, n), a column a point."""

    def __init__(self, points: Singles, cells: NDArray[np.int64], clusters: int, floor: float) -> None:
        """Start from points (n, d) cut into cells; `floor` is the least standard deviation of a component."""
        self.dim, self.floor = points.shape[1], floor
        self.steps, self.points = 0, float(len(points))
        self._kept: tuple[Singles, Singles] | None = None
        self._head = 1 + len(points) / STEP  # the first points count as so many steps
        self._turned = 4.0
        self._place(points, cells, _groups(_means(points, cells, clusters), self.dim))
        self._sums, self._turns = np.zeros_like(self._table), np.zeros_like(self._scatter)
        self._seen = self._looked = 0  # points in these two sums

    def _place(self, points: Singles, cells: NDArray[np.int64], members: NDArray[np.int64]) -> None:
        """Frames and statistics from the points of each cell; members (m, s) names the cells, −1 for an empty slot."""
        groups, slots = members.shape
        d = self.dim
        self._frames, self._shift = np.empty((groups, d, d)), np.empty((groups, d))
        self._table, self._scatter = np.zeros((groups, slots, 2 * d + 1)), np.zeros((groups, d, d))
        self._live = members >= 0
        order = np.argsort(cells, kind="stable")
        edges = np.searchsorted(cells[order], np.arange(members.max() + 2))
        pooled = np.cov(points, rowvar=False, bias=True).reshape(d, d) + 1e-12 * np.eye(d)
        for g in range(groups):
            parts = [points[order[edges[j] : edges[j + 1]]].astype(np.float64) for j in members[g] if j >= 0]
            inside = np.concatenate([p - p.mean(axis=0) for p in parts if len(p)] or [np.zeros((0, d))])
            spread = (inside.T @ inside + pooled) / (len(inside) + 1)
            self._frames[g] = np.linalg.eigh(spread)[1].T
            self._scatter[g] = self._frames[g] @ spread @ self._frames[g].T * (len(inside) / len(points))
            whole = np.concatenate(parts) if len(inside) else points
            self._shift[g] = self._frames[g] @ whole.mean(axis=0)
            for s, part in enumerate(parts):
                if len(part):
                    y = part @ self._frames[g].T - self._shift[g]
                    row = np.concatenate([(y**2).sum(axis=0), y.sum(axis=0), [len(part)]])
                    self._table[g, s] = row / len(points)
        self._maximise()

    @property
    def size(self) -> int:
        """Number of components."""
        return int(self._live.sum())

    # Learning

    def settle(self, points: Singles, rounds: int) -> None:
        """Rounds of EM over all points (n, d)."""
        for _ in range(rounds):
            table = np.zeros_like(self._table)
            for start in range(0, len(points), CHUNK):
                features, weights, _ = self._expect(np.ascontiguousarray(points[start : start + CHUNK].T))
                table += np.matmul(weights, features.transpose(0, 2, 1))
            self._table = table / len(points)
            self._maximise()

    def absorb(self, columns: Singles) -> Floats:
        """ln p of points (d, n), each scored before it is learned, (n,)."""
        width = CHUNK if len(self._live) > 1 else STEP
        parts = [columns[:, a : a + width] for a in range(0, columns.shape[1], width)]
        return np.concatenate([self._absorb(np.ascontiguousarray(part)) for part in parts])

    def _absorb(self, columns: Singles) -> Floats:
        features, weights, logs = self._expect(columns)
        if len(self._live) == 1 or self.steps < EARLY or (self.steps % LOOK == 0 and not self._looked):
            self._turns += self._scatter_of(features, weights)
            self._looked += columns.shape[1]
        self._sums += np.matmul(weights, features.transpose(0, 2, 1))
        self._seen += columns.shape[1]
        if self._seen >= STEP:
            self._learn()
        return logs

    def _expect(self, columns: Singles) -> tuple[Singles, Singles, Floats]:
        """Features (m, 2d + 1, n) = [y², y, 1], responsibilities (m, s, n), ln p (n,)."""
        d, n = columns.shape
        groups, slots = self._live.shape
        features, weights = self._room(n)
        y = features[:, d : 2 * d]
        np.matmul(self._turn, columns, out=y)
        y -= self._offset[:, :, None]
        np.multiply(y, y, out=features[:, :d])
        np.matmul(self._coefficients, features, out=weights)
        logs = normalise(weights.reshape(groups * slots, n))
        return features, weights, logs

    def _room(self, points: int) -> tuple[Singles, Singles]:
        """Features and weights of so many points, in the same memory every time."""
        if self._kept is None or self._kept[0].shape[2] != points:
            groups, slots = self._live.shape
            features = np.ones((groups, 2 * self.dim + 1, points), np.float32)
            self._kept = features, np.empty((groups, slots, points), np.float32)
        return self._kept

    def __getstate__(self) -> dict[str, Any]:
        """Everything but the room for work."""
        return {**self.__dict__, "_kept": None}

    def _scatter_of(self, features: Singles, weights: Singles) -> Floats:
        """Σ r (y − μ)(y − μ)ᵀ over a group's components, for the next turn of its frame."""
        d = self.dim
        y, share = features[:, d : 2 * d], weights.sum(axis=1, keepdims=True)
        raw = np.matmul(y * share, y.transpose(0, 2, 1)).astype(np.float64)
        sums = np.matmul(weights, y.transpose(0, 2, 1)).astype(np.float64)
        mass = weights.sum(axis=2, dtype=np.float64)[:, :, None]
        cross = np.matmul(self._mean.transpose(0, 2, 1), sums)
        own = np.matmul(self._mean.transpose(0, 2, 1), mass * self._mean)
        return np.asarray(raw - cross - cross.transpose(0, 2, 1) + own)

    def _learn(self) -> None:
        """s ← (1 − γ) s + γ ŝ, and new parameters."""
        self.steps += 1
        rate = (self.steps + self._head) ** -DECAY
        self._table += rate * (self._sums / self._seen - self._table)
        if self._looked:
            self._scatter += rate * (self._turns / self._looked - self._scatter)
        self.points = 1 / ((1 - rate) ** 2 / self.points + rate**2 / self._seen)
        self._sums[:], self._turns[:] = 0, 0
        self._seen = self._looked = 0
        if self.steps >= REFRESH * self._turned:
            self._turned = self.steps
            self._refresh()
        self._maximise()

    def _maximise(self) -> None:
        """Weights, means and variances from the statistics; variances lean on their group's mean, weights on 1/k."""
        d = self.dim
        mass = self._table[:, :, 2 * d :]
        safe = np.maximum(mass, 1e-12)
        self._mean = self._table[:, :, d : 2 * d] / safe
        raw = np.maximum(self._table[:, :, :d] / safe - self._mean**2, 0)
        pooled = (mass * raw).sum(axis=1, keepdims=True) / np.maximum(mass.sum(axis=1, keepdims=True), 1e-12)
        count = mass * self.points
        fed = np.maximum(count.sum(axis=1, keepdims=True), 1.0)
        lean = RIDGE * d * d / fed
        pooled = (fed * pooled + lean * pooled.mean(axis=2, keepdims=True)) / (fed + lean)
        self._variance = np.maximum((count * raw + PRIOR * pooled) / (count + PRIOR), self.floor**2)
        weight = np.where(self._live, count[:, :, 0] + 0.5, 0)
        self._weight = weight / weight.sum()
        self._compile()

    def _compile(self) -> None:
        """The float32 arrays of the E step: ln w_j N(y) is linear in [y², y, 1]."""
        d = self.dim
        inverse = 1 / self._variance
        constant = -0.5 * (np.log(self._variance).sum(axis=2) + (self._mean**2 * inverse).sum(axis=2))
        constant += np.log(np.maximum(self._weight, 1e-300)) - d / 2 * math.log(2 * math.pi)
        constant = np.where(self._live, constant, -1e30)
        parts = [-0.5 * inverse, self._mean * inverse, constant[:, :, None]]
        self._coefficients = np.concatenate(parts, axis=2).astype(np.float32)
        self._turn, self._offset = self._frames.astype(np.float32), self._shift.astype(np.float32)

    def _refresh(self) -> None:
        """Turn each group's frame to the eigenvectors of its scatter, and move its origin to its mean."""
        d = self.dim
        _, axes = np.linalg.eigh(self._scatter)
        turn = axes.transpose(0, 2, 1)
        mass, mean = self._table[:, :, 2 * d :], self._mean
        raw = np.maximum(self._table[:, :, :d] / np.maximum(mass, 1e-12) - mean**2, 0)
        centre = (mass * mean).sum(axis=1, keepdims=True) / np.maximum(mass.sum(axis=1, keepdims=True), 1e-12)
        mean = np.matmul(mean - centre, axes)
        variance = np.matmul(raw, axes**2)
        self._scatter = np.matmul(turn, np.matmul(self._scatter, axes))
        # What the diagonals alone say of the turned variances leaves out the rest of the scatter: agree with it.
        pooled = np.maximum((mass * variance).sum(axis=1, keepdims=True), 1e-30)
        variance *= np.maximum(np.diagonal(self._scatter, axis1=1, axis2=2)[:, None], 1e-30) / pooled
        self._table[:, :, :d] = mass * (variance + mean**2)
        self._table[:, :, d : 2 * d] = mass * mean
        self._shift = np.matmul(turn, (self._shift + centre[:, 0])[:, :, None])[:, :, 0]
        self._frames = np.matmul(turn, self._frames)

    # Reading

    def score(self, columns: Singles) -> Floats:
        """ln p of points (d, n), quickly."""
        starts = range(0, columns.shape[1], CHUNK)
        return np.concatenate([self._expect(np.ascontiguousarray(columns[:, a : a + CHUNK]))[2] for a in starts])

    def log_density(self, points: NDArray[Any]) -> Floats:
        """ln p of points (n, d) in float64, so that it does not depend on what stands beside a point."""
        return np.concatenate([self._log_density(points[a : a + CHUNK]) for a in range(0, len(points), CHUNK)])

    def _log_density(self, points: NDArray[Any]) -> Floats:
        y = np.matmul(points[None].astype(np.float64), self._frames.transpose(0, 2, 1)) - self._shift[:, None]
        best = np.full(len(points), -np.inf)
        for g, s in zip(*np.nonzero(self._live), strict=True):
            variance = self._variance[g, s]
            logs = -0.5 * ((y[g] - self._mean[g, s]) ** 2 / variance + np.log(2 * np.pi * variance)).sum(axis=1)
            best = np.logaddexp(best, logs + math.log(self._weight[g, s]))
        return best


def _means(points: Singles, cells: NDArray[np.int64], clusters: int) -> Floats:
    """Mean of the points of each cell; 0 for an empty cell."""
    masses = np.bincount(cells, minlength=clusters)
    sums = np.stack([np.bincount(cells, weights=column, minlength=clusters) for column in points.T], axis=1)
    return np.asarray(sums / np.maximum(masses, 1)[:, None])


def _groups(centers: Floats, dim: int) -> NDArray[np.int64]:
    """Members (m, s) of groups of about `dim` close centers, −1 where a slot is free; one group if dim is 1."""
    clusters = len(centers)
    slots = math.ceil(clusters / math.ceil(clusters / (ROOM * dim))) if dim > 1 else clusters
    waiting, done = [np.arange(clusters)], []
    while waiting:
        part = waiting.pop()
        if len(part) <= slots:
            done.append(part)
        else:
            waiting += _halves(centers, part, slots)
    members = np.full((len(done), slots), -1)
    for row, part in zip(members, done, strict=True):
        row[: len(part)] = part
    return members


def _halves(centers: Floats, part: NDArray[np.int64], slots: int) -> list[NDArray[np.int64]]:
    """Cut along the longest axis: at a clear gap near the middle, or else where the halves fill whole groups."""
    x = centers[part] - centers[part].mean(axis=0)
    along = x @ np.linalg.eigh(x.T @ x)[1][:, -1]
    order = np.argsort(along)
    gaps = np.diff(along[order])
    edge = max(1, len(part) // 4)
    middle = gaps[edge - 1 : len(part) - edge]
    cut = edge + int(middle.argmax())
    if middle.max() <= CLEAR * np.median(gaps):
        cut = slots * max(1, round(math.ceil(len(part) / slots) / 2))
    return [part[order[:cut]], part[order[cut:]]]
