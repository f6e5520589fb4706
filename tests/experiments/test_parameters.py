"""What the parameter experiment absorbs in other orders: against the NumPy reference, resumed, and as it was kept."""

import dataclasses
from pathlib import Path

import numpy as np
import pytest

from tests.training.test_absorb import DIM, OPTIONS, agrees_with_the_reference, reference
from tests.training.toys import small
from voronaut.experiments import parameters
from voronaut.experiments.common import sweep
from voronaut.experiments.parameters import WAYS, Orders
from voronaut.training import loop
from voronaut.training.config import Config


def config(way: str, **options: object) -> Config:
    plain = small(bonuses=["kme"], options={"kme": options})
    return dataclasses.replace(plain, methods=tuple(sweep.vary(m, {"absorb": way}) for m in plain.methods))


@pytest.mark.parametrize("way", WAYS)
def test_every_way_is_the_references(way: str) -> None:
    agrees_with_the_reference(config(way, **OPTIONS["kme"]), Orders, way)


def test_the_ways_differ() -> None:
    states = np.random.default_rng(2).normal(size=(2, 50, DIM))
    paid = {way: reference(states, way, 0)[0][1] for way in WAYS}
    assert len({values.round(9).tobytes() for values in paid.values()}) == len(WAYS)


@pytest.mark.parametrize("way", ["in-order", "online-shuffled"])
def test_training_resumes_exactly(way: str, tmp_path: Path) -> None:
    mine = config(way, clusters=10)
    loop.train(mine, tmp_path / "whole", population=Orders)
    for _ in range(3):
        with pytest.raises(loop.Stopped):
            loop.train(mine, tmp_path / "parts", resume=True, deadline=0, population=Orders)
    loop.train(mine, tmp_path / "parts", resume=True, population=Orders)
    for name in mine.folders():
        for file in ("policy.npz", "bonus.npz"):
            assert (tmp_path / "whole" / name / file).read_bytes() == (tmp_path / "parts" / name / file).read_bytes()


def test_the_kept_runs_are_this_experiments() -> None:
    """They were labelled by a sweep of `voronaut train`, which no longer offers all of them."""
    (cell,) = (cell for cell in parameters.PLAN.cells if cell.name == "absorb")
    found = sweep.find(parameters.PLAN, cell)
    assert {label: len(seeds) for label, seeds in found.runs.items()} == {f"kme,absorb={way}": 3 for way in WAYS[1:]}
    assert not found.troubles and cell.population is Orders
