"""docs/entropy_experiments.md: its computed parts. `python -m voronaut.experiments.entropy_page` renews them."""

from pathlib import Path

from voronaut.experiments import entropy, entropy_tables, parts
from voronaut.experiments import jobs as small

PAGE = Path("docs/entropy_experiments.md")


def fill(text: str, folder: Path = entropy.FOLDER) -> str:
    """The page with every computed part renewed."""
    found = small.collect(entropy.plan(), folder)
    return parts.fill(text, {name: table(found) for name, table in entropy_tables.TABLES.items()})


if __name__ == "__main__":
    PAGE.write_text(fill(PAGE.read_text()))
    print(PAGE)
