"""Many small clusterings at once against `voronaut/views.py`, and what must not change them."""

from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from voronaut import views as ref
from voronaut.kernels import cpu
from voronaut.kernels.cpu import crowds, frozen_rewards
from voronaut.kernels.cpu.views import Views

CLOSE = 1e-9  # decisions this near to a tie are rounding's


class World(NamedTuple):
    columns: np.ndarray
    views: list[ref.View]
    states: np.ndarray
    step_size: float


def stacked(columns: np.ndarray, views: list[ref.View], dtype: Any = np.float64) -> Views:
    """The reference's views as one."""
    return Views(
        columns,
        np.stack([view.centers for view in views]).astype(dtype),
        np.stack([view.usage for view in views]),
        np.array([view.margin for view in views]),
        views[0].seen,
    )


@st.composite
def worlds(draw: Any, most: int = 60) -> World:
    """Standardised states and views started at some of them; duplicates, constant columns, few distinct values."""
    dim = draw(st.integers(1, 12))
    m = min(draw(st.sampled_from([1, 1, 2, 3, dim])), dim)
    count, k, n = draw(st.integers(1, 7)), draw(st.integers(2, 20)), draw(st.integers(1, most))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    states = np.clip(rng.normal(size=(n, dim)) * draw(st.sampled_from([0.1, 1.0, 4.0])), -10, 10)
    if draw(st.booleans()):
        states[:, 0] = 3.0
    if draw(st.booleans()):
        states = np.round(states)
    if draw(st.booleans()):
        states = states[rng.integers(0, max(n // 4, 1), n)]
    columns = ref.columns(dim, count, m, draw(st.integers(0, 9)))
    first = states if draw(st.booleans()) else rng.normal(size=(40, dim))
    views = [ref.start(first[:, own], k, seed) for seed, own in enumerate(columns)]
    if draw(st.booleans()):  # some clusters crowded, some idle, a margin of their own
        usage = rng.uniform(0.2, 3.0, size=(count, k))
        views = [
            view._replace(usage=own, margin=rng.uniform(0, 1), seen=7) for view, own in zip(views, usage, strict=True)
        ]
    return World(columns, views, states, draw(st.sampled_from([0.05, 0.4, 0.93])))


def by_rounding(view: ref.View, state: np.ndarray) -> bool:
    """Whether a winner or a split is decided by rounding: a near tie, or one of centers of which none is a copy."""
    far = ref.distances(view, state)
    near = np.flatnonzero(far < far.min() + CLOSE)
    tied = len(near) > 1 and (view.centers[near] != view.centers[near[0]]).any()
    after = ref.absorb(view, state)
    low, high = np.sort(after.usage)[:2]
    return bool(tied or 0 < high - low < CLOSE or (np.abs(view.usage / view.usage.min() - ref.CROWDED) < 1e-6).any())


def clear(world: World) -> bool:
    """Whether no decision on the way is rounding's."""
    for view, own in zip(world.views, world.columns, strict=True):
        now = view
        for state in world.states[:, own]:
            if by_rounding(now, state):
                return False
            now = ref.absorb(now, state, world.step_size)
    return True


def absorbed(world: World) -> list[ref.View]:
    """The judge's sequence."""
    after = []
    for view, own in zip(world.views, world.columns, strict=True):
        after.append(view)
        for state in world.states[:, own]:
            after[-1] = ref.absorb(after[-1], state, world.step_size)
    return after


def same(got: Views, wanted: Views, tolerance: float = 1e-11) -> None:
    """Equal up to rounding."""
    for name in ("centers", "usage", "margin"):
        np.testing.assert_allclose(
            getattr(got, name), getattr(wanted, name), rtol=tolerance, atol=tolerance, err_msg=name
        )
    assert got.seen == wanted.seen and (got.columns == wanted.columns).all()
    assert got.centers.dtype == wanted.centers.dtype and got.usage.dtype == got.margin.dtype == np.float64


@settings(max_examples=150, deadline=None)
@given(worlds())
def test_update_is_the_judges_sequence(world: World) -> None:
    assume(clear(world))
    before = stacked(world.columns, world.views)
    kept = [np.copy(array) for array in before]
    same(cpu.views.update(before, world.states, world.step_size), stacked(world.columns, absorbed(world)))
    assert all((now == then).all() for now, then in zip(before, kept, strict=True))


@pytest.mark.parametrize("m", [1, 2, 3, 6, 7])
def test_views_of_every_width_walk_as_the_judge_does(m: int) -> None:
    """Without a draw of examples: centers on both sides of 0, crowds that are split, a stream that moves."""
    rng = np.random.default_rng(m)
    columns, states = ref.columns(2 * m, 2, m, 0), rng.normal(size=(60, 2 * m)) + np.linspace(-1, 2, 60)[:, None]
    centers, usage = rng.normal(size=(2, 6, m)), rng.uniform(0.1, 2.0, size=(2, 6))
    views = [ref.ordered(ref.View(*each, margin=0.3, seen=40)) for each in zip(centers, usage, strict=True)]
    world = World(columns, views, states, 0.2)
    assert clear(world)
    wanted = absorbed(world)
    same(cpu.views.update(stacked(columns, views), states, 0.2), stacked(columns, wanted))
    got = cpu.views.each(stacked(columns, wanted), states, 0.2)
    for v, (view, own) in enumerate(zip(wanted, columns, strict=True)):
        np.testing.assert_allclose(got[v], [ref.reward(view, state, 0.2) for state in states[:, own]], atol=1e-9)


@pytest.mark.parametrize("k", [3, 4, 7, 8])
def test_a_state_between_two_of_one_coordinate_goes_to_the_lower(k: int) -> None:
    """Between each pair of neighbours, wherever they stand among those that are counted four at a time."""
    view = ref.View(np.arange(0.0, 2 * k, 2)[:, None], np.ones(k), margin=1.0, seen=9)
    states, views = np.arange(1.0, 2 * k - 1, 2)[:, None], stacked(np.zeros((1, 1), int), [view])
    assert cpu.views.assign(views, states)[0].tolist() == list(range(k - 1))
    np.testing.assert_allclose(cpu.views.each(views, states, 0.5)[0], [ref.reward(view, s, 0.5) for s in states])


@pytest.mark.parametrize("m", [1, 2])
@pytest.mark.parametrize("scale", [1.0, 2.0])
@pytest.mark.parametrize(("most", "splits"), [(4.0, False), (4.25, True)])
def test_a_crowd_is_more_than_four_times_the_least(most: float, splits: bool, scale: float, m: int) -> None:
    """A state that sits on its center counts for nothing, so that usages keep their ratio to the bit."""
    centers = np.repeat([[0.0], [10.0], [20.0], [30.0]], m, axis=1)
    view, state = ref.View(centers, scale * np.array([most, 2, 1, 2]), margin=1.0, seen=9), np.zeros((1, m))
    after = ref.absorb(view, state[0], 0.5)
    assert (after.centers[:, 0].tolist() == [0, 10, 20, 30]) == (not splits)
    columns = np.arange(m)[None]
    same(cpu.views.update(stacked(columns, [view]), state, 0.5), stacked(columns, [after]))


@pytest.mark.parametrize("m", [1, 2])
def test_the_least_used_cluster_is_put_beside_the_crowded_one_and_shares_its_usage(m: int) -> None:
    """The center at 10 goes half of the way to 14; that at 99 is put a tenth of the rest beyond it."""
    centers = np.repeat([[0.0], [10.0], [90.0], [99.0]], m, axis=1)
    view, state = ref.View(centers, np.array([1.5, 2.2, 0.2, 0.1]), margin=1.0, seen=999), np.full((1, m), 14.0)
    after, fade = ref.absorb(view, state[0], 0.5), 1 - ref.FADE / 4
    order = np.argsort(after.centers[:, 0])
    np.testing.assert_allclose(after.centers[order], np.repeat([[0.0], [12.0], [12.2], [90.0]], m, axis=1))
    shared = (2.3 * fade + ref.FADE) / 2
    np.testing.assert_allclose(after.usage[order], [1.5 * fade, shared, shared, 0.2 * fade])
    columns = np.arange(m)[None]
    same(cpu.views.update(stacked(columns, [view]), state, 0.5), stacked(columns, [after]))


@pytest.mark.parametrize("m", [1, 2])
@pytest.mark.parametrize(
    ("usage", "after"),
    [([1.0, 1.005, 5.0, 5.0], [[1, 10, 20, 30], [1, 21, 21.1, 30]]), ([0.001, 0.002, 1.0, 1.0], [[1, 1.1, 20, 30]])],
    ids=["for the next state", "at once"],
)
def test_a_win_of_the_least_used_cluster_may_make_another_the_least_used(usage: Any, after: Any, m: int) -> None:
    """The first state is won by the one at 0. The one at 10 then goes to the crowd at 20, or at once to 0."""
    centers = np.repeat([[0.0], [10.0], [20.0], [30.0]], m, axis=1)
    view = ref.View(centers, np.array(usage), margin=1.0, seen=999)
    states, columns, wanted = np.repeat([[2.0], [22.0]], m, axis=1)[: len(after)], np.arange(m)[None], view
    for state, ends in zip(states, after, strict=True):
        wanted = ref.absorb(wanted, state, 0.5)
        np.testing.assert_allclose(np.sort(wanted.centers[:, 0]), ends)
    same(cpu.views.update(stacked(columns, [view]), states, 0.5), stacked(columns, [wanted]))


@settings(max_examples=150, deadline=None)
@given(worlds(30))
def test_rewards_winners_and_gaps_are_the_judges(world: World) -> None:
    views = stacked(world.columns, world.views)
    got, chosen = cpu.views.each(views, world.states, world.step_size), cpu.views.assign(views, world.states)
    for v, (view, own) in enumerate(zip(world.views, world.columns, strict=True)):
        np.testing.assert_allclose(cpu.views.gaps(views)[v], ref.gaps(view), rtol=0, atol=1e-12)
        for r, state in enumerate(world.states[:, own]):
            far = ref.distances(view, state)
            near = np.flatnonzero(far < far.min() + CLOSE)
            if (view.centers[near] == view.centers[near[0]]).all():
                assert chosen[v, r] == ref.assign(view, state)
                assert got[v, r] == pytest.approx(ref.reward(view, state, world.step_size), rel=1e-10, abs=1e-7)


@settings(max_examples=100, deadline=None)
@given(worlds(30))
def test_step_pays_as_the_judge_does_and_absorbs_as_update_does(world: World) -> None:
    assume(clear(world))
    wanted, now = [], world.views
    for state in world.states:
        own = [(view, state[which]) for view, which in zip(now, world.columns, strict=True)]
        wanted.append(sum(ref.reward(*one, world.step_size) for one in own))
        now = [ref.absorb(*one, world.step_size) for one in own]
    after, paid = cpu.views.step(stacked(world.columns, world.views), world.states, world.step_size)
    np.testing.assert_allclose(paid, wanted, rtol=1e-9, atol=1e-6)
    same(after, stacked(world.columns, now))


SHAPES = [(9, 9, 1, 12), (9, 12, 2, 16), (9, 6, 3, 20), (4, 1, 4, 40), (17, 1, 17, 30)]  # d, V, m, k


def settled(dim: int, count: int, m: int, k: int, dtype: Any = np.float64) -> tuple[Views, np.ndarray]:
    """Views that have seen a thousand states, and a thousand other states."""
    rng = np.random.default_rng(dim)
    states, columns = rng.normal(size=(2000, dim)).astype(dtype), ref.columns(dim, count, m, 0)
    first = stacked(columns, [ref.start(states[:200, own], k, 0) for own in columns], dtype)
    return cpu.views.update(first, states[:1000], 0.05), states[1000:]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_threads_change_nothing(shape: tuple[int, int, int, int], dtype: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(frozen_rewards, "WORTH_A_THREAD", 1)
    views, states = settled(*shape, dtype)
    prepared, weights = cpu.views.prepare(views), np.linspace(0.5, 2, len(views.columns))

    def all_of(threads: int) -> list[bytes]:
        paid = cpu.views.rewards(prepared, weights, states, 0.05, threads)
        return [paid.tobytes(), cpu.views.each(prepared, states, 0.05, threads).tobytes()]

    assert all_of(1) == all_of(2) == all_of(3) == all_of(7)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize(("dtype", "tolerance"), [(np.float32, 2e-5), (np.float64, 1e-12)])
def test_rewards_are_the_weighted_sum_in_either_precision(
    shape: tuple[int, int, int, int], dtype: Any, tolerance: float
) -> None:
    views, states = settled(*shape, dtype)
    weights = np.linspace(0.5, 2, len(views.columns))
    got = cpu.views.rewards(views, weights, states, 0.05)
    pairs = [
        (ref.View(c.astype(float), u), own) for c, u, own in zip(views.centers, views.usage, views.columns, strict=True)
    ]
    wanted = [
        sum(w * ref.reward(v, s[own]) for w, (v, own) in zip(weights, pairs, strict=True))
        for s in states[:50].astype(float)
    ]
    assert got.dtype == dtype and got.shape == (len(states),)
    np.testing.assert_allclose(got[:50], wanted, rtol=0, atol=tolerance * len(weights))


@pytest.mark.parametrize("shape", SHAPES)
def test_the_order_of_views_is_nothing_but_an_order(shape: tuple[int, int, int, int]) -> None:
    views, states = settled(*shape)
    order = np.random.default_rng(0).permutation(len(views.columns))
    turned = Views(views.columns[order], views.centers[order], views.usage[order], views.margin[order], views.seen)
    assert (cpu.views.each(turned, states, 0.05) == cpu.views.each(views, states, 0.05)[order]).all()
    one, other = cpu.views.update(views, states, 0.05), cpu.views.update(turned, states, 0.05)
    assert all((b == a[order]).all() for a, b in zip(one[:4], other[:4], strict=True))


@pytest.mark.parametrize("shape", SHAPES)
def test_halves_are_the_whole(shape: tuple[int, int, int, int], monkeypatch: pytest.MonkeyPatch) -> None:
    """Cut by the caller, or inside where usage as it is kept would grow too large."""
    views, states = settled(*shape)
    whole, paid = cpu.views.step(views, states, 0.05)
    half, first = cpu.views.step(views, states[:400], 0.05)
    half, second = cpu.views.step(half, states[400:], 0.05)
    same(half, whole, 1e-10)
    np.testing.assert_allclose([*first, *second], paid, rtol=0, atol=1e-10)
    monkeypatch.setattr(crowds, "STRETCH", 300)
    same(cpu.views.update(views, states, 0.05), whole, 1e-10)
    np.testing.assert_allclose(cpu.views.step(views, states, 0.05)[1], paid, rtol=0, atol=1e-10)


@pytest.mark.parametrize("shape", SHAPES)
def test_rewards_add_up_to_what_the_objective_grew_by(shape: tuple[int, int, int, int]) -> None:
    views, states = settled(*shape)
    states = states[:150]
    for view, own in zip(views.centers, views.columns, strict=True):
        now = ref.View(view, np.ones(shape[3]), 1.0, views.seen)
        for state in states[:, own]:
            now = ref.absorb(now, state)
            assert now.usage.max() <= ref.CROWDED * now.usage.min()  # none of them is split
    even = views._replace(usage=np.ones_like(views.usage), margin=np.ones_like(views.margin))
    after, paid = cpu.views.step(even, states, 0.05)
    grew = np.sqrt(cpu.views.gaps(after)).sum() - np.sqrt(cpu.views.gaps(even)).sum()
    assert paid.sum() == pytest.approx(grew, abs=1e-10) and abs(grew) > 1e-3


@pytest.mark.parametrize("shape", SHAPES)
def test_constant_states_split_nothing_and_pay_nothing(shape: tuple[int, int, int, int]) -> None:
    dim, count, m, k = shape
    columns, states = ref.columns(dim, count, m, 0), np.full((300, dim), 2.5)
    views = stacked(columns, [ref.start(states[:, own], k, 0) for own in columns])
    after, paid = cpu.views.step(views, states, 0.05)
    assert (paid == 0).all() and (after.centers == 2.5).all() and (after.margin == 0).all()
    assert (cpu.views.rewards(views, np.ones(count), states, 0.05) == 0).all()
    assert (cpu.views.assign(views, states) == 0).all()
    np.testing.assert_allclose(after.usage, (1 - ref.FADE / k) ** 300, rtol=1e-12)


@pytest.mark.parametrize("shape", SHAPES)
def test_where_short_lists_do_not_reach(shape: tuple[int, int, int, int]) -> None:
    """Many clusters at one place and long moves: each gap has to be measured."""
    views, states = settled(*shape)
    centers = views.centers.copy()
    centers[:, 2:11] = centers[:, 2:3]
    if shape[2] == 1:
        centers = np.sort(centers, axis=1)
    got = cpu.views.each(views._replace(centers=centers), states[:60], 0.93)
    for v, own in enumerate(views.columns):
        view = ref.View(centers[v], views.usage[v])
        wanted = [ref.reward(view, state, 0.93) for state in states[:60, own]]
        np.testing.assert_allclose(got[v], wanted, rtol=0, atol=1e-11)
