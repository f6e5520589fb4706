"""The demo's experiment with several seeds: `python -m voronaut.demo.maze` runs what is missing and draws.

results/maze holds every seed's numbers and what the picture and the film show; they redraw from there. The settings
were chosen on the seeds of `tuning`; those of `reported` were run once, after the settings had been committed.
"""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from voronaut import demo
from voronaut.demo import film
from voronaut.demo.film import METHODS, Numbers, Record
from voronaut.helpers import markdown

RESULTS = Path("results/maze")
FIGURES = Path("docs/figures")
SHOWN = demo.SEED  # the seed of the picture
SEEDS: Mapping[str, Sequence[int]] = {"tuning": range(8), "reported": range(100, 108)}
PAID = 1.0  # return of the last rollouts from which an agent counts as paid at the end: one step of 200 in the goal


def run(work: Path = Path("runs/maze"), results: Path = RESULTS, names: Sequence[str] = tuple(SEEDS)) -> None:
    """Train the seeds of each set side by side, or what is left of them, and keep what came out."""
    for name in names:
        config = demo.choose(SEEDS[name], demo.STEPS)
        if not demo.train(config, work / name):
            raise SystemExit("interrupted; the same command goes on")
        records = {
            seed: film.collect(work / name / f"none-{seed}", work / name / f"kme-{seed}", config.rollout)
            for seed in SEEDS[name]
        }
        keep(results, name, records)


def keep(results: Path, name: str, records: Mapping[int, Record]) -> None:
    """The numbers of every seed, and the record that is shown."""
    results.mkdir(parents=True, exist_ok=True)
    if SHOWN in records:
        film.save(results / f"seed-{SHOWN}.npz", records[SHOWN])
    found = {seed: {k: v._asdict() for k, v in film.numbers(each).items()} for seed, each in records.items()}
    (results / f"{name}.json").write_text(json.dumps({**settings(), "seeds": found}, indent=1) + "\n")


def settings() -> dict[str, object]:
    """What the runs were made with."""
    return {"steps": demo.STEPS, "ppo": {**demo.SETTINGS, **demo.PPO}, "kme": {}}


def draw(results: Path = RESULTS, figures: Path = FIGURES) -> list[Path]:
    """The picture and the film, from the result file alone."""
    record = film.load(results / f"seed-{SHOWN}.npz")
    return [film.draw(record, figures / "maze.png"), film.film(record, figures / "maze.gif")]


def read(results: Path, name: str) -> dict[str, list[Numbers]]:
    """Every seed's numbers, by method."""
    seeds = json.loads((results / f"{name}.json").read_text())["seeds"].values()
    return {method: [Numbers(**runs[method]) for runs in seeds] for method in METHODS}


def kept(results: Path = RESULTS) -> list[str]:
    """The sets of seeds that have been run to their end."""
    return [name for name in SEEDS if (results / f"{name}.json").exists()]


def table(results: Path = RESULTS) -> str:
    """Every seed, without | with KME, as Markdown."""
    rows = []
    for name in kept(results):
        for seed, none, kme in zip(SEEDS[name], *read(results, name).values(), strict=True):
            pairs = (
                f"{none.seen:.0%} \\| {kme.seen:.0%}",
                f"{none.entropy:.2f} \\| {kme.entropy:.2f}",
                f"{none.progress:.0%} \\| {kme.progress:.0%}",
                f"{none.returns:.1f} \\| {kme.returns:.1f}",
            )
            rows.append([seed, *(pair.replace(" ", "\u00a0") for pair in pairs)])
    return markdown.table(["seed", "maze seen", "entropy (nats)", "way to reward", "return"], rows)


def counts(runs: Sequence[Numbers]) -> tuple[int, int]:
    """How many runs touched the reward, and how many were paid at the end."""
    return sum(each.progress == 1 for each in runs), sum(each.returns >= PAID for each in runs)


def words(results: Path = RESULTS) -> str:
    """The table in two sentences."""
    return " ".join(sentence(results, name) for name in SEEDS)


def sentence(results: Path, name: str) -> str:
    """One set of seeds."""
    first, last = SEEDS[name][0], SEEDS[name][-1]
    if name not in kept(results):
        return f"Seeds {first} to {last} ({name}) have not been run to their end."
    none, kme = read(results, name).values()
    (touched, paid), (alone, alone_paid) = counts(kme), counts(none)
    return (
        f"Of seeds {first} to {last} ({name}) PPO with KME touched the reward with {touched} of {len(kme)} and was "
        f"paid at the end with {paid}, PPO alone touched it with {alone} and was paid with {alone_paid}; their mean "
        f"returns are {_mean(kme):.0f} and {_mean(none):.0f}."
    )


def _mean(runs: Sequence[Numbers]) -> float:
    return sum(each.returns for each in runs) / len(runs)


def computed(results: Path = RESULTS) -> dict[str, str]:
    """Computed parts of docs/watching.md."""
    return {"maze": table(results), "words": words(results)}


if __name__ == "__main__":
    run()
    print(*draw(), table(), words(), sep="\n")
