"""What lets a KME know no units: κ that follows the margins of its decisions, α that follows each cluster's age.

`voronaut/entropy/scale_free/rule.py` has the rule in plain NumPy.
"""

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from voronaut.bonuses.kme.settings import AUTO, COUNTS, Settings
from voronaut.kernels.rules import OBJECTIVES, Rules

if TYPE_CHECKING:
    from voronaut.bonuses.kme import KME
    from voronaut.entropy.scale_free.kernel import Pace

Floats = NDArray[np.floating[Any]]
Counts = NDArray[np.int64]
ETA = 0.03  # κ in running margins, for well mixed batches
ETA_REPLAYING = 0.003  # the same with replay: where streams mix slowly a strong κ would chase the latest states
FLOOR = 0.01  # the least α


def chosen(settings: Settings) -> bool:
    """Whether κ or α follows the data."""
    return settings.balance == COUNTS or settings.step_size == AUTO


def eta(settings: Settings) -> float:
    """κ in running margins; 0 where κ is a given number."""
    return 0.0 if settings.balance != COUNTS else ETA_REPLAYING if settings.replay else ETA


def rules(settings: Settings, margin: float, floor: float = 1.0) -> Rules:
    """What frozen clusters are told: κ as the next decision takes it, α of old clusters (see `step_sizes`)."""
    balance = eta(settings) * margin if settings.balance == COUNTS else float(settings.balance)
    alpha = FLOOR if settings.step_size == AUTO else float(settings.step_size)
    return Rules(alpha, balance, OBJECTIVES[settings.objective], floor)


def step_sizes(settings: Settings, counts: Counts) -> NDArray[np.float64]:
    """α (k,) as each cluster would move for its next state: max(0.01, 1/(n + 1)), or the number given."""
    if settings.step_size != AUTO:
        return np.full(len(counts), settings.step_size, np.float64)
    return np.maximum(FLOOR, 1 / (counts + 1))


def rewards(kme: "KME", states: Floats) -> Floats:
    """Frozen rewards where clusters have steps of their own: one pass for each step among the winners.

    There are at most 100 different steps, and one as soon as every cluster has absorbed 100 states.
    """
    kernel, prepared, now, threads = kme._kernel(), kme._prepare(), kme._rules, kme.settings.threads
    sizes = step_sizes(kme.settings, kme._counts)
    if (sizes == sizes[0]).all():
        return np.asarray(kernel.rewards(prepared, states, now._replace(step_size=float(sizes[0])), threads))
    own, paid = sizes[kernel.assign(prepared, states)], np.empty(len(states), states.dtype)
    for size in np.unique(own):
        rows = own == size
        paid[rows] = kernel.rewards(prepared, states[rows], now._replace(step_size=float(size)), threads)
    return paid


def pace(settings: Settings) -> "Pace":
    """κ = balance + η m and α = max(floor, share/n) as the kernels take them; numbers that were given stay fixed."""
    from voronaut.entropy.scale_free.kernel import Pace

    now = rules(settings, 0.0)
    return Pace(eta(settings), now.step_size, now.balance, 1.0 if settings.step_size == AUTO else 0.0)


def update(kme: "KME", states: Floats, order: Counts) -> None:
    """One pass over the states in the given order: centers, counts and margin move."""
    from voronaut.entropy.scale_free import kernel as scale_free

    now = (kme._centers, kme._counts, kme._margin, states, order)
    kme._centers, kme._counts, kme._margin = scale_free.update(*now, **pace(kme.settings)._asdict())


def step(kme: "KME", states: Floats) -> Floats:
    """Algorithm 1 over the states in the given order: what each earns; centers, counts and margin move."""
    from voronaut.entropy.scale_free import kernel as scale_free

    done = scale_free.step(kme._centers, kme._counts, kme._margin, states, pace(kme.settings), kme._rules)
    kme._centers, kme._counts, kme._margin = done.centers, done.counts, done.margin
    return done.rewards
