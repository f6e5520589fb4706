"""The part of `check_bonus` about the small protocols of `bonuses.base`: a bonus that has none of them passes."""

from typing import Any

import numpy as np

from voronaut.bonuses.base import SideBySide, Steps, TakesTensors, has_centers
from voronaut.conformance import common
from voronaut.conformance.common import COLUMNS, DIM, ROWS, SEED, Factory, demand, keeps, promises, region


def steps_pay_and_learn(factory: Factory) -> None:
    """`Steps`: each state earns by what came before it, in its own row, and is learned before the next is paid."""
    states, new = region(1, 4, 30), np.repeat(region(-20, 2, 1), 30, axis=0)
    states[-1] = new[0]
    swapped = np.concatenate([states[:-2], states[:-3:-1]])  # the last two in the other order
    one, other, third = (common.trained(factory, region(1, 0)) for _ in range(3))
    if not keeps(one, Steps):
        return
    before, paid = common.frozen(one), one.step(states)
    fits = isinstance(paid, np.ndarray) and paid.shape == (len(states),) and paid.dtype.kind == "f"
    demand(fits, f"step() of {len(states)} states gave {np.shape(paid)}: rewards would land on other states.")
    learned = common.frozen(one) != before
    demand(learned == promises(one, "learns"), "step() learns nothing, or what it must not: Algorithm 1 stands still.")
    same = common.close(other.step(swapped)[:-2], paid[:-2])
    demand(same, "the order of the last two states changes what those before them earn: rows are mixed up.")
    again = third.step(new)
    demand(
        again[-1] < again[0], "step() pays a state it has just learned as if it were new: it pays before it learns any."
    )


def centers_can_be_drawn(factory: Factory) -> None:
    """`HasCenters`: places in the states' own coordinates with whole numbers, as copies."""
    bonus = common.trained(factory, region(1, 0))
    if not has_centers(bonus):
        return
    before, centers, counts = common.frozen(bonus), np.asarray(bonus.centers), np.asarray(bonus.counts)
    fits = centers.ndim == 2 and centers.shape == (len(counts), DIM) and counts.dtype.kind == "i"
    demand(fits, f"centers {centers.shape} and counts {counts.shape} {counts.dtype} do not fit: no map can be drawn.")
    demand(np.isfinite(centers).all(), "centers are not finite: the map of a run is empty.")
    for array in (bonus.centers, bonus.counts):
        if array.flags.writeable:
            array[...] = 7
    demand(common.frozen(bonus) == before, "centers or counts are the bonus's own memory: who draws them changes them.")


def side_by_side_each_is_alone(factory: Factory) -> None:
    """`SideBySide`: runs in one program are paid as alone, and each learns from its own states and no other's.

    What `update_many` learns may differ from `update` by how an accelerator computes.
    """
    first, second, third = region(1, 0), region(-1, 1), region(0, 2)
    pair, other = (
        [common.trained(factory, states, seed=SEED + run) for run, states in enumerate((first, second))]
        for _ in range(2)
    )
    if not keeps(pair[0], SideBySide):
        return
    kind: Any = type(pair[0])
    before = [common.frozen(member) for member in pair]
    paid = kind.rewards_many(pair, np.stack([third, third]))
    for member, earned, kept in zip(pair, paid, before, strict=True):
        same = common.close(earned, member.rewards(third)) and common.frozen(member) == kept
        demand(same, "rewards_many() pays otherwise than rewards(), or changes the state: seeds side by side differ.")
    kind.update_many(pair, np.stack([third, second]))
    kind.update_many(other, np.stack([third, first]))
    changed = [common.frozen(member) != kept for member, kept in zip(pair, before, strict=True)]
    demand(changed == [promises(pair[0], "learns")] * 2, "update_many() does not teach every run: some never learn.")
    alone = common.close(pair[0].rewards(second), other[0].rewards(second))
    demand(alone, "what one run learns depends on the run beside it: several seeds are not several seeds.")


def tensors_are_taken_and_given(factory: Factory) -> None:
    """`TakesTensors`: torch tensors in, tensors out, with the numbers of the arrays. Nothing to check without torch."""
    bonus, twin = (common.trained(factory, region(1, 0)) for _ in range(2))
    if not keeps(bonus, TakesTensors):
        return
    try:
        import torch
    except ModuleNotFoundError:
        return
    states = region(0, 4)
    paid = bonus.rewards(torch.tensor(states).reshape(ROWS, COLUMNS, DIM))
    fits = isinstance(paid, torch.Tensor) and tuple(paid.shape) == (ROWS, COLUMNS)
    demand(fits, f"tensors earned {type(paid).__name__} {np.shape(paid)}: a loop on a GPU would copy or crash.")
    demand(
        common.close(paid.ravel(), twin.rewards(states)),
        "tensors earn otherwise than arrays: results depend on a kind.",
    )
    bonus.update(torch.tensor(states))
    twin.update(states)
    same = common.frozen(bonus) == common.frozen(twin)
    demand(same, "tensors teach otherwise than arrays: results depend on the library that carries them.")


OPTIONAL_CHECKS = (steps_pay_and_learn, centers_can_be_drawn, side_by_side_each_is_alone, tensors_are_taken_and_given)
