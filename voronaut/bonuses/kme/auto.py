"""What lets a KME know no units: κ that follows the margins of its decisions, α that follows each cluster's age."""

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from voronaut.bonuses.kme.settings import AUTO, Settings
from voronaut.kernels.rules import OBJECTIVES, Rules

if TYPE_CHECKING:
    from voronaut.kernels.cpu_auto import Pace

Floats = NDArray[np.floating[Any]]
Counts = NDArray[np.int64]
ETA = 0.03  # κ in running margins, for well mixed batches
ETA_REPLAYING = 0.003  # the same with replay: where streams mix slowly a strong κ would chase the latest states
FLOOR = 0.01  # the least α


class Clusters(NamedTuple):
    """Clusters and the running margin."""

    centers: Floats
    counts: Counts
    margin: float


def chosen(settings: Settings) -> bool:
    """Whether κ or α follows the data."""
    return AUTO in (settings.balance, settings.step_size)


def eta(settings: Settings) -> float:
    """κ in running margins; 0 where κ is a given number."""
    return 0.0 if settings.balance != AUTO else ETA_REPLAYING if settings.replay else ETA


def rules(settings: Settings, margin: float, floor: float = 1.0) -> Rules:
    """What frozen clusters are told: κ as the next decision takes it, α of old clusters (see `step_sizes`)."""
    balance = eta(settings) * margin if settings.balance == AUTO else float(settings.balance)
    alpha = FLOOR if settings.step_size == AUTO else float(settings.step_size)
    return Rules(alpha, balance, OBJECTIVES[settings.objective], floor)


def step_sizes(settings: Settings, counts: Counts) -> NDArray[np.float64]:
    """α (k,) as each cluster would move for its next state: max(0.01, 1/(n + 1)), or the number given."""
    if settings.step_size != AUTO:
        return np.full(len(counts), settings.step_size, np.float64)
    return np.maximum(FLOOR, 1 / (counts + 1))


def rewards(kernel: Any, view: Any, states: Floats, now: Rules, settings: Settings, counts: Counts) -> Floats:
    """Frozen rewards where clusters have steps of their own: one pass for each step among the winners.

    There are at most 100 different steps, and one as soon as every cluster has absorbed 100 states.
    """
    sizes = step_sizes(settings, counts)
    if (sizes == sizes[0]).all():
        return np.asarray(kernel.rewards(view, states, now._replace(step_size=float(sizes[0])), settings.threads))
    own, paid = sizes[kernel.assign(view, states)], np.empty(len(states), states.dtype)
    for size in np.unique(own):
        rows = own == size
        paid[rows] = kernel.rewards(view, states[rows], now._replace(step_size=float(size)), settings.threads)
    return paid


def pace(settings: Settings) -> "Pace":
    """κ = balance + η m and α = max(floor, share/n) as the kernels take them; numbers that were given stay fixed."""
    from voronaut.kernels.cpu_auto import Pace

    now = rules(settings, 0.0)
    return Pace(eta(settings), now.step_size, now.balance, 1.0 if settings.step_size == AUTO else 0.0)


def update(before: Clusters, states: Floats, order: Counts, settings: Settings) -> Clusters:
    """One pass over the states in the given order."""
    from voronaut.kernels import cpu_auto

    return Clusters(*cpu_auto.update(*before, states, order, **pace(settings)._asdict()))


def step(before: Clusters, states: Floats, now: Rules, settings: Settings) -> tuple[Floats, Clusters]:
    """Algorithm 1 over the states in the given order."""
    from voronaut.kernels import cpu_auto_online

    done = cpu_auto_online.step(*before, states, pace(settings), now)
    return done.rewards, Clusters(done.centers, done.counts, done.margin)
