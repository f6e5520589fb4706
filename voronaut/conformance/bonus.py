"""`check_bonus`: what every bonus must do with states and rewards."""

import numpy as np

from voronaut.conformance import common
from voronaut.conformance.common import COLUMNS, DIM, ROWS, SEED, Factory, demand, promises, region
from voronaut.conformance.optional import OPTIONAL_CHECKS
from voronaut.conformance.state import STATE_CHECKS


def keeps_the_protocol(factory: Factory) -> None:
    """The five methods and `dim` are there; update returns nothing."""
    bonus = factory(dim=DIM, seed=SEED)
    for name in ("rewards", "update", "metrics", "state_dict", "load_state_dict"):
        demand(callable(getattr(bonus, name, None)), f"there is no {name}(): no loop or adapter can use this bonus.")
    demand(getattr(bonus, "dim", None) == DIM, "bonus.dim is not the dim it was made with: adapters size arrays by it.")
    demand(bonus.update(region(1, 0)) is None, "update() returned something: rewards belong to rewards().")


def rewards_change_nothing(factory: Factory) -> None:
    """Paying leaves no trace, in the state dict or beside it."""
    seen, other = region(1, 0), region(-1, 1)
    asked = np.concatenate([seen, region(0, 2)])
    bonus, twin = common.trained(factory, seen), common.trained(factory, seen)
    before, first = common.frozen(bonus), bonus.rewards(asked)
    bonus.rewards(other)
    why = "an evaluation would teach the bonus, and pay would depend on how often one asks."
    demand(common.frozen(bonus) == before, f"rewards() changed the state: {why}")
    demand(common.equal_bits(bonus.rewards(asked), first), f"rewards() asked twice pays differently: {why}")
    bonus.update(other)
    twin.update(other)
    same = common.equal_bits(bonus.rewards(asked), twin.rewards(asked))
    demand(same, f"after rewards() an update leads elsewhere than without it: {why}")


def update_learns(factory: Factory) -> None:
    """An update changes the state, unless the bonus says it does not learn."""
    bonus = factory(dim=DIM, seed=SEED)
    before = common.frozen(bonus)
    bonus.update(region(1, 0))
    changed = common.frozen(bonus) != before
    if promises(bonus, "learns"):
        demand(changed, "update() changed nothing that is saved: novelty never wears off, or a checkpoint forgets it.")
    else:
        demand(not changed, "update() changed the state of a bonus that says learns = False: its saves are misleading.")


def gives_one_float_for_each_state(factory: Factory) -> None:
    """(..., dim) -> (...,) of finite floats, for any layout."""
    states = region(1, 0)
    bonus = common.trained(factory, states)
    layouts = [(ROWS * COLUMNS,), (ROWS, COLUMNS), (ROWS, 2, COLUMNS // 2)]
    for shape in layouts if promises(bonus, "batchwise") else [*layouts, (1,), ()]:
        paid = bonus.rewards(states[: int(np.prod(shape))].reshape(*shape, DIM))
        demand(
            isinstance(paid, np.ndarray | np.generic) and np.shape(paid) == shape and paid.dtype.kind == "f",
            f"states of shape {(*shape, DIM)} gave {type(paid).__name__} {np.shape(paid)}, not floats {shape}: "
            "added to a rollout's rewards they would broadcast or fail.",
        )
        demand(np.isfinite(paid).all(), "finite states earn what is not finite: one such reward ruins the policy.")


def empty_batch_is_nothing(factory: Factory) -> None:
    """No states, no rewards, no change."""
    bonus = common.trained(factory, region(1, 0))
    before = common.frozen(bonus)
    for shape in ((0,), (0, COLUMNS)):
        paid = bonus.rewards(np.zeros((*shape, DIM), np.float32))
        demand(
            np.shape(paid) == shape, f"an empty batch gave {np.shape(paid)}: a loop that has nothing new would crash."
        )
        bonus.update(np.zeros((*shape, DIM), np.float32))
    demand(
        common.frozen(bonus) == before, "an empty update changed the state: a loop that has nothing new would drift."
    )


def same_seed_same_bits(factory: Factory) -> None:
    """Nothing but seed and states decides; the global generator is neither used nor moved."""
    states, kept = region(1, 0), np.random.get_state()  # noqa: NPY002
    try:
        paid = []
        for noise in (1, 2):
            np.random.seed(noise)  # noqa: NPY002
            mark = np.random.get_state()[1].copy()  # type: ignore[index]  # noqa: NPY002
            paid.append(common.trained(factory, states).rewards(states))
            moved = not np.array_equal(mark, np.random.get_state()[1])  # type: ignore[index]  # noqa: NPY002
            demand(not moved, "the global random generator was used: the user's own results change with the bonus.")
    finally:
        np.random.set_state(kept)  # noqa: NPY002
    demand(common.equal_bits(*paid), "two bonuses of one seed pay differently: no experiment can be repeated.")


def each_reward_is_its_rows(factory: Factory) -> None:
    """A marked state, anywhere in any layout, changes the reward of its own row (most)."""
    familiar = region(1, 0)
    bonus = common.trained(factory, familiar)
    base, why = bonus.rewards(familiar), "the agent is paid for what it did at other times (a permutation not undone?)."
    for place in (0, 17, ROWS * COLUMNS - 1) if promises(bonus, "pays") else ():
        marked = familiar.copy()
        marked[place] = region(-20, 2, 1)[0]
        change = np.abs(np.ravel(bonus.rewards(marked.reshape(ROWS, COLUMNS, DIM))) - base)
        right = change.argmax() == place and change[place] > 0
        demand(right, f"the reward of a marked state appeared in row {change.argmax()}, not {place}: {why}")
    order = np.random.default_rng(0).permutation(ROWS * COLUMNS)
    mixed = bonus.rewards(familiar[order].reshape(ROWS, COLUMNS, DIM)).ravel()
    demand(common.close(mixed, base[order]), f"shuffled states do not earn their own rewards, shuffled: {why}")
    turned = bonus.rewards(familiar.reshape(ROWS, COLUMNS, DIM).transpose(1, 0, 2))
    straight = base.reshape(ROWS, COLUMNS).T
    demand(common.close(turned, straight), f"(n, t) instead of (t, n) mixes rewards up: {why}")


def pieces_equal_the_whole(factory: Factory) -> None:
    """A batch paid in pieces earns what it earns whole, unless the bonus says it looks at the batch."""
    states = np.concatenate([region(1, 0), region(-1, 1)])
    bonus = common.trained(factory, region(1, 0))
    if promises(bonus, "batchwise"):
        return
    pieces = [bonus.rewards(piece) for piece in np.split(states, [1, 8, 100])]
    same = common.close(np.concatenate(pieces), bonus.rewards(states))
    demand(same, "rewards depend on how a rollout is cut: settings as batch size silently change the pay.")


def novel_states_earn_more(factory: Factory) -> None:
    """Familiar regions come to earn less than new ones, whichever is familiar; without memory, lonely ones do."""
    here, there = region(4, 0), region(-4, 1)
    bonus = factory(dim=DIM, seed=SEED)
    if not promises(bonus, "pays"):
        demand(not np.any(bonus.rewards(here)), "a bonus that says pays = False pays: the baseline is not a baseline.")
    elif not promises(bonus, "learns"):
        paid = bonus.rewards(np.concatenate([here, region(-20, 2, 1)]))
        demand(
            paid[-1] > paid[:-1].max(), "a state far from its batch earns no more than the rest: nothing to explore."
        )
    else:
        for known, new in ((here, there), (there, here)):
            learned = common.trained(factory, known, times=20)
            old, fresh = learned.rewards(known).mean(), learned.rewards(new).mean()
            message = f"states seen 20 times earn {old:.3g}, new ones {fresh:.3g}: the agent is paid to stay."
            demand(old < fresh, message)


def inputs_stay_untouched(factory: Factory) -> None:
    """States are read, neither written nor kept."""
    states = region(1, 0)
    bonus, original = factory(dim=DIM, seed=SEED), states.copy()
    bonus.update(states)
    bonus.rewards(states)
    demand(common.equal_bits(states, original), "the states given were written to: the replay buffer is corrupted.")
    before, paid = common.frozen(bonus), bonus.rewards(original)
    states[:] = 7
    kept = common.frozen(bonus) == before and common.equal_bits(bonus.rewards(original), paid)
    demand(kept, "the bonus kept the caller's array instead of a copy: reusing the buffer rewrites its memory.")
    original.flags.writeable = False
    usable = not common.refused(lambda: (bonus.rewards(original), bonus.update(original)))
    demand(usable, "read-only states are refused: arrays from JAX or shared memory cannot be used.")


def bad_input_is_refused(factory: Factory) -> None:
    """NaN and infinity are refused, or paid 0 and not learned from; a wrong last axis is refused."""
    for value in (np.nan, np.inf):
        bonus, states = common.trained(factory, region(1, 0)), region(1, 0)
        states[5, 1] = value
        before, good = common.frozen(bonus), np.arange(len(states)) != 5
        if common.refused(lambda b=bonus, s=states: b.rewards(s)):  # type: ignore[misc]
            demand(
                common.refused(lambda b=bonus, s=states: b.update(s)),  # type: ignore[misc]
                f"update() takes {value} though rewards() refuses it: one bad state poisons the bonus for good.",
            )
            demand(
                common.frozen(bonus) == before,
                f"a refused {value} still changed the state: catching the error does not help.",
            )
            continue
        paid = bonus.rewards(states)
        bonus.update(states)
        unhurt = np.isfinite(paid).all() and paid[5] == 0 and np.isfinite(bonus.rewards(states[good])).all()
        demand(unhurt, f"a state with {value} is neither refused nor set aside: one bad sensor ruins the run.")
    bonus = factory(dim=DIM, seed=SEED)
    wrong = np.zeros((ROWS, COLUMNS, DIM + 1), np.float32)
    both = common.refused(lambda: bonus.rewards(wrong)) and common.refused(lambda: bonus.update(wrong))
    demand(both, "states of another dim are taken: the bonus silently looks at the wrong numbers.")


def instances_are_independent(factory: Factory) -> None:
    """Two bonuses, of one size or two, do not meet."""
    states, wide = region(2, 11), region(2, 11, dim=DIM + 3)
    first, second, third = factory(dim=DIM, seed=SEED), factory(dim=DIM, seed=SEED), factory(dim=DIM + 3, seed=SEED)
    untouched = common.frozen(second)
    for _ in range(3):
        first.update(states)
        third.update(wide)
    why = "bonuses side by side disturb each other: several seeds in one process are not several seeds."
    demand(common.frozen(second) == untouched, f"training one bonus changed another: {why}")
    alone = common.trained(factory, states).rewards(region(1, 0))
    demand(common.equal_bits(first.rewards(region(1, 0)), alone), f"a bonus pays otherwise when others exist: {why}")


BONUS_CHECKS = (
    keeps_the_protocol,
    rewards_change_nothing,
    update_learns,
    gives_one_float_for_each_state,
    empty_batch_is_nothing,
    same_seed_same_bits,
    each_reward_is_its_rows,
    pieces_equal_the_whole,
    novel_states_earn_more,
    inputs_stay_untouched,
    bad_input_is_refused,
    instances_are_independent,
    *STATE_CHECKS,
    *OPTIONAL_CHECKS,
)


def check_bonus(factory: Factory) -> None:
    """All of BONUS_CHECKS on the bonuses that `factory(dim=…, seed=…)` makes; AssertionError at the first failure."""
    for check in BONUS_CHECKS:
        check(factory)
