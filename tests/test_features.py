"""`RandomConv` in three libraries, against torch's convolution."""

from typing import Any

import numpy as np
import pytest

import voronaut as vn
from voronaut.features import RandomConv

SHAPES = [(84, 84, 3), (3, 84, 84), (64, 64), (7, 7, 3), (8, 9, 3), (2, 2, 1)]


def pictures(shape: Any, count: int = 5) -> Any:
    return np.random.default_rng(1).integers(0, 256, (count, *shape), np.uint8)


@pytest.mark.parametrize("shape", SHAPES)
def test_three_libraries_agree(shape: Any) -> None:
    torch, jnp = pytest.importorskip("torch"), pytest.importorskip("jax.numpy")
    images, encode = pictures(shape), RandomConv(shape, dim=16)
    ours = encode(images)
    assert ours.shape == (5, 16) and ours.dtype == np.float32
    theirs = encode(torch.as_tensor(images))
    assert isinstance(theirs, torch.Tensor)
    np.testing.assert_allclose(theirs.numpy(), ours, atol=1e-4)
    np.testing.assert_allclose(np.asarray(encode(jnp.asarray(images))), ours, atol=1e-4)


@pytest.mark.parametrize("shape", [(20, 23, 3), (3, 20, 23)])
def test_it_is_the_convolution_of_torch(shape: Any) -> None:
    torch = pytest.importorskip("torch")
    encode = RandomConv(shape, dim=8, seed=3)
    images = pictures(shape)
    first = images if shape[0] == 3 else images.transpose(0, 3, 1, 2)
    x = torch.as_tensor(first / 255).float()
    *filters, last = encode.weights
    for each in filters:
        x = torch.relu(torch.nn.functional.conv2d(x, torch.as_tensor(each.transpose(3, 2, 0, 1)), stride=2))
    x = x.permute(0, 2, 3, 1).reshape(len(x), -1) @ torch.as_tensor(last)
    wanted = torch.nn.functional.layer_norm(x, (8,), eps=1e-6)
    np.testing.assert_allclose(encode(images), wanted, atol=1e-4)


def test_features_follow_the_seed_and_tell_images_apart() -> None:
    images = pictures((32, 32, 3))
    same, other = RandomConv((32, 32, 3)), RandomConv((32, 32, 3), seed=1)
    np.testing.assert_array_equal(RandomConv((32, 32, 3))(images), same(images))
    assert not np.allclose(same(images), other(images))
    moved = np.zeros((2, 32, 32, 3), np.uint8)
    moved[0, 4:8, 4:8], moved[1, 20:24, 20:24] = 255, 255
    one, two = same(moved)
    assert np.linalg.norm(one - two) > 1
    np.testing.assert_allclose(same(moved[0]), one, atol=1e-5)
    np.testing.assert_allclose(same(moved.reshape(1, 2, 32, 32, 3))[0], [one, two], atol=1e-5)


def test_an_empty_image_and_no_images_are_finite() -> None:
    encode = RandomConv((16, 16, 3), dim=4)
    np.testing.assert_array_equal(encode(np.zeros((1, 16, 16, 3), np.uint8)), np.zeros((1, 4)))
    assert encode(np.zeros((0, 16, 16, 3), np.uint8)).shape == (0, 4)


def test_a_bonus_takes_it() -> None:
    kme = vn.KME(8, clusters=4, init="data", features=RandomConv((16, 16, 3), dim=8))
    images = pictures((16, 16, 3), 20)
    kme.update(images)
    assert kme.rewards(images).shape == (20,)


def test_mistakes_are_told() -> None:
    with pytest.raises(ValueError, match=r"\(height, width\).*got \(3,\)"):
        RandomConv((3,))
    with pytest.raises(ValueError, match=r"must end in \(16, 16, 3\); got shape \(5, 3, 16, 16\)"):
        RandomConv((16, 16, 3))(pictures((3, 16, 16)))
