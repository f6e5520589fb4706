"""Many small k-means, each of a few coordinates, that leave no cluster idle: a KME's default memory, in plain NumPy.

`clusters.py` is the paper's memory: one k-means of the whole state, balanced by how often each cluster has ever won.
That falls ill where the stream moves, depends on units, and hears little of a single coordinate among many. Here

    a view       is a k-means of some coordinates: of each by itself (m = 1), of pairs, or of the whole state;
    a state      goes to the nearest center of each view, which moves toward it: μ_i ← μ_i + α (s − μ_i);
    a crowd      is split: usage u_i is the faded share of states that cluster i has won, 1 on average. Is a winner used
                 more than four times as much as the least used cluster, that one is put beside it.

No number here has a unit but those of the states, and nothing that was left behind weighs for long.
This file is the judge of every faster kernel (`kernels/*/views.py`). docs/balance.md has what was tried.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from voronaut.clusters import Array, between, first_centers

Columns = NDArray[np.int64]

STEP = 0.05  # α
FADE = 0.01  # b: one win adds b to a usage; usage is forgotten over k/b states
CROWDED = 4.0  # a cluster used this many times as much as the least used one is split
RATE = 1e-3  # of the running margin: about the last thousand states
CLIP = 10.0  # running margins: a larger margin counts as that, so that a few outliers are no scale
ROUNDED = 2.0**-17  # a deviation of rewards up to this may be float32's rounding: no unit, and nothing is paid
BESIDE = 0.1  # of the way from the crowded center to the state: there the new center is put


class View(NamedTuple):
    """Centers μ (k, m), usage u (k,), the running margin of second best over best, and states seen. m = 1: sorted."""

    centers: Array
    usage: Array
    margin: float = 0.0
    seen: int = 0


def columns(dim: int, views: int, view_dim: int, seed: int) -> Columns:
    """Which coordinates each view has, (views, m): none twice, all equally often as far as it goes, in a random order.

    A view of all coordinates, and views of one, are in the order of the coordinates.
    """
    rng, per_round = np.random.default_rng([seed, 3]), dim // view_dim
    rounds = [np.arange(dim) if view_dim in (1, dim) else rng.permutation(dim) for _ in range(-(-views // per_round))]
    return np.concatenate([each[: per_round * view_dim].reshape(-1, view_dim) for each in rounds])[:views]


def start(states: Array, clusters: int, seed: int) -> View:
    """Centers at distinct states (n, m), used equally."""
    return ordered(View(first_centers(states, clusters, seed).astype(np.float64), np.ones(clusters)))


def ordered(view: View) -> View:
    """The same clusters; those of one coordinate sorted by it, equal ones as they were."""
    if view.centers.shape[1] > 1:
        return view
    order = np.argsort(view.centers[:, 0], kind="stable")
    return view._replace(centers=view.centers[order], usage=view.usage[order])


def distances(view: View, state: Array) -> Array:
    """‖s − μ_i‖, (k,)."""
    return np.asarray(np.sqrt(((view.centers - state) ** 2).sum(axis=1)))


def assign(view: View, state: Array) -> int:
    """argmin_i ‖s − μ_i‖, the lowest index on a tie."""
    return int(np.argmin(distances(view, state)))


def move(view: View, state: Array, step_size: float = STEP) -> View:
    """μ_i ← μ_i + α (s − μ_i): what a state is paid for. The clusters stay in their places."""
    winner, centers = assign(view, state), view.centers.copy()
    centers[winner] += step_size * (state - centers[winner])
    return view._replace(centers=centers)


def absorb(view: View, state: Array, step_size: float = STEP) -> View:
    """The winner moves, usage fades and the winner's grows, the margin follows, a crowd is split.

    A state counts as usage by its distance to the center, up to the margin: min(1, ‖s − μ_i‖ / margin). Where one
    state comes again and again a second cluster could only sit on the first: such a place is not crowded.
    """
    far, k, seen = distances(view, state), len(view.usage), view.seen + 1
    winner = int(np.argmin(far))
    best, ahead = far[winner], np.delete(far, winner).min() - far[winner]
    counts = best / view.margin if best < view.margin else float(best > 0)
    usage = (1 - FADE / k) * view.usage
    usage[winner] += FADE * counts
    margin = view.margin or ahead
    margin += max(RATE, 1 / seen) * (min(ahead, CLIP * margin) - margin)
    moved = move(view, state, step_size)._replace(usage=usage, margin=float(margin), seen=seen)
    return ordered(split(moved, winner, state))


def split(view: View, host: int, state: Array) -> View:
    """Where u_i > 4 min u the least used cluster j joins i: μ_j = μ_i + (s − μ_i)/10, and both share their usage.

    Centers that only slide cannot cross empty space; a center that is put somewhere need not.
    """
    least = int(np.argmin(view.usage))
    if view.usage[host] <= CROWDED * view.usage[least]:
        return view
    centers, usage = view.centers.copy(), view.usage.copy()
    centers[least] = centers[host] + BESIDE * (state - centers[host])
    usage[[host, least]] = (usage[host] + usage[least]) / 2
    return view._replace(centers=centers, usage=usage)


def gaps(view: View) -> Array:
    """min_{j≠i} ‖μ_i − μ_j‖, (k,)."""
    return between(view.centers, np.zeros(len(view.centers)))


def objective(view: View) -> float:
    """L = Σ_i √gap_i (Eq. 3)."""
    return float(np.sqrt(gaps(view)).sum())


def reward(view: View, state: Array, step_size: float = STEP) -> float:
    """L after the winning center has moved, less L before (Eq. 2). Splits change L too, and are not paid."""
    return objective(move(view, state, step_size)) - objective(view)


def bonus(views: list[View], which: Columns, deviations: Array, state: Array, step_size: float = STEP) -> float:
    """Σ_v r_v / σ_v over all views of a whole state (d,): each view in its own running deviation, if it has one."""
    paid = [reward(view, state[own], step_size) for view, own in zip(views, which, strict=True)]
    return float(sum(r / sigma for r, sigma in zip(paid, deviations, strict=True) if sigma > ROUNDED))
