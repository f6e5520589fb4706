"""The sample is fair, and the same however the stream is cut."""

import numpy as np

from voronaut.bonuses.reservoir import Reservoir


def filled(cuts: list[int], seed: int = 0) -> Reservoir:
    reservoir = Reservoir(50, 1, "float64", seed)
    for part in np.split(np.arange(2000.0)[:, None], cuts):
        reservoir.add(part)
    return reservoir


def test_pieces_make_no_difference() -> None:
    assert filled([]).sample.tolist() == filled([1, 30, 49, 50, 51, 700]).sample.tolist()


def test_a_short_stream_is_kept_whole() -> None:
    reservoir = Reservoir(50, 1, "float64", 0)
    reservoir.add(np.arange(7.0)[:, None])
    assert reservoir.sample.ravel().tolist() == list(range(7))


def test_every_state_is_equally_likely() -> None:
    tenths = np.concatenate([filled([], seed).sample.ravel() // 200 for seed in range(400)])
    shares = np.bincount(tenths.astype(int), minlength=10) / len(tenths)
    assert np.abs(shares - 0.1).max() < 5 * np.sqrt(0.1 * 0.9 / len(tenths))
