"""Views on torch tensors equal `voronaut.views`: plain torch, Triton under its interpreter or on a GPU."""

from typing import Any

import numpy as np
import pytest

from tests.kernels.gpu.there import DEVICE, needs_gpu, needs_triton, there, torch
from voronaut import views as judge
from voronaut.kernels.gpu import clouds, dispatch
from voronaut.kernels.gpu import views as kernel
from voronaut.kernels.rules import Rules

pytestmark = pytest.mark.filterwarnings("ignore:invalid value encountered")  # ∞ − ∞, which is then left out
FUSED = pytest.param("fused", marks=needs_triton)
WAYS = ["float64", "float32", FUSED]
SHAPES = [(2, 12, 1, 5), (2, 20, 2, 5), (1, 9, 4, 4), (1, 7, 6, 6), (1, 2, 1, 1), (2, 2, 2, 4)]  # V, k, m, d


def world(V: int, k: int, m: int, d: int, n: int = 90, seed: int = 0) -> tuple[Any, Any, Any]:
    """Columns, views whose usage differs so much that many states split a crowd, and states that wander off."""
    rng = np.random.default_rng(seed)
    which, states = judge.columns(d, V, m, seed), rng.normal(size=(n, d)).astype(np.float32)
    states[n // 2 :] += 3
    centers = rng.normal(size=(V, k, m)).astype(np.float32).astype(float)
    usage = rng.uniform(0.1, 1.5, size=(V, k))
    return which, [judge.ordered(judge.View(*each, 0.3, 40)) for each in zip(centers, usage, strict=True)], states


def tensors(which: Any, views: Any, dtype: Any = np.float32) -> kernel.Views:
    stacked = [np.stack([getattr(view, name) for view in views]) for name in ("centers", "usage", "margin")]
    return kernel.Views(*there(which, stacked[0].astype(dtype), *stacked[1:], np.int64(views[0].seen)))


def absorbed(which: Any, views: Any, states: Any, total: int, way: str, alpha: float = judge.STEP) -> kernel.Views:
    dtype = np.float64 if way == "float64" else np.float32
    given = (tensors(which, views, dtype), *there(states, np.int64(total)), alpha)
    if way == "fused":
        from voronaut.kernels.gpu.fused.views import update

        return update(*given)
    return kernel.plain_update(*given)


def sequence(which: Any, views: Any, states: Any, alpha: float = judge.STEP) -> Any:
    for state in states.astype(float):
        views = [judge.absorb(view, state[own], alpha) for view, own in zip(views, which, strict=True)]
    return views


def same(got: kernel.Views, want: kernel.Views, error: float) -> None:
    for name in ("centers", "usage", "margin", "seen"):
        mine, theirs = (getattr(each, name).cpu().numpy() for each in (got, want))
        np.testing.assert_allclose(mine, theirs, rtol=0, atol=error, err_msg=name)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("V, k, m, d", SHAPES)
def test_an_update_is_the_sequence(V: int, k: int, m: int, d: int, way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    which, views, states = world(V, k, m, d)
    states[80:] = np.nan  # beyond the total
    split, crowds = judge.split, []
    monkeypatch.setattr(
        judge, "split", lambda view, *at: crowds.append(split(view, *at) is not view) or split(view, *at)
    )
    want = sequence(which, views, states[:80])
    assert sum(crowds) >= (V if k > 2 else 0)  # or nothing would have been tried
    same(absorbed(which, views, states, 80, way), tensors(which, want, float), 1e-12 if way == "float64" else 3e-6)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("m", [1, 2])
def test_ties_go_to_the_lowest(m: int, way: str) -> None:
    """Clusters that coincide, states between two, usage that is equal: who wins and who is split shows in the end."""
    for seed in range(4):
        rng = np.random.default_rng(seed)
        centers = rng.integers(0, 3, size=(8, m)).astype(float)
        views = [judge.ordered(judge.View(centers, rng.integers(1, 8, 8) / 2, 0.25, 3))]
        states = rng.integers(0, 7, size=(24, m)).astype(np.float32) / 2
        want = sequence(np.arange(m)[None], views, states, 0.5)
        got = absorbed(np.arange(m)[None], views, states, 24, way, 0.5)
        same(got, tensors(np.arange(m)[None], want, float), 1e-6)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("second", [40.5, 10.0])
def test_the_lowest_is_the_lowest_when_sorted(second: float, way: str) -> None:
    """The first state takes the cluster at 0 to 41, beside 40: it comes after that one now, as winner and as least."""
    which, views = np.zeros((1, 1), int), [judge.View(np.array([[0.0], [10], [20], [30]]), np.array([0.1, 3, 1, 1]))]
    states = np.array([[50.0], [second]], np.float32)
    want = tensors(which, sequence(which, views, states, 0.5), float)
    assert sorted(judge.absorb(views[0], states[0], 0.5).centers[:, 0]) == [10, 20, 40, 41]
    same(absorbed(which, views, states, 2, way, 0.5), want, 1e-6)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(("most", "splits"), [(4.0, False), (4.25, True)])
def test_a_crowd_is_more_than_four_times_the_least(most: float, splits: bool, way: str) -> None:
    """A state that sits on its center counts for nothing, so that usages keep their ratio to the bit."""
    views = [judge.View(np.array([[0.0], [10], [20], [30]]), np.array([most, 2, 1, 2]), 1.0, 9)]
    after = absorbed(np.zeros((1, 1), int), views, np.zeros((1, 1), np.float32), 1, way, 0.5)
    assert after.centers.cpu().numpy()[0, :, 0].tolist() == ([0, 0, 10, 30] if splits else [0, 10, 20, 30])


@pytest.mark.parametrize("way", WAYS)
def test_an_update_of_no_state_changes_nothing(way: str) -> None:
    which, views, states = world(2, 6, 1, 4, 5)
    same(absorbed(which, views, states * np.nan, 0, way), tensors(which, views, float), 0)


def test_an_update_is_never_of_more_states_than_there_are() -> None:
    which, views, states = world(1, 6, 1, 4, 5)
    want = tensors(which, sequence(which, views, states), float)
    same(kernel.update(tensors(which, views), *there(states, np.int64(9))), want, 1e-6)


def wanted(which: Any, views: Any, states: Any, alpha: float = judge.STEP) -> Any:
    """(V, n)."""
    pairs = list(zip(views, which, strict=True))
    return np.array([[judge.reward(view, state[own], alpha) for state in states.astype(float)] for view, own in pairs])


def ready(which: Any, views: Any, way: str) -> kernel.Prepared:
    """Made ready for one way; on a GPU one view alone would be one clustering, which has programs of its own."""
    given = tensors(which, views, np.float64 if way == "float64" else np.float32)
    _, k, m = given.centers.shape
    if way == "fused" and m > 1:
        return kernel.Prepared(given.columns, kernel.cloud(given.centers), k)
    return kernel.prepare(given)


def paid(prepared: Any, weights: Any, states: Any, way: str, frame: Any = None, alpha: float = judge.STEP) -> Any:
    """Σ_v w_v r_v and r_v, by one way."""
    if way != "fused":
        return (
            kernel.rewards(prepared, weights, states, alpha, frame).cpu(),
            kernel.each(prepared, states, alpha, frame).cpu(),
        )
    from voronaut.kernels.gpu.fused import views as programs

    good = kernel.good_of(prepared, states, frame)
    groups = programs.launch(prepared, weights, states, good, alpha, frame, groups=min(2, len(weights)))
    return groups.sum(dim=0).cpu(), programs.pay_each(prepared, states, good, alpha, frame).cpu()


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("V, k, m, d", [*SHAPES, (5, 40, 1, 5), (3, 17, 3, 9)])
def test_rewards_are_the_reference(V: int, k: int, m: int, d: int, way: str) -> None:
    which, views, states = world(V, k, m, d, 37, seed=k)
    views[0].centers[k // 2 :] = views[0].centers[k // 2]  # they coincide
    views = [judge.ordered(view) for view in views]
    states[3, which[0]], states[4] = views[0].centers[0], 30 * states[4]
    weights = np.random.default_rng(1).uniform(0, 2, V)
    for alpha in (0.05, 1.0):
        want = wanted(which, views, states, alpha)
        prepared = ready(which, views, way)
        together, single = paid(prepared, *there(weights, states), way, alpha=alpha)
        error = 1e-12 if way == "float64" else 1e-5
        np.testing.assert_allclose(single, want, atol=error)
        np.testing.assert_allclose(together, weights @ want, atol=5 * error)


@needs_triton
@pytest.mark.parametrize("length", [1, 4, 30])
def test_lists_of_any_length_pay_the_same(length: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those that are too short are known to be, also where clusters coincide; those with everything have an end."""
    monkeypatch.setattr(clouds, "LENGTH", length)
    which, views, states = world(3, 24, 2, 6, 80)
    views[0].centers[5:] = views[0].centers[[5, 6] * 9 + [5]]
    views[1].centers[:] = views[1].centers[0]
    prepared = ready(which, views, "fused")
    assert torch.isinf(prepared.clusters.end[:, :24]).all() == (length == 30)
    _, got = paid(prepared, *there(np.ones(3), states), "fused")
    np.testing.assert_allclose(got, wanted(which, views, states), atol=1e-5)


@pytest.mark.parametrize("way", WAYS)
def test_a_state_between_two_of_one_coordinate_goes_to_the_lower(way: str) -> None:
    views = [judge.View(np.array([[0.0], [2.0], [2.0], [8.0]]), np.ones(4))]
    states = np.array([[1.0], [2.0], [5.0], [-4.0], [9.0]], np.float32)
    _, got = paid(kernel.prepare(tensors(np.zeros((1, 1), int), views)), *there(np.ones(1), states), way)
    np.testing.assert_allclose(got, wanted(np.zeros((1, 1), int), views, states), atol=1e-6)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("m", [1, 2])
def test_states_come_in_a_frame_and_bad_ones_earn_nothing(m: int, way: str) -> None:
    """Far away and in large units; one coordinate counts for nothing, one state is cut off."""
    which, views, states = world(2, 10, m, 4, 30)
    mean, scale = np.array([1e6, -3.0, 0.0, 5.0]), np.array([0.5, 2.0, 0.0, 1e-3])
    raw = states / np.where(scale > 0, scale, 1) + mean
    raw[5] = mean + 1e9
    want = wanted(which, views, np.clip((raw - mean) * scale, -10, 10))
    raw[7, 3], raw[9, 0], want[:, [7, 9]] = np.nan, np.inf, 0
    prepared = ready(which, views, way)
    frame = kernel.Frame(*there(mean, scale), 10.0)
    together, single = paid(prepared, *there(np.array([2.0, 0.5]), raw), way, frame)
    np.testing.assert_allclose(single, want, atol=1e-6)
    np.testing.assert_allclose(together, np.array([2.0, 0.5]) @ want, atol=1e-6)
    assert not single[:, [7, 9]].any() and (single != 0).sum() > 40


def test_a_single_view_is_paid_by_the_papers_programs() -> None:
    which, views, states = world(1, 12, 4, 4, 30)
    states[6] = np.nan
    centers = tensors(which, views).centers[0]
    clusters = dispatch.prepare(centers, torch.ones(12, dtype=torch.int64, device=DEVICE), Rules(0.7, 0.0))
    prepared, given = kernel.Prepared(*there(which), clusters, 12), there(states)[0]
    want = wanted(which, views, np.nan_to_num(states), 0.05)
    want[0, 6] = 0
    np.testing.assert_allclose(kernel.each(prepared, given, 0.05).cpu(), want, atol=1e-5)
    np.testing.assert_allclose(
        kernel.rewards(prepared, *there(np.full(1, 3.0)), given, 0.05).cpu(), 3 * want[0], atol=3e-5
    )
    assert kernel.rewards(prepared, *there(np.ones(1)), given[:0], 0.05).shape == (0,)


@pytest.mark.parametrize("m", [1, 2])
def test_made_ready_again_in_the_same_buffers(m: int) -> None:
    which, views, states = world(2, 10, m, 4)
    buffers = tensors(which, views)
    prepared = kernel.prepare(buffers)
    places = [each.data_ptr() for each in prepared.clusters]
    after = tensors(which, sequence(which, views, states))
    dispatch.take_over(buffers, after)
    kernel.prepare_again(prepared, buffers)
    assert places == [each.data_ptr() for each in prepared.clusters]
    given = there(states)[0]
    torch.testing.assert_close(kernel.each(prepared, given), kernel.each(kernel.prepare(after), given), rtol=0, atol=0)


def test_plain_rewards_of_many_blocks_are_those_of_one(monkeypatch: pytest.MonkeyPatch) -> None:
    which, views, states = world(2, 10, 2, 4)
    prepared, given = kernel.prepare(tensors(which, views)), there(np.ones(2), states)
    whole = kernel.rewards(prepared, *given)
    monkeypatch.setattr(kernel, "BLOCK", 70)
    torch.testing.assert_close(kernel.rewards(prepared, *given), whole)
    assert kernel.rewards(prepared, given[0], given[1][:0]).shape == (0,)
    assert kernel.each(prepared, given[1][:0]).shape == (2, 0)


@needs_gpu
@pytest.mark.parametrize(
    "V, k, m, d", [(17, 300, 1, 17), (34, 300, 2, 17), (8, 300, 4, 17), (1, 300, 3, 3), (1, 300, 17, 17)]
)
def test_the_device_does_as_plain_torch(V: int, k: int, m: int, d: int) -> None:
    """At the sizes that users have: the sequence, the same bits every time, and rewards."""
    which, views, states = world(V, k, m, d, 1500)
    given, total = there(states, np.int64(1400))
    before = tensors(which, views)
    after, want = kernel.update(before, given, total), kernel.plain_update(before, given, total)
    same(after, want, 1e-5)
    again = kernel.update(before, given, total)
    assert all(torch.equal(mine, other) for mine, other in zip(after, again, strict=True))
    weights, prepared = there(np.linspace(0.5, 2, V))[0], kernel.prepare(after)
    judged = kernel.prepare(kernel.Views(*(each.cpu() for each in after)))
    np.testing.assert_allclose(kernel.each(prepared, given).cpu(), kernel.each(judged, given.cpu()), atol=2e-5)
    got, right = kernel.rewards(prepared, weights, given).cpu(), kernel.rewards(judged, weights.cpu(), given.cpu())
    np.testing.assert_allclose(got, right, atol=2e-5 * V)
