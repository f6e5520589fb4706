"""Which balance survives a moving agent: every rule on every stream, in mixed units, three seeds.

Laws: cells of 1.5 million fresh states after 20 rollouts, distortion against scikit-learn's MiniBatchKMeans.
Moving streams: the worst of rollouts 20 to 24; empty cells among what the last pass absorbed.
"""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from voronaut.experiments.balance import streams
from voronaut.experiments.balance.learner import SCALES, Choice, Floats, Learner
from voronaut.experiments.balance.loops import Options
from voronaut.experiments.balance.streams import ROLLOUTS, SEEDS
from voronaut.helpers.markdown import table

FOLDER = Path("results/balance")
LOOK = 20
# States that judge a law. Counting n states in k cells adds k/n to the square of a CV: here 0.014², of 60,000 it was
# 0.071², by which cells with a CV of 0.247 look like 0.257.
FRESH, PART = 1_500_000, 60_000  # PART: drawn at once
RULE, NEVER = Options(), float("inf")
PLAIN = Options(strength=0.0, crowded=NEVER, near=0.0, clip=NEVER)
RULES = {
    "none": Choice(PLAIN),
    "constant": Choice(PLAIN._replace(kappa=1e-4, floor=0.05, young=0.0), replay=0.0),
    "counts": Choice(PLAIN._replace(eta=0.003, floor=0.01)),
    "conscience": Choice(RULE._replace(crowded=NEVER, near=0.0, clip=NEVER)),
    "splits alone": Choice(RULE._replace(strength=0.0)),
    "splits alone, at 2": Choice(RULE._replace(strength=0.0, crowded=2.0)),
    "usage": Choice(RULE),
}
KME = Choice(RULE._replace(strength=0.0, floor=0.05, young=0.0))  # what `vn.KME` does: splits alone, α = 0.05
VARIANTS = {
    "the rule": Choice(RULE),
    "nothing is split": Choice(RULE._replace(crowded=NEVER)),
    "splits onto the state": Choice(RULE._replace(split=1.0)),
    "all states count": Choice(RULE._replace(near=0.0)),
    "margins not clipped": Choice(RULE._replace(clip=NEVER)),
    "splits alone (c = 0)": Choice(RULE._replace(strength=0.0)),
    "nothing replayed": Choice(RULE, replay=0.0),
    "c = 1": Choice(RULE._replace(strength=1.0)),
    "c = 10": Choice(RULE._replace(strength=10.0)),
    "b = 0.003": Choice(RULE._replace(fade=0.003)),
    "b = 0.03": Choice(RULE._replace(fade=0.03)),
    "split at 2": Choice(RULE._replace(crowded=2.0)),
    "split at 8": Choice(RULE._replace(crowded=8.0)),
    "floor 0.01": Choice(RULE._replace(floor=0.01)),
    "floor 0.05": Choice(RULE._replace(floor=0.05)),
}
MOVING = (*streams.MADE, *streams.RECORDED)
HARD = (
    *("Gaussian, d = 2", "Gaussian, d = 17", "Gaussian, d = 64", "outliers, d = 3"),
    *(*streams.MADE, "agent in the maze", "agent, Cheetah", "agent, Humanoid"),
)
Scores = dict[str, float]


def outliers(rng: np.random.Generator, n: int) -> Floats:
    """One state in 400 is a million deviations away."""
    states = rng.normal(size=(n, 3))
    states[rng.random(n) < 1 / 400] += 1e6
    return states


LAWS = {**streams.LAWS, "outliers, d = 3": outliers}


def judge_law(name: str, choice: Choice, seed: int) -> Scores:
    """A fixed law in mixed units."""
    rng, learner = np.random.default_rng([seed, 4]), Learner(choice, seed)
    rollouts = [LAWS[name](rng, streams.ROLLOUT) for _ in range(LOOK)]
    unit = streams.units(rollouts[0].shape[1], seed)
    for rollout in rollouts:
        learner.update(rollout * unit)
    cells = learner.cells(fresh * unit for fresh in fresh_states(name, seed))
    inverse, key = unit * learner.inverse, (name, choice.scale, seed)
    best = reference(key, np.concatenate(rollouts) * inverse, inverse)
    return {"clamped": learner.clamped(), "empty": cells.empty, "cv": cells.cv, "distortion": cells.distortion / best}


def fresh_states(name: str, seed: int) -> Iterator[Floats]:
    """FRESH states of a law, PART at a time."""
    rng = np.random.default_rng([seed, 5])
    for _ in range(FRESH // PART):
        yield LAWS[name](rng, PART)


def reference(key: tuple[str, str, int], states: Floats, unit: Floats, known: dict[Any, float] = {}) -> float:  # noqa: B006
    """Mean squared distance of fresh states to the nearest center of MiniBatchKMeans; computed once for all rules."""
    from sklearn.cluster import MiniBatchKMeans

    name, _scale, seed = key
    if key not in known:
        model = MiniBatchKMeans(300, batch_size=streams.ROLLOUT, n_init=1, random_state=seed).fit(states)
        known[key] = -sum(model.score(fresh * unit) for fresh in fresh_states(name, seed)) / FRESH
    return known[key]


def judge_stream(name: str, choice: Choice, seed: int, recordings: Path) -> Scores:
    """A moving stream in mixed units."""
    rollouts, learner = streams.moving(name, seed, ROLLOUTS, recordings), Learner(choice, seed)
    unit = streams.units(rollouts[0].shape[1], seed)
    clamped, empty, there = [], [], [0.0] * streams.JUMP
    for number, rollout in enumerate(rollouts, 1):
        learner.update(rollout * unit)
        if number >= LOOK:
            clamped.append(learner.clamped())
            empty.append(learner.cells([learner.last]).empty)
        if name.startswith("jump") and number > streams.JUMP:
            there.append(float((learner.memory.centers[0] > unit[0] * streams.DISTANCE / 2).mean()))
    history = np.concatenate(rollouts)[::3] * unit
    share = (history * learner.inverse).var(axis=0)
    scores = {
        "clamped": max(clamped),
        "empty": max(empty),
        "empty of all": learner.cells([history]).empty,
        "cv": learner.cells([learner.last]).cv,
        "splits": float(learner.memory.scalars[2]) / ROLLOUTS,
        "coordinates": float(share.sum() ** 2 / (share**2).sum()),  # how many share in a distance
    }
    if name.startswith("jump"):
        third = next((t for t, share in enumerate(there) if share >= 1 / 3), ROLLOUTS)  # 13 rollouts: not within twelve
        scores |= {"moved": there[-1], "rollouts to a third": third + 1 - streams.JUMP}
    return scores


def judge(choices: dict[str, Choice], names: Sequence[str], recordings: Path) -> dict[str, dict[str, Any]]:
    """{rule: {stream: {score: [one per seed]}}}."""
    found: dict[str, dict[str, Any]] = {}
    for rule, choice in choices.items():
        for name in names:
            one = [
                judge_law(name, choice, seed) if name in LAWS else judge_stream(name, choice, seed, recordings)
                for seed in range(SEEDS)
            ]
            scores = {key: [round(each[key], 4) for each in one] for key in one[0]}
            found.setdefault(rule, {})[name] = scores
            print(
                f"{rule:22} {name:24}", "  ".join(f"{key} {cell(value)}" for key, value in scores.items()), flush=True
            )
    return found


def cell(values: Sequence[float]) -> str:
    """The mean over seeds."""
    return f"{np.mean(values):.2f}"


def scores_table(found: dict[str, dict[str, Any]], score: str) -> str:
    """One score as a Markdown table, rules by streams."""
    names = [name for name in next(iter(found.values())) if score in next(iter(found.values()))[name]]
    return table(["", *names], [[rule, *(cell(own[name][score]) for name in names)] for rule, own in found.items()])


PLANS: dict[str, tuple[dict[str, Choice], Sequence[str]]] = {
    "rules": (RULES, (*LAWS, *MOVING)),
    "variants": (VARIANTS, HARD),
    "held_out": (RULES, tuple(streams.HELD_OUT)),
    "kme": ({"vn.KME": KME}, (*LAWS, *MOVING, *streams.HELD_OUT)),
    "scales": (
        {scale: Choice(RULE, scale=scale) for scale in SCALES},
        ("Gaussian, d = 17", "5-D sheet in 60-D", *MOVING),
    ),
}


def tables(path: Path) -> str:
    """Every score of one file of results, a table each."""
    found = json.loads(path.read_text())
    scores = ("clamped", "empty", "cv", "distortion", "moved", "rollouts to a third", "coordinates")
    return "\n\n".join(f"{path.stem}: {score}\n\n{scores_table(found, score)}" for score in scores)
