"""Algorithm 2 and Algorithm 1 in training, against the NumPy reference, state by state."""

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.training.toys import small
from voronaut import clusters
from voronaut.training.api import configure
from voronaut.training.config import Config, make_methods
from voronaut.training.population import ONLINE, SHUFFLED, Population

ALPHA, KAPPA, RUNS, TIME, ENVS, DIM, ROLLOUTS = 0.05, 1e-3, 2, 9, 3, 4, 3
OPTIONS = {"kme": {"clusters": 7, "step_size": ALPHA, "balance": KAPPA, "dtype": "float64"}}


def reference(states: NDArray[np.float64], way: str, seed: int) -> tuple[list[NDArray[np.float64]], clusters.Clusters]:
    """What each rollout of one run (rollouts, states, d) is paid, and the clusters at the end."""
    now, paid = clusters.Clusters(np.zeros((7, DIM)), np.ones(7, np.int64)), []
    for number, batch in enumerate(states):
        drawn = [seed, number] if way == "shuffled" else [seed, number, 3]
        order = np.random.default_rng(drawn).permutation(len(batch)) if "shuffled" in way else np.arange(len(batch))
        frozen, online = now, np.empty(len(batch))
        for index in order:
            online[index] = clusters.reward(now, batch[index], ALPHA, KAPPA)
            now = clusters.absorb(now, batch[index], ALPHA, KAPPA)
        batchwise = np.array([clusters.reward(frozen, state, ALPHA, KAPPA) for state in batch])
        paid.append(online if "online" in way else batchwise)
    return paid, now


def agrees_with_the_reference(config: Config, population: type[Population], way: str) -> None:
    """Pay and absorb a few rollouts, and compare every reward and center."""
    bonuses = population(config, DIM)
    states = np.random.default_rng(1).normal(size=(ROLLOUTS, RUNS, TIME, ENVS, DIM)).astype(np.float32)
    paid = []
    for number, rollout in enumerate(states):
        paid.append(bonuses.pay(rollout, number)[0])
        bonuses.absorb(rollout, number)
    for run, (bonus, seed) in enumerate(zip(bonuses.members(), config.seeds, strict=True)):
        own = states[:, run].reshape(ROLLOUTS, -1, DIM).astype(np.float64)
        wanted, after = reference(own, way, seed)
        np.testing.assert_allclose(np.array(paid)[:, run].reshape(ROLLOUTS, -1), wanted, rtol=1e-5, atol=1e-7)
        np.testing.assert_allclose(bonus.centers, after.centers, atol=1e-12)
        assert bonus.counts.tolist() == after.counts.tolist()


@pytest.mark.parametrize("way", [SHUFFLED, ONLINE])
def test_each_algorithm_is_the_references(way: str) -> None:
    config = small(bonuses=["kme"], options={"kme": {**OPTIONS["kme"], "absorb": way}})
    agrees_with_the_reference(config, Population, way)


def test_grown_gaps_are_those_that_the_paper_recomputes() -> None:
    """A gap grows where the nearest cluster is the one that moved, and it moved away (Algorithm 1's loop)."""
    config = small(bonuses=["kme"], seeds=1, options={"kme": {**OPTIONS["kme"], "absorb": "online"}})
    bonuses = Population(config, DIM)
    states = np.random.default_rng(3).normal(size=(1, 40, 2, DIM)).astype(np.float32)
    bonuses.pay(states, 0)
    now, grown = clusters.Clusters(np.zeros((7, DIM)), np.ones(7, np.int64)), 0
    for state in states.reshape(-1, DIM).astype(np.float64):
        i = clusters.assign(now, state, KAPPA)
        after = clusters.absorb(now, state, ALPHA, KAPPA)
        before, moved = _distances(now), _distances(after)
        others = [j for j in range(7) if j != i and before[j].argmin() == i]
        grown += sum(moved[j, i] > before[j, i] for j in others)
        now = after
    metrics = bonuses.metrics()[0]
    assert metrics["kme/grown_gaps"] == grown > 20
    assert 0 < metrics["kme/recomputed_gaps"] <= metrics["kme/grown_gaps"]


def _distances(now: clusters.Clusters) -> NDArray[np.float64]:
    weight = clusters.weights(now, KAPPA)
    apart = np.sqrt(((now.centers[:, None] - now.centers[None]) ** 2).sum(axis=2)) + weight[None] - weight[:, None]
    np.fill_diagonal(apart, np.inf)
    return np.asarray(apart)


def test_what_may_be_chosen() -> None:
    (usual,) = make_methods(["kme"], {"kme": {"absorb": "shuffled"}}, {})
    assert usual == make_methods(["kme"], {}, {})[0]  # the same experiment, said aloud
    swept = make_methods(["kme"], {}, {"kme.absorb": ["shuffled", "online"]})
    assert [m.label for m in swept] == ["kme,absorb=shuffled", "kme,absorb=online"]
    assert swept[1].params["absorb"] == "online"
    for kind, options, message in (
        ("kme", {"absorb": "in-order"}, "shuffled .* or online .*; got 'in-order'"),
        ("kme", {"replay": 0.5}, "kme has no parameter 'replay'"),
        ("rnd", {"absorb": "online"}, "rnd has no parameter 'absorb'"),
    ):
        with pytest.raises(ValueError, match=message):
            make_methods([kind], {kind: options}, {})


def test_sac_has_no_rollout_to_absorb_online() -> None:
    """Its batches are drawn again and again: each draw would be learned once more."""
    with pytest.raises(ValueError, match="SAC pays batches of its replay"):
        configure("cheetah-run", learner="sac", bonuses="kme", options={"kme": {"absorb": "online"}})
