"""Updates on torch tensors are the sequence: plain torch, Triton under its interpreter or on a GPU."""

from typing import Any

import numpy as np
import pytest

from tests.kernels.gpu.there import RULES, needs_gpu, needs_triton, there, torch, world
from voronaut import clusters as reference
from voronaut.kernels import gpu as kernel
from voronaut.kernels.gpu import plain
from voronaut.kernels.gpu.tiles import Walk, update_walk
from voronaut.kernels.rules import SQRT, Rules


def fused_update(*given: Any) -> tuple[Any, Any]:
    from voronaut.kernels.gpu.fused.update import update

    return update(*given)


def absorbed(centers: Any, counts: Any, states: Any, good: int, walk: Any = None) -> tuple[Any, Any]:
    given = there(centers, counts, states, np.int64(good))
    after = fused_update(*given, RULES, walk) if walk else plain.update(*given, RULES)
    return after[0].cpu().numpy(), after[1].cpu().numpy()


def sequence(centers: Any, counts: Any, states: Any) -> Any:
    clusters = reference.Clusters(centers.astype(float), counts)
    for state in states.astype(float):
        clusters = reference.absorb(clusters, state, RULES.step_size, RULES.balance)
    return clusters


def test_the_plain_update_is_the_sequence() -> None:
    centers, counts, states = world(20, 6, 60)
    got, numbers = absorbed(centers, counts, states, 50)
    want = sequence(centers, counts, states[:50])
    np.testing.assert_allclose(got, want.centers, atol=2e-6)
    np.testing.assert_array_equal(numbers, want.counts)


@needs_triton
@pytest.mark.parametrize(
    "k, d, walk",
    [
        (12, 20, Walk(1, 4, 8, 2, 16)),
        (30, 3, Walk(1, 4, 8, 4, 16)),
        (3, 5, Walk(1, 4, 16, 2, 32)),  # more states choose a cluster than it absorbs at once
        (7, 9, Walk(1, 4, 2, 4, 16)),
    ],
)
def test_the_fused_update_is_the_sequence(k: int, d: int, walk: Walk) -> None:
    """However it is cut: winners are looked up again until they are what state after state gives."""
    centers, counts, states = world(k, d, 42)
    states[37:] = np.nan  # beyond the good ones
    got, numbers = absorbed(centers, counts, states, 37, walk)
    want = sequence(centers, counts, states[:37])
    np.testing.assert_allclose(got, want.centers, atol=3e-6)
    np.testing.assert_array_equal(numbers, want.counts)


@needs_triton
def test_each_move_of_the_fused_update_is_rounded_once() -> None:
    """Not only close: composed moves would round otherwise, and a run would part from its twin on a CPU."""
    centers, counts, states = world(12, 20, 60)
    got, numbers = absorbed(centers, counts, states, 60, Walk(1, 4, 8, 4, 16))
    want, count, alpha = centers.copy(), counts.copy(), RULES.step_size
    for state in states:
        value = np.linalg.norm(want.astype(float) - state, axis=1) + RULES.balance * (count - count.min())
        i = int(value.argmin())
        want[i] = alpha * state.astype(float) + (1 - alpha) * want[i].astype(float)
        count[i] += 1
    np.testing.assert_array_equal(got, want)
    np.testing.assert_array_equal(numbers, count)


@needs_triton
def test_the_fused_update_starts_from_clusters_that_coincide() -> None:
    _, _, states = world(1, 4, 30)
    centers, counts = np.zeros((9, 4), np.float32), np.ones(9, np.int64)
    got, numbers = absorbed(centers, counts, states, 30, Walk(1, 4, 16, 2, 32))
    want = sequence(centers, counts, states)
    np.testing.assert_allclose(got, want.centers, atol=3e-6)
    np.testing.assert_array_equal(numbers, want.counts)


@needs_triton
def test_ties_of_the_fused_update_go_to_the_lowest_index() -> None:
    """Also between a cluster and what an earlier state of the block made of another: all numbers here are exact."""
    rules = Rules(0.5, 0.0, SQRT, 1e-3)
    centers, counts = 100 + 10 * np.arange(20, dtype=np.float32)[:, None], np.ones(20, np.int64)
    centers[1], centers[4] = 8, 2
    states = np.array([[12], [6], [14], [6.5]], np.float32)  # the second and the fourth lie between 1 and 4
    clusters = reference.Clusters(centers.astype(float), counts)
    for state in states.astype(float):
        clusters = reference.absorb(clusters, state, rules.step_size, rules.balance)
    given = there(centers, counts, states, np.int64(4))
    for states_at_once in (2, 8):
        got, numbers = fused_update(*given, rules, Walk(1, 4, states_at_once, 4, 16))
        np.testing.assert_array_equal(got.cpu(), clusters.centers)
        np.testing.assert_array_equal(numbers.cpu(), clusters.counts)


@needs_triton
def test_the_fused_update_errs_only_within_rounding() -> None:
    """States halfway between two centers, far from the middle: the winner may be the other one only if float32 allows.

    Differences, d squares, their sum and a root round a distance by at most (d + 6) / 2 last bits.
    """
    rng, d = np.random.default_rng(5), 12
    centers = (20 * rng.normal(size=(24, d))).astype(np.float32)
    centers[1::2] = centers[::2] + 1e-2 * rng.normal(size=(12, d)).astype(np.float32)
    states = (centers[::2] + centers[1::2]) / 2 + np.float32(1e-6) * rng.normal(size=(12, d)).astype(np.float32)
    still = Rules(1e-30, 0.0, SQRT, 1e-3)  # nothing moves, so counts tell each state's winner
    given = there(centers, np.ones(24, np.int64), states, np.int64(12))
    got, numbers = fused_update(*given, still, Walk(1, 4, 8, 2, 16))
    np.testing.assert_array_equal(got.cpu(), centers)
    won = numbers.cpu().numpy().reshape(12, 2) - 1
    np.testing.assert_array_equal(won.sum(axis=1), 1)  # the pair is right in any case
    far = np.linalg.norm(states[:, None].astype(float) - centers.astype(float).reshape(12, 2, d), axis=2)
    assert np.all((far * won).sum(axis=1) <= far.min(axis=1) * (1 + (d + 6) * 2.0**-24))


@needs_triton
def test_the_fused_update_of_no_good_state_changes_nothing() -> None:
    centers, counts, states = world(5, 3, 20)
    got, numbers = absorbed(centers, counts, states * np.nan, 0, Walk(1, 4, 8, 4, 16))
    np.testing.assert_array_equal(got, centers)
    np.testing.assert_array_equal(numbers, counts)


def test_a_window_is_no_longer_than_the_states_need() -> None:
    for n in (1, 5, 64, 65, 5000, 10**6):
        for k, d in ((300, 17), (300, 67), (4096, 256)):
            walk = update_walk(k, d, n)
            window = walk.states * walk.blocks
            assert walk.blocks & (walk.blocks - 1) == 0 and walk.blocks >= 2
            assert window <= max(2 * walk.states, 2 * n) and (window >= n or window >= 512)


@needs_gpu
@pytest.mark.parametrize("d", [5, 17, 67])
def test_the_update_on_the_device_repeats_to_the_bit(d: int) -> None:
    """Programs that read what others have not yet written would show here."""
    given = there(*world(300, d, 20_000), np.int64(19_900))
    first = kernel.update(*given, RULES)
    for _ in range(11):
        again = kernel.update(*given, RULES)
        assert torch.equal(again[0], first[0]) and torch.equal(again[1], first[1])


@needs_gpu
@pytest.mark.parametrize("d", [17, 67])
def test_the_default_update_on_the_device(d: int) -> None:
    centers, counts, states = world(300, d, 3000)
    given = there(centers, counts, states, np.int64(2900))
    got, want = kernel.update(*given, RULES), plain.update(*given, RULES)
    np.testing.assert_allclose(got[0].cpu(), want[0].cpu(), atol=1e-5)
    np.testing.assert_array_equal(got[1].cpu(), want[1].cpu())
