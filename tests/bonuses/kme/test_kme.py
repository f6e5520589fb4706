"""`vn.KME`: the surface, the laws the method obeys, and what it does with odd input."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import voronaut as vn
from tests.bonuses.kme import paper
from voronaut import clusters as ref


def fed(dim: int = 3, batches: int = 3, **options: object) -> vn.KME:
    """A KME that has seen a few batches."""
    kme = paper(dim, **{"clusters": 20, "init": "data", **options})  # type: ignore[arg-type]
    rng = np.random.default_rng(0)
    for _ in range(batches):
        kme.update(rng.normal(size=(300, dim)))
    return kme


def bytes_of(kme: vn.KME) -> dict[str, bytes]:
    return {name: array.tobytes() for name, array in kme.state_dict().items()}


def reference(kme: vn.KME) -> ref.Clusters:
    return ref.Clusters(kme.centers, kme.counts)


# Against the reference


@pytest.mark.parametrize("objective", ["sqrt", "log"])
def test_rewards_are_the_references(objective: str) -> None:
    kme = fed(dtype="float64", objective=objective)
    states = np.random.default_rng(1).normal(size=(200, 3))
    floor = 1e-3 * np.maximum(kme.gaps, 0).mean()
    concave = ref.sqrt if objective == "sqrt" else lambda gap: ref.log(gap, floor)
    wanted = [ref.reward(reference(kme), s, 0.05, 1e-4, concave) for s in states]
    np.testing.assert_allclose(kme.rewards(states), wanted, rtol=0, atol=1e-12)
    assert kme.objective_value() == pytest.approx(ref.objective(reference(kme), 1e-4, concave), abs=1e-12)


@pytest.mark.parametrize("offset", [0.0, 1e4, -1e6])
@pytest.mark.parametrize("dim", [2, 17])
def test_float32_agrees_at_any_offset(dim: int, offset: float) -> None:
    rng = np.random.default_rng(2)
    batches = rng.normal(size=(4, 500, dim)) + offset
    exact, fast = (paper(dim, clusters=30, init="data", dtype=t) for t in ("float64", "float32"))
    for batch in batches[:3]:
        exact.update(batch)
        fast.update(batch)
    wanted, got = exact.rewards(batches[3]), fast.rewards(batches[3])
    assert np.median(np.abs(got - wanted)) <= 1e-5 * np.abs(wanted).max()
    assert np.quantile(np.abs(got - wanted), 0.99) <= 1e-4 * np.abs(wanted).max()  # the rest: assignments by a hair
    np.testing.assert_allclose(fast.centers, exact.centers, rtol=0, atol=2e-4)


def test_float32_rewards_from_equal_clusters_agree_to_1e_4() -> None:
    """The same clusters in both precisions, so that only the rewards are compared."""
    rng = np.random.default_rng(3)
    for offset in (0.0, 1e4):
        fast = paper(17, clusters=100, init="data")
        fast.update(rng.normal(size=(4000, 17)) + offset)
        clusters, states = reference(fast), rng.normal(size=(300, 17)) + offset
        wanted = np.array([ref.reward(clusters, s, 0.05, 1e-4) for s in states])
        np.testing.assert_allclose(fast.rewards(states), wanted, rtol=1e-4, atol=1e-4 * np.abs(wanted).mean())


def test_a_drifting_stream_takes_the_reference_point_along() -> None:
    exact, fast = (paper(2, clusters=10, init="data", dtype=t, step_size=0.5) for t in ("float64", "float32"))
    rng = np.random.default_rng(4)
    for offset in np.repeat([0.0, 1e5], 40):
        batch = rng.normal(size=(100, 2)) + offset
        exact.update(batch)
        fast.update(batch)
    # 1e5 has float32 steps of 0.008; centers near it are held far more finely.
    np.testing.assert_allclose(np.sort(fast.centers[:, 0]), np.sort(exact.centers[:, 0]), rtol=0, atol=0.05)


# Laws of the method


@settings(max_examples=40, deadline=None)
@given(
    st.integers(2, 12), st.integers(1, 5), st.sampled_from([0.0, 1e-4, 0.1, 10.0]), st.floats(0.01, 0.99),
    st.integers(0, 10**6),
)  # fmt: skip
def test_rewards_telescope_and_counts_are_conserved(
    k: int, d: int, balance: float, step_size: float, seed: int
) -> None:
    kme = paper(d, clusters=k, balance=balance, step_size=step_size, dtype="float64")
    states = np.random.default_rng(seed).normal(size=(60, d))
    before = kme.objective_value()
    paid = kme.step(states)
    assert paid.sum() == pytest.approx(kme.objective_value() - before, abs=1e-9 * (1 + abs(kme.objective_value())))
    assert kme.counts.sum() == k + 60
    hull = np.vstack([np.zeros(d), states])
    assert (kme.centers >= hull.min(axis=0) - 1e-12).all() and (kme.centers <= hull.max(axis=0) + 1e-12).all()


def rotation(dim: int, seed: int) -> np.ndarray:
    return np.asarray(np.linalg.qr(np.random.default_rng(seed).normal(size=(dim, dim)))[0])


@settings(max_examples=30, deadline=None)
@given(st.integers(2, 10), st.integers(1, 5), st.integers(0, 10**6))
def test_translation_and_rotation_change_no_reward(k: int, d: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    first, states = rng.normal(size=(2, 50, d))
    turn, shift = rotation(d, seed), rng.normal(size=d) * 10
    plain, moved = (paper(d, clusters=k, init="data", dtype="float64", balance=0.01) for _ in range(2))
    plain.update(first)
    moved.load_state_dict({**plain.state_dict(), "centers": plain.centers @ turn + shift})
    np.testing.assert_allclose(moved.rewards(states @ turn + shift), plain.rewards(states), rtol=0, atol=1e-7)


def test_relabelling_clusters_changes_no_reward() -> None:
    kme, other = fed(dtype="float64"), fed(dtype="float64")
    states, order = np.random.default_rng(1).normal(size=(50, 3)), np.random.default_rng(2).permutation(20)
    saved = kme.state_dict()
    other.load_state_dict({**saved, "centers": saved["centers"][order], "counts": saved["counts"][order]})
    np.testing.assert_allclose(other.rewards(states), kme.rewards(states), rtol=0, atol=1e-12)


def test_novel_states_earn_more_than_familiar_ones() -> None:
    kme = fed()
    assert kme.rewards(np.full((1, 3), 9.0)) > 10 * kme.rewards(np.zeros((1, 3)))


def test_step_in_pieces_is_step_whole() -> None:
    states = np.random.default_rng(0).normal(size=(90, 2))
    whole, pieces = (paper(2, clusters=7, dtype="float64") for _ in range(2))
    together = whole.step(states)
    apart = np.concatenate([pieces.step(states[a : a + 7]) for a in range(0, 90, 7)])
    np.testing.assert_allclose(apart, together, rtol=0, atol=1e-12)
    assert whole.entropy() == pytest.approx(pieces.entropy())


# Purity, determinism, independence


def test_rewards_is_pure() -> None:
    kme, states = fed(), np.random.default_rng(1).normal(size=(40, 3))
    given, before = states.copy(), bytes_of(kme)
    first = kme.rewards(states)
    kme.metrics(), kme.entropy(), kme.gaps
    assert bytes_of(kme) == before and (states == given).all()
    assert kme.rewards(states).tobytes() == first.tobytes()


def test_same_seed_same_bits_and_another_seed_another_order() -> None:
    assert bytes_of(fed(seed=1)) == bytes_of(fed(seed=1))
    assert bytes_of(fed(seed=1)) != bytes_of(fed(seed=2))


def test_no_seed_is_a_fresh_seed() -> None:
    assert paper(2, seed=None).settings.seed != paper(2, seed=None).settings.seed


def test_two_sizes_live_side_by_side() -> None:
    alone = fed(3)
    one, other = paper(3, clusters=20, init="data"), paper(7, clusters=33)
    rng, noise = np.random.default_rng(0), np.random.default_rng(9)
    for _ in range(3):
        one.update(rng.normal(size=(300, 3)))
        other.update(noise.normal(size=(50, 7)))
        other.rewards(noise.normal(size=(5, 7)))
    assert bytes_of(one) == bytes_of(alone)


# Shapes and kinds of input


def test_layout_is_kept_and_each_reward_returns_to_its_row() -> None:
    kme, states = fed(), np.random.default_rng(1).normal(size=(4, 5, 3))
    flat = kme.rewards(states.reshape(-1, 3))
    assert kme.rewards(states).tolist() == flat.reshape(4, 5).tolist()
    assert kme.rewards(states[2, 3]).shape == () and kme.rewards(states[2, 3]) == flat[13]


def test_any_memory_layout_and_kind() -> None:
    kme, states = fed(), np.round(np.random.default_rng(1).normal(size=(8, 3)) * 4)
    wanted = kme.rewards(states)
    frozen = states.copy()
    frozen.flags.writeable = False
    wide = np.zeros((8, 6))
    wide[:, ::2] = states
    for same in (frozen, wide[:, ::2], np.asfortranarray(states), states.astype(int), states.astype(np.float16),
                 states.astype(">f8"), states.tolist()):  # fmt: skip
        np.testing.assert_allclose(kme.rewards(same), wanted, rtol=1e-6)
        kme.update(same)
        kme.load_state_dict(fed().state_dict())


@pytest.mark.parametrize("shape", [(0, 3), (4, 0, 3)])
def test_an_empty_batch_is_no_batch(shape: tuple[int, ...]) -> None:
    kme = fed()
    before = bytes_of(kme)
    assert kme.rewards(np.empty(shape)).shape == shape[:-1]
    assert kme.step(np.empty(shape)).shape == shape[:-1]
    kme.update(np.empty(shape))
    assert bytes_of(kme) == before


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_rewards_have_the_kernels_precision_and_views_are_wide(dtype: str) -> None:
    kme = fed(dtype=dtype)
    assert kme.rewards(np.zeros((2, 3))).dtype == dtype
    assert (kme.centers.dtype, kme.counts.dtype, kme.gaps.dtype) == (np.float64, np.int64, np.float64)


def test_features() -> None:
    kme = paper(2, clusters=5, init="data", features=lambda s: np.asarray(s["position"])[..., :2])
    plain = paper(2, clusters=5, init="data")
    position = np.random.default_rng(0).normal(size=(30, 3))
    kme.update({"position": position})
    plain.update(position[:, :2])
    assert kme.rewards({"position": position}).tolist() == plain.rewards(position[:, :2]).tolist()


# Starts


def test_zeros_is_the_papers_start() -> None:
    kme = paper(2, clusters=4)
    assert kme.centers.tolist() == [[0, 0]] * 4 and kme.counts.tolist() == [1] * 4
    assert kme.rewards(np.array([3.0, 4.0])) > 0


def test_data_starts_at_distinct_states_and_absorbs_the_whole_batch() -> None:
    kme = paper(1, clusters=5, init="data", step_size=1e-9, dtype="float64")
    states = np.repeat(np.arange(10.0), 3)[:, None]
    assert kme.rewards(states).tolist() == [0] * 30
    kme.update(states)
    assert len(np.unique(kme.centers.round(3))) == 5 and set(kme.centers.round(3).ravel()) <= set(range(10))
    assert kme.counts.sum() == 5 + 30


def test_fewer_distinct_states_than_clusters_repeat() -> None:
    kme = paper(1, clusters=5, init="data", step_size=1e-9, dtype="float64")
    kme.update([[1.0], [2.0]])
    assert set(kme.centers.round(3).ravel()) == {1.0, 2.0}


# Bad input


@pytest.mark.parametrize(
    ("options", "word"),
    [
        ({"clusters": 1}, "clusters"), ({"clusters": 2.5}, "clusters"), ({"dim": 0}, "dim"),
        ({"step_size": 0}, "step_size"),
        ({"step_size": 1.0}, "step_size"), ({"step_size": float("nan")}, "step_size"), ({"balance": -1e-9}, "balance"),
        ({"balance": float("inf")}, "balance"), ({"objective": "cube"}, "objective"), ({"init": "random"}, "init"),
        ({"dtype": "float16"}, "dtype"), ({"on_bad": "ignore"}, "on_bad"), ({"threads": 0}, "threads"),
        ({"seed": -1}, "seed"), ({"features": 3}, "features"),
    ],
)  # fmt: skip
def test_bad_choices_are_named(options: dict[str, object], word: str) -> None:
    with pytest.raises(ValueError, match=word):
        paper(**{"dim": 3, **options})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("states", "message"),
    [
        (np.zeros((4, 2)), r"dim=3; got shape \(4, 2\)"),
        (np.zeros(()), "dim=3"),
        ([["a", "b", "c"]], "real numbers"),
        (np.full((2, 2, 3), [[[0.0]], [[np.nan]]]), r"2 of 4 .* first at index \(1, 0\)"),
        (np.array([[0, 0, 0], [0, np.inf, 0]]), r"1 of 2 .* first at index \(1,\)"),
        (np.full((1, 3), 1e30), "1 of 1"),
    ],
)
def test_bad_states_are_refused_and_change_nothing(states: object, message: str) -> None:
    kme = fed()
    before = bytes_of(kme)
    for method in (kme.rewards, kme.update, kme.step):
        with pytest.raises(ValueError, match=message):
            method(states)
    assert bytes_of(kme) == before


def test_dropped_states_earn_nothing_teach_nothing_and_are_counted() -> None:
    clean, dirty = fed(), fed(on_bad="drop")
    states = np.random.default_rng(1).normal(size=(6, 3))
    spoiled = np.insert(states, 2, np.nan, axis=0)
    assert np.delete(dirty.rewards(spoiled), 2).tolist() == clean.rewards(states).tolist()
    assert dirty.rewards(spoiled)[2] == 0
    clean.update(states)
    dirty.update(spoiled)
    assert dirty.centers.tolist() == clean.centers.tolist()
    assert dirty.metrics()["bad_states"] == 1
    assert dirty.step(np.full((2, 3), np.inf)).tolist() == [0, 0]
    assert dirty.metrics()["bad_states"] == 3


def test_metrics_are_floats_from_the_first_moment() -> None:
    for kme in (paper(2), paper(2, init="data"), fed(), fed(objective="log")):
        assert all(type(value) is float for value in kme.metrics().values())


def test_clamped_gaps_are_counted_not_hidden() -> None:
    kme = paper(1, clusters=3, balance=1.0, dtype="float64", init="data")
    kme.update(np.array([[0.0], [0.1], [0.2]] + [[0.1]] * 5))
    saved = kme.state_dict()
    kme.load_state_dict({**saved, "counts": np.array([1, 1, 9])})
    assert (kme.gaps < 0).sum() == kme.metrics()["clamped_gaps"] == 1


@pytest.mark.parametrize("unit", [1e-2, 1.0, 1e3])
def test_the_logarithm_is_cut_off_at_a_thousandth_of_the_mean_gap(unit: float) -> None:
    kme = vn.KME(dim=2, clusters=8, balance=0.0, objective="log", init="data", dtype="float64")
    kme.update(np.random.default_rng(0).normal(size=(7, 2)) * unit)  # two of eight centers at one state
    gaps = np.maximum(kme.gaps, 0)
    floor = 1e-3 * gaps.mean()
    assert (gaps < floor).sum() == 2
    assert kme.objective_value() == pytest.approx(np.log(np.maximum(gaps, floor)).sum())
