"""The demo's experiment with several seeds: `python -m voronaut.demo.maze` runs what is missing and draws.

results/maze holds every seed's numbers and what the picture and the film show; they redraw from there. zeros.json and
paper.json are the same with the paper's init alone, and with the paper's KME as it is.
"""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from voronaut import demo
from voronaut.demo import film
from voronaut.demo.film import METHODS, Numbers, Record
from voronaut.helpers import markdown

RESULTS = Path("results/maze")
FIGURES = Path("docs/figures")
SHOWN = 0  # the seed of the picture: the demo's default, not picked for its look


class Variant(NamedTuple):
    """One way to pay, and how many seeds it was given."""

    name: str
    kme: Mapping[str, Any]
    seeds: Sequence[int] = range(8)


VARIANTS = {
    "seeds": Variant("PPO + KME, the demo's", demo.KME),
    "zeros": Variant('PPO + KME, `scale=10`, `init="zeros"`', {"scale": 10}),
    "paper": Variant("PPO + KME, the paper's: `scale=0.01` as well", {}, range(3)),
}


def run(work: Path = Path("runs/maze"), results: Path = RESULTS) -> None:
    """Train every variant's seeds side by side, or what is left of them, and keep what came out."""
    for name, variant in VARIANTS.items():
        methods = tuple(METHODS) if name == "seeds" else ("kme",)  # PPO alone is the same in all
        config = demo.choose(variant.seeds, demo.STEPS, kme=variant.kme, methods=methods)
        if not demo.train(config, work / name):
            raise SystemExit("interrupted; the same command goes on")
        records = {
            seed: film.collect(work / "seeds" / f"none-{seed}", work / name / f"kme-{seed}", config.rollout)
            for seed in variant.seeds
        }
        keep(results, name, records)


def keep(results: Path, name: str, records: Mapping[int, Record]) -> None:
    """The numbers of a variant's seeds, and of the demo's own the record that is shown."""
    if name == "seeds":
        film.save(results / f"seed-{SHOWN}.npz", records[SHOWN])
    found = {seed: {k: v._asdict() for k, v in film.numbers(each).items()} for seed, each in records.items()}
    steps = int(next(iter(records.values())).steps[-1])
    kept = {"steps": steps, "kme": dict(VARIANTS[name].kme), "seeds": found}
    (results / f"{name}.json").write_text(json.dumps(kept, indent=1) + "\n")


def draw(results: Path = RESULTS, figures: Path = FIGURES) -> list[Path]:
    """The picture and the film, from the result file alone."""
    record = film.load(results / f"seed-{SHOWN}.npz")
    return [film.draw(record, figures / "maze.png"), film.film(record, figures / "maze.gif")]


def read(results: Path, name: str) -> dict[str, list[Numbers]]:
    """Every seed's numbers of a variant, by method."""
    seeds = json.loads((results / f"{name}.json").read_text())["seeds"].values()
    return {method: [Numbers(**runs[method]) for runs in seeds] for method in METHODS}


def table(results: Path = RESULTS) -> str:
    """Every seed, without | with KME, as Markdown."""
    rows = []
    for seed, (none, kme) in enumerate(zip(*read(results, "seeds").values(), strict=True)):
        pairs = (
            f"{none.seen:.0%} \\| {kme.seen:.0%}",
            f"{none.entropy:.2f} \\| {kme.entropy:.2f}",
            f"{none.progress:.0%} \\| {kme.progress:.0%}",
            f"{none.returns:.1f} \\| {kme.returns:.1f}",
        )
        rows.append([seed, *(pair.replace(" ", "\u00a0") for pair in pairs)])
    return markdown.table(["seed", "maze seen", "entropy (nats)", "way to reward", "return"], rows)


def variants(results: Path = RESULTS) -> str:
    """What each way to pay saw, over its seeds, as Markdown."""
    told = {"PPO alone": read(results, "seeds")["none"]}
    told |= {variant.name: read(results, name)["kme"] for name, variant in VARIANTS.items()}
    rows = []
    for name, runs in told.items():
        seen, found = [each.seen for each in runs], sum(each.progress == 1 for each in runs)
        rows.append([name, len(runs), f"{np.mean(seen):.0%} ({min(seen):.0%} to {max(seen):.0%})", found])
    head = ["run", "seeds", "maze seen: mean (least to most)", "seeds that touched the reward"]
    return markdown.table(head, rows)


def words(results: Path = RESULTS) -> str:
    """The table in a sentence."""
    none, kme = read(results, "seeds").values()
    more = sum(b.seen > a.seen for a, b in zip(none, kme, strict=True))
    touched, alone = (sum(each.progress == 1 for each in runs) for runs in (kme, none))
    stayed = sum(each.returns > 0 for each in kme)
    return (
        f"Of {len(kme)} seeds KME saw more of the maze with {more}, touched the reward with {touched} and was still "
        f"paid in the last five rollouts with {stayed}; PPO alone touched it with {alone}."
    )


def computed(results: Path = RESULTS) -> dict[str, str]:
    """Computed parts of docs/watching.md."""
    return {"variants": variants(results), "maze": table(results), "words": words(results)}


if __name__ == "__main__":
    run()
    print(*draw(), table(), variants(), words(), sep="\n")
