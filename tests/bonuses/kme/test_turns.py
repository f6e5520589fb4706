"""A KME that learns in turns on the host and on a device: neither loses what the other learned.

Where there is no GPU the CPU plays the device: what runs is the same but for Triton's programs.
"""

from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import voronaut as vn  # noqa: E402
from tests.bonuses.kme import paper  # noqa: E402
from voronaut.bonuses.kme import tensors  # noqa: E402
from voronaut.bonuses.reservoir import Reservoir  # noqa: E402

CUDA = torch.cuda.is_available()
pytestmark = pytest.mark.filterwarnings("ignore:on this device updates go state by state")
DIM = 4


@pytest.fixture(autouse=True)
def device(monkeypatch: pytest.MonkeyPatch) -> None:
    """The GPU, or the CPU in its place."""
    if not CUDA:
        monkeypatch.setattr(tensors, "on_device", tensors.is_tensor)


def states(n: int, seed: int = 0, offset: float = 0.0) -> Any:
    return (np.random.default_rng(seed).normal(size=(n, DIM)) + offset).astype(np.float32)


def there(array: Any) -> Any:
    return torch.tensor(array).to("cuda" if CUDA else "cpu")


def make(**options: Any) -> vn.KME:
    return paper(DIM, clusters=12, **options)


@pytest.mark.parametrize("way", ["update", "step"])
def test_the_host_goes_on_from_what_the_device_learned(way: str) -> None:
    kme, twin, batch = make(), make(), states(50, 3)
    kme.update(there(states(200, 2)))
    twin.load_state_dict(kme.state_dict())
    getattr(kme, way)(batch)
    getattr(twin, way)(batch)
    np.testing.assert_array_equal(kme.centers, twin.centers)
    assert kme.metrics() == twin.metrics() and kme.metrics()["states"] == 250
    paid = kme.rewards(there(states(20)))
    np.testing.assert_allclose(paid.cpu(), twin.rewards(states(20)), rtol=1e-4, atol=2e-5)


def test_the_device_goes_on_from_what_the_host_learned() -> None:
    kme, twin = make(), make()
    for each in (kme, twin):
        each.update(states(200, 2))
    kme.rewards(there(states(5)))  # brings it there
    kme.update(states(50, 3))  # and learns here
    twin.update(states(50, 3))
    for each in (kme, twin):
        each.update(there(states(50, 4)))
    np.testing.assert_array_equal(kme.centers, twin.centers)
    assert kme.metrics() == twin.metrics() and kme.metrics()["updates"] == 3


def test_a_refused_batch_loses_nothing() -> None:
    kme = make()
    kme.update(there(states(200, 2)))
    before = kme.centers
    with pytest.raises(ValueError, match="finite"):
        kme.update(np.full((2, DIM), np.nan, np.float32))
    np.testing.assert_array_equal(kme.centers, before)
    assert kme.metrics()["states"] == 200


def test_a_load_replaces_what_is_on_the_device() -> None:
    kme, start, batch = make(), make(), states(20)
    kme.update(there(batch))
    kme.load_state_dict(start.state_dict())
    np.testing.assert_array_equal(kme.centers, start.centers)
    np.testing.assert_allclose(kme.rewards(there(batch)).cpu(), start.rewards(batch), rtol=1e-4, atol=1e-5)


def test_what_is_remembered_is_what_the_host_would() -> None:
    """The fair sample, the reference point and all totals do not depend on where a KME learns."""
    here, gone = make(), make()
    for kme in (here, gone):  # one so small that it leaves states out
        kme._reservoir = Reservoir(128, DIM, np.float32, kme.settings.seed)
    for seed in range(4):
        here.update(states(90, seed, offset=500.0))
        gone.update(there(states(90, seed, offset=500.0)))
    mine, theirs = here.state_dict(), gone.state_dict()
    for name in ("origin", "totals", "sample"):
        np.testing.assert_allclose(theirs[name], mine[name], rtol=1e-6, atol=1e-4, err_msg=name)


def test_no_states_change_nothing() -> None:
    kme = make()
    kme.update(states(200, 1))
    before = kme.state_dict()
    kme.update(there(states(0)))
    assert kme.rewards(there(states(0))).shape == (0,)
    for name, value in kme.state_dict().items():
        np.testing.assert_array_equal(value, before[name], err_msg=name)


def test_features_that_keep_tensors_are_clustered() -> None:
    kme, plain = make(features=lambda x: x[..., :DIM]), make()
    wide = np.concatenate([states(80), states(80, 1)], axis=1)
    kme.update(there(wide))
    plain.update(there(wide[:, :DIM]))
    np.testing.assert_array_equal(kme.centers, plain.centers)
    with pytest.raises(ValueError, match="keep CUDA tensors on their device; got ndarray"):
        make(features=lambda x: x.cpu().numpy()).rewards(there(wide))


@pytest.mark.skipif(CUDA, reason="updates are fast here")
@pytest.mark.filterwarnings("default:on this device updates go state by state")
def test_the_warning_of_slow_updates_names_the_line_that_asked_for_one() -> None:
    with pytest.warns(UserWarning, match="which is slow") as caught:
        make().update(there(states(3)))
    assert caught[0].filename == __file__
