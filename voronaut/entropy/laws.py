"""Laws with a known entropy in nats: the truth that estimators are held against.

`LAWS[name](dim)` makes a law; `sample(n, seed)` draws from it, `entropy` is exact: a closed form, or a quadrature over
one coordinate or one radius that is good to 1e-9. The estimator's settings were chosen by looking at `TUNING` alone.
"""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import stats
from scipy.integrate import quad

from voronaut.entropy.cells import log_ball

Draw = Callable[[np.random.Generator, int], NDArray[np.float64]]

GAUSS = 0.5 * math.log(2 * math.pi * math.e)  # entropy of N(0, 1)


class Law(NamedTuple):
    """A distribution over vectors of length `dim` with its entropy in nats."""

    name: str
    dim: int
    entropy: float
    draw: Draw

    def sample(self, n: int, seed: Any) -> NDArray[np.float64]:
        """(n, dim) independent draws."""
        return self.draw(np.random.default_rng(seed), n)


def _product(name: str, entropy: float, draw: Callable[[np.random.Generator, Any], Any]) -> Callable[[int], Law]:
    """Independent coordinates, each with this entropy."""

    def make(dim: int) -> Law:
        return Law(name, dim, dim * entropy, lambda rng, n: np.asarray(draw(rng, (n, dim)), np.float64))

    return make


def _quadrature(log_density: Callable[[float], float], low: float, high: float) -> float:
    """−∫ p ln p over one coordinate."""

    def integrand(x: float) -> float:
        log_p = log_density(x)
        return -math.exp(log_p) * log_p

    return float(quad(integrand, low, high, limit=500, epsabs=1e-12, epsrel=1e-12)[0])


# Independent coordinates


def _two_bumps_entropy() -> float:
    """Of ½N(−2, ½²) + ½N(2, ½²)."""
    constant = math.log(2 * 0.5 * math.sqrt(2 * math.pi))

    def log_density(x: float) -> float:
        return float(np.logaddexp(-2 * (x - 2) ** 2, -2 * (x + 2) ** 2)) - constant

    return 2 * _quadrature(log_density, 0, 8)


def _three_bumps_entropy() -> float:
    """Of 0.5 N(−3, 0.3²) + 0.3 N(0, 1) + 0.2 N(4, 0.5²)."""
    share, mean, width = np.array([0.5, 0.3, 0.2]), np.array([-3.0, 0.0, 4.0]), np.array([0.3, 1.0, 0.5])
    constant = np.log(share / width / math.sqrt(2 * math.pi))

    def log_density(x: float) -> float:
        return float(np.logaddexp.reduce(constant - 0.5 * ((x - mean) / width) ** 2))

    return sum(_quadrature(log_density, low, low + 1) for low in range(-9, 9))


def _three_bumps(rng: np.random.Generator, shape: Any) -> Any:
    which = rng.choice(3, shape, p=[0.5, 0.3, 0.2])
    return np.array([-3.0, 0.0, 4.0])[which] + np.array([0.3, 1.0, 0.5])[which] * rng.normal(size=shape)


def _two_bumps(rng: np.random.Generator, shape: Any) -> Any:
    return rng.choice([-2.0, 2.0], shape) + 0.5 * rng.normal(size=shape)


# Coordinates that depend on each other


def _correlated(dim: int) -> Law:
    """N(0, 0.9^|i−j|)."""
    steps = np.abs(np.subtract.outer(np.arange(dim), np.arange(dim)))
    root = np.linalg.cholesky(0.9**steps)
    entropy = dim * GAUSS + float(np.log(np.diag(root)).sum())
    return Law("correlated", dim, entropy, lambda rng, n: rng.normal(size=(n, dim)) @ root.T)


def _banana(dim: int) -> Law:
    """N(0, I) sheared pair by pair, y ← y + ½(x² − 1): volumes are kept, and so is the entropy."""

    def draw(rng: np.random.Generator, n: int) -> NDArray[np.float64]:
        x = rng.normal(size=(n, dim))
        bent = x[:, : dim - dim % 2 : 2]
        x[:, 1::2] += 0.5 * (bent**2 - 1)
        return x

    return Law("banana", dim, dim * GAUSS, draw)


def _rotated_laplace(dim: int) -> Law:
    """Independent Laplace coordinates seen in a turned frame: no coordinate is Laplace any more."""
    frame = np.linalg.qr(np.random.default_rng([7, dim]).normal(size=(dim, dim)))[0]  # the same for every sample
    entropy = dim * (1 + math.log(2))
    return Law("rotated_laplace", dim, entropy, lambda rng, n: rng.laplace(size=(n, dim)) @ frame)


def _ball(dim: int) -> Law:
    """Uniform in the unit ball: direction of a Gaussian, radius u^{1/d}."""

    def draw(rng: np.random.Generator, n: int) -> NDArray[np.float64]:
        x = rng.normal(size=(n, dim))
        return np.asarray(x / np.linalg.norm(x, axis=1, keepdims=True) * rng.random((n, 1)) ** (1 / dim))

    return Law("ball", dim, log_ball(dim), draw)


def _shell(dim: int) -> Law:
    """Radius N(1, 0.1²), any direction: H = h(r) + E ln(surface of radius r)."""
    surface = math.log(dim) + log_ball(dim)

    def weighted(r: float) -> float:
        return math.exp(-50 * (r - 1) ** 2) / (0.1 * math.sqrt(2 * math.pi)) * math.log(r)

    radial = quad(weighted, 0.2, 1.8, limit=200, epsabs=1e-12)[0]
    entropy = GAUSS + math.log(0.1) + surface + (dim - 1) * radial

    def draw(rng: np.random.Generator, n: int) -> NDArray[np.float64]:
        x = rng.normal(size=(n, dim))
        return np.asarray(x / np.linalg.norm(x, axis=1, keepdims=True) * (1 + 0.1 * rng.normal(size=(n, 1))))

    return Law("shell", dim, entropy, draw)


def _separated(name: str, parts: int, stretch: float, even: bool) -> Callable[[int], Law]:
    """Gaussians in turned frames, 20 of the widest deviation apart: H = −Σ w ln w + Σ w h, to within e^−50."""

    def make(dim: int) -> Law:
        rng = np.random.default_rng([11, parts, dim])
        share = np.full(parts, 1 / parts) if even else np.arange(1, parts + 1) / (parts * (parts + 1) / 2)
        widths = np.exp(rng.uniform(-stretch, 0, (parts, dim)))
        frames = np.stack([np.linalg.qr(rng.normal(size=(dim, dim)))[0] for _ in range(parts)])
        means = _apart(rng, parts, dim, 20.0)
        entropy = float(-(share * np.log(share)).sum() + share @ np.log(widths).sum(axis=1)) + dim * GAUSS

        def draw(rng: np.random.Generator, n: int) -> NDArray[np.float64]:
            part, noise = rng.choice(parts, n, p=share), rng.normal(size=(n, dim))
            for p in range(parts):
                mine = part == p
                noise[mine] = (noise[mine] * widths[p]) @ frames[p] + means[p]
            return noise

        return Law(name, dim, entropy, draw)

    return make


def _apart(rng: np.random.Generator, parts: int, dim: int, distance: float) -> NDArray[np.float64]:
    """Points whose closest pair is `distance` apart; of 50 tries the tightest."""
    best = np.zeros((parts, dim))
    for _ in range(50):
        points = rng.normal(size=(parts, dim))
        pairs = np.linalg.norm(points[:, None] - points[None], axis=2) + 1e9 * np.eye(parts)
        points *= distance / pairs.min()
        if not best.any() or np.abs(points).max() < np.abs(best).max():
            best = points
    return best


LAWS: dict[str, Callable[[int], Law]] = {
    "gaussian": _product("gaussian", GAUSS, lambda rng, shape: rng.normal(size=shape)),
    "uniform": _product("uniform", 0.0, lambda rng, shape: rng.random(shape)),
    "student3": _product("student3", float(stats.t.entropy(3)), lambda rng, shape: rng.standard_t(3, shape)),
    "exponential": _product("exponential", 1.0, lambda rng, shape: rng.exponential(size=shape)),
    "banana": _banana,
    "mixture": _separated("mixture", 6, 1.0, True),
    "correlated": _correlated,
    "laplace": _product("laplace", 1 + math.log(2), lambda rng, shape: rng.laplace(size=shape)),
    "lognormal": _product("lognormal", GAUSS, lambda rng, shape: rng.lognormal(size=shape)),
    "beta": _product("beta", float(stats.beta.entropy(2, 5)), lambda rng, shape: rng.beta(2, 5, shape)),
    "gamma": _product("gamma", float(stats.gamma.entropy(2)), lambda rng, shape: rng.gamma(2, size=shape)),
    "bimodal": _product("bimodal", _two_bumps_entropy(), _two_bumps),
    "trimodal": _product("trimodal", _three_bumps_entropy(), _three_bumps),
    "clusters": _separated("clusters", 12, 2.0, False),
    "islands": _separated("islands", 9, 1.5, False),
    "rotated_laplace": _rotated_laplace,
    "ball": _ball,
    "shell": _shell,
}
TUNING = ("gaussian", "uniform", "student3", "exponential", "banana", "mixture", "bimodal", "clusters")
HELD_OUT = tuple(name for name in LAWS if name not in TUNING)
# Independent heavy-tailed, skewed or bounded coordinates, or Gaussians far apart: what the front end is made for.
ENTANGLED = ("banana", "correlated", "rotated_laplace", "ball", "shell")
COVERED = tuple(name for name in LAWS if name not in ENTANGLED)
