"""These tests need Ray, which has an environment of its own; without it the folder is skipped."""

import importlib.util
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

REASON = "ray is missing: these tests run in .venv-ray (constraints-ray.txt), with `make rllib`"
HERE = importlib.util.find_spec("ray") is not None


class Absent(pytest.Module):
    """A test module that cannot even be imported."""

    def collect(self) -> Any:
        pytest.skip(REASON, allow_module_level=True)


def pytest_pycollect_makemodule(module_path: Path, parent: Any) -> Any:
    return None if HERE else Absent.from_parent(parent, path=module_path)


@pytest.fixture(scope="session")
def cluster() -> Iterator[None]:
    """A local Ray that believes in eight processors, so that learners and env runners find places."""
    import ray

    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    ray.init(
        address="local",
        num_cpus=8,
        include_dashboard=False,
        object_store_memory=100 * 2**20,
        log_to_driver=False,
        runtime_env={"env_vars": {"OMP_NUM_THREADS": "1"}},
    )
    yield
    ray.shutdown()
