"""Three ways to absorb a stream in chunks, as compiled loops: state by state, with frozen assignments, and exactly.

The exact one does what the GPU's program does: winners by the clusters before the chunk, then again by what each state
would really meet given those winners, until none changes. Centers take one move at a time, as there.
"""

import numpy as np

from voronaut.kernels.compiled import compiled
from voronaut.kernels.cpu.distances import Floats, Ints, Scratch, set_weights, winner


@compiled
def frozen_rows(
    states: Floats, chunk: int, alpha: float, balance: float, centers: Floats, counts: Ints, room: Scratch
) -> None:
    """Each state of a chunk is assigned to the clusters before it, then all move in order. OUT: centers, counts, room.

    A chunk of 1 is the sequence (Eqs. 4 to 6). Centers are (d, width).
    """
    base, weight, chosen = counts.min(), np.empty_like(room.value), np.empty(chunk, np.int64)
    for start in range(0, states.shape[0], chunk):
        stop = min(start + chunk, states.shape[0])
        set_weights(counts, balance, base, weight)
        for r in range(start, stop):
            chosen[r - start] = winner(centers, states[r], weight, room)
        for r in range(start, stop):
            i = chosen[r - start]
            counts[i] += 1
            for p in range(centers.shape[0]):
                centers[p, i] = alpha * states[r, p] + (1 - alpha) * centers[p, i]


@compiled
def exact_rows(
    states: Floats, chunk: int, alpha: float, balance: float, centers: Floats, counts: Ints, room: Scratch
) -> int:
    """The sequence as a fixed point over each chunk; returns all rounds taken. OUT: centers, counts, room."""
    base, rounds, width = counts.min(), 0, room.value.shape[0]
    weight, later = np.empty_like(room.value), np.empty_like(room.value)
    chosen, fresh, arrived = np.empty(chunk, np.int64), np.empty(chunk, np.int64), np.zeros(width, np.int64)
    moved = np.empty_like(centers)
    for start in range(0, states.shape[0], chunk):
        stop = min(start + chunk, states.shape[0])
        set_weights(counts, balance, base, weight)
        for r in range(start, stop):
            chosen[r - start] = winner(centers, states[r], weight, room)
        changed, right = 1, start  # states up to `right` have their final winners
        while changed > 0:
            rounds += 1
            changed, known = 0, right
            moved[:], later[:], arrived[:] = centers, weight, 0
            for r in range(start, stop):
                i = chosen[r - start]
                fresh[r - start] = winner(moved, states[r], later, room) if r > known else i
                if fresh[r - start] != i:
                    right = r if changed == 0 else right
                    changed += 1
                arrived[i] += 1
                later[i] = balance * (counts[i] + arrived[i] - base)
                for p in range(centers.shape[0]):
                    moved[p, i] = alpha * states[r, p] + (1 - alpha) * moved[p, i]
            chosen[:] = fresh
        centers[:] = moved
        for i in range(counts.shape[0]):
            counts[i] += arrived[i]
    return rounds
