"""docs/entropy_experiments.md: its computed parts. `python -m voronaut.experiments.entropy_page` renews them."""

from pathlib import Path

from voronaut.experiments import entropy, entropy_tables
from voronaut.experiments import jobs as small

PAGE = Path("docs/entropy_experiments.md")


def fill(text: str, folder: Path = entropy.FOLDER) -> str:
    """The page with every computed part renewed; what stands between the parts is left alone."""
    plan = entropy.plan()
    found = small.collect(plan, folder)
    for name, table in entropy_tables.TABLES.items():
        begin, end = f"<!-- computed: {name} -->\n", "<!-- end -->"
        before, there, rest = text.partition(begin)
        _, closed, after = rest.partition(end)
        if not there or not closed:
            raise ValueError(f"the page has no part {name!r}; add {begin + end!r} to it.")
        text = f"{before}{begin}{table(found)}\n{end}{after}"
    return text


if __name__ == "__main__":
    PAGE.write_text(fill(PAGE.read_text()))
    print(PAGE)
