"""Brings pages from outside docs/ into the site, so that one relative link is right on a code host and in the site.

`](../benchmarks/kernels.md)` in docs/performance.md leads to the file in the repository; here the file becomes a page
of the site and the link is made to lead there. Links to code and results, which are no pages, become plain text.

docs/api.md lists names with the first line that each says of itself (`python docs/hooks.py` renews these lines); in the
site each line becomes all that the name has to say.
"""

import posixpath
import re
from pathlib import Path
from typing import Any

from mkdocs.plugins import event_priority

ROOT = Path(__file__).parents[1]
PAGES = ("CONTRIBUTING.md", "CHANGELOG.md")
FOLDERS = ("benchmarks",)
KINDS = (".md", ".png")
NEWEST = {"Performance": {"GPU": "benchmarks/gpu.md"}}  # measured on another machine, so it may be missing
NAMED = re.compile(r"^- `(voronaut[\w.]+)`: .*\n?", re.MULTILINE)
LINK = re.compile(r"(!?)\[([^\]]*)\]\(([^)\s#]+)(#[^)]*)?\)")


def outside() -> dict[str, Path]:
    """Where in the site each file from outside docs/ goes: the place it has in the repository."""
    found = [ROOT / name for name in PAGES]
    found += [path for folder in FOLDERS for path in sorted((ROOT / folder).iterdir()) if path.suffix in KINDS]
    return {path.relative_to(ROOT).as_posix(): path for path in found}


def on_config(config: Any) -> Any:
    """Pages of NEWEST come into the contents as soon as they have been measured."""
    sections = {name: pages for entry in config.nav for name, pages in entry.items()}
    for name, newest in NEWEST.items():
        sections[name] += [{title: page} for title, page in newest.items() if page in outside()]
    return config


def on_files(files: Any, config: Any) -> Any:
    """Add the files from outside docs/."""
    from mkdocs.structure.files import File

    for name, path in outside().items():
        files.append(File.generated(config, name, abs_src_path=str(path)))
    return files


def first_lines(markdown: str) -> str:
    """The page with the first line of every name's docstring, as the source has it."""
    import griffe

    package = griffe.load("voronaut", search_paths=[str(ROOT)], resolve_aliases=True)

    def line(found: re.Match[str]) -> str:
        said = package[found[1].removeprefix("voronaut.")].docstring
        return f"- `{found[1]}`: {said.value.splitlines()[0] if said else ''}\n"

    return NAMED.sub(line, markdown)


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Links that leave docs/ lead to the page in the site, and what has no page there is named without a link."""
    if page.file.src_uri == "api.md":
        markdown = NAMED.sub(r"\n::: \1\n\n", markdown)
    brought = outside()
    home = page.file.src_uri if page.file.src_uri in brought else f"docs/{page.file.src_uri}"

    def lead(found: re.Match[str]) -> str:
        mark, text, target, anchor = found.groups()
        if "://" in target:
            return found.group()
        place = posixpath.normpath(posixpath.join(posixpath.dirname(home), target))
        inside = place.removeprefix("docs/") if place.startswith("docs/") else place
        if not place.startswith("docs/") and place not in brought and (ROOT / place).exists():
            return f"{text} (`{place}`)" if text != place else f"`{place}`"
        here = posixpath.dirname(page.file.src_uri)
        return f"{mark}[{text}]({posixpath.relpath(inside, here or '.')}{anchor or ''})"

    return LINK.sub(lead, markdown)


@event_priority(-100)  # after the search has written its index
def on_post_build(config: Any) -> None:
    """The search's index once more, as a script: a page that was opened from disk may not read other files."""
    folder = Path(config.site_dir) / "search"
    (Path(config.site_dir) / "404.html").unlink()  # it names its files from a server's root, which nobody promised
    (folder / "search_index.js").write_text(f"var __index = {(folder / 'search_index.json').read_text()}")


if __name__ == "__main__":
    API = ROOT / "docs" / "api.md"
    API.write_text(first_lines(API.read_text()))
