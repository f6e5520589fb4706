"""The documentation as a site: no warning, links and anchors hold, nothing is fetched, every public name is there."""

import importlib.util
import os
import re
import shutil
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import griffe
import pytest

import voronaut
import voronaut.conformance
import voronaut.jax
import voronaut.report
import voronaut.sb3
import voronaut.tasks

ROOT = Path(__file__).parents[1]
API = (ROOT / "docs" / "api.md").read_text()
WITH_ALL = ("", ".sb3", ".jax", ".conformance", ".tasks", ".entropy", ".report")
LOADING = {("link", "href"), ("script", "src"), ("img", "src"), ("iframe", "src"), ("source", "src"), ("video", "src")}


class Page(HTMLParser):
    """What a page links to, what it loads, and the anchors it has."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.loads: list[str] = []
        self.anchors: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if name in ("id", "name") and value:
                self.anchors.add(value)
            elif (tag, name) in LOADING and value:
                self.loads.append(value)
            elif tag == "a" and name == "href" and value:
                self.links.append(value)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)]
    quiet = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(command, cwd=ROOT, env=quiet, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "WARNING" not in done.stderr
    return folder


def test_every_page_of_docs_is_there(site: Path) -> None:
    wanted = {path.relative_to(ROOT / "docs").with_suffix(".html") for path in (ROOT / "docs").rglob("*.md")}
    assert wanted <= {path.relative_to(site) for path in site.rglob("*.html")}
    assert (site / "benchmarks" / "kernels.html").exists()
    assert not (site / "hooks.py").exists()


def test_links_and_anchors_lead_somewhere(site: Path) -> None:
    pages = {path: Page(path.read_text()) for path in site.rglob("*.html") if path.name != "404.html"}
    for path, page in pages.items():
        for link in page.links + page.loads:
            if re.match(r"[a-z]+:", link):
                continue
            target, _, anchor = unquote(link).partition("#")
            there = (path.parent / target).resolve() if target else path
            assert there.exists(), f"{path.name}: {link}"
            if anchor and there in pages:
                assert anchor in pages[there].anchors, f"{path.name}: {link}"


def test_nothing_is_fetched_from_elsewhere(site: Path) -> None:
    for path in site.rglob("*.html"):
        assert [url for url in Page(path.read_text()).loads if "//" in url] == [], path
    for path in site.rglob("*.css"):
        assert not re.search(r"""(url\(|@import)\s*["']?(https?:)?//""", path.read_text()), path


def public() -> set[str]:
    """What other code may rest on: all of `__all__`, and whatever the pages import."""
    names = {f"voronaut{m}.{n}" for m in WITH_ALL for n in _module(f"voronaut{m}").__all__}
    names -= {f"voronaut.{n}" for n in ("conformance", "features", "jax", "presets", "tasks", "__version__")}
    pages = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    for page in pages:
        for module, imported in re.findall(r"^from (voronaut[\w.]*) import ([\w, ]+)$", page.read_text(), re.MULTILINE):
            names |= {f"{module}.{name}" for name in imported.split(", ")}
    return names


def _module(name: str) -> Any:
    __import__(name)
    return sys.modules[name]


def constants() -> set[str]:
    return {
        name
        for name in public()
        if name.rpartition(".")[2].isupper() and name.rpartition(".")[2] not in voronaut.__all__
    }


def test_every_public_name_is_on_the_api_page() -> None:
    shown = set(re.findall(r"^- `(voronaut[\w.]+)`: ", API, re.MULTILINE))
    assert public() - constants() <= shown
    assert [name for name in constants() if f"`{name.rpartition('.')[2]}`" not in API] == []


def test_the_api_page_says_what_the_names_say_of_themselves(site: Path) -> None:
    spec = importlib.util.spec_from_file_location("hooks", ROOT / "docs" / "hooks.py")
    assert spec is not None and spec.loader is not None
    hooks = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(hooks)
    assert hooks.first_lines(API) == API, "run: python docs/hooks.py"
    page = (site / "api.html").read_text()
    assert 'id="voronaut.KME.update"' in page and "::: voronaut" not in page


def test_every_public_name_has_a_docstring() -> None:
    package = griffe.load("voronaut", search_paths=[str(ROOT)], resolve_aliases=True)
    silent = []
    for name in re.findall(r"^- `voronaut\.([\w.]+)`: ", API, re.MULTILINE):
        thing = package[name]
        told = thing.docstring.value if thing.docstring else ""
        silent += [] if told else [name]
        for member in thing.members.values() if thing.is_class else ():
            public_one = not member.name.startswith("_") and (member.is_function or "property" in member.labels)
            explained = member.docstring or re.search(rf"\b{member.name}\b", told.partition("Attributes:")[2])
            silent += [member.path] if public_one and not explained else []
    assert silent == []


def test_a_page_opened_from_disk_has_its_search_and_asks_nothing_of_a_network(site: Path) -> None:
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is missing (pip install -e '.[dev]')")
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    if chromium is None:
        pytest.skip("chromium is not installed (apt-get install chromium)")
    wrong: list[str] = []
    with playwright.sync_playwright() as start:
        browser = start.chromium.launch(executable_path=chromium, args=["--no-sandbox", "--disable-gpu"])
        tab = browser.new_page()
        tab.on("console", lambda message: wrong.append(message.text))
        tab.on("pageerror", lambda error: wrong.append(str(error)))
        tab.on("request", lambda asked: wrong.append(asked.url) if asked.url.startswith("http") else None)
        tab.goto((site / "adapters" / "sb3.html").as_uri())
        tab.click("input.md-search__input")
        tab.keyboard.type("noise features")
        tab.wait_for_selector(".md-search-result__item")
        assert "Choosing parameters" in tab.inner_text(".md-search-result__list")
        browser.close()
    assert wrong == []
