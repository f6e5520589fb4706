"""README, docs and examples: every Python block runs, every command parses, every link leads somewhere.

The pages and examples of the adapters run in tests/adapters, each where its library is installed.
"""

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from voronaut import cli
from voronaut.training.api import configure

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
EXAMPLES = {"two_streams.py": ["two.png"], "cheetah.py": ["512", "cheetah"]}


def blocks(page: Path, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", page.read_text(), re.DOTALL)


@pytest.mark.parametrize("page", [p for p in PAGES if p.parent.name != "adapters"], ids=lambda page: page.name)
def test_python_blocks_run(page: Path, tmp_path: Path) -> None:
    code = "\n".join(blocks(page, "python"))
    if code:
        done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_voronaut_commands_parse(page: Path) -> None:
    for line in "".join(blocks(page, "bash")).splitlines():
        words = shlex.split(line, comments=True)
        if words[:1] == ["voronaut"]:
            options, rest = cli.parser().parse_known_args(words[1:])
            if options.command == "train":
                sweep = cli.sweep_options(options.sweep or [])
                bonuses = options.bonuses or ["none", "kme"]
                configure(options.task, bonuses=bonuses, options=cli.bonus_options(rest), sweep=sweep)
            else:
                assert not rest


def test_make_targets_in_the_readme_exist() -> None:
    targets = set(re.findall(r"^(\w+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    wanted = set(re.findall(r"^make (\w+)", "".join(blocks(ROOT / "README.md", "bash")), re.MULTILINE))
    assert {"run", "test"} <= wanted <= targets


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    for link in re.findall(r"\]\(([^)#]+)[^)]*\)", page.read_text()):
        assert link.startswith("http") or (page.parent / link).exists(), link


@pytest.mark.parametrize("name", EXAMPLES)
def test_examples_run(name: str, tmp_path: Path) -> None:
    command = [sys.executable, str(ROOT / "examples" / name), *EXAMPLES[name]]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert list(tmp_path.rglob("*.png"))
