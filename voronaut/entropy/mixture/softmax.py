"""The softmax of the mixture's E step over log weights (components, points), float32, points side by side in memory.

Every loop runs over one row of points: compilers turn such loops into vector code, three times faster here than
NumPy's own exponential.
"""

import numpy as np
from numpy.typing import NDArray

from voronaut.kernels.compiled import compiled

Singles = NDArray[np.float32]
Bits = NDArray[np.int32]

BLOCK = 1024  # points worked on at a time
LOWEST = np.float32(-115)  # 2^−115 counts as 0; what is smaller could become denormal, and slow
LOG2_E = np.float32(1.4426950408889634)
# 2^{f + ½} for f in [−½, ½]: a polynomial with a relative error below 1e-7
P0, P1, P2, P3, P4, P5 = (
    np.float32(2**0.5 * c)
    for c in (1.000000071065, 0.693146949069, 0.240221215762, 0.055507426754, 0.009675469395, 0.001326697993)
)


@compiled
def _raise(row: Singles, top: Singles) -> None:
    """OUT: top, the larger of both."""
    for c in range(row.shape[0]):
        top[c] = row[c] if row[c] > top[c] else top[c]


@compiled
def _exponentials(row: Singles, top: Singles, total: Singles, power: Singles, bits: Bits) -> None:
    """e^{row − top}. OUT: row, and total to which it is added; `power` and `bits` are the same bytes."""
    for c in range(row.shape[0]):
        t = (row[c] - top[c]) * LOG2_E
        t = t if t > LOWEST else LOWEST
        whole = np.floor(t)
        bits[c] = (np.int32(whole) + np.int32(127)) << np.int32(23)
        f = t - whole - np.float32(0.5)
        row[c] = P0 + f * (P1 + f * (P2 + f * (P3 + f * (P4 + f * P5))))
    for c in range(row.shape[0]):
        value = row[c] * power[c]
        row[c] = value
        total[c] += value


@compiled
def _scale(row: Singles, by: Singles) -> None:
    """OUT: row."""
    for c in range(row.shape[0]):
        row[c] *= by[c]


@compiled
def responsibilities(logs: Singles, out: NDArray[np.float64], power: Singles, bits: Bits) -> None:
    """r_ij = e^{l_ij} / Σ_i e^{l_ij}, and ln Σ_i e^{l_ij}. OUT: logs (k, n) becomes r; out (n,) the logarithms."""
    components, points = logs.shape
    for start in range(0, points, BLOCK):
        stop = min(start + BLOCK, points)
        width = stop - start
        top, total = logs[0, start:stop].copy(), np.zeros(width, np.float32)
        for i in range(1, components):
            _raise(logs[i, start:stop], top)
        for i in range(components):
            _exponentials(logs[i, start:stop], top, total, power[:width], bits[:width])
        for c in range(width):
            out[start + c] = top[c] + np.log(np.float64(total[c]))
            total[c] = np.float32(1) / total[c]
        for i in range(components):
            _scale(logs[i, start:stop], total)


def normalise(logs: Singles) -> NDArray[np.float64]:
    """Turn log weights (k, n) into responsibilities in place; gives ln Σ_i e^{l_ij}, (n,)."""
    out, power = np.empty(logs.shape[1]), np.empty(BLOCK, np.float32)
    responsibilities(logs, out, power, power.view(np.int32))
    return out
