"""What is imported when, what is said when something is missing, and pictures."""

import ctypes.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

from voronaut import tasks


def run(code: str, **env: str) -> subprocess.CompletedProcess[str]:
    """Run code in a Python of its own, without a display."""
    clean = {key: value for key, value in os.environ.items() if key not in ("DISPLAY", "WAYLAND_DISPLAY", "MUJOCO_GL")}
    return subprocess.run([sys.executable, "-c", code], env=clean | env, capture_output=True, text=True, check=False)


def test_a_missing_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "dm_control", None)
    monkeypatch.setattr(sys, "version_info", (3, 13, 0))
    with pytest.raises(ImportError, match=r"dm_control does not install with Python 3.13 .* envpool .*\[fast\]'"):
        tasks.make("cheetah-run", [0], backend="dm_control")
    monkeypatch.setattr(sys, "version_info", (3, 12, 0))
    with pytest.raises(ImportError, match=r"dm_control is missing. Install it with: pip install .*\[train\]'"):
        tasks.make("cheetah-run", [0], backend="dm_control")
    monkeypatch.setitem(sys.modules, "gymnasium", None)
    with pytest.raises(ImportError, match=r"gymnasium is missing. Install it with: pip install .*\[train\]'"):
        tasks.make("gym:Pendulum-v1", [0])
    monkeypatch.setitem(sys.modules, "envpool", None)
    with pytest.raises(ImportError, match=r"envpool is missing. Install it with: pip install .*\[fast\]'"):
        tasks.make("cheetah-run", [0], backend="envpool")


def test_auto_takes_envpool_only_where_it_is_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("envpool")
    assert tasks.choose_backend("cheetah-run") == "envpool"
    assert tasks.choose_backend("cheetah-run", render=True) == "dm_control"
    assert tasks.choose_backend("gym:Pendulum-v1") == "gymnasium"
    monkeypatch.setitem(sys.modules, "envpool", None)
    assert tasks.choose_backend("cheetah-run") == "dm_control"


def test_importing_needs_no_extra_and_loads_no_simulator() -> None:
    code = (
        "import sys; sys.modules.update(gymnasium=None, dm_control=None, envpool=None, mujoco=None)\n"
        "import voronaut.tasks; voronaut.tasks.find('cheetah-run')"
    )
    result = run(code)
    assert result.returncode == 0, result.stderr
    result = run("import sys, voronaut.tasks; print({'dm_control', 'envpool', 'mujoco'} & set(sys.modules))")
    assert result.stdout.strip() == "set()", result.stderr


def test_the_envpool_backend_does_without_dm_control() -> None:
    pytest.importorskip("envpool")
    code = (
        "import sys; sys.modules.update(dm_control=None, mujoco=None)\n"
        "import voronaut.tasks as t; task = t.make('cheetah-run', [0], 2); print(task.reset().shape)"
    )
    assert run(code).stdout.strip() == "(2, 17)"


def test_a_cut_down_envpool_is_enough(tmp_path: Path) -> None:
    """Only the suite's family is left; the entry module still names the others."""
    envpool = pytest.importorskip("envpool")
    source, target = Path(envpool.__file__).parent, tmp_path / "envpool"
    (target / "mujoco").mkdir(parents=True)
    for name in ("__init__.py", "entry.py", "registration.py", "python"):
        (target / name).symlink_to(source / name)
    for name in ("__init__.py", "dmc", *(path.name for path in (source / "mujoco").glob("mujoco_dmc*"))):
        (target / "mujoco" / name).symlink_to(source / "mujoco" / name)
    if (libraries := source.with_name("envpool.libs")).exists():
        (tmp_path / libraries.name).symlink_to(libraries)
    code = (
        f"import sys; sys.path.insert(0, {str(tmp_path)!r})\n"
        "import voronaut.tasks as t; print(t.make('cheetah-run', [0], 2).reset().shape)\n"
        "import envpool; print(envpool.__file__)"
    )
    result = run(code)
    assert result.stdout.splitlines() == ["(2, 17)", str(target / "__init__.py")], result.stderr


@pytest.mark.skipif(
    not (sys.platform == "linux" and (ctypes.util.find_library("EGL") or ctypes.util.find_library("OSMesa"))),
    reason="needs libegl1 or libosmesa6",
)
def test_pictures_without_a_display() -> None:
    code = (
        "import voronaut.tasks as t, gymnasium\n"
        "task = t.make('cheetah-run', [0], 2, render=True); task.reset(); frame = task.render(1)\n"
        "print(frame.shape, frame.dtype, frame.std() > 10)\n"
        "env = gymnasium.make('voronaut/AcrobotSwingupSparse-v0', render_mode='rgb_array'); env.reset()\n"
        "print(env.render().shape)"
    )
    result = run(code)
    assert result.stdout.splitlines() == ["(360, 480, 3) uint8 True", "(360, 480, 3)"], result.stderr


def test_impossible_pictures_say_what_to_install() -> None:
    code = "import voronaut.tasks as t; task = t.make('cheetah-run', [0], 1, render=True); task.reset(); task.render()"
    result = run(code, MUJOCO_GL="disable")
    assert "rendering is not possible here (MUJOCO_GL=disable)" in result.stderr
    assert "libosmesa6" in result.stderr


def test_pictures_must_be_asked_for() -> None:
    for backend, word in (("dm_control", "render=True"), ("envpool", "backend='dm_control'")):
        if backend == "envpool":
            pytest.importorskip("envpool")
        task = tasks.make("cheetah-run", [0], 1, backend=backend)
        with pytest.raises(RuntimeError, match=word):
            task.render()


def test_training_is_silent_without_a_display() -> None:
    result = run("import voronaut.tasks as t; t.make('cheetah-run', [0], 1, backend='dm_control').reset()")
    assert result.returncode == 0
    assert result.stderr == ""
