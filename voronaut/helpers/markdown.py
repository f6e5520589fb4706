"""Markdown that is computed: tables, and what stands between `<!-- computed: NAME -->` and `<!-- end -->` on a page."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any


def table(head: Sequence[str], rows: Iterable[Sequence[Any]], rules: Sequence[str] = ()) -> str:
    """A table; `rules` are the columns' own where they are not all plain ("--:" sets one to the right)."""
    lines = [head, rules or ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(str(cell) for cell in line) + " |" for line in lines)


def fill(text: str, sections: Mapping[str, str]) -> str:
    """The page with every computed part renewed; what stands between the parts is left alone."""
    for name, content in sections.items():
        begin, end = f"<!-- computed: {name} -->\n", "<!-- end -->"
        before, found, rest = text.partition(begin)
        _, closed, after = rest.partition(end)
        if not found or not closed:
            raise ValueError(f"the page has no part {name!r}; add {begin + end!r} to it.")
        text = f"{before}{begin}{content}\n{end}{after}"
    return text
