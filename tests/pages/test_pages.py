"""README and docs say what the result files say; the figures of docs/idea.md redraw."""

import re
from pathlib import Path

import pytest

from voronaut.helpers.markdown import fill, table
from voronaut.pages import computed, idea

ROOT = Path(__file__).parents[2]


def test_every_computed_part_is_up_to_date(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    pages = computed.pages()
    for page, parts in pages.items():
        assert fill(page.read_text(), parts) == page.read_text(), "run: python -m voronaut.pages.computed"
    for page in [Path("README.md"), *Path("docs").glob("*.md")]:
        marks = re.findall("^<!-- computed: (.*) -->$", page.read_text(), re.MULTILINE)
        assert sorted(marks) == sorted(pages.get(page, {})), page


def test_a_page_without_its_part_is_refused() -> None:
    for text in ("# nothing", "<!-- computed: cost -->\nno end"):
        with pytest.raises(ValueError, match="no part 'cost'"):
            fill(text, {"cost": ""})


def test_a_table() -> None:
    assert table(["a", "b"], [[1, "x"], [2.5, ""]], ["---", "--:"]) == "| a | b |\n| --- | --: |\n| 1 | x |\n| 2.5 |  |"


def test_times_are_told_from_the_benchmark() -> None:
    measured = {
        "machine": {"cpu": "Abacus", "date": "2026-01-01"},
        "cost": [{"dim": 17, "stream": 8.0, "floor": 5.0, "stream/floor": 1.6, "start": 0.5}],
        "kNN": [{"points": 10_000, "k-d tree": None, "all pairs": 60.0, "stream": 1.0, "kNN/stream": 60.0}],
        "memory": [{"points": 50_000, "state kB": 900.0}, {"points": 800_000, "state kB": 901.0}],
    }
    told = computed.entropy_cost(measured)
    assert "| 17 | 8.0 | 5.0 | 1.60 | 0.5 |" in told and "| 10,000 | – | 60.0 | 1.0 | 60.0 |" in told
    assert "900 kB after 50,000 points and 901 kB after 800,000" in told and "Abacus" in told


def test_the_figures_of_the_idea_redraw(tmp_path: Path) -> None:
    drawn = idea.draw(tmp_path)
    assert {path.name for path in drawn} == {path.name for path in (ROOT / "docs/figures/idea").iterdir()}
    assert all(path.read_bytes()[:4] == b"\x89PNG" for path in drawn)
