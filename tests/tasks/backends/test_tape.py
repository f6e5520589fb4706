"""A tape brings fresh environments to where others are: here, numbers that depend on all that was done to them."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from voronaut.tasks.backends.tape import Tape

N, A = 3, 2


class World:
    """Environments whose starts depend on how often they were reset, and whose place on every action and its order."""

    def __init__(self) -> None:
        self.starts, self.places, self.steps = np.zeros(N), np.zeros(N), 0

    def reset(self, ids):
        self.starts[ids] += 1
        self.places[ids] = self.starts[ids] ** 2

    def step(self, ids, actions):
        self.steps += 1
        self.places[ids] = 0.5 * self.places[ids] + actions.sum(axis=1)


@given(st.lists(st.sets(st.integers(0, N - 1)), max_size=30), st.integers(0, 30))
def test_a_tape_brings_fresh_environments_to_the_same_place(ends, saved_at):
    """Some environments end after each step; saved on the way, loaded and gone on with, and played once more."""
    world, tape, everyone = World(), Tape(N, A), np.arange(N, dtype=np.int32)

    def reset(ids):
        world.reset(ids)
        tape.reset(ids)

    reset(everyone)
    for t, ended in enumerate(ends):
        if t == saved_at:
            state = tape.state_dict()
            (tape := Tape(N, A)).load_state_dict(state)
        actions = np.random.default_rng(t).normal(size=(N, A))
        world.step(everyone, actions)
        tape.step(actions)
        if ended:
            reset(np.array(sorted(ended), np.int32))
    again = World()
    tape.replay(again.reset, again.step)
    np.testing.assert_array_equal(again.places, world.places)
    np.testing.assert_array_equal(again.starts, world.starts)
    assert again.steps == len(tape.state_dict()["actions"]) <= len(ends)  # none of before the oldest episode
