"""README, docs and examples: every Python block runs, every command parses, every link leads somewhere.

The pages and examples of the adapters run in tests/adapters, each where its library is installed.
"""

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from voronaut import cli
from voronaut.cli import commands

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
TO_RUN = [ROOT / "README.md", ROOT / "docs" / "start.md"]
TINY = {  # what makes a command of these pages short; the last of two equal options counts
    "demo": ["--steps", "4096"],
    "train": ["--steps", "512", "--rollout", "256", "--envs", "2", "--seeds", "1", "--backend", "dm_control"],
}
QUICK = {**os.environ, "JAX_DISABLE_MOST_OPTIMIZATIONS": "1"}  # XLA would optimise for longer than these runs last
ONE_BY_ONE = """
import json, sys
from voronaut.cli import main

for words in json.loads(sys.argv[1]):
    if code := main(words):
        sys.exit(f"voronaut {' '.join(words)} ended with {code}")
"""
EXAMPLES = {"two_streams.py": ["two.png"], "cheetah.py": ["512", "cheetah"]}


def blocks(page: Path, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", page.read_text(), re.DOTALL)


@pytest.mark.parametrize("page", [p for p in PAGES if p.parent.name != "adapters"], ids=lambda page: page.name)
def test_python_blocks_run(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In this process, whose libraries are loaded once for all; but JAX can be made quick only before it starts."""
    code = "\n".join(blocks(page, "python"))
    if "voronaut.jax" in code:
        run([sys.executable, "-c", code], tmp_path)
    else:
        monkeypatch.chdir(tmp_path)
        exec(compile(code, page.name, "exec"), {"__name__": "__main__"})


def test_the_ten_lines_of_the_readme_run(tmp_path: Path) -> None:
    """They train for minutes; here for two turns."""
    [code] = blocks(ROOT / "README.md", "py")
    short, count = re.subn(r"steps=40960,\s+rollout=4096", "steps=512, rollout=256, envs=2", code)
    assert count == 1
    run([sys.executable, "-c", short], tmp_path)
    assert (tmp_path / "runs/car/kme-0/explorer.npz").exists()


def run(command: list[str], folder: Path) -> None:
    """A process that must end well."""
    done = subprocess.run(command, cwd=folder, env=QUICK, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_voronaut_commands_parse(page: Path) -> None:
    for line in "".join(blocks(page, "bash")).splitlines():
        words = shlex.split(line, comments=True)
        if words[:1] == ["voronaut"]:
            options, rest = cli.parser().parse_known_args(words[1:])
            if options.command == "train":
                options.rest = rest
                commands.train_config(options)
            else:
                assert not rest


def test_a_newcomers_commands_run_in_their_order(tmp_path: Path) -> None:
    """README, then docs/start.md, in one process; a command that is on both runs once."""
    text = "".join(block for page in TO_RUN for block in blocks(page, "bash"))
    lines = [tuple(shlex.split(line, comments=True)) for line in text.splitlines()]
    assert {words[0] for words in lines if words} == {"make", ".", "voronaut"}
    wanted = [words for words in dict.fromkeys(lines) if words[:1] == ("voronaut",)]
    tiny = [[name, *words, *TINY.get(name, [])] for _, name, *words in wanted]
    assert {words[0] for words in tiny} == {"demo", "train", "report"}
    run([sys.executable, "-c", ONE_BY_ONE, json.dumps(tiny)], tmp_path)
    assert (tmp_path / "out" / "demo" / "maze.gif").exists()
    assert (tmp_path / "report.html").exists()


def test_make_targets_on_the_pages_exist() -> None:
    targets = set(re.findall(r"^(\w+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    wanted = {
        name for page in PAGES for name in re.findall(r"^make (\w+)", "".join(blocks(page, "bash")), re.MULTILINE)
    }
    assert {"run", "test", "setup"} <= wanted <= targets


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    for link in re.findall(r"\]\(([^)#]+)[^)]*\)", page.read_text()):
        assert link.startswith("http") or (page.parent / link).exists(), link


@pytest.mark.parametrize("name", EXAMPLES)
def test_examples_run(name: str, tmp_path: Path) -> None:
    run([sys.executable, str(ROOT / "examples" / name), *EXAMPLES[name]], tmp_path)
    assert list(tmp_path.rglob("*.png"))
