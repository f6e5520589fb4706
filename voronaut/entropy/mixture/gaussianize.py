"""g = Φ⁻¹(F_j(z)), column by column: heavy tails, skew and edges are taken out before the mixture sees the points.

F_j comes from a histogram of constant size over edges fixed by the first points: a density whose logarithm is piecewise
linear in asinh(z), fitted by Poisson regression to the counts, with exponential tails there (power laws in z). The map
itself is piecewise linear between the edges, so its log-Jacobian is exact whatever F_j is worth.
"""

import numpy as np
from numpy.typing import NDArray

from voronaut.entropy.mixture.pieces import guides, warp

Floats = NDArray[np.float64]

BULK, TAIL, EVEN = 256, 128, 128  # edges of pieces: of equal mass, closer in the tails, evenly spaced in asinh
BEYOND = 60  # pieces outside the first points, on each side
GROWTH = 1.35  # of the pieces outside, one to the next
STEPS = 40


class Gaussianizer:
    """The maps of d columns, their histograms, and how to refit them when more points have been counted."""

    def __init__(self, first: Floats) -> None:
        """Edges and a first fit from standardised points (n, d)."""
        self.edges = np.stack([_edges(np.sort(column)) for column in first.T])
        self.guide = guides(self.edges)
        self.counts = np.zeros((len(self.edges), self.edges.shape[1] - 1), np.int64)
        self.count(first)
        self.refit()

    def count(self, points: Floats) -> None:
        """Take points (n, d) into the histograms."""
        pieces = self.counts.shape[1]
        for j, column in enumerate(points.T):
            piece = np.clip(np.searchsorted(self.edges[j], column, side="right") - 1, 0, pieces - 1)
            self.counts[j] += np.bincount(piece, minlength=pieces)

    def refit(self) -> None:
        """New maps from everything counted so far."""
        knots = round(3 * float(self.counts[0].sum()) ** 0.2)
        tables = [_table(edges, counts, knots) for edges, counts in zip(self.edges, self.counts, strict=True)]
        self.values = np.stack(tables)
        self.slopes = np.diff(self.values, axis=1) / np.diff(self.edges, axis=1)
        self.logs = np.log(self.slopes)

    def warp(self, points: Floats) -> tuple[Floats, Floats]:
        """(n, d) -> columns (d, n) of g, and ln |dg/dz| (n,)."""
        return self._warp(points, 0)

    def warp_and_count(self, points: Floats) -> tuple[Floats, Floats]:
        """The same, and the points are taken into the histograms on the way, for the next `refit`."""
        return self._warp(points, 1)

    def _warp(self, points: Floats, one: int) -> tuple[Floats, Floats]:
        out, jacobian = np.empty(points.shape[::-1]), np.empty(len(points))
        tables = self.edges, self.guide, self.values, self.slopes, self.logs
        warp(points, *tables, out, jacobian, self.counts, one)
        return out, jacobian


def _edges(ordered: Floats) -> Floats:
    """Quantiles of the first points, closer together in the tails, and ever wider pieces outside."""
    logit = np.log(2.0 * len(ordered))
    spread = 1 / (1 + np.exp(-np.linspace(-logit, logit, TAIL)))
    quantiles = np.quantile(ordered, np.concatenate([np.linspace(0, 1, BULK), spread]))
    even = np.sinh(np.linspace(np.arcsinh(ordered[0]), np.arcsinh(ordered[-1]), EVEN))
    inside = np.sort(np.concatenate([quantiles, even]))
    least = 1e-7 * max(float(ordered[-1] - ordered[0]), 1e-30)
    inside = np.maximum.accumulate(inside + least * np.arange(len(inside)))
    tail = max(len(ordered) // 500, 2)
    steps = np.cumsum(GROWTH ** np.arange(BEYOND))
    left = max(float(ordered[tail] - ordered[0]) / 8, least)
    right = max(float(ordered[-1] - ordered[-1 - tail]) / 8, least)
    return np.concatenate([inside[0] - left * steps[::-1], inside, inside[-1] + right * steps])


def _table(edges: Floats, counts: NDArray[np.int64], knots: int) -> Floats:
    """Φ⁻¹(F) at the edges."""
    from scipy.special import ndtri_exp

    u = np.arcsinh(edges)
    width = np.diff(u)
    log_density = _fit(u, counts + _prior(width), knots)
    log_mass = _log_mass(log_density[:-1], log_density[1:], width)
    left = np.logaddexp.accumulate(np.concatenate([[-800.0], log_mass]))
    right = np.logaddexp.accumulate(np.concatenate([[-800.0], log_mass[::-1]]))[::-1]
    total = left[-1]
    g = np.where(left < right, ndtri_exp(left - total), -ndtri_exp(right - total))
    return _increasing(g, edges)


def _prior(width: Floats) -> Floats:
    """A point where the next extreme would fall on either side, and one spread over gaps: no density is 0 anywhere."""
    points = np.zeros(len(width))
    points[BEYOND:-BEYOND] = width[BEYOND:-BEYOND] / width[BEYOND:-BEYOND].sum()
    points[BEYOND - 2 : BEYOND] = points[-BEYOND : -BEYOND + 2] = 0.5
    return points


def _increasing(g: Floats, edges: Floats) -> Floats:
    """Far out in the tails F is flat in floating point: keep a least slope there."""
    least = 1e-9 * np.diff(edges) / (edges[-1] - edges[0])
    return np.concatenate([g[:1], g[0] + np.cumsum(np.maximum(np.diff(g), np.maximum(least, 1e-13)))])


def _log_mass(a: Floats, b: Floats, width: Floats) -> Floats:
    """ln of the integral of an exponential from e^a to e^b over `width`: w (e^b − e^a) / (b − a)."""
    half = np.abs(b - a) / 2
    safe = np.maximum(half, 1e-8)
    return np.asarray(np.log(width) + np.maximum(a, b) - half + safe + np.log(-np.expm1(-2 * safe) / (2 * safe)))


def _fit(u: Floats, counts: Floats, knots: int) -> Floats:
    """ln density at the edges u: linear between knots (quantiles, and evenly spaced), one slope more on either side."""
    total = counts.sum()
    reach = np.log(total / 10)
    share = 1 / (1 + np.exp(-np.linspace(-reach, reach, knots)))
    cumulative = np.concatenate([[0], np.cumsum(counts)]) / total
    rising = cumulative + 1e-12 * np.arange(len(cumulative))
    # At edges, two pieces or more apart: a knot inside a piece would be free to run away.
    even = np.linspace(u[BEYOND], u[-1 - BEYOND], knots // 2)[1:-1]
    wanted = np.sort(np.concatenate([np.searchsorted(rising, share), np.searchsorted(u, even)]))
    picked = [int(wanted[0])]
    for place in wanted[1:]:
        if place >= picked[-1] + 2:
            picked.append(int(place))
    places = u[picked]
    middle, width = (u[1:] + u[:-1]) / 2, np.diff(u)
    basis, at_edges = _basis(middle, places), _basis(u, places)
    return np.asarray(at_edges @ _poisson(basis, counts, width))


def _basis(u: Floats, knots: Floats) -> Floats:
    """Hats at the knots, constant outside them, and one straight line to each side."""
    hats = np.stack([np.interp(u, knots, row) for row in np.eye(len(knots))], axis=1)
    scale = (knots[-1] - knots[0]) / len(knots)
    left, right = np.maximum(knots[0] - u, 0) / scale, np.maximum(u - knots[-1], 0) / scale
    return np.concatenate([hats, -left[:, None], -right[:, None]], axis=1)


def _poisson(basis: Floats, counts: Floats, width: Floats) -> Floats:
    """argmax Σ n_b ln λ_b − λ_b with λ = w e^{Bθ}, Σ n_b = 1, which is concave: Newton, halved until it climbs."""
    share = counts / counts.sum()
    weight = share + 1e-6 / len(share)
    rooted = np.sqrt(weight)
    theta = np.linalg.lstsq(basis * rooted[:, None], np.log(weight / width) * rooted, rcond=None)[0]
    theta[-2:] = np.maximum(theta[-2:], 0.1)
    value, rate = _climb(basis, theta, share, width)
    for _ in range(STEPS):
        curve = basis.T @ (rate[:, None] * basis) + 1e-10 * np.eye(len(theta))
        gradient = basis.T @ (share - rate)
        step = np.linalg.solve(curve, gradient)
        step *= min(1.0, 4.0 / np.abs(step).max())
        gain = float(gradient @ step)
        for _ in range(30):
            trial, trial_rate = _climb(basis, theta + step, share, width)
            if trial >= value:
                break
            step *= 0.5
        else:
            break
        theta, value, rate = theta + step, trial, trial_rate
        if gain < 1e-9:
            break
    theta[-2:] = np.maximum(theta[-2:], 1e-3)
    return np.asarray(theta)


def _climb(basis: Floats, theta: Floats, share: Floats, width: Floats) -> tuple[float, Floats]:
    """The log-likelihood at θ, and λ."""
    logs = np.minimum(basis @ theta, 60.0)
    rate = width * np.exp(logs)
    return float(share @ logs - rate.sum()), rate
