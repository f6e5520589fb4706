"""Every adapter against the conformance kit."""

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from tests.adapters import hosts
from tests.adapters.views import check_views
from voronaut.conformance import ADAPTER_CHECKS, check_adapter

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
