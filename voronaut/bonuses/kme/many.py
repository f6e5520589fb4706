"""Many KMEs of equal size as one XLA program, for machines with an accelerator."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from voronaut.bonuses.kme import auto

if TYPE_CHECKING:
    from voronaut.bonuses.kme import KME


def rewards(members: Sequence["KME"], states: NDArray[Any]) -> NDArray[Any]:
    """(runs, n, dim) -> (runs, n): what each run's states earn from its own clusters."""
    from voronaut.kernels import xla

    for member in members:
        member._sync()
    if any(member._empty for member in members) or _own_rules(members[0]):
        return np.stack([member.rewards(own) for member, own in zip(members, states, strict=True)])
    own = np.stack([member._read(part).states for member, part in zip(members, states, strict=True)])
    floors = np.array([member._floor for member in members])
    return xla.rewards_runs(*_clusters(members), own, members[0]._rules, floors)


def update(members: Sequence["KME"], states: NDArray[Any]) -> None:
    """One shuffled pass of each run's clusters over its own states (runs, n, dim)."""
    from voronaut.kernels import xla

    if _own_rules(members[0]):
        for member, part in zip(members, states, strict=True):
            member.update(part)
        return
    own = np.stack([member._ready(part).states for member, part in zip(members, states, strict=True)])
    shuffled = np.stack([part[member._order(len(part))] for member, part in zip(members, own, strict=True)])
    centers, counts = xla.update_runs(*_clusters(members), shuffled, members[0]._rules)
    for run, member in enumerate(members):
        member._centers, member._counts = centers[run], counts[run]
        member._absorbed(own[run])


def _clusters(members: Sequence["KME"]) -> tuple[NDArray[Any], NDArray[np.int64]]:
    return np.stack([member._centers for member in members]), np.stack([member._counts for member in members])


def _own_rules(member: "KME") -> bool:
    """Whether each run has its own κ or α, or mixes old states in: then runs are served one by one."""
    return auto.chosen(member.settings) or member.settings.replay > 0
