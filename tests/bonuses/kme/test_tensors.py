"""vn.KME with torch tensors: CPU tensors take the CPU's kernels, tensors of a device stay there.

Without a GPU the device's side is tested all the same, on CPU tensors that are taken for a device's.
"""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import voronaut as vn  # noqa: E402
from tests.bonuses.kme import paper  # noqa: E402
from tests.bonuses.kme.waiting import NoWaiting, forbid_leaving, same_in_graphs  # noqa: E402
from voronaut.bonuses.kme import tensors  # noqa: E402

CUDA = torch.cuda.is_available()
DEVICE = "cuda" if CUDA else "cpu"
pytestmark = pytest.mark.filterwarnings("ignore:on this device updates go state by state")
needs_gpu = pytest.mark.skipif(not CUDA, reason="no CUDA device here")


@pytest.fixture
def as_device(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every tensor counts as one of a device, whose kernels then are plain torch."""
    if not CUDA:
        monkeypatch.setattr(tensors, "on_device", tensors.is_tensor)


def stream(n: int = 600, d: int = 4, seed: int = 0, offset: float = 0.0) -> Any:
    return (np.random.default_rng(seed).normal(size=(n, d)) + offset).astype(np.float32)


def there(states: Any) -> Any:
    return torch.tensor(states).to(DEVICE)


def make(**given: Any) -> vn.KME:
    return paper(**{"dim": 4, "clusters": 20, "seed": 3, **given})


def test_cpu_tensors_are_arrays() -> None:
    one, other, states = make(), make(), stream()
    one.update(states)
    other.update(torch.tensor(states))
    np.testing.assert_array_equal(one.centers, other.centers)
    paid = other.rewards(torch.tensor(states).reshape(2, 300, 4))
    assert isinstance(paid, torch.Tensor) and paid.shape == (2, 300)
    np.testing.assert_array_equal(paid.numpy().ravel(), one.rewards(states))
    np.testing.assert_array_equal(other.step(torch.tensor(states[:9])).numpy(), one.step(states[:9]))


@pytest.mark.parametrize("objective", ["sqrt", "log"])
@pytest.mark.usefixtures("as_device")
def test_rewards_are_those_of_the_host(objective: str) -> None:
    kme, states = make(objective=objective), stream(offset=5.0)
    kme.update(states)
    kme.update(there(states))
    paid = kme.rewards(there(states).reshape(3, 200, 4))
    assert paid.device.type == DEVICE and paid.shape == (3, 200)
    np.testing.assert_allclose(paid.cpu().numpy().ravel(), kme.rewards(states), rtol=2e-4, atol=2e-5)


@pytest.mark.usefixtures("as_device")
@pytest.mark.parametrize("kind", [torch.float64, torch.bfloat16, torch.int32])
def test_every_kind_of_numbers_is_paid_as_exactly_as_it_is_given(kind: Any) -> None:
    """Float64 far from 0 is not rounded to float32, where it would have one digit left; nothing is left in bfloat16."""
    offset = 1e7 if kind == torch.float64 else 0.0
    states = torch.tensor(np.random.default_rng(0).normal(size=(400, 4)) * 8 + offset).to(kind)
    (kme := make(init="data")).update(states.to(DEVICE))
    (twin := make(init="data")).load_state_dict(kme.state_dict())
    wanted = twin.rewards(states.double().numpy())
    np.testing.assert_allclose(kme.rewards(states.to(DEVICE)).cpu().numpy(), wanted, rtol=1e-3, atol=1e-4)


@pytest.mark.usefixtures("as_device")
def test_first_centers_are_those_that_the_host_would_choose() -> None:
    kme, twin, states = (*(make(init="data", step_size=1e-9) for _ in range(2)), stream())
    kme.update(there(states))
    twin.update(states)
    np.testing.assert_allclose(kme.centers, twin.centers, atol=1e-5)


@pytest.mark.usefixtures("as_device")
def test_an_update_learns_what_the_host_would_in_that_order(monkeypatch: pytest.MonkeyPatch) -> None:
    """One pass over the same shuffle, state by state."""
    kme, twin, states = make(), make(), stream()
    kme.update(there(states))
    keys = kme._device
    keys.updates -= 1
    order = keys.shuffle(len(states)).cpu().numpy().argsort(kind="stable")
    keys.updates += 1
    monkeypatch.setattr(twin, "_order", lambda size: order)
    twin.update(states)
    np.testing.assert_array_equal(kme.counts, twin.counts)
    np.testing.assert_allclose(kme.centers, twin.centers, atol=1e-5)
    mine, theirs = kme.metrics(), twin.metrics()
    assert mine.keys() == theirs.keys()
    np.testing.assert_allclose(list(mine.values()), list(theirs.values()), rtol=1e-3)
    np.testing.assert_allclose(kme.state_dict()["sample"], twin.state_dict()["sample"], atol=1e-6)


@pytest.mark.usefixtures("as_device")
def test_another_seed_is_another_order() -> None:
    """Of the same states, absorbed by the same clusters."""
    states, learned = there(stream(n=60)), []
    for seed in (1, 2, 1):
        (kme := make(seed=seed)).load_state_dict(make(seed=9).state_dict())
        kme.update(states)
        learned.append(kme.centers)
    assert not np.array_equal(learned[0], learned[1]) and np.array_equal(learned[0], learned[2])


@pytest.mark.usefixtures("as_device")
def test_nothing_waits_for_the_device(monkeypatch: pytest.MonkeyPatch) -> None:
    """No value is read, no array copied back, nothing has a shape that depends on values."""
    kme, batches = make(clusters=5), [there(stream(n=40, seed=s)) for s in range(2)]
    kme.update(batches[0])
    kme.rewards(batches[0])
    with monkeypatch.context() as patch, NoWaiting():
        forbid_leaving(patch)
        kme.rewards(batches[1])
        kme.update(batches[1])
        with pytest.raises(AssertionError, match=r"left its device|waits"):
            kme.metrics()
    assert kme.metrics()["states"] == 80


@pytest.mark.usefixtures("as_device")
def test_bad_states_are_paid_nothing_dropped_and_counted() -> None:
    """Also with on_bad="raise": that would have to wait."""
    kme, clean, states = make(), make(), stream(n=50)
    spoilt = np.insert(states, [3, 20], [[np.nan] * 4, [np.inf, 0, 0, 0]], axis=0).astype(np.float32)
    clean.update(there(states))
    kme.update(there(spoilt))
    assert kme.metrics()["bad_states"] == 2 and kme.metrics()["states"] == 50
    assert kme.counts.sum() == clean.counts.sum()
    paid = kme.rewards(there(spoilt)).cpu().numpy()
    assert paid[3] == paid[21] == 0 and np.isfinite(paid).all() and (paid != 0).sum() > 40


@pytest.mark.usefixtures("as_device")
def test_what_was_learned_travels(tmp_path: Path) -> None:
    """From the device to a file, to the host and back."""
    kme, states = make(), stream(offset=1000.0)
    kme.update(there(states))
    kme.save(tmp_path / "kme.npz")
    host = vn.load(tmp_path / "kme.npz")
    np.testing.assert_allclose(host.rewards(states), kme.rewards(there(states)).cpu().numpy(), rtol=2e-4, atol=2e-5)
    host.update(states)
    other = make()
    other.load_state_dict(host.state_dict())
    np.testing.assert_allclose(other.rewards(there(states)).cpu().numpy(), host.rewards(states), rtol=2e-4, atol=2e-5)
    other.update(there(states))
    assert other.metrics()["states"] == 3 * len(states)


@pytest.mark.usefixtures("as_device")
@pytest.mark.parametrize("kind", [torch.float32, torch.float64, torch.bfloat16])
def test_states_are_paid_piece_by_piece(kind: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many there are, what they need besides is needed for one piece."""
    from voronaut.bonuses.kme import device

    (kme := make()).update(there(stream()))
    states, most = there(stream(offset=1.0)).to(kind), []
    whole = kme.rewards(states.reshape(2, 300, 4))
    monkeypatch.setattr(device, "ROWS", 64)
    monkeypatch.setattr(device, "NUMBERS", 4 * 63)
    pay = device.kernel.rewards
    monkeypatch.setattr(device.kernel, "rewards", lambda view, part, at: most.append(len(part)) or pay(view, part, at))
    np.testing.assert_allclose(kme.rewards(states.reshape(2, 300, 4)).cpu(), whole.cpu(), rtol=1e-5, atol=1e-7)
    assert max(most) == 64 and sum(most) == 600


@pytest.mark.usefixtures("as_device")
def test_updates_in_plain_torch_say_that_they_are_slow() -> None:
    """Where no program absorbs states: in float64 on a GPU, or without Triton."""
    states, given = there(stream()).double(), {"dtype": "float64", "clusters": 20, "seed": 3}
    with pytest.warns(UserWarning, match="state by state, which is slow"):
        paper(4, **given).update(states)


@pytest.mark.usefixtures("as_device")
def test_updates_repeat_to_the_bit() -> None:
    one, other, states = make(), make(), there(stream())
    for kme in (one, other):
        kme.update(states)
        kme.update(states)
    np.testing.assert_array_equal(one.centers, other.centers)


@pytest.mark.usefixtures("as_device")
def test_what_a_device_cannot_do_is_refused() -> None:
    states = there(stream())
    with pytest.raises(ValueError, match=r"next_states\.cpu"):
        make(normalize=True).update(states)
    with pytest.raises(ValueError, match="step walks"):
        make().step(states)
    with pytest.raises(ValueError, match="dim=4"):
        make().rewards(states[:, :3])


@needs_gpu
def test_no_synchronisation_and_graphs() -> None:
    """CUDA itself refuses to wait; and a graph of each call does what the call does."""
    batches = [there(stream(n=1024, seed=s)) for s in range(5)]
    one, other = make(), make()
    for kme in (one, other):
        kme.update(batches[0])
        kme.rewards(batches[0])
    same_in_graphs(one, other, batches)
    np.testing.assert_array_equal(one.centers, other.centers)
