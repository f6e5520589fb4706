"""Every adapter against the conformance kit."""

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from tests.adapters import hosts
from tests.adapters.views import check_views
from voronaut.conformance import ADAPTER_CHECKS, Walk, check_adapter
from voronaut.conformance.walk import Toll

HOSTS: dict[str, Callable[..., Any]] = {
    "sb3 on-policy": hosts.Sb3,
    "sb3 off-policy": partial(hosts.Sb3, algorithm="SAC"),
    "sb3 replay": partial(hosts.Sb3, algorithm="SAC", pay=False),
    "gymnasium next step": partial(hosts.VectorLoop, mode="NEXT_STEP"),
    "gymnasium same step": partial(hosts.VectorLoop, mode="SAME_STEP"),
    "gymnasium disabled": partial(hosts.VectorLoop, mode="DISABLED"),
    "gymnasium single": hosts.SingleLoop,
    "torchrl": hosts.TorchRL,
}


@pytest.mark.parametrize("check", ADAPTER_CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("name", HOSTS)
def test_adapter(name: str, check: Callable[[Any], None]) -> None:
    check(HOSTS[name])


@pytest.mark.parametrize("name", sorted(set(HOSTS) - {"sb3 replay"}))  # which pays later, with what was learned since
def test_views(name: str) -> None:
    check_views(HOSTS[name])


def test_all_at_once() -> None:
    check_adapter(hosts.Sb3)


class PaidWalk(Walk):
    """Only the first walk is paid by its task, in the middle of its episodes; the others cost a little."""

    def step(self) -> Any:
        state, _, terminated, truncated = super().step()
        return state, 1.0 if self.number == 0 and self.time == 2 else -0.1, terminated, truncated


@pytest.mark.parametrize("name", HOSTS)
def test_a_falling_weight_counts_every_episode_once(name: str) -> None:
    host = HOSTS[name](Toll(), [PaidWalk(number) for number in range(3)], scale="falling:1")
    host.collect()
    wrappers = getattr(host, "envs", None) or [getattr(host, "pay", None) or host.env]
    known = [wrapper.payer.state_dict() for wrapper in wrappers]
    assert sum(int(each["episodes"][0]) for each in known) == 6 + 4 + 4
    assert sum(float(each["episodes"][0] * each["paid"][0]) for each in known) == pytest.approx(6)
    assert sum(wrapper.payer.weight() for wrapper in wrappers) == pytest.approx(
        8 / 14 if len(wrappers) == 1 else 2, rel=1e-9
    )
