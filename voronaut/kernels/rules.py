"""What a kernel is told besides clusters and states."""

from typing import NamedTuple

SQRT, LOG = 0, 1
OBJECTIVES = {"sqrt": SQRT, "log": LOG}


class Rules(NamedTuple):
    """How clusters move and what their gaps are worth."""

    step_size: float  # α
    balance: float  # κ
    objective: int = SQRT  # f: SQRT or LOG
    floor: float = 1.0  # where LOG is cut off
