"""The demo's experiment with several seeds: `python -m voronaut.experiments.maze` runs what is missing and draws.

results/maze holds every seed's numbers and what the picture and the film show; they redraw from there. paper.json and
zeros.json are the same with the paper's KME as it is, and with its init alone.
"""

import json
from pathlib import Path

from voronaut.experiments import demo, maze_film

SEEDS = range(8)
RESULTS = Path("results/maze")
FIGURES = Path("docs/figures")
SHOWN = 0  # the seed of the picture: the demo's default, not picked for its look


def run(work: Path = Path("runs/maze"), results: Path = RESULTS) -> None:
    """Train all seeds side by side, or what is left of them, and keep what came out."""
    config = demo.choose(list(SEEDS), demo.STEPS)
    if not demo.train(config, work):
        raise SystemExit("interrupted; the same command goes on")
    records = {seed: maze_film.collect(work, seed, config.rollout) for seed in SEEDS}
    maze_film.save(results / f"seed-{SHOWN}.npz", records[SHOWN])
    found = {seed: {k: v._asdict() for k, v in maze_film.numbers(each).items()} for seed, each in records.items()}
    kept = {"steps": int(records[SHOWN].steps[-1]), "kme": demo.KME, "seeds": found}
    (results / "seeds.json").write_text(json.dumps(kept, indent=1) + "\n")


def draw(results: Path = RESULTS, figures: Path = FIGURES) -> list[Path]:
    """The picture and the film, from the result file alone."""
    record = maze_film.load(results / f"seed-{SHOWN}.npz")
    return [maze_film.draw(record, figures / "maze.png"), maze_film.film(record, figures / "maze.gif")]


def table(results: Path = RESULTS) -> str:
    """Every seed, without | with KME, as Markdown."""
    kept = json.loads((results / "seeds.json").read_text())
    lines = [
        "| seed | maze seen | entropy (nats) | way to reward | return |",
        "|---|---|---|---|---|",
    ]
    for seed, runs in kept["seeds"].items():
        none, kme = (maze_film.Numbers(**runs[name]) for name in maze_film.METHODS)
        pairs = (
            f"{none.seen:.0%} \\| {kme.seen:.0%}",
            f"{none.entropy:.2f} \\| {kme.entropy:.2f}",
            f"{none.progress:.0%} \\| {kme.progress:.0%}",
            f"{none.returns:.1f} \\| {kme.returns:.1f}",
        )
        lines.append(f"| {seed} | " + " | ".join(pairs) + " |")
    return "\n".join(lines)


if __name__ == "__main__":
    run()
    print(*draw(), table(), sep="\n")
