"""What a kernel is told besides clusters and states."""

from typing import NamedTuple

SQRT, LOG = 0, 1
OBJECTIVES = {"sqrt": SQRT, "log": LOG}
LOG_FLOOR = 1e-3  # of the mean gap: where LOG is cut off
FAR = 64.0  # spreads from the reference point: farther states move it; float32 has 2^18 steps left there


class Rules(NamedTuple):
    """How clusters move and what their gaps are worth."""

    step_size: float  # α
    balance: float  # κ
    objective: int = SQRT  # f: SQRT or LOG
    floor: float = 1.0  # where LOG is cut off
