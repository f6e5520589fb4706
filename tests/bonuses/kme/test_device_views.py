"""A KME's views on a device learn and pay what the plain ones do, without waiting; here on CPU tensors."""

from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from tests.bonuses.kme.waiting import NoWaiting, forbid_leaving, same_in_graphs  # noqa: E402
from voronaut import views as judge  # noqa: E402
from voronaut.bonuses.kme import device_views, frames, viewed  # noqa: E402
from voronaut.bonuses.kme.device_views import OnDeviceViews  # noqa: E402
from voronaut.bonuses.reservoir import Reservoir  # noqa: E402
from voronaut.kernels.gpu import dispatch  # noqa: E402

CUDA = torch.cuda.is_available()
DEVICE = "cuda" if CUDA else "cpu"
pytestmark = pytest.mark.filterwarnings("ignore:on this device updates go state by state")
needs_triton = pytest.mark.skipif(not dispatch.has_triton(), reason="triton is not installed: pip install triton")
needs_gpu = pytest.mark.skipif(not CUDA, reason="no CUDA device here")
DIM, SEED, SIZE, STEP = 4, 3, 50, 0.05
HOW = frames.Reading(DIM, "drop", "float64")


def stream(n: int = 40, seed: int = 0, offset: float = 0.0) -> Any:
    """In units of very different size; the last coordinate never changes."""
    states = np.random.default_rng(seed).normal(size=(n, DIM)) * [1.0, 1e3, 1e-3, 0.0] + offset
    return states + np.array([0.0, 0.0, 7.0, 2.0])


def there(states: Any) -> Any:
    return torch.tensor(states).to(DEVICE)


def nothing(columns: Any, clusters: int, dtype: Any) -> dict[str, Any]:
    """What an `OnDeviceViews` that has seen nothing is made of, by the names that `learned` gives."""
    views, m = columns.shape
    return {
        "columns": columns,
        "centers": np.zeros((views, clusters, m), dtype),
        "usage": np.ones((views, clusters)),
        "margin": np.zeros(views),
        "absorbed": np.zeros((), np.int64),  # by each view, replayed ones too
        "deviations": np.zeros(views),  # σ_v of the rewards of each view
        "deviation": np.zeros(()),  # σ of Σ_v r_v / σ_v
        "updates": np.zeros((), np.int64),
        "bad": np.zeros((), np.int64),
        "sample": np.zeros((0, DIM), dtype),
        **frames.start(DIM, normalize=True).to_arrays(),
    }


def make(m: int = 1, clusters: int = 8, dtype: Any = np.float64, seed: int = SEED) -> OnDeviceViews:
    which = judge.columns(DIM, DIM // m, m, seed)
    learned = nothing(which, clusters, dtype)
    return OnDeviceViews(learned, step_size=STEP, seed=seed, sample_size=SIZE, device=DEVICE)


class Plain:
    """The same in NumPy, but for draws and orders, which it is told."""

    def __init__(self, which: Any, clusters: int) -> None:
        self.which, self.clusters, self.views = which, clusters, []
        self.frame, self.past = frames.start(DIM, normalize=True), Reservoir(SIZE, DIM, np.float64, SEED)
        self.deviations, self.deviation, self.updates = np.zeros(len(which)), 0.0, 0

    def update(self, states: Any, draws: Any, order: Any) -> None:
        old = self.frame
        self.frame, batch = old.refit(states, HOW, self.past)
        if not self.frame.same(old):
            self.past.sample[:] = self.frame.convert(self.past.sample, old)
            self.views = [v._replace(centers=self.convert(v, own, old)) for v, own in self.pairs()]
        mixed = np.concatenate([batch.states, self.past.sample[draws]])[order]
        if not self.views:
            self.views = [judge.start(batch.states[:, own], self.clusters, SEED) for own in self.which]
        for state in mixed:
            self.views = [judge.absorb(v, state[own], STEP) for v, own in self.pairs()]
        self.past.add(batch.states)
        self.updates += 1
        self.measure(mixed[: device_views.MEASURED])

    def pairs(self) -> Any:
        return zip(self.views, self.which[: len(self.views)], strict=True)

    def convert(self, view: Any, own: Any, old: Any) -> Any:
        rows = np.zeros((self.clusters, DIM))
        rows[:, own] = view.centers
        return self.frame.convert(rows, old)[:, own]

    def measure(self, rows: Any) -> None:
        rate = max(0.1, 1 / self.updates)
        paid = np.array([[judge.reward(v, s[own], STEP) for s in rows] for v, own in self.pairs()])
        self.deviations += rate * (paid.std(axis=1) - self.deviations)
        few = viewed.few_values(rows[: viewed.LOOKED][:, self.which], self.clusters) & (self.deviations > 0)
        self.deviations[few] = np.maximum(self.deviations[few], viewed.least(STEP))
        summed = [judge.bonus(self.views, self.which, self.deviations, state, STEP) for state in rows]
        self.deviation += rate * (np.std(summed) - self.deviation)

    def rewards(self, states: Any) -> Any:
        rows = self.frame.from_states(states)
        return [judge.bonus(self.views, self.which, self.deviations, s, STEP) / self.deviation for s in rows]


@pytest.mark.parametrize("m, clusters", [(1, 8), (2, 9), (4, 7)])
@pytest.mark.parametrize("spoilt", [False, True])
def test_it_learns_and_pays_what_the_plain_views_do(
    m: int, clusters: int, spoilt: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(device_views, "MEASURED", 30)  # fewer than a pass has
    mine = make(m, clusters)
    plain = Plain(mine.views.columns.cpu().numpy(), clusters)
    for i in range(4):  # the last batches are small: the frame is not refreshed each time
        states = stream(n := (40, 30, 5, 20)[i], seed=i, offset=i)
        draws = mine.draws(n + spoilt, mine.seen).cpu().numpy()[: n if i else 0]
        given = np.insert(states, 3, np.nan, axis=0) if spoilt else states
        good = ~np.isnan(given).any(axis=1)
        good = np.concatenate([good, np.arange(len(given)) < n]) if i else good
        order = mine.order(there(good)).cpu().numpy()[: good.sum()]
        mine.update(there(given))
        plain.update(states, draws, (np.cumsum(good) - 1)[order])  # places among the good
        if i == 2:
            assert plain.frame.fixed == 70
    learned = mine.learned()
    for name in ("centers", "usage", "margin"):
        np.testing.assert_allclose(learned[name], np.stack([getattr(v, name) for v in plain.views]), atol=1e-9)
    np.testing.assert_allclose(learned["sample"], plain.past.sample, atol=1e-9)
    np.testing.assert_allclose(learned["deviations"], plain.deviations, atol=1e-9)
    np.testing.assert_allclose(learned["deviation"], plain.deviation, atol=1e-8)
    for name, value in plain.frame.to_arrays().items():
        np.testing.assert_allclose(learned[name], value, rtol=1e-9, atol=1e-12, err_msg=name)
    states = stream(seed=9)
    paid = mine.rewards(there(states).reshape(2, 20, DIM)).cpu().numpy()
    np.testing.assert_allclose(paid.ravel(), plain.rewards(states), atol=1e-6)
    assert learned["bad"] == 4 * spoilt and learned["updates"] == 4 and learned["absorbed"] == 40 + 2 * 55


def test_rewards_that_are_rounding_are_no_unit() -> None:
    mine = make(4, 60, np.float32)
    mine.update(there(stream(40)))
    mine.deviations.fill_(2e-8)  # as seen where every state has a center of its own
    mine._measure(mine.views.centers[0, :1], torch.tensor(0, device=DEVICE))
    assert not mine.rewards(there(stream(20, seed=1))).any()
    again = OnDeviceViews(mine.learned(), step_size=STEP, seed=SEED, sample_size=SIZE, device=DEVICE)
    assert not again.weights.any() and again.deviations.any()


@needs_triton
@pytest.mark.filterwarnings("ignore:invalid value encountered")
@pytest.mark.parametrize("m", [1, 2, 4])
def test_the_programs_do_as_plain_torch(m: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The way of a GPU with Triton, under its interpreter where there is none."""
    states, learned, paid = stream(12), [], []
    for fused in (False, True):
        monkeypatch.setattr(dispatch, "wholly_fused", lambda centers, fused=fused: fused)
        mine = make(m, 6, np.float32)
        mine.update(there(states))
        mine.update(there(states[::-1].astype(np.float32)))
        learned.append(mine.learned())
        paid.append(mine.rewards(there(states)).cpu())
    for name, value in learned[0].items():
        np.testing.assert_allclose(learned[1][name], value, atol=1e-5, rtol=1e-4, err_msg=name)
    np.testing.assert_allclose(*paid, atol=1e-3)
    assert paid[0].any()


def test_before_the_first_update_everything_earns_nothing() -> None:
    mine, states = make(), there(stream())
    assert not mine.rewards(states).any() and mine.rewards(states[:0]).shape == (0,)
    mine.update(states[:0])
    mine.update(states * torch.nan)
    assert not mine.rewards(states).any() and mine.learned()["updates"] == 0 and mine.learned()["bad"] == 40
    mine.update(states)
    paid = mine.rewards(states)
    assert 0.5 < float(paid.std()) < 2  # in units of their deviation


def test_a_batch_of_bad_states_changes_nothing() -> None:
    mine, states = make(), there(stream())
    mine.update(states)
    before, paid = mine.learned(), mine.rewards(states)
    mine.update(states * torch.nan)
    assert mine.learned().pop("bad") == 40 and torch.equal(mine.rewards(states), paid)
    for name, value in mine.learned().items():
        if name != "bad":
            np.testing.assert_array_equal(value, before[name], err_msg=name)


def test_bad_states_earn_nothing() -> None:
    mine, states = make(), stream()
    mine.update(there(states))
    states[3, 3], states[4, 0] = np.inf, np.nan
    paid = mine.rewards(there(states)).cpu().numpy()
    assert not paid[[3, 4]].any() and (paid != 0).sum() > 30


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_what_was_learned_travels(dtype: Any) -> None:
    """From one to another, which goes on as the first would have."""
    one = make(dtype=dtype)
    one.update(there(stream()))
    learned = one.learned()
    other = OnDeviceViews(learned, step_size=STEP, seed=SEED, sample_size=SIZE, device=DEVICE)
    for each in (one, other):
        each.update(there(stream(seed=1)))
    for name, value in one.learned().items():
        assert value.dtype == learned[name].dtype
        np.testing.assert_array_equal(value, other.learned()[name], err_msg=name)
    states = there(stream(seed=2))
    assert one.rewards(states).dtype == torch.tensor(learned["centers"]).dtype
    torch.testing.assert_close(one.rewards(states), other.rewards(states), rtol=0, atol=0)


def test_states_of_other_kinds_are_widened() -> None:
    mine = make(dtype=np.float32)
    mine.update(there(stream()))
    whole = there(np.random.default_rng(0).integers(-3, 4, size=(30, DIM)))
    want = mine.rewards(whole.double())
    for kind in (torch.int64, torch.int8, torch.bfloat16, torch.float32):
        torch.testing.assert_close(mine.rewards(whole.to(kind)), want)
    mine.update(whole)
    assert mine.learned()["frame.states.seen"] == 70


def test_states_are_paid_piece_by_piece(monkeypatch: pytest.MonkeyPatch) -> None:
    mine, states = make(), there(stream())
    mine.update(states)
    whole = mine.rewards(states)
    monkeypatch.setattr(device_views, "ROWS", 7)
    torch.testing.assert_close(mine.rewards(states), whole)


def test_nothing_waits_for_the_device_and_no_buffer_moves(monkeypatch: pytest.MonkeyPatch) -> None:
    """No value is read, no array copied back, nothing has a shape that depends on values."""
    for m in (1, 2):
        mine, states = make(m), there(stream(seed=1))
        mine.update(there(stream()))
        places = buffers(mine)
        with monkeypatch.context() as patch, NoWaiting():
            forbid_leaving(patch)
            mine.rewards(states)
            mine.update(states)
            with pytest.raises(AssertionError, match=r"left its device|waits"):
                mine.learned()
        assert buffers(mine) == places and len(places) > 18 and mine.learned()["absorbed"] == 120


def buffers(mine: OnDeviceViews) -> list[int]:
    """Where everything is that a captured program would read or write."""
    own = [value for value in vars(mine).values() if isinstance(value, torch.Tensor)]
    return [t.data_ptr() for t in (*own, *mine.views, *mine.frame[:2], *mine.prepared.clusters)]


@needs_gpu
@pytest.mark.parametrize("m", [1, 2, 4])
def test_no_synchronisation_and_graphs(m: int) -> None:
    """CUDA itself refuses to wait; and a graph of each call does what the call does."""
    batches = [there(stream(n=1024, seed=s)).float() for s in range(5)]
    one, other = make(m, 100, np.float32), make(m, 100, np.float32)
    for mine in (one, other):
        mine.update(batches[0])
        mine.update(batches[0])
        mine.rewards(batches[0])
    same_in_graphs(one, other, batches)
    np.testing.assert_array_equal(one.learned()["centers"], other.learned()["centers"])
