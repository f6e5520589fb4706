"""What the tests of the torch kernels share: a device, small worlds, and reasons to skip."""

from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from voronaut.kernels.gpu import dispatch as kernel  # noqa: E402
from voronaut.kernels.rules import SQRT, Rules  # noqa: E402

CUDA = torch.cuda.is_available()
DEVICE = "cuda" if CUDA else "cpu"
RULES = Rules(0.05, 1e-3, SQRT, 1e-3)
needs_triton = pytest.mark.skipif(not kernel.has_triton(), reason="triton is not installed: pip install triton")
needs_gpu = pytest.mark.skipif(not CUDA or not kernel.has_triton(), reason="no CUDA device with triton here")


def world(k: int, d: int, n: int, seed: int = 0, dtype: Any = np.float32) -> tuple[Any, Any, Any]:
    rng = np.random.default_rng(seed)
    centers, states = rng.normal(size=(k, d)).astype(dtype), rng.normal(size=(n, d)).astype(dtype) * 1.5
    return centers, rng.integers(1, 300, k), states


def there(*arrays: Any) -> list[Any]:
    return [torch.tensor(a).to(DEVICE) for a in arrays]
