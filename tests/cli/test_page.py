"""docs/command_line.md is what the parser says, and an empty command line shows the way."""

from pathlib import Path

import pytest

from voronaut import cli
from voronaut.cli import page

ROOT = Path(__file__).parents[2]


def test_the_page_is_up_to_date() -> None:
    assert (ROOT / page.PAGE).read_text() == page.page(), "run: python -m voronaut.cli.page"


def test_without_a_command_there_is_the_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main([]) == 0
    assert all(f" {name} " in capsys.readouterr().out for name in ["train"])
