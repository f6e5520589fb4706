"""Computed parts of a page: what stands between `<!-- computed: NAME -->` and `<!-- end -->`."""

from collections.abc import Mapping


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
