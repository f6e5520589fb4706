"""`vn.KME(dim)`: its views, the unit of its bonus, that units of states do not matter, and odd streams."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import voronaut as vn
from voronaut import views as ref
from voronaut.bonuses.kme.viewed import Viewed, few_values
from voronaut.conformance import check_bonus

SHAPES = {
    "whole": {"dim": 3},
    "singles": {"dim": 6},
    "pairs": {"dim": 5, "view_dim": 2, "views": 4, "clusters": 9},
    "one of several": {"dim": 6, "views": 1, "clusters": 20},
}


def made(name: str = "singles", **options: object) -> vn.KME:
    return vn.KME(**{**SHAPES[name], "dtype": "float64", **options})  # type: ignore[arg-type]


def fed(name: str = "singles", batches: int = 3, **options: object) -> vn.KME:
    kme = made(name, **options)
    for batch in stream(kme.dim, batches):
        kme.update(batch)
    return kme


def stream(dim: int, batches: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(batches, 200, dim))


def standardised(kme: vn.KME, states: np.ndarray) -> np.ndarray:
    """States as the views see them, from what a user can see."""
    arrays = kme.state_dict()
    return np.asarray(np.clip((states - arrays["frame.mean"]) / arrays["frame.deviation"], -10, 10))


def reference(kme: vn.KME) -> list[ref.View]:
    arrays = kme.state_dict()
    parts = zip(arrays["centers"], arrays["usage"], arrays["margins"], strict=True)
    return [ref.View(c.astype(np.float64), u, float(m), int(arrays["passes"][0])) for c, u, m in parts]


# What is chosen


@pytest.mark.parametrize(
    ("options", "views", "view_dim", "clusters"),
    [
        ({"dim": 1}, 1, 1, 32), ({"dim": 2}, 1, 2, 300), ({"dim": 4}, 1, 4, 300), ({"dim": 5}, 5, 1, 32),
        ({"dim": 67}, 67, 1, 32), ({"dim": 67, "view_dim": 2}, 67, 2, 64), ({"dim": 67, "views": 1}, 1, 67, 300),
        ({"dim": 9, "views": 4}, 4, 1, 32), ({"dim": 9, "views": 30, "view_dim": 3}, 30, 3, 300),
        ({"dim": 9, "view_dim": 9, "clusters": 7}, 1, 9, 7),
    ],
)  # fmt: skip
def test_defaults_depend_on_the_dimension(options: dict[str, int], views: int, view_dim: int, clusters: int) -> None:
    kme = vn.KME(**options)
    assert (kme.settings.views, kme.settings.view_dim, kme.settings.clusters) == (views, view_dim, clusters)
    assert kme.settings.normalize_bonus and kme.settings.init == "data"
    assert vn.KME(**kme.params).settings == kme.settings


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"views": 0}, "views must"), ({"views": 6}, "views must.*at most 5"), ({"view_dim": 6}, "view_dim.*to dim=5"),
        ({"views": 2, "view_dim": 5}, "at most 1 of 5"), ({"views": "all"}, "views must"),
        ({"view_dim": True}, "view_dim"), ({"balance": 1e-4, "views": 5}, "views.*balance=.auto."),
        ({"balance": 1e-4, "normalize_bonus": True}, "paper"), ({"init": "zeros"}, "init.*number for balance"),
        ({"objective": "log"}, "objective"), ({"normalize": True}, "normalize"),
        ({"step_size": "auto"}, "step_size"), ({"normalize_bonus": 2}, "normalize_bonus"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_refused(options: dict[str, object], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        vn.KME(**{"dim": 5, **options})  # type: ignore[arg-type]


@pytest.mark.parametrize("name", SHAPES)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_conforms(name: str, dtype: str) -> None:
    options = {key: value for key, value in SHAPES[name].items() if key != "dim"}
    whole = options if "view_dim" not in options else {**options, "views": 3}
    check_bonus(lambda dim, seed: vn.KME(dim, seed=seed, dtype=dtype, **whole))  # type: ignore[arg-type]


# Against the reference


@pytest.mark.parametrize("name", SHAPES)
def test_rewards_are_the_references_in_their_deviations(name: str) -> None:
    kme, states = fed(name), stream(made(name).dim, 1, seed=1)[0][:40]
    arrays, now = kme.state_dict(), reference(kme)
    which = ref.columns(kme.dim, kme.settings.views, kme.settings.view_dim, kme.settings.seed)
    wanted = [ref.bonus(now, which, arrays["deviations"], s) for s in standardised(kme, states)]
    np.testing.assert_allclose(kme.rewards(states), np.array(wanted) / arrays["deviation"][0], rtol=0, atol=1e-9)
    raw = fed(name, normalize_bonus=False)
    unit = np.ones(len(now))
    np.testing.assert_allclose(
        raw.rewards(states), [ref.bonus(now, which, unit, s) for s in standardised(kme, states)], rtol=0, atol=1e-9
    )


@pytest.mark.parametrize("name", SHAPES)
def test_step_pays_raw_and_absorbs_as_the_reference_does(name: str) -> None:
    kme, states = fed(name), stream(made(name).dim, 1, seed=2)[0][:30]
    twin = vn.KME(**kme.params)
    twin.load_state_dict(kme.state_dict())
    paid, now = kme.step(states), reference(twin)
    which = ref.columns(kme.dim, kme.settings.views, kme.settings.view_dim, kme.settings.seed)
    for place, state in enumerate(standardised(kme, states)):
        unit = np.ones(len(now))
        assert paid[place] == pytest.approx(ref.bonus(now, which, unit, state), abs=1e-9)
        now = [ref.absorb(view, state[own]) for view, own in zip(now, which, strict=True)]
    for view, after in zip(now, reference(kme), strict=True):
        np.testing.assert_allclose(after.centers, view.centers, rtol=0, atol=1e-9)
        np.testing.assert_allclose(after.usage, view.usage, rtol=0, atol=1e-9)


def test_an_update_absorbs_the_states_and_as_many_old_ones() -> None:
    kme = fed(batches=1)
    assert kme.state_dict()["passes"].tolist() == [200, 1]  # there was nothing before
    kme.update(stream(6, 1, seed=3)[0])
    assert kme.state_dict()["passes"].tolist() == [600, 2] and kme.metrics()["states"] == 400


# Units


@pytest.mark.parametrize("name", SHAPES)
def test_the_bonus_has_deviation_one_and_nothing_is_paid_before_the_first_update(name: str) -> None:
    kme, states = made(name, dtype="float32"), stream(made(name).dim, 30)
    assert not kme.rewards(states[0]).any()
    for batch in states:
        kme.update(batch)
    assert 0.8 < kme.rewards(np.concatenate(states[-5:])).std() < 1.25


@pytest.mark.parametrize("updates", [1, 12])
def test_rewards_that_are_rounding_are_no_unit(updates: int) -> None:
    """Fewer states than clusters: each has a center of its own and earns 0, or what float32 rounds, 1e-8."""
    kme, (states, others) = made("whole", dtype="float32"), stream(3, 2)
    for _ in range(updates):
        kme.update(states)
    assert not kme.rewards(states).any() and not kme.rewards(others).any()  # once 1e7
    kme.update(others)
    assert 0 < np.abs(kme.rewards(others)).mean() < 20


def test_a_view_without_a_unit_pays_nothing() -> None:
    """The reference and what is in use, up to the largest deviation that may be rounding."""
    state, view = np.array([0.3]), ref.start(np.linspace(-1, 1, 9)[:, None], 4, 0)
    deviations, paid = np.array([0.0, ref.ROUNDED, 2 * ref.ROUNDED]), ref.reward(view, state)
    which, memory = np.zeros((3, 1), int), Viewed(made("singles", views=3).settings)
    assert ref.bonus([view] * 3, which, deviations, state) == paid / (2 * ref.ROUNDED) != 0
    memory.deviations = deviations
    np.testing.assert_array_equal(memory.units(), [0, 0, 1 / (2 * ref.ROUNDED)])


def test_deviations_are_means_of_ten_updates_and_then_follow() -> None:
    memory, sizes = Viewed(made("singles").settings), np.array([1.0, 2.0, 3.0, 4.0, 5.0, 6.0])
    paid = np.outer(sizes, [-1.0, 1.0, -1.0, 1.0])  # (views, states), deviations 1 to 6
    for _ in range(3):
        memory.measure(paid)
        np.testing.assert_allclose(memory.deviations, sizes)
        assert memory.deviation == pytest.approx(6.0)  # of six that are one, each in its own deviation
    memory.measure(3 * paid)
    np.testing.assert_allclose(memory.deviations, 1.5 * sizes)
    for _ in range(6):
        memory.measure(1.5 * paid)
    before = memory.deviations
    memory.measure(0 * paid)
    np.testing.assert_allclose(memory.deviations, 0.9 * before)


@given(st.integers(0, 10**6), st.integers(1, 64), st.sampled_from([(1, 32), (2, 64), (5, 300)]))
def test_states_that_vary_have_no_few_values(seed: int, n: int, view: tuple[int, int]) -> None:
    """So a stream of them is paid as if there were no such rule; also where a body lies still in half of it."""
    (m, clusters), rng = view, np.random.default_rng(seed)
    rows = rng.normal(size=(n, 3, m)) * 10 ** rng.uniform(-1, 1, (3, m))
    rows[: n // 2, 1] = rows[0, 1]
    assert not few_values(rows.astype(np.float32), clusters).any()


def test_flags_have_few_values_and_sizes_have_many() -> None:
    rng = np.random.default_rng(0)
    flags, sizes = rng.random((64, 1)) < 0.02, rng.integers(0, 40, (64, 1))
    rows = np.column_stack([flags, sizes, np.zeros((64, 1))]).astype(np.float32)
    rounded = rows + 1e-6 * rng.normal(size=rows.shape)  # as rows are that went from frame to frame
    assert few_values(rounded[:, :, None], 32).tolist() == [True, False, True]
    memory = Viewed(made("singles").settings)
    for _ in range(60):
        memory.measure(1e-6 * np.outer(np.ones(6), [-1.0, 1.0]), np.ones(6, bool))
    assert memory.deviations == pytest.approx(0.01) and memory.deviation == 1  # √(2·0.05·10) is paid as 100
    memory.measure(np.outer(np.ones(6), [-1.0, 1.0]), np.ones(6, bool))
    assert memory.deviations == pytest.approx(0.109)  # and above that it follows


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 10**6), st.sampled_from(list(SHAPES)), st.floats(-1e6, 1e6))
def test_units_and_offsets_change_no_reward(seed: int, name: str, shift: float) -> None:
    """Coordinates from 1e-4 to 1e4, up to 1e6 away from 0: what float64 rounds off there is the difference."""
    dim = made(name).dim
    rng = np.random.default_rng(seed)
    units, states = 10 ** rng.uniform(-4, 4, dim), stream(dim, 4, seed)
    plain, moved = made(name), made(name)
    offset = shift * units
    for batch in states[:3]:
        plain.update(batch)
        moved.update(batch * units + offset)
    wanted, got = plain.rewards(states[3]), moved.rewards(states[3] * units + offset)
    assert np.median(np.abs(got - wanted)) < 1e-6  # a state may go to another cluster by a hair, and go on from there
    assert np.quantile(np.abs(got - wanted), 0.9) < 1e-3


def test_a_constant_coordinate_earns_nothing_and_breaks_nothing() -> None:
    kme, bare = vn.KME(6), vn.KME(5)
    for batch in stream(5, 4):
        kme.update(np.insert(batch, 2, 7.0, axis=1))
        bare.update(batch)
    states = stream(5, 1, seed=4)[0]
    with_it, without = kme.rewards(np.insert(states, 2, 7.0, axis=1)), bare.rewards(states)
    assert np.corrcoef(with_it, without)[0, 1] > 0.9 and np.isfinite(with_it).all()
    np.testing.assert_array_equal(with_it, kme.rewards(np.insert(states, 2, 9.0, axis=1)))


# Odd streams


@pytest.mark.parametrize("dim", [1, 2, 5])
@pytest.mark.parametrize("kind", ["one state", "two values", "constant", "few states", "1e30 away", "growing"])
def test_odd_streams(dim: int, kind: str) -> None:
    rng, kme = np.random.default_rng(0), vn.KME(dim)
    for t in range(6):
        batch = {
            "one state": rng.normal(size=(1, dim)), "two values": rng.integers(0, 2, (50, dim)).astype(float),
            "constant": np.full((50, dim), 3.0), "few states": rng.normal(size=(5, dim)),
            "1e30 away": rng.normal(size=(50, dim)) * 1e12 + 1e30, "growing": rng.normal(size=(50, dim)) * 10.0**t,
        }[kind]  # fmt: skip
        kme.update(batch)
        assert np.isfinite(kme.rewards(batch)).all()
    assert kme.metrics()["states"] > 0


def test_clusters_follow_a_jump_and_none_is_left_idle() -> None:
    kme, rng = vn.KME(2, clusters=60), np.random.default_rng(1)
    for place in [0.0] * 12 + [25.0] * 12:
        kme.update(rng.normal(size=(1024, 2)) + place)
    there = (np.abs(kme.centers - 25.0) < 6).all(axis=1)
    assert there.mean() > 1 / 3 and kme.metrics()["empty_cells"] < 0.1


@pytest.mark.parametrize("name", SHAPES)
def test_other_coordinates_leave_every_center_where_it_is(name: str) -> None:
    kme = fed(name)
    old, before = kme._frame, kme.views
    new = old._replace(mean=old.mean - old.deviation, deviation=3 * old.deviation, fixed=old.fixed + 1)  # type: ignore[union-attr]
    assert not new.same(old)
    kme._memory.convert(old, new)
    kme._frame = new
    for (_, was), (_, now) in zip(before, kme.views, strict=True):
        np.testing.assert_allclose(now, was, rtol=1e-12, atol=1e-12)


def test_nothing_is_converted_while_the_coordinates_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    kme = fed(batches=12)
    monkeypatch.setattr(Viewed, "convert", lambda *_: pytest.fail("the frame is as it was"))
    kme.update(stream(kme.dim, 1)[0][:10])


# Saved, drawn, inside a program


@pytest.mark.parametrize("name", SHAPES)
def test_saved_and_loaded_goes_on(name: str, tmp_path: object) -> None:
    kme = fed(name, dtype="float32")
    kme.save(tmp_path / "kme.npz")  # type: ignore[operator]
    twin, more = vn.load(tmp_path / "kme.npz"), stream(kme.dim, 2, seed=5)  # type: ignore[operator]
    for each in (kme, twin):
        each.update(more[0])
    np.testing.assert_array_equal(kme.rewards(more[1]), twin.rewards(more[1]))


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [("usage", 0.0, "usage"), ("margins", -1.0, "not be negative"), ("deviations", -1.0, "not be negative"),
     ("passes", -1, "negative"), ("centers", -1e3, "sorted")],
)  # fmt: skip
def test_damage_is_refused(name: str, value: float, words: str) -> None:
    kme, arrays = made(), fed().state_dict()
    arrays[name].flat[-1] = value
    with pytest.raises(ValueError, match=words):
        kme.load_state_dict(arrays)


def test_what_is_shown() -> None:
    whole, singles = fed("whole"), fed()
    assert whole.centers.shape == (300, 3) and whole.counts.sum() == 600
    assert not hasattr(singles, "centers") and len(singles.views) == 6
    own, centers = singles.views[2]
    assert own.tolist() == [2] and centers.shape == (32, 1) and abs(centers.mean()) < 0.5
    assert np.isnan(singles.entropy_bound()) and np.isfinite(singles.entropy())
    assert whole.entropy() == pytest.approx(4.26, abs=0.5)  # of a Gaussian in three dimensions


@pytest.mark.parametrize("name", SHAPES)
def test_inside_a_program(name: str) -> None:
    pytest.importorskip("jax")
    kme, states = made(name, dtype="float32"), stream(made(name).dim, 5)
    before = kme.pay(kme.frozen(), states[0].astype(np.float32))
    for batch in states[:4]:
        kme.update(batch)
    inside = kme.pay(kme.frozen(), states[4].astype(np.float32))
    np.testing.assert_allclose(np.asarray(inside), kme.rewards(states[4]), rtol=1e-3, atol=1e-3)
    assert not np.asarray(before).any() and np.asarray(inside).any()


@pytest.mark.parametrize("name", SHAPES)
def test_tensors_of_a_device_stay_there_and_come_back(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A CPU that passes for a device: the clusters go there, learn, pay as the host would, and come home when asked."""
    torch = pytest.importorskip("torch")
    from voronaut.bonuses.kme import tensors

    kme, states = fed(name), stream(made(name).dim, 3, seed=7)
    wanted = kme.rewards(states[0])
    with monkeypatch.context() as device:
        device.setattr(tensors, "on_device", lambda x: isinstance(x, torch.Tensor))
        np.testing.assert_allclose(kme.rewards(torch.tensor(states[0])).numpy(), wanted, rtol=0, atol=1e-6)
        with pytest.warns(UserWarning, match="slow"):
            kme.update(torch.tensor(states[1]))
        paid = kme.rewards(torch.tensor(states[2])).numpy()
    np.testing.assert_allclose(kme.rewards(states[2]), paid, rtol=0, atol=1e-6)
    assert kme.metrics()["states"] == 800 and kme.state_dict()["passes"].tolist() == [200 + 400 * 3, 4]
    twin = vn.KME(**kme.params)
    twin.load_state_dict(kme.state_dict())
