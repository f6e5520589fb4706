"""README and docs/parameters.md say what the result files say; the figures of docs/idea.md redraw."""

from pathlib import Path

import pytest

from voronaut.markdown import fill
from voronaut.pages import front as front_page
from voronaut.pages import idea as idea_figures
from voronaut.pages import parameters as parameter_guide

ROOT = Path(__file__).parents[2]


def test_the_readme_is_up_to_date(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    for page, parts in front_page.pages().items():
        assert fill(page.read_text(), parts) == page.read_text(), "run: python -m voronaut.pages.front"


def test_the_parameter_guide_is_up_to_date(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    text = parameter_guide.PAGE.read_text()
    again = fill(text, parameter_guide.sections())
    assert again == text, "run: python -m voronaut.pages.parameters"


def test_a_page_without_its_part_is_refused() -> None:
    with pytest.raises(ValueError, match="cost"):
        fill("# nothing", {"cost": ""})


def test_what_is_called_sick_is_sick() -> None:
    cases = {case.name.split(":")[0]: parameter_guide.measure(case, 0) for case in parameter_guide.CASES[:4]}
    assert cases["healthy"]["empty_cells"] == cases["healthy"]["clamped_gaps"] == 0
    assert cases["dead centers"]["empty_cells"] > 0.1
    assert cases["clamped gaps"]["clamped_gaps"] > 5
    assert cases["vanishing bonus"]["bonus_last"] < cases["healthy"]["bonus_last"] / 20


def test_the_figures_of_the_idea_redraw(tmp_path: Path) -> None:
    drawn = idea_figures.draw(tmp_path)
    assert {path.name for path in drawn} == {path.name for path in (ROOT / "docs/figures/idea").iterdir()}
    assert all(path.read_bytes()[:4] == b"\x89PNG" for path in drawn)
