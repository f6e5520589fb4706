"""Rewards on torch tensors equal the reference: plain torch, Triton under its interpreter or on a GPU."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.kernels.gpu.there import DEVICE, RULES, needs_gpu, needs_triton, there, torch, world
from voronaut import clusters as reference
from voronaut.kernels.gpu import dispatch as kernel
from voronaut.kernels.gpu import plain
from voronaut.kernels.gpu import prepared as ready
from voronaut.kernels.gpu.tiles import Tiles, depth
from voronaut.kernels.rules import LOG, SQRT, Rules

SMALL = {"stages": 1, "long_states": 16, "long_clusters": 16, "short_states": 16, "short_groups": 2}
DIRECT = Tiles(16, 16, 4, "direct", **SMALL)
PRODUCT = Tiles(16, 16, 4, "split", **SMALL, short_dims=4)
SHORTEST = Tiles(16, 16, 4, "split", **SMALL, length=1, long_peel=False)  # lists too short for most states
FUSED = [
    pytest.param(t, id=name, marks=needs_triton)
    for t, name in ((DIRECT, "direct"), (PRODUCT, "product"), (SHORTEST, "shortest"))
]
WAYS = [pytest.param(None, id="plain"), *FUSED]


def f_of(rules: Rules) -> Callable[[Any], Any]:
    return reference.sqrt if rules.objective == SQRT else lambda gap: reference.log(gap, rules.floor)


def wanted(centers: Any, counts: Any, states: Any, rules: Rules) -> Any:
    frozen = reference.Clusters(centers.astype(float), counts)
    pay = f_of(rules)
    return np.array([reference.reward(frozen, s.astype(float), rules.step_size, rules.balance, pay) for s in states])


def paid(centers: Any, counts: Any, states: Any, rules: Rules, tiles: Any, shift: Any = None) -> Any:
    given, places, numbers = there(states, centers, counts)
    prepared = kernel.prepare(places, numbers, rules, tiles=tiles)
    shift = torch.zeros(given.shape[1], dtype=given.dtype, device=DEVICE) if shift is None else shift
    if tiles is None:
        return plain.rewards(prepared, given, shift).cpu().numpy()
    return kernel.fused_rewards(prepared, given, shift, tiles).cpu().numpy()


def close(got: Any, want: Any, centers: Any, rules: Rules = RULES) -> None:
    """Within what float32 can tell: a distance is good to 2⁻¹⁶ of the clusters' extent, and f may magnify it.

    √ turns an error e of a gap g into e / 2√g, at most √e.
    """
    error = 2.0**-19 * max(1.0, float(np.abs(centers - centers.mean(axis=0)).max()))
    slope = 1 / rules.floor if rules.objective == LOG else 0.5 / np.sqrt(1e-2)
    np.testing.assert_allclose(got, want, rtol=2e-5, atol=error * slope)


@pytest.mark.parametrize("tiles", WAYS)
@pytest.mark.parametrize("objective", [SQRT, LOG])
@pytest.mark.parametrize("k, d", [(2, 1), (20, 3), (40, 17), (24, 40)])
def test_rewards_are_the_reference(k: int, d: int, objective: int, tiles: Any) -> None:
    rules = RULES._replace(objective=objective)
    centers, counts, states = world(k, d, 33, seed=k)
    states[5], states[6] = centers[1], 30 * states[6]
    close(paid(centers, counts, states, rules, tiles), wanted(centers, counts, states, rules), centers, rules)


def test_assignments_are_the_references() -> None:
    centers, counts, states = world(20, 3, 33)
    centers[7] = centers[3]
    want = [reference.assign(reference.Clusters(centers.astype(float), counts), s.astype(float), 1e-3) for s in states]
    states[4], want[4] = np.nan, -1
    prepared = kernel.prepare(*there(centers, counts), RULES)
    given, shift = there(states + np.float32(8), np.full(3, 8, np.float32))
    for budget in (1, plain.BLOCK_BYTES):
        assert plain.assign(prepared, given, shift, budget).tolist() == want


@pytest.mark.parametrize("tiles", WAYS)
def test_clusters_that_coincide(tiles: Any) -> None:
    """All centers at 0, as the paper starts: everything ties, and the lowest index wins."""
    _, _, states = world(24, 12, 20)
    centers, counts = np.zeros((24, 12), np.float32), np.ones(24, np.int64)
    close(paid(centers, counts, states, RULES, tiles), wanted(centers, counts, states, RULES), centers)


@pytest.mark.parametrize("tiles", WAYS)
def test_a_tie_goes_to_the_lowest_index(tiles: Any) -> None:
    """Between clusters 2 and 18, a block of 16 later; only the first has another neighbour, which it leaves."""
    centers, counts = np.zeros((20, 2), np.float32), np.ones(20, int)
    places = [20.0 + 4 * (i // 2) for i in range(16)] * np.resize([1, -1], 16)
    centers[np.delete(np.arange(20), [2, 18, 5, 9]), 0], centers[9] = places, (-0.5, 40)
    centers[[2, 18, 5], 0] = 0, 2, -1.5  # the mean is (0, 2): nothing is rounded
    states = np.array([[1, 0]], np.float32)
    want = wanted(centers, counts, states, RULES)
    assert abs(want - wanted(np.roll(centers, 4, axis=0), counts, states, RULES)) > 1e-3  # or it would show nothing
    close(paid(centers, counts, states, RULES, tiles), want, centers)


@pytest.mark.parametrize("tiles", WAYS)
def test_a_moved_center_that_lands_on_another(tiles: Any) -> None:
    """Where the identity for moved distances cancels, they come from differences."""
    centers, _, _ = world(20, 17, 1)
    counts = np.ones(20, np.int64)
    counts[1:] = 1_000_000  # cluster 0 wins everywhere
    states = centers[0] + (centers[1:9] - centers[0]) / np.float32(RULES.step_size) * np.float32(1 + 1e-6)
    got, want = paid(centers, counts, states, RULES, tiles), wanted(centers, counts, states, RULES)
    np.testing.assert_allclose(
        got, want, rtol=1e-4, atol=3e-4
    )  # the moved center itself is known to 1e-6: √ makes it 1e-3


@pytest.mark.parametrize("tiles", WAYS)
def test_near_ties_fall_as_in_the_reference(tiles: Any) -> None:
    """States halfway between two close centers far from the middle: products alone would mistake the winner."""
    rng = np.random.default_rng(3)
    centers = (5 * rng.normal(size=(32, 12))).astype(np.float32)
    centers[1::2] = centers[::2] + 1e-3 * rng.normal(size=(16, 12)).astype(np.float32)
    states = (centers[::2] + centers[1::2]) / 2 + 1e-5 * rng.normal(size=(16, 12)).astype(np.float32)
    counts = np.ones(32, np.int64)
    got, want = paid(centers, counts, states, RULES, tiles), wanted(centers, counts, states, RULES)
    np.testing.assert_allclose(got, want, rtol=1e-3, atol=2e-4)  # gaps of 1e-3 between coordinates of 5, known to 5e-7


@needs_triton
def test_what_is_given_away_for_rounding_is_what_its_parts_may_lose() -> None:
    """Of 64 dimensions in units of ‖s‖‖μ‖: larger bounds cost time, and no test would see that smaller ones err."""
    from voronaut.kernels.gpu.fused import winners

    left_out, sums, too_small = 3 * 2.0**-22, 3 * 64 / 8 * 2.0**-23, 64 * 2.0**-25 / (0.5 * np.sqrt(64))
    assert winners.product_rounding(64) == pytest.approx(left_out + sums + 2 * too_small)
    assert winners.rounding(64) - winners.product_rounding(64) == pytest.approx(5 * 2.0**-23)


@pytest.mark.parametrize("tiles", WAYS)
def test_bad_states_earn_nothing_and_touch_no_other(tiles: Any) -> None:
    centers, counts, states = world(20, 10, 12)
    want = paid(centers, counts, states, RULES, tiles)
    states[2], states[7, 3], states[8] = np.nan, np.inf, 1e30
    want[[2, 7, 8]] = 0
    np.testing.assert_array_equal(paid(centers, counts, states, RULES, tiles), want)


@pytest.mark.parametrize("tiles", WAYS)
def test_an_offset_is_taken_off_before_anything_is_squared(tiles: Any) -> None:
    centers, counts, states = world(30, 12, 30)
    shift = torch.full((12,), 4096.0, device=DEVICE)
    far = states + np.float32(4096)
    close(paid(centers, counts, far, RULES, tiles, shift), wanted(centers, counts, far - 4096, RULES), centers)


@pytest.mark.parametrize("tiles", WAYS)
@pytest.mark.parametrize("power", [-60, -13, 11, 40])
def test_any_scale_is_paid_alike(power: int, tiles: Any) -> None:
    """Halves of 11 bits have few exponents: products are in units of the clusters' own size."""
    centers, counts, states = world(40, 19, 33, seed=4)
    states[3], states[4], states[5] = 3000 * states[3], centers[2], 1e5 * states[5]  # beyond what halves can hold
    rules, scale = RULES._replace(balance=RULES.balance * 2.0**power), np.float32(2.0**power)
    want = wanted(centers, counts, states, RULES) * 2.0 ** (power / 2)
    got = paid(scale * centers, counts, scale * states, rules, tiles)
    np.testing.assert_allclose(got, want, rtol=3e-5, atol=1e-5 * 2.0 ** (power / 2))


@pytest.mark.parametrize("tiles", FUSED)
def test_states_may_be_parts_of_wider_rows(tiles: Any) -> None:
    centers, counts, states = world(20, 17, 40)
    buffer = torch.full((40, 3, 20), torch.nan, device=DEVICE)
    buffer[:, 1, 2:19] = torch.tensor(states)
    prepared, zeros = kernel.prepare(*there(centers, counts), RULES, tiles=tiles), torch.zeros(17, device=DEVICE)
    got = [kernel.fused_rewards(prepared, rows, zeros, tiles) for rows in (buffer[:, 1, 2:19], there(states)[0])]
    np.testing.assert_array_equal(got[0].cpu(), got[1].cpu())


@pytest.mark.parametrize("tiles", FUSED)
def test_rows_far_apart_are_copied(tiles: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from voronaut.kernels.gpu.fused import winners

    monkeypatch.setattr(winners, "LONGEST_ROW", 18)
    centers, counts, states = world(20, 17, 5)
    wide, zeros = torch.zeros(5, 19), torch.zeros(17, device=DEVICE)
    wide[:, :17] = torch.tensor(states)
    prepared = kernel.prepare(*there(centers, counts), RULES, tiles=tiles)
    assert winners.batch_of(prepared, wide.to(DEVICE)[:, :17], zeros).states.stride(0) == 17


@pytest.mark.parametrize("tiles", [WAYS[0], FUSED[0]])
def test_float64_is_exact(tiles: Any) -> None:
    centers, counts, states = world(40, 9, 33, dtype=np.float64)
    got, want = paid(centers, counts, states, RULES, tiles), wanted(centers, counts, states, RULES)
    np.testing.assert_allclose(got, want, rtol=1e-10, atol=1e-13)


@needs_triton
@pytest.mark.parametrize("objective", [SQRT, LOG])
@pytest.mark.parametrize("k, d", [(2, 1), (3, 5), (37, 17)])
def test_clusters_are_made_ready_alike(k: int, d: int, objective: int) -> None:
    """One program per cluster finds what plain torch finds, also among clusters that coincide."""
    from voronaut.kernels.gpu.fused import prepare as fused

    centers, counts, _ = world(k, d, 1, seed=d)
    centers[k // 2 :] = centers[k - k // 2 - 1]
    counts = np.random.default_rng(1).permutation(k) * 3 + 1  # no ties: which of them comes first is not promised
    places, numbers = there(centers, counts)
    rules = RULES._replace(objective=objective)
    size, product = {"width": -(-k // 16) * 16, "deep": depth(d).whole, "length": 7}, depth(d).product
    want = ready.prepare(places, numbers, rules, **size, product=product)
    got = fused.fill(fused.allocate(places, **size, log=want.log), places, numbers, rules, product=product)
    for name in want._fields:
        if name not in ("lists", "log"):
            np.testing.assert_allclose(
                getattr(got, name).cpu(), getattr(want, name).cpu(), rtol=3e-6, atol=3e-7, err_msg=name
            )
    np.testing.assert_allclose(got.lists.keys.cpu(), want.lists.keys.cpu(), rtol=1e-5, atol=1e-6)
    listed = want.lists.keys.cpu().isfinite()
    for i in range(k):  # keys may tie: which of them comes first is not promised
        assert set(got.lists.others[i].cpu()[listed[i]].tolist()) == set(want.lists.others[i].cpu()[listed[i]].tolist())


def test_no_block_uses_more_than_its_budget() -> None:
    """What is alive at once stays within the bytes given, however many states there are; the rewards stay the same."""
    from torch.utils._python_dispatch import TorchDispatchMode

    class Largest(TorchDispatchMode):  # type: ignore[misc]
        most = 0

        def __torch_dispatch__(self, call: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            made = call(*args, **(kwargs or {}))
            for each in made if isinstance(made, (tuple, list)) else [made]:
                if isinstance(each, torch.Tensor):
                    self.most = max(self.most, each.numel() * each.element_size())
            return made

    centers, counts, states = world(64, 7, 3000)
    prepared, given, shift = (
        kernel.prepare(*there(centers, counts), RULES),
        *there(states),
        torch.zeros(7, device=DEVICE),
    )
    budget = 200_000
    with Largest() as watch:
        small = plain.rewards(prepared, given, shift, block_bytes=budget)
    assert budget // 10 < watch.most <= budget // plain.MATRICES
    with Largest() as watch:
        whole = plain.rewards(prepared, given, shift)
    assert watch.most > budget
    np.testing.assert_allclose(small.cpu(), whole.cpu(), atol=1e-6)
    single = plain.rewards(prepared, given[:20], shift, block_bytes=1)
    np.testing.assert_allclose(single.cpu(), whole[:20].cpu(), atol=1e-6)


@needs_gpu
@pytest.mark.parametrize("d", [5, 17, 67, 200])
def test_default_tiles_on_the_device(d: int) -> None:
    """The tiles that users get, at 300 clusters, against plain torch in float64."""
    centers, counts, states = world(300, d, 5000)
    given, places, numbers = there(states, centers, counts)
    prepared, shift = kernel.prepare(places, numbers, RULES), torch.zeros(d, device=DEVICE)
    got = kernel.rewards(prepared, given, shift).cpu().numpy()
    close(got, plain.rewards(prepared, given, shift).cpu().numpy(), centers)
