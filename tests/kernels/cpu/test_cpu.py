"""The CPU kernels against the reference: frozen rewards, the update pass, the online walk."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.worlds import World, ambiguous, near_zero, worlds
from voronaut import clusters as ref
from voronaut.kernels import cpu
from voronaut.kernels.cpu import assignment, bounds, dimensions, frozen_rewards, stewart
from voronaut.kernels.rules import LOG, SQRT, Rules

FLOOR = 0.01


def concave(objective: int) -> ref.Concave:
    return ref.sqrt if objective == SQRT else lambda gap: ref.log(gap, FLOOR)


def rules(world: World, objective: int = SQRT) -> Rules:
    return Rules(world.step_size, world.balance, objective, FLOOR)


def scale(world: World) -> float:
    """The largest number that goes into a gap: rounding is relative to it."""
    clusters = world.clusters
    most = max(np.abs(world.states).max(), np.abs(clusters.centers).max())
    return float(1 + most * np.sqrt(world.states.shape[1]) + ref.weights(clusters, world.balance).max())


@settings(max_examples=150, deadline=None)
@given(worlds())
def test_gaps_are_the_references(world: World) -> None:
    prepared = cpu.prepare(*world.clusters, world.balance)
    np.testing.assert_allclose(
        prepared.gaps, ref.gaps(world.clusters, world.balance), rtol=0, atol=1e-12 * scale(world)
    )


@settings(max_examples=150, deadline=None)
@given(worlds(), st.sampled_from([SQRT, LOG]))
def test_frozen_rewards_are_copy_update_subtract(world: World, objective: int) -> None:
    prepared = cpu.prepare(*world.clusters, world.balance)
    got = cpu.rewards(prepared, world.states, rules(world, objective))
    for state, reward in zip(world.states, got, strict=True):
        if ambiguous(world, world.clusters, state):
            continue
        wanted = ref.reward(world.clusters, state, world.step_size, world.balance, concave(objective))
        loose = objective == SQRT and near_zero(world, world.clusters, state)
        assert reward == pytest.approx(wanted, rel=1e-12, abs=(1e-6 if loose else 1e-11) * scale(world))


@pytest.mark.parametrize(("dtype", "tolerance"), [(np.float64, 1e-12), (np.float32, 1e-5)])
def test_a_hub_that_is_everybodys_nearest(dtype: type, tolerance: float) -> None:
    """One center in the middle of many: when it moves, every other gap changes."""
    rng = np.random.default_rng(0)
    ring = rng.normal(size=(60, 40))
    centers = np.vstack([np.zeros(40), 3 * ring / np.linalg.norm(ring, axis=1, keepdims=True)]).astype(dtype)
    clusters = ref.Clusters(centers.astype(float), np.ones(61, np.int64))
    prepared = cpu.prepare(centers, clusters.counts, 1e-3)
    assert (prepared.shape.nearest[1:61] == 0).all()
    states = (0.3 * rng.normal(size=(50, 40))).astype(dtype)
    wanted = [ref.reward(clusters, state, 0.3, 1e-3) for state in states.astype(float)]
    np.testing.assert_allclose(cpu.rewards(prepared, states, Rules(0.3, 1e-3)), wanted, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("unit", [1e-3, 1.0, 1e3])
def test_a_hub_that_lands_beside_one_of_its_many_followers(unit: float) -> None:
    """By squares that distance would cancel to nothing, in small units and in large ones."""
    ring = np.random.default_rng(0).normal(size=(100, 40))
    centers = np.vstack([np.zeros(40), 3 * ring / np.linalg.norm(ring, axis=1, keepdims=True)]) * unit
    clusters, chosen = ref.Clusters(centers, np.array([1] + [2] * 100)), Rules(0.3, 3.1 * unit)
    prepared = cpu.prepare(centers, clusters.counts, chosen.balance)
    assert (prepared.shape.nearest[1:101] == 0).all()
    states = (1 + 1e-7) * centers[1:9] / 0.3  # won by the hub, whose count is lower
    wanted = [ref.reward(clusters, state, *chosen[:2]) for state in states]
    np.testing.assert_allclose(cpu.rewards(prepared, states, chosen), wanted, rtol=1e-9)


def test_a_hub_of_many_that_comes_near_one_which_does_not_follow_it() -> None:
    """That one is nearer to its neighbour beyond; all weigh more than a cluster far away."""
    ring = np.random.default_rng(0).normal(size=(101, 40))
    ring = 3 * ring / np.linalg.norm(ring, axis=1, keepdims=True)
    centers = np.vstack([np.zeros(40), ring, 1.8 * ring[:1], np.full(40, 99.0)])
    clusters, chosen = ref.Clusters(centers, np.array([10] * 103 + [1])), Rules(0.9, 1e-3)
    prepared = cpu.prepare(centers, clusters.counts, chosen.balance)
    assert prepared.shape.nearest[1] == 102 and (prepared.shape.nearest[2:102] == 0).all()
    state = 0.49 * ring[:1]
    wanted = ref.reward(clusters, state[0], *chosen[:2])
    np.testing.assert_allclose(cpu.rewards(prepared, state, chosen), [wanted], rtol=1e-12)


@pytest.mark.parametrize(("dtype", "tolerance"), [(np.float64, 1e-12), (np.float32, 2e-5)])
@pytest.mark.parametrize("dim", [1, 2, 3, 17, 66])
@pytest.mark.parametrize("step_size", [0.05, 0.9])
def test_rewards_where_short_lists_do_not_reach(dtype: type, tolerance: float, dim: int, step_size: float) -> None:
    """Long moves, high dimension, and a crowd of clusters at one point, some of them lighter than others."""
    rng = np.random.default_rng(dim)
    centers = rng.normal(size=(70, dim)).astype(dtype)
    centers[10:30] = centers[5]
    counts = rng.integers(1, 50, size=70)
    states = rng.normal(size=(51, dim)).astype(dtype)
    states[:3] = centers[5] + 0.01
    wanted = [
        ref.reward(ref.Clusters(centers.astype(float), counts), state, step_size, 1e-3)
        for state in states.astype(float)
    ]
    got = cpu.rewards(cpu.prepare(centers, counts, 1e-3), states, Rules(step_size, 1e-3))
    np.testing.assert_allclose(got, wanted, rtol=tolerance, atol=30 * tolerance)


def test_a_cluster_that_intrudes_upon_more_than_are_listed() -> None:
    """Eight pairs around a center that moves toward all of them at once, and one cluster close by for its own gap."""
    pairs, along, apart = 8, 0.4, 0.99 / 2
    across = np.sqrt(1 - along**2 - apart**2)
    centers = np.zeros((2 + 2 * pairs, 1 + 2 * pairs))
    centers[1, 0] = -0.1
    for pair in range(pairs):
        for side in (0, 1):
            centers[2 + 2 * pair + side, [0, 1 + 2 * pair, 2 + 2 * pair]] = along, across, apart * (1 - 2 * side)
    state = np.zeros((1, centers.shape[1]))
    state[0, 0] = 1.2
    clusters = ref.Clusters(centers, np.ones(len(centers), np.int64))
    prepared = cpu.prepare(*clusters, 1e-6)
    assert (prepared.shape.intruded_value[0] < 0.06).all()  # the list is full
    wanted = ref.reward(clusters, state[0], 0.05, 1e-6)
    assert cpu.rewards(prepared, state, Rules(0.05, 1e-6))[0] == pytest.approx(wanted, rel=1e-12)


@pytest.mark.parametrize("offset", [0.0, 30.0, 1e4])
@pytest.mark.parametrize("count", [1, 2, 501])
def test_bounds_never_change_an_assignment(offset: float, count: int) -> None:
    """Far from the origin the bounds are loose and many clusters must be measured: the winners stay the same."""
    rng = np.random.default_rng(0)
    centers, states = (rng.normal(size=(n, 7)).astype("f") + np.float32(offset) for n in (90, count))
    chosen = cpu.assign(cpu.prepare(centers, np.ones(90, np.int64), 1e-3), states)
    squared = np.square(states[:, None].astype(float) - centers[None].astype(float)).sum(axis=2)
    best = squared[np.arange(count), chosen]
    np.testing.assert_allclose(best, squared.min(axis=1), rtol=1e-5)
    assert (chosen == squared.argmin(axis=1)).mean() > 0.99


def uneven(count: int, dtype: type) -> tuple[np.ndarray, np.ndarray]:
    """70 centers and states that differ in five of 23 dimensions and hardly in the others."""
    rng = np.random.default_rng(count)
    spread = np.where(np.arange(23) % 5 == 0, 3.0, 0.01)
    return tuple((rng.normal(size=(n, 23)) * spread).astype(dtype) for n in (70, count))  # type: ignore[return-value]


def test_dimensions_that_tell_clusters_apart() -> None:
    """Few where few vary, all where all vary alike, and all where there is too little to do for a trial."""
    centers, states = uneven(dimensions.WORTH, np.float32)
    clusters = cpu.prepare(centers, np.ones(70, np.int64), 1e-3).clusters
    few = dimensions.choose(clusters.rows, clusters.centers, clusters.weight, states)
    assert len(few) < 12
    assert {0, 5, 10, 15, 20} <= set(few.tolist())
    assert len(dimensions.choose(clusters.rows, clusters.centers, clusters.weight, states[1:])) == 23
    even = np.random.default_rng(0).normal(size=(70 + dimensions.WORTH, 23)).astype("f")
    clusters = cpu.prepare(even[:70], np.ones(70, np.int64), 1e-3).clusters
    assert len(dimensions.choose(clusters.rows, clusters.centers, clusters.weight, even[70:])) == 23


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("surprise", [0.0, 50.0])
def test_fewer_dimensions_change_nothing(dtype: type, surprise: float) -> None:
    """Screened or not, winners, rewards and the sequence are the same, also where a quiet dimension turns loud."""
    centers, states = uneven(2 * dimensions.WORTH, dtype)
    states[3::7, 2] += dtype(surprise)
    states[4::9] = states[4]
    counts, now, order = np.random.default_rng(0).integers(1, 900, 70), Rules(0.2, 1e-3), np.arange(len(states))
    prepared = cpu.prepare(centers, counts, now.balance)
    assert len(assignment.seen_by(prepared, states).dims) < 23
    parts = np.array_split(order, 5)  # too short for a trial
    assert cpu.assign(prepared, states).tolist() == [i for part in parts for i in cpu.assign(prepared, states[part])]
    paid = np.concatenate([cpu.rewards(prepared, states[part], now) for part in parts])
    np.testing.assert_allclose(cpu.rewards(prepared, states, now), paid, rtol=1e-6, atol=1e-6)
    after = (centers, counts)
    for part in parts:
        after = cpu.update(*after, states, part, now)
    whole = cpu.update(centers, counts, states, order, now)
    assert whole[1].tolist() == after[1].tolist()
    np.testing.assert_array_equal(whole[0], after[0])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("dim", [2, 11])
def test_states_whose_products_are_made_at_once_are_the_sequence(dtype: type, dim: int) -> None:
    """A state may fall to a cluster that one before it has just moved, or lose it to another."""
    rng = np.random.default_rng(1)
    centers, counts = rng.normal(size=(5, dim)).astype(dtype), np.ones(5, np.int64)
    states = rng.normal(size=(401, dim)).astype(dtype)
    both = cpu.update(centers, counts, states, np.arange(401), Rules(0.4, 1e-2))
    single = (centers, counts)
    for r in range(401):
        single = cpu.update(*single, states, np.array([r]), Rules(0.4, 1e-2))
    assert both[1].tolist() == single[1].tolist()
    np.testing.assert_allclose(both[0], single[0], rtol=1e-5 if dtype is np.float32 else 1e-12)


@pytest.mark.parametrize("dim", [373, 376])
def test_centers_that_are_too_many_for_one_product_are_no_different(dim: int) -> None:
    rng = np.random.default_rng(dim)
    centers, counts = rng.normal(size=(720, dim)).astype(np.float32), rng.integers(1, 99, 720)
    assert centers.size > bounds.LARGE
    centers[:, [0, -1]] *= 30  # what a wrong product of either would tell
    one, other = centers[rng.permutation(720)[:14].reshape(2, 7)]
    states = (0.52 * one + 0.48 * other).astype(np.float32)
    rules, prepared = Rules(0.4, 1e-3), cpu.prepare(centers, counts, 1e-3)
    clusters = ref.Clusters(centers.astype(float), counts)
    assert cpu.assign(prepared, states).tolist() == [ref.assign(clusters, s, 1e-3) for s in states.astype(float)]
    wanted = [ref.reward(clusters, s, 0.4, 1e-3) for s in states.astype(float)]
    np.testing.assert_allclose(cpu.rewards(prepared, states, rules), wanted, atol=1e-4)
    together, single = cpu.update(centers, counts, states, np.arange(7), rules), (centers, counts)
    for r in range(7):
        single = cpu.update(*single, states, np.array([r]), rules)
    assert together[1].tolist() == single[1].tolist()
    np.testing.assert_allclose(together[0], single[0], rtol=1e-5)


@settings(max_examples=100, deadline=None)
@given(worlds())
def test_the_update_pass_is_the_references_sequence(world: World) -> None:
    after = world.clusters
    for state in world.states:
        if ambiguous(world, after, state):
            return
        after = ref.absorb(after, state, world.step_size, world.balance)
    order = np.arange(len(world.states))
    centers, counts = cpu.update(*world.clusters, world.states, order, rules(world))
    np.testing.assert_allclose(centers, after.centers, rtol=0, atol=1e-12 * scale(world))
    assert counts.tolist() == after.counts.tolist()


@settings(max_examples=150, deadline=None)
@given(worlds(), st.sampled_from([SQRT, LOG]))
def test_the_online_walk_is_algorithm_1(world: World, objective: int) -> None:
    clusters, wanted, loose = world.clusters, [], False
    for state in world.states:
        if ambiguous(world, clusters, state):
            return
        loose |= near_zero(world, clusters, state)
        wanted.append(ref.reward(clusters, state, world.step_size, world.balance, concave(objective)))
        clusters = ref.absorb(clusters, state, world.step_size, world.balance)
    kept = cpu.keep(cpu.prepare(*world.clusters, world.balance))
    done = cpu.step(*world.clusters, kept, world.states, rules(world, objective))
    tolerance = 1e-6 if loose and objective == SQRT else 1e-11
    np.testing.assert_allclose(done.rewards, wanted, rtol=1e-12, atol=tolerance * scale(world))
    np.testing.assert_allclose(done.kept.gap, ref.gaps(clusters, world.balance), rtol=0, atol=1e-12 * scale(world))
    assert done.recomputed <= done.grown
    assert done.counts.tolist() == clusters.counts.tolist()


def test_a_tie_with_a_center_that_has_moved_is_left_to_rounding() -> None:
    """Two centers at 3 and states at 3: α 3 + (1 − α) 3 is 3 or its neighbour, as a machine multiplies and adds."""
    start = ref.Clusters(np.full((2, 1), 3.0), np.ones(2, np.int64))
    world = World(start, np.full((27, 1), 3.0), 0.0483, 0.0)
    assert not ambiguous(world, start, world.states[0])
    assert ambiguous(world, start._replace(counts=np.array([2, 1])), world.states[1])


def test_thousands_of_online_steps_stay_exact() -> None:
    rng = np.random.default_rng(0)
    states = np.cumsum(rng.normal(size=(4000, 5)), axis=0) / 20
    clusters = ref.Clusters(np.zeros((20, 5)), np.ones(20, np.int64))
    kept = cpu.keep(cpu.prepare(*clusters, 1e-3))
    done = cpu.step(*clusters, kept, states, Rules(0.05, 1e-3))
    wanted = []
    for state in states:
        wanted.append(ref.reward(clusters, state, 0.05, 1e-3))
        clusters = ref.absorb(clusters, state, 0.05, 1e-3)
    np.testing.assert_allclose(done.rewards, wanted, rtol=0, atol=1e-12)
    np.testing.assert_allclose(done.centers, clusters.centers, rtol=0, atol=1e-12)


@pytest.mark.parametrize("dim", [3, 8, 17, 22])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_rewards_of_states_whose_products_are_made_at_once_are_theirs_one_by_one(dim: int, dtype: type) -> None:
    """Where no cluster weighs anything: ties, states on centers, and a last one that has no other beside it."""
    rng = np.random.default_rng(dim)
    centers, states = rng.normal(size=(50, dim)).astype(dtype), rng.normal(size=(201, dim)).astype(dtype)
    centers[7], centers[30], states[11], states[200] = centers[4], -centers[20], centers[4], 0
    prepared, free = cpu.prepare(centers, np.full(50, 3), 0.0), Rules(0.05, 0.0)
    both = cpu.rewards(prepared, states, free)
    assert both.tobytes() == np.concatenate([cpu.rewards(prepared, one[None], free) for one in states]).tobytes()
    clusters = ref.Clusters(centers.astype(np.float64), np.full(50, 3))
    wanted = [ref.reward(clusters, state, 0.05, 0.0) for state in states.astype(np.float64)]
    np.testing.assert_allclose(both, wanted, rtol=0, atol=2e-3 if dtype == np.float32 else 1e-7)


@pytest.mark.parametrize("balance", [0.0, 1e-3])
def test_states_that_tell_what_is_to_come_change_no_bit(balance: float) -> None:
    centers, states = uneven(1000, np.float32)
    counts = np.arange(len(centers))
    plain, told = (cpu.prepare(centers, counts, balance, alike) for alike in (None, states[:8]))
    assert len(told.seen.dims) < len(plain.seen.dims) == centers.shape[1]
    assert cpu.assign(plain, states).tolist() == cpu.assign(told, states).tolist()
    one, other = (cpu.rewards(prepared, states, Rules(0.05, balance)) for prepared in (plain, told))
    assert one.tobytes() == other.tobytes()


@pytest.mark.parametrize("threads", [2, 3, 7])
def test_threads_change_nothing(threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(frozen_rewards, "WORTH_A_THREAD", 1)
    rng = np.random.default_rng(0)
    prepared = cpu.prepare(rng.normal(size=(50, 17)).astype("f"), np.ones(50, np.int64), 1e-3)
    states = rng.normal(size=(1001, 17)).astype("f")
    one, many = (cpu.rewards(prepared, states, Rules(0.05, 1e-3), n) for n in (1, threads))
    assert one.tobytes() == many.tobytes()


@pytest.mark.parametrize("clusters", [2, 15, 16, 17, 33])
def test_padding_wins_nothing_and_all_ties_fall_to_the_lowest_index(clusters: int) -> None:
    prepared = cpu.prepare(np.zeros((clusters, 3)), np.ones(clusters, np.int64), 0.1)
    assert cpu.assign(prepared, np.full((4, 3), 1e3)).tolist() == [0] * 4
    far = np.zeros((clusters, 3))
    far[-1] = 5.0
    assert cpu.assign(cpu.prepare(far, np.ones(clusters, np.int64), 0.1), np.full((1, 3), 6.0)).tolist() == [
        clusters - 1
    ]


def test_counts_beyond_float32_still_count() -> None:
    """2^24 + 1 is no float32: weights must come from whole numbers."""
    counts = np.array([2**30, 2**30 + 3])
    centers = np.zeros((2, 1), np.float32)
    after = cpu.update(centers, counts, np.zeros((5, 1), np.float32), np.arange(5), Rules(0.5, 1.0))[1]
    assert after.tolist() == [2**30 + 4, 2**30 + 4]


@pytest.mark.parametrize("dim", [5, 17])
@pytest.mark.parametrize("offset", [30.0, 3000.0])
def test_an_update_decides_by_distances_and_not_by_what_their_bounds_round_to(dim: int, offset: float) -> None:
    """Far from the origin ‖s‖² − 2 s·μ + ‖μ‖² has no digits left in float32; the differences s − μ have nearly all."""
    rng = np.random.default_rng(dim)
    centers, states = ((rng.normal(size=(n, dim)) + offset).astype(np.float32) for n in (40, 2000))
    exact = np.linalg.norm(states[:, None].astype(float) - centers, axis=-1)
    clear = np.diff(np.sort(exact, axis=1)[:, :2], axis=1)[:, 0] > 1e-4
    states, winners = states[clear], exact.argmin(axis=1)[clear]
    still = Rules(0.0, 0.0, SQRT, 1.0)  # centers stay where they are: every decision can be told in advance
    _, counts = cpu.update(centers, np.ones(40, np.int64), states, np.arange(len(states)), still)
    np.testing.assert_array_equal(counts, 1 + np.bincount(winners, minlength=40))


@pytest.mark.parametrize("balance", [0.0, 1e-3])
def test_of_two_clusters_that_are_nearly_as_near_the_nearer_one_wins(balance: float) -> None:
    """One in each half of the clusters, around the origin, where bounds are closest; apart by less than places take.

    The nearer one alone has a third cluster beside it, so that rewards tell which of them would move.
    """
    ones, state, rules = np.ones(300, np.int64), np.zeros((1, 2), np.float32), Rules(0.05, balance)
    for radius in np.linspace(0.55, 0.95, 60):
        for nearer, farther in ((2, 290), (290, 2)):
            centers = np.tile(np.arange(100, 400, dtype=np.float32)[:, None], 2)
            centers[nearer], centers[farther], centers[7] = (radius, 0), (-radius * (1 + 1e-5), 0), (radius, 1)
            prepared = cpu.prepare(centers, ones, balance)
            assert cpu.assign(prepared, state).tolist() == [nearer]
            assert cpu.update(centers, ones, state, np.arange(1), rules)[1].argmax() == nearer
            wanted = ref.reward(ref.Clusters(centers.astype(float), ones), np.zeros(2), 0.05, balance)
            np.testing.assert_allclose(cpu.rewards(prepared, state, rules), [wanted], atol=1e-4)


@pytest.mark.parametrize("dim", [3, 17])
def test_clusters_that_have_moved_keep_bounds_that_are_bounds(dim: int) -> None:
    """States near the origin, whose own norm gives nothing away, and centers around it that differ in their last bits.

    With α = 0 a center that absorbs a state stays where it is, so what follows must not depend on whether it has.
    """
    rng, still = np.random.default_rng(dim), Rules(0.0, 0.0, SQRT, 1.0)
    for _ in range(20):
        centers = rng.normal(size=(60, dim))
        centers = (centers / np.linalg.norm(centers, axis=1, keepdims=True)).astype(np.float32)
        near = (1e-7 * rng.normal(size=(200, dim))).astype(np.float32)
        both = np.concatenate([centers, near])
        ones = np.ones(60, np.int64)
        fresh = cpu.update(centers, ones, near, np.arange(200), still)[1]
        absorbed = cpu.update(centers, ones, both, np.arange(260), still)[1]
        np.testing.assert_array_equal(absorbed, fresh + 1)


@pytest.mark.parametrize(("dtype", "within"), [(np.float32, 1e-4), (np.float64, 1e-12)])
def test_bounds_are_below_what_they_bound_and_close(dtype: type, within: float) -> None:
    """Of norms, and of distances to a center on its way to a state: no other test sees a bound that is not one."""
    rng, alpha = np.random.default_rng(0), 0.25
    centers, state = rng.normal(size=(40, 6)).astype(dtype), rng.normal(size=6).astype(dtype)
    exact = centers.astype(np.longdouble)
    norms = (exact**2).sum(axis=1)
    below(bounds.norms_of(centers, centers), norms, within)
    squared, between = ((exact - state) ** 2).sum(axis=1), ((exact[:, None] - exact) ** 2).sum(axis=2)
    moved = np.sqrt((((exact[3] + alpha * (state - exact[3])) - exact) ** 2).sum(axis=1))
    value, excess, zero = np.empty((3, 40), dtype)
    zero[:] = 0
    cut = float(alpha * (1 - alpha) * squared[3])
    stewart.bound_moved(3, cut, alpha, 0.0, squared.astype(dtype), between.astype(dtype), zero, zero, value, excess)
    below(value, moved, within)


def below(bound: np.ndarray, exact: np.ndarray, within: float) -> None:
    assert (bound <= exact).all() and (bound >= (1 - within) * exact).all()
