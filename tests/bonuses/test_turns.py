"""Several threads, one bonus: nothing is lost, and nothing is seen half done."""

import copy
import pickle
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

import voronaut as vn

DIM, ROUNDS, SIZE = 4, 40, 50
MAKERS: dict[str, Any] = {
    "KME": lambda: vn.KME(DIM, clusters=20),
    "the paper's KME": lambda: vn.KME(DIM, clusters=20, balance=1e-4, normalize=True),
    "RND": lambda: vn.RND(DIM, seed=0, hidden=8, features=4),
    "RE3": lambda: vn.RE3(DIM, seed=0, hidden=8, features=4, memory=500),
    "HashCount": lambda: vn.HashCount(DIM, seed=0),
}
ALL = ("metrics", "state_dict")  # and rewards, update, load_state_dict
OF_KME = ("centers", "counts", "gaps", "objective_value", "entropy", "entropy_bound")


class Counted:
    """In the place of a lock: counts who took it."""

    taken = 0

    def __enter__(self) -> None:
        self.taken += 1

    def __exit__(self, *_: object) -> None:
        pass


@pytest.fixture(params=MAKERS)
def bonus(request: pytest.FixtureRequest) -> Any:
    """One that has learned a little."""
    made = MAKERS[request.param]()
    made.update(batches(0)[0])
    return made


@pytest.fixture(autouse=True)
def often() -> Iterator[None]:
    """Threads take over from one another as often as they can."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def batches(seed: int) -> Any:
    return np.random.default_rng(seed).normal(size=(ROUNDS, SIZE, DIM)).astype(np.float32)


def fresh(bonus: Any) -> Any:
    return type(bonus).from_params({**bonus.params, "features": None} if isinstance(bonus, vn.KME) else bonus.params)


def run(*calls: Any) -> None:
    """Each call in a thread of its own; raises what one of them raised."""
    with ThreadPoolExecutor(len(calls)) as pool:
        for done in [pool.submit(call) for call in calls]:
            done.result()


def test_updates_of_two_threads_all_count(bonus: Any) -> None:
    run(*(lambda seed=seed: [bonus.update(states) for states in batches(seed)] for seed in (1, 2)))
    assert bonus.metrics()["states"] == SIZE * (1 + 2 * ROUNDS)
    state = bonus.state_dict()
    fresh(bonus).load_state_dict(state)  # a KME refuses counts that do not add up
    if isinstance(bonus, vn.RND):
        assert state["steps"] == 1 + 2 * ROUNDS  # of the optimiser: one minibatch an update


def test_walks_of_two_threads_all_count() -> None:
    kme = vn.KME(DIM, clusters=20, balance=1e-4)
    run(*(lambda seed=seed: [kme.step(states) for states in batches(seed)] for seed in (1, 2)))
    assert kme.counts.sum() == 20 + 2 * SIZE * ROUNDS


def test_what_is_read_beside_an_update_is_whole(bonus: Any) -> None:
    def look() -> None:
        for states in batches(3):
            assert np.isfinite(bonus.rewards(states)).all()
            assert bonus.metrics()["states"] % SIZE == 0
            fresh(bonus).load_state_dict(bonus.state_dict())

    run(look, lambda: [bonus.update(states) for states in batches(1)])


def test_every_call_waits_for_its_turn(bonus: Any) -> None:
    states, kme = batches(1)[0], isinstance(bonus, vn.KME)
    calls = {
        "rewards": lambda: bonus.rewards(states),
        "update": lambda: bonus.update(states),
        **{name: getattr(bonus, name) for name in ALL},
        "load_state_dict": lambda: bonus.load_state_dict(copied),
        **({"step": lambda: bonus.step(states)} if kme else {}),
    }
    copied, bonus._turns.lock = bonus.state_dict(), Counted()
    for name, call in calls.items():
        bonus._turns.lock.taken = 0
        call()
        assert bonus._turns.lock.taken, name
    for name in OF_KME if kme else ():
        bonus._turns.lock.taken = 0
        found = getattr(bonus, name)
        assert (found() if callable(found) else found) is not None
        assert bonus._turns.lock.taken, name


@pytest.mark.parametrize("how", [copy.copy, copy.deepcopy, lambda bonus: pickle.loads(pickle.dumps(bonus))])
def test_copies_go_on_alike(bonus: Any, how: Any) -> None:
    other, states = how(bonus), batches(1)
    np.testing.assert_array_equal(other.rewards(states[0]), bonus.rewards(states[0]))
    with bonus._turns.lock:  # a copy with the same lock would wait for ever in another thread
        if how is not copy.copy:
            run(lambda: other.update(states[1]))
