"""A KME of many views in a host library: every step is paid what the views say."""

import copy
from collections.abc import Callable
from typing import Any

import numpy as np

import voronaut as vn
from voronaut.conformance import Walk
from voronaut.conformance.walk import replay


class Still(vn.KME):
    """Counts what it is shown and stays as it is: hosts differ in when they let it learn."""

    shown = 0

    def update(self, states: Any) -> None:
        self.shown += len(states)


def check_views(make: Callable[..., Any]) -> None:
    """One rollout of a host is paid by a KME with a view of each coordinate."""
    kme = Still(dim=4, views=4, view_dim=1, clusters=8, seed=0)
    vn.KME.update(kme, np.random.default_rng(0).uniform(0, 5, size=(256, 4)).astype(np.float32))
    before = copy.deepcopy(kme)
    host = make(kme, [Walk(i) for i in range(3)], 2.0)
    rewards = host.collect().rewards
    known = replay(len(rewards))
    bonus = before.rewards(known.led_to.astype(np.float32))
    assert np.ptp(bonus) > 0.1
    within = ~known.ends  # where episodes are cut off some hosts add the value of what would follow
    np.testing.assert_allclose(rewards[within], (0.25 + 2.0 * bonus)[within], rtol=1e-4, atol=1e-5)
    assert host.bonus.shown == rewards.size
