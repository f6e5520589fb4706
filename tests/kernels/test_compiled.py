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


ANSWER = "from voronaut.caller import twice\nprint(twice(1.0), sum(twice.stats.cache_hits.values()))"
FULL_DISK = "import resource\nresource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))\n"


def run(folder: Path, code: str = ANSWER) -> "subprocess.CompletedProcess[str]":
    """The code in a process of its own that keeps machine code in `folder`."""
    environment = {**os.environ, "PYTHONPATH": str(folder), "NUMBA_CACHE_DIR": str(folder / "cache")}
    python = [sys.executable, "-B", "-c", code]  # -B: Python's own cache could miss a change within a second
    done = subprocess.run(python, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done


def answer(folder: Path, code: str = ANSWER) -> tuple[float, int]:
    """What the caller gives for 1, and how often numba found its machine code."""
    value, hits = run(folder, code).stdout.split()
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


def test_a_full_disk_costs_the_cache_and_nothing_else(tmp_path: Path) -> None:
    kernels = package(tmp_path, ".callee")
    (kernels / "callee.py").write_text(CALLEE.format(how="compiled", number=1))
    assert answer(tmp_path, FULL_DISK + ANSWER) == (4.0, 0)
    assert answer(tmp_path) == (4.0, 0)
    assert answer(tmp_path) == (4.0, 1)


def test_whoever_waits_at_a_terminal_is_told_why_and_once(tmp_path: Path) -> None:
    kernels = package(tmp_path, ".callee")
    (kernels / "callee.py").write_text(CALLEE.format(how="compiled", number=1))
    terminal = "import sys\nsys.stderr.isatty = lambda: True\n"
    assert run(tmp_path).stderr == ""
    shutil.rmtree(tmp_path / "cache")
    assert run(tmp_path, terminal + ANSWER).stderr.count("compiling for this machine") == 1
    assert run(tmp_path, terminal + ANSWER).stderr == ""


def test_a_change_of_the_numbers_of_views_is_seen(tmp_path: Path) -> None:
    kernels = package(tmp_path, ".callee")
    source = CALLEE.format(how="compiled", number="NUMBER")
    (kernels / "callee.py").write_text(f"from voronaut.views import NUMBER\n{source}")
    numbers = tmp_path / "voronaut" / "views.py"
    numbers.write_text("NUMBER = 1\n")
    assert answer(tmp_path) == (4.0, 0)
    numbers.write_text("NUMBER = 2\n")
    assert answer(tmp_path) == (6.0, 0)


ONE_CLUSTERING = """
import numpy as np, voronaut as vn
x = np.random.default_rng(0).normal(size=(40, 3)).astype(np.float32)
for dtype in ("float32", "float64"):
    kme = vn.KME(dim=3, clusters=8, dtype=dtype)
    kme.update(x)
    print(*np.round([*kme.rewards(x)[:9], *kme.step(x)[:9]], 4))
"""
MANY = """
import numpy as np
from voronaut import views as ref
from voronaut.kernels.cpu import views as kernel
x = np.random.default_rng(0).normal(size=(40, 12))
for dtype in ("float32", "float64"):
    for m, k in ((1, 5), (2, 6), (12, 7)):
        y, columns = x.astype(dtype), ref.columns(12, 2, m, 0)
        centers = np.stack([ref.start(y[:, own], k, 0).centers for own in columns]).astype(dtype)
        views = kernel.update(kernel.Views(columns, centers, np.ones((2, k)), np.zeros(2)), y, 0.05)
        views, paid = kernel.step(views, y, 0.05)
        print(*np.round([*paid, *kernel.rewards(views, np.ones(2), y, 0.05), *views.usage[0]], 4))
        print(*kernel.assign(views, y).ravel())
"""


@pytest.mark.parametrize("code", [ONE_CLUSTERING, MANY])
def test_without_the_compiler_everything_is_the_same(code: str) -> None:

    def said(**more: str) -> str:
        environment = {**os.environ, **more, "PYTHONPATH": str(Path(compiled.__file__).parents[2])}
        done = subprocess.run(
            [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    assert said(NUMBA_DISABLE_JIT="1") == said(NUMBA_DISABLE_JIT="0") != ""
