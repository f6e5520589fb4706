"""Wheel and sdist hold what they must and nothing else; the version stands in one place. `make wheel` installs it."""

import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest

import voronaut

ROOT = Path(__file__).parents[1]
ABOUT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with both, built from a copy so that the repository stays clean. No network: no isolation."""
    folder = tmp_path_factory.mktemp("release")
    shutil.copytree(ROOT / "voronaut", folder / "voronaut", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(ROOT / "tests", folder / "tests", ignore=shutil.ignore_patterns("__pycache__"))
    for name in (
        "pyproject.toml",
        "README.md",
        "LICENSE",
        "MANIFEST.in",
        "CHANGELOG.md",
        "CITATION.cff",
        "constraints.txt",
    ):
        shutil.copy(ROOT / name, folder)
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", "dist", "."]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return folder / "dist"


def sources() -> set[str]:
    kinds = (".py", ".html", ".css", ".js")
    found = {path for path in (ROOT / "voronaut").rglob("*") if path.suffix in kinds or path.name == "py.typed"}
    return {path.relative_to(ROOT).as_posix() for path in found}


def test_the_wheel_holds_the_package_and_nothing_else(built: Path) -> None:
    (path,) = built.glob("*.whl")
    names = set(zipfile.ZipFile(path).namelist())
    inside = {name for name in names if name.startswith("voronaut/")}
    assert inside == sources()
    assert "voronaut/py.typed" in inside
    assert {name.split("/")[0] for name in names - inside} == {f"voronaut-{voronaut.__version__}.dist-info"}
    assert any(name.endswith("licenses/LICENSE") for name in names)


def test_the_sdist_holds_what_a_build_needs_and_no_tests(built: Path) -> None:
    (path,) = built.glob("*.tar.gz")
    with tarfile.open(path) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert sources() | {"README.md", "LICENSE", "CHANGELOG.md", "CITATION.cff", "pyproject.toml"} <= names
    assert not [name for name in names if name.startswith(("tests", "docs", "results", "runs"))]


def test_the_version_stands_in_one_place(built: Path) -> None:
    assert ABOUT["dynamic"] == ["version"]
    assert f"version: {voronaut.__version__}\n" in (ROOT / "CITATION.cff").read_text()
    assert f"## {voronaut.__version__}" in (ROOT / "CHANGELOG.md").read_text()
    assert {path.name.split("-")[1] for path in built.glob("*.whl")} == {voronaut.__version__}


def test_core_is_three_libraries_and_dev_is_all_that_tests_need() -> None:
    assert {re.split("[>=<]", one)[0] for one in ABOUT["dependencies"]} == {"numpy", "numba", "scipy"}
    pins = {
        line.split("==")[0].lower().replace("_", "-") for line in (ROOT / "constraints.txt").read_text().splitlines()
    }
    extras = ABOUT["optional-dependencies"]
    asked = {re.split(r"[>=<\[]", one)[0] for name, each in extras.items() if name != "rllib" for one in each}
    assert asked - {"voronaut", "triton"} <= pins  # triton comes with the torch of a GPU machine
