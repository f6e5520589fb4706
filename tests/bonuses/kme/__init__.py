"""Tests of KME: `paper(dim)` is one with the paper's balance, and with its other numbers unless they are given."""

from typing import Any

import voronaut as vn


def paper(dim: int, **options: Any) -> vn.KME:
    """The paper's memory: a number for balance."""
    return vn.KME(dim, **{"balance": 1e-4, **options})
