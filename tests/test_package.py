"""What importing costs, and where compiled kernels may live."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import voronaut as vn


def python(code: str, **environment: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", code], env={**os.environ, **environment}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_importing_loads_nothing_heavy() -> None:
    code = "import sys, voronaut as vn; vn.KME(3); print({'numba', 'torch', 'jax', 'scipy'} & set(sys.modules))"
    assert python(code) == "set()\n"


def test_every_public_name_is_there_and_others_are_named() -> None:
    assert all(getattr(vn, name) is not None for name in vn.__all__)
    assert set(vn.__all__) <= set(dir(vn))
    with pytest.raises(AttributeError, match="KME"):
        _ = vn.KMA


@pytest.mark.parametrize("folder", ["/dev/null/nowhere", "/proc/nowhere"])
def test_no_cache_folder_is_no_error(folder: str, tmp_path: Path) -> None:
    """Neither the named folder, nor the package's own, nor the home's can be written."""
    code = (
        "import numba.core.caching as c\n"
        "c.CacheImpl._locator_classes = [c.UserProvidedCacheLocator]\n"
        "import numpy as np\nfrom voronaut.kernels.cpu import distances\n"
        "out = np.empty(16)\ndistances.squared_distances(np.ones((1, 16)), np.zeros(1), out)\nprint(out[0])"
    )
    assert python(code, NUMBA_CACHE_DIR=folder, HOME=str(tmp_path / "none")) == "1.0\n"


def test_no_folder_is_crowded_and_the_map_is_true() -> None:
    """At most 14 files at one level; CONTRIBUTING names every room of the package, and none that is not there."""
    root = Path(vn.__file__).parent
    rooms = [root, *(path for path in root.rglob("*") if path.is_dir() and path.name != "__pycache__")]
    assert max(len(list(room.glob("*.py"))) for room in rooms) <= 14
    drawn = (root.parent / "CONTRIBUTING.md").read_text().split("```text\n")[1].split("```")[0]
    named = {name for line in drawn.splitlines() for name in line[:16].split()}
    top = {f"{path.name}/" for path in rooms if path.parent == root and list(path.glob("*.py"))}
    files = {path.name for path in root.glob("*.py")} - {"__init__.py", "__main__.py", "version.py"}
    assert top | files <= named
    assert all(any(room.name == name.rstrip("/") for room in rooms) or name in files for name in named)
