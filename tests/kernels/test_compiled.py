"""Machine code that numba keeps is used for the sources it was made from, and for no others."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from voronaut.kernels import compiled

CALLEE = "from voronaut.kernels.compiled import {how}\n\n\n@{how}\ndef one(x):\n    return x + {number}\n"
CALLER = (
    "from voronaut.kernels.compiled import compiled\nfrom voronaut.kernels{where} import one\n\n\n"
    "@compiled\ndef twice(x):\n    return 2 * one(x)\n"
)


def package(folder: Path, where: str) -> Path:
    """A package with nothing but `compiled.py`, a function, and a caller of it in another file."""
    kernels = folder / "voronaut" / "kernels"
    (kernels / "cpu").mkdir(parents=True)
    for path in (folder / "voronaut", kernels, kernels / "cpu"):
        (path / "__init__.py").touch()
    shutil.copy(compiled.__file__, kernels)
    (folder / "voronaut" / "caller.py").write_text(CALLER.format(where=where))
    return kernels


def answer(folder: Path) -> tuple[float, int]:
    """What the caller gives for 1, and how often numba found its machine code."""
    code = "from voronaut.caller import twice\nprint(twice(1.0), sum(twice.stats.cache_hits.values()))"
    environment = {**os.environ, "PYTHONPATH": str(folder), "NUMBA_CACHE_DIR": str(folder / "cache")}
    python = [sys.executable, "-B", "-c", code]  # -B: Python's own cache could miss a change within a second
    done = subprocess.run(python, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    value, hits = done.stdout.split()
    return float(value), int(hits)


@pytest.mark.parametrize(("where", "how"), [(".callee", "compiled"), (".cpu.callee", "inlined")])
def test_a_change_in_another_file_is_seen(tmp_path: Path, where: str, how: str) -> None:
    kernels = package(tmp_path, where)
    callee = kernels / (where[1:].replace(".", "/") + ".py")
    callee.write_text(CALLEE.format(how=how, number=1))
    assert answer(tmp_path) == (4.0, 0)
    assert answer(tmp_path) == (4.0, 1)
    callee.write_text(CALLEE.format(how=how, number=2))
    assert answer(tmp_path) == (6.0, 0)
    assert answer(tmp_path) == (6.0, 1)
