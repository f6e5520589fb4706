"""How weights are drawn, and what a network is."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from voronaut.learners import networks, runs


@pytest.mark.parametrize(("rows", "columns"), [(2, 5), (5, 2), (3, 3)])
def test_rows_or_columns_are_orthonormal_times_the_gain(rows: int, columns: int) -> None:
    weight = networks.orthogonal(np.random.default_rng(0), rows, columns, 3.0).astype(np.float64)
    assert weight.shape == (rows, columns)
    square = weight @ weight.T if rows <= columns else weight.T @ weight
    np.testing.assert_allclose(square, 9 * np.eye(min(rows, columns)), atol=1e-5)


def test_directions_are_drawn_uniformly() -> None:
    """LAPACK's Q alone has a first entry of one sign."""
    rng = np.random.default_rng(0)
    first = [networks.orthogonal(rng, 3, 2, 1.0)[0, 0] for _ in range(400)]
    assert abs(np.mean(np.sign(first))) < 0.2 and abs(np.mean(first)) < 0.1


def test_a_network_of_known_gains_and_no_biases() -> None:
    layers = networks.net(np.random.default_rng(0), (4, 8, 6, 2), head_gain=0.01)
    assert [layer.weight.shape for layer in layers] == [(4, 8), (8, 6), (6, 2)]
    largest = [np.linalg.norm(layer.weight, 2) for layer in layers]
    assert largest == pytest.approx([np.sqrt(2), np.sqrt(2), 0.01], rel=1e-5)
    assert not any(layer.bias.any() for layer in layers)


def test_a_layer_is_w_x_plus_b_and_the_last_is_linear() -> None:
    layers = tuple(networks.Layer(np.array([[2.0]]), np.array([bias])) for bias in (1.0, -7.0))
    x = jnp.array([[0.5], [-3.0]])  # 2 and -5, made positive; then 4 - 7 and 10 - 7
    np.testing.assert_allclose(networks.forward(layers, x, jnp.abs), [[-3.0], [3.0]])


# ---- many networks that see the same ---------------------------------------------------------------------------------


@pytest.mark.parametrize("accelerator", [False, True])
def test_stacked_networks_give_what_each_gives_by_itself(monkeypatch: pytest.MonkeyPatch, accelerator: bool) -> None:
    monkeypatch.setattr(networks, "on_accelerator", lambda: accelerator)
    rng = np.random.default_rng(0)
    each = [networks.net(rng, (5, 8, 2), 1.0) for _ in range(3)]
    shared = {"x": rng.normal(size=(7, 5)), "unused": ()}

    def out(layers: Any, shared: Any) -> Any:
        return networks.forward(layers, shared["x"], jnp.tanh)

    together = networks.side_by_side(out, runs.stack(each), shared)
    np.testing.assert_allclose(together, [out(one, shared) for one in each], rtol=1e-5)


def test_a_gpu_runs_small_programs_at_once_only_where_xla_knows_how(monkeypatch: pytest.MonkeyPatch) -> None:
    uncached = runs.options.__wrapped__
    assert uncached() is None  # on a CPU
    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")
    assert uncached() == runs.CONCURRENT  # which this XLA knows, on whatever device
    monkeypatch.setattr(runs, "CONCURRENT", {"xla_gpu_no_such_option": "CONCURRENT"})
    assert uncached() is None
