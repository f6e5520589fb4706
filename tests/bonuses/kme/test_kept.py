"""What a KME keeps between calls is of the clusters and the frame as they are: gaps, the sample, what is replayed."""

import itertools
from typing import Any

import numpy as np
import pytest

import voronaut as vn
from tests.bonuses.kme import paper
from voronaut import clusters as ref

DIM = 3


def states(n: int, seed: int, scale: float = 1.0, offset: float = 0.0) -> Any:
    return np.random.default_rng(seed).normal(size=(n, DIM)) * scale + offset


def make(**options: Any) -> vn.KME:
    return paper(DIM, clusters=8, **{"dtype": "float64", "init": "data", **options})


def without_kept_gaps(kme: vn.KME) -> vn.KME:
    """A twin that has to measure its gaps."""
    twin = vn.KME.from_params(kme.params)
    twin.load_state_dict({k: v[:0] if k.startswith("kept_") else v for k, v in kme.state_dict().items()})
    return twin


def test_an_update_makes_kept_gaps_forgotten() -> None:
    kme = make()
    kme.step(states(50, 0))
    kme.update(states(400, 1, offset=2.0))
    now = ref.Clusters(kme.centers, kme.counts)
    np.testing.assert_allclose(kme.gaps, ref.gaps(now, 1e-4), atol=1e-9)
    state = states(1, 2)
    wanted = ref.reward(now, state[0], 0.05, 1e-4)
    np.testing.assert_allclose(kme.step(state), [wanted], atol=1e-9)


def test_a_refresh_of_the_frame_makes_kept_gaps_forgotten() -> None:
    kme = make(normalize=True)
    kme.step(states(50, 0))
    twin, wide = without_kept_gaps(kme), states(50, 1, scale=5.0)
    np.testing.assert_allclose(kme.step(wide), twin.step(wide), atol=1e-9)
    np.testing.assert_allclose(kme.gaps, twin.gaps, atol=1e-9)


@pytest.mark.parametrize("options", [{"normalize": True}, {"dtype": "float32"}], ids=["standardised", "shifted"])
@pytest.mark.parametrize("way", ["update", "step"])
def test_the_sample_moves_with_the_frame(options: dict[str, Any], way: str) -> None:
    kme, places = make(**options), []
    parts = [states(40, seed, scale, offset=45.0) for seed, scale in enumerate([1.0, 0.1, 0.1, 0.1])]
    for part in parts:  # ever more of them are near one point: relative to their spread they are far from 0
        getattr(kme, way)(part)
        known = kme.state_dict()
        places.append(tuple(place := known.get("origin", known.get("frame.mean"))))
    assert len(set(places)) > 1
    found = known["sample"] * known.get("frame.deviation", 1.0) + place
    np.testing.assert_allclose(found, np.concatenate(parts), atol=1e-4)


def test_every_update_replays_other_states(monkeypatch: pytest.MonkeyPatch) -> None:
    """As many as are new, drawn from a sample of the states before; the paper's clusters take what comes."""
    for kme, replayed in ((vn.KME(1), 64), (paper(1), 0)):
        kme.update(np.resize(np.arange(64.0), (16_384, 1)))
        drawn: list[Any] = []
        monkeypatch.setattr(kme._memory, "update", lambda states, _, drawn=drawn: drawn.append(states[64:, 0]))
        for _ in range(4):
            kme.update(np.zeros((64, 1)))
        assert all(len(each) == replayed for each in drawn)
        assert all((a != b).sum() > 30 for a, b in itertools.combinations(drawn, 2)) or not replayed
