"""The part of `check_bonus` about saving, loading and logging."""

import copy
import math
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from voronaut.bonuses.saving import Saved, load
from voronaut.conformance import common
from voronaut.conformance.common import DIM, SEED, Factory, demand, region


def state_round_trip_goes_on(factory: Factory) -> None:
    """A state loaded into a fresh or a used bonus goes on as the one it came from."""
    bonus = common.trained(factory, region(1, 0))
    state = bonus.state_dict()
    for taker in (factory(dim=DIM, seed=SEED), common.trained(factory, region(-1, 1), times=5)):
        taker.load_state_dict(copy.deepcopy(state))
        original = factory(dim=DIM, seed=SEED)
        for _ in range(3):
            original.update(region(1, 0))
        _go_on_alike(original, taker, "a run resumed from state_dict is another run than the uninterrupted one.")


def state_dict_is_a_copy(factory: Factory) -> None:
    """What was given out or taken in shares no memory with the bonus."""
    bonus, states = common.trained(factory, region(1, 0)), region(-1, 1)
    state, taker = bonus.state_dict(), factory(dim=DIM, seed=SEED)
    taken = copy.deepcopy(state)
    taker.load_state_dict(taken)
    before = [(common.frozen(one), one.rewards(states)) for one in (bonus, taker)]
    for array in [*state.values(), *taken.values()]:
        if isinstance(array, np.ndarray) and array.flags.writeable:
            array[...] = 1
    for one, (kept, paid) in zip((bonus, taker), before, strict=True):
        alone = common.frozen(one) == kept and common.equal_bits(one.rewards(states), paid)
        demand(alone, "state_dict shares memory with the bonus: a kept checkpoint changes while the run goes on.")


def state_survives_a_file(factory: Factory) -> None:
    """Named arrays through an npz without pickle, and through `save` and `voronaut.load` where there is one."""
    bonus = common.trained(factory, region(1, 0))
    with tempfile.TemporaryDirectory() as folder:
        plain, own = Path(folder) / "plain.npz", Path(folder) / "own.npz"
        state = {name: np.asarray(array) for name, array in bonus.state_dict().items()}
        objects = [name for name, array in state.items() if array.dtype.hasobject]
        demand(not objects, f"{objects} are not plain arrays: a checkpoint would need pickle, which runs any code.")
        np.savez(plain, allow_pickle=False, **{f"state.{name}": array for name, array in state.items()})
        taker = factory(dim=DIM, seed=SEED)
        with np.load(plain) as file:
            taker.load_state_dict({name.removeprefix("state."): file[name] for name in file.files})
        takers: list[Any] = [taker]
        if isinstance(bonus, Saved):
            bonus.save(own)
            takers.append(load(own))
    for other in takers:
        _go_on_alike(copy.deepcopy(bonus), other, "what a run learned is lost between saving and loading.")


def foreign_state_is_refused(factory: Factory) -> None:
    """A state that does not fit is refused before anything changes."""
    bonus, small = common.trained(factory, region(1, 0)), common.trained(factory, region(1, 0, dim=DIM - 2))
    before, state, foreign = common.frozen(bonus), bonus.state_dict(), small.state_dict()
    wrong = [{**state, "of another bonus": np.zeros(3)}]
    wrong += [{name: state[name] for name in list(state)[:-1]}] if state else []
    wrong += [foreign] if any(np.shape(foreign[name]) != np.shape(state[name]) for name in state) else []
    for bad in wrong:
        taken = not common.refused(lambda bad=bad: bonus.load_state_dict(bad))  # type: ignore[misc]
        demand(not taken, "a state that does not fit is taken: a wrong checkpoint resumes silently.")
        demand(common.frozen(bonus) == before, "a refused state left half of itself: the run goes on damaged.")


def metrics_are_floats(factory: Factory) -> None:
    """A flat dict of floats under string names, none of them NaN, and asking changes nothing."""
    bonus = common.trained(factory, region(1, 0))
    before, metrics = common.frozen(bonus), bonus.metrics()
    flat = isinstance(metrics, dict) and all(isinstance(name, str) for name in metrics)
    numbers = flat and all(isinstance(value, float) and not math.isnan(value) for value in metrics.values())
    demand(numbers, f"metrics() gave {metrics!r}, not a flat dict of floats: loggers drop it or crash.")
    demand(common.frozen(bonus) == before, "metrics() changed the state: logging more often changes the run.")


def _go_on_alike(one: Any, other: Any, why: str) -> None:
    """Both pay alike, learn the same states, and pay alike again, to the bit."""
    more, asked = region(0, 5), np.concatenate([region(-1, 6), region(1, 0)])
    demand(common.equal_bits(one.rewards(asked), other.rewards(asked)), f"pay differs after loading: {why}")
    for _ in range(2):
        one.update(more)
        other.update(more)
    demand(common.equal_bits(one.rewards(asked), other.rewards(asked)), f"learning differs after loading: {why}")
    demand(common.frozen(one) == common.frozen(other), f"the states differ after going on: {why}")


STATE_CHECKS = (
    state_round_trip_goes_on,
    state_dict_is_a_copy,
    state_survives_a_file,
    foreign_state_is_refused,
    metrics_are_floats,
)
