"""The page in a real browser: it draws, every switch works, nothing is logged as an error, no request leaves."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.report import toys
from tests.report.test_page import hostile
from voronaut.report import curves, report

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed (pip install -e '.[dev]')")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="chromium is not installed (apt-get install chromium)")
ARGUMENTS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
             "--disable-component-update", "--disable-sync"]  # fmt: skip
TRACES = "element => element.data.map(trace => trace.y.length)"
SHOWN = "element => element.data.filter(trace => trace.name).map(trace => trace.name)"


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with playwright.sync_playwright() as start:
        running = start.chromium.launch(executable_path=CHROMIUM, headless=True, args=ARGUMENTS)
        yield running
        running.close()


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A page of two tasks, one of them with more rollouts than a chart has points."""
    folder = tmp_path_factory.mktemp("runs")
    toys.experiment(folder / "one")
    long = toys.experiment(folder / "two", task="gym:Long-v0", rollouts=8, seeds=1, maps=False)
    toys.log(long / "kme-0" / "progress.jsonl", [toys.row(n, 0, "kme") for n in range(1, 2001)])
    return report([folder], folder / "page.html")


@contextmanager
def opened(browser: Any, path: Path, **given: Any) -> Iterator[Any]:
    """The page in a window of its own; at the end nothing must have gone wrong and nothing been asked of a network."""
    context = browser.new_context(**{"viewport": {"width": 1280, "height": 900}, **given})
    tab, wrong, asked = context.new_page(), [], []
    tab.on("console", lambda message: wrong.append(message.text))
    tab.on("pageerror", lambda error: wrong.append(str(error)))
    tab.on("request", lambda request: asked.append(request.url))
    tab.goto(path.as_uri())
    yield tab
    own = (path.as_uri(), "data:", "blob:")
    assert wrong == [] and [url for url in asked if not url.startswith(own)] == []
    context.close()


@pytest.fixture(scope="module")
def tab(browser: Any, path: Path) -> Iterator[Any]:
    """One window for the tests that leave the page as they found it: opening five megabytes takes seconds."""
    with opened(browser, path, color_scheme="light") as window:
        yield window


def chart(tab: Any, selector: str) -> Any:
    """A chart, once it is drawn."""
    found = tab.locator(selector).first
    found.scroll_into_view_if_needed()
    found.locator(".main-svg").first.wait_for()
    return found


def all_charts(tab: Any) -> int:
    """Scroll to every chart until it is drawn; how many there are."""
    count: int = tab.locator(".chart").count()
    for index in range(count):
        chart(tab, f":nth-match(.chart, {index + 1})")
    return count


def returns(tab: Any, task: int = 0) -> Any:
    return chart(tab, f".chart[data-task='{task}'][data-panel=extrinsic_return]")


def test_every_chart_is_drawn_and_long_curves_are_thin(tab: Any) -> None:
    assert all_charts(tab) == 11
    assert 200 < max(returns(tab, 1).evaluate(TRACES)) <= curves.POINTS
    assert tab.locator(".js-line").count() > 10


def test_methods_are_switched_by_keyboard(tab: Any) -> None:
    drawn = returns(tab)
    assert drawn.evaluate(SHOWN) == ["kme", "none"]
    kme, none, seeds = (tab.get_by_label(name, exact=True) for name in ("kme", "none", "single seeds"))
    kme.focus()
    tab.keyboard.press("Space")
    assert drawn.evaluate(SHOWN) == ["none"]
    none.uncheck()
    assert drawn.evaluate(SHOWN) == [] and drawn.get_by_text("no method is shown").count() == 1
    kme.check()
    assert drawn.evaluate(SHOWN) == ["kme"]
    assert len(drawn.evaluate(TRACES)) == 3  # two seeds are shown in any case, and their mean
    seeds.check()
    assert len(drawn.evaluate(TRACES)) == 3
    seeds.uncheck()
    none.check()
    assert drawn.evaluate(SHOWN) == ["kme", "none"]


def test_values_with_a_mouse_and_without(tab: Any) -> None:
    drawn = returns(tab)
    drawn.hover(position={"x": 300, "y": 120})
    drawn.locator(".hoverlayer").get_by_text("kme:").wait_for()
    drawn.focus()
    for key in ("Home", "ArrowRight", "ArrowRight"):
        tab.keyboard.press(key)
    readout = drawn.locator("xpath=..").locator(".readout")
    assert readout.text_content().startswith("400 steps: kme 40.5 (mean of 2); none 40.5")
    tab.keyboard.press("End")
    assert readout.text_content().startswith("800 steps")


def test_another_curve_is_chosen(tab: Any) -> None:
    other = chart(tab, "figure:has(select.panel) .chart")
    assert other.evaluate("element => element.data.at(-1).y") == [0.5] * 7
    tab.locator("select.panel").first.select_option("kme/cell_mass_cv")
    assert other.evaluate("element => element.data.at(-1).y") == [0.3] * 8
    tab.locator("select.panel").first.select_option("bonus_mean")


def test_the_map_moves_with_the_slider_and_plays_to_its_end(tab: Any) -> None:
    drawn, slider, play = chart(tab, ".map .chart"), tab.locator("#time"), tab.locator("#play")
    centers = "element => element.data[1].x.concat(element.data[2].x)"
    end = drawn.evaluate(centers)
    assert len(end) == 6 and slider.get_attribute("aria-valuetext") == "800 steps"
    slider.focus()
    tab.keyboard.press("Home")
    assert slider.get_attribute("aria-valuetext") == "100 steps" and drawn.evaluate(centers) != end
    play.press("Enter")
    assert play.text_content() == "Stop"
    playwright.expect(play).to_have_text("Play", timeout=30_000)
    assert slider.input_value() == slider.get_attribute("max") and drawn.evaluate(centers) == end
    run = tab.locator(".map select").first
    before = run.input_value()
    run.select_option(label="none, seed 1")
    assert tab.locator(".map .readout").first.text_content().startswith("This bonus has no clusters")
    assert len(drawn.evaluate("element => element.data")) == 1
    run.select_option(before)


def test_everything_is_reached_with_the_tabulator(tab: Any) -> None:
    wanted = tab.locator("main button:visible, main select:visible, main input:visible, main summary:visible, "
                         "main .chart[tabindex]:visible").count()  # fmt: skip
    tab.evaluate("document.activeElement.blur(), scrollTo(0, 0)")
    mark = "() => { const e = document.activeElement; e.mark ??= String(Math.random()); return e.mark; }"
    seen = set()
    for _ in range(wanted + 12):
        tab.keyboard.press("Tab")
        seen.add(tab.evaluate(mark))
    names = "() => [...document.querySelectorAll('main [tabindex], main select, main input')].every(e => e.ariaLabel)"
    assert len(seen) >= wanted and tab.evaluate(names)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_both_themes_are_readable_and_can_be_switched(tab: Any, scheme: str) -> None:
    colors = "() => { const s = getComputedStyle(document.body); return [s.backgroundColor, s.color]; }"
    tab.emulate_media(color_scheme=scheme)
    drawn, button = returns(tab), tab.locator("#theme")
    first = tab.evaluate(colors)
    assert contrast(*first) > 7 and (luminance(first[0]) < 0.5) == (scheme == "dark")
    button.press("Enter")
    second = tab.evaluate(colors)
    assert contrast(*second) > 7 and (luminance(second[0]) < 0.5) == (scheme == "light")
    ink = drawn.evaluate("element => getComputedStyle(element.querySelector('.xtick text')).fill")
    assert contrast(second[0], ink) > 7
    tab.evaluate("delete document.documentElement.dataset.theme")


def luminance(color: str) -> float:
    """Relative luminance of rgb(r, g, b), as WCAG defines it."""
    parts = [int(part) / 255 for part in color[color.index("(") + 1 : -1].split(",")[:3]]
    r, g, b = (part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * r + 0.7152 * g + 0.0722 * b


def contrast(one: str, other: str) -> float:
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def test_a_phone_shows_everything_without_scrolling_sideways(browser: Any, path: Path) -> None:
    phone = {"viewport": {"width": 390, "height": 844}, "is_mobile": True, "has_touch": True}
    outside = """() => [...document.querySelectorAll("main *")].filter(
        e => e.getBoundingClientRect().right > 391 && !e.closest("svg") && !e.closest("thead")).length"""
    with opened(browser, path, **phone) as small:
        all_charts(small)
        assert small.evaluate("document.documentElement.scrollWidth") == 390 and small.evaluate(outside) == 0


def test_hostile_names_do_nothing(browser: Any, tmp_path: Path) -> None:
    folder = hostile(tmp_path / "runs")
    with opened(browser, report([folder], tmp_path / "page.html")) as window:
        all_charts(window)
        for task in (0, 1):
            drawn = returns(window, task)
            drawn.press("End")
            drawn.locator(".hoverlayer text").first.wait_for()
        assert window.evaluate("window.hacked") is None
        assert window.locator("main img, main a, .bar img, svg a, svg image").count() == 0
        assert window.locator(".bar").get_by_text("<img src=x onerror=window.hacked=1>").count() == 1
