"""`voronaut train gym:MountainCarContinuous-v0 --learner sac --sac.size small`: one run, its curve in plain values."""

import tempfile
from pathlib import Path
from typing import Any

from voronaut.experiments.common.jobs import Values

TASK = "gym:MountainCarContinuous-v0"
EPISODES = 10  # of the evaluation at the end
PARTS = ("collect_seconds", "bonus_seconds", "learn_seconds")


def run(bonus: str, seed: int, steps: int, rollout: int) -> Values:
    """Train one run: returns of the exploiter while it acts, and at the end of its mean actions."""
    import voronaut as vn

    with tempfile.TemporaryDirectory() as out:
        options: dict[str, Any] = {"learner": "sac", "options": {"sac": {"size": "small"}}, "rollout": rollout}
        [folder] = vn.train(
            TASK, bonuses=bonus, seeds=[seed], steps=steps, out=Path(out) / "run", quiet=True, **options
        )
        return {"curve": curve(folder), "evaluated": evaluated(folder, 10_000 + seed)}


def curve(folder: Path) -> list[dict[str, Any]]:
    """What the run's log says, line by line."""
    from voronaut.training.watching import logs

    lines, seconds = [], 0.0
    for row in logs.read(folder / logs.NAME):
        seconds += sum(row[part] for part in PARTS)
        returned = row["extrinsic_return"]
        lines.append(
            {
                "steps": row["env_steps"],
                "seconds": round(seconds, 1),
                "return": None if returned is None else round(returned, 2),
                "goals": row["rewarded_steps"],
            }
        )
    return lines


def evaluated(folder: Path, seed: int) -> float:
    """Mean return of the exploiter's mean actions."""
    from voronaut.tasks import make
    from voronaut.training import policy

    task = make(TASK, [seed], EPISODES)
    try:
        return round(float(policy.returns(policy.load(folder).act, task).mean()), 2)
    finally:
        task.close()
