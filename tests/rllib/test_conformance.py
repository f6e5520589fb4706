"""The RLlib adapter against the conformance kit."""

from collections.abc import Callable
from typing import Any

import pytest

from tests.adapters.views import check_views
from tests.rllib.worlds import Host
from voronaut.conformance import ADAPTER_CHECKS


@pytest.mark.parametrize("check", ADAPTER_CHECKS, ids=lambda check: check.__name__)
def test_adapter(check: Callable[[Any], None], cluster: None) -> None:
    check(Host)


def test_views(cluster: None) -> None:
    check_views(Host)
