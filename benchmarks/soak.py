"""A soak: SAC and PPO train side by side, are killed (-9) at random and resumed, and must equal runs left alone.

    python benchmarks/soak.py --minutes 20 --out out/soak

For so many minutes both are killed again and again, at random moments, the start and the writing of a checkpoint among
them. Then the same two commands train without a kill as far as the killed ones came. SAC's replay is so small that it
overflows on the way. What must hold: every line of the log is there once, all numbers but seconds are the same, no file
of a killed write is left, and memory stays what it was. It ends with exit code 1 where one of the first three does not.
docs/reliability.md has figures.
"""

import argparse
import json
import os
import random
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

MEMORY = 4096  # transitions: full after 51 turns
TURNS = {  # a line of the log: every ten of them there is a checkpoint
    "sac": ["--rollout", "80", "--sac.size", "small", "--sac.random_steps", "1000", "--sac.memory", str(MEMORY),
            "--steps", "400000"],
    "ppo": ["--rollout", "512", "--steps", "4000000"],
}  # fmt: skip
MOMENT = 0.5  # seconds between looks


class Training:
    """One `voronaut train`, which may be killed and resumed."""

    def __init__(self, learner: str, task: str, out: Path, kill_every: float, rng: random.Random) -> None:
        self.learner, self.out, self.kill_every, self.rng = learner, out, kill_every, rng
        common = ["--learner", learner, "--bonus", "kme", "--seeds", "1", "--envs", "8", "--quiet", "--resume"]
        self.command = [sys.executable, "-m", "voronaut", "train", task, *common, *TURNS[learner], "--out", str(out)]
        # Programs are compiled once and for all: it is not the compiler that is to be killed.
        cache = {"JAX_COMPILATION_CACHE_DIR": str(out.parents[1] / "jax"), "OMP_NUM_THREADS": "1"}
        self.env = {**os.environ, **cache, "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0"}
        self.kills, self.resident = 0, [0.0]  # megabytes, at every look
        self.start()

    def start(self) -> None:
        """Go on from the last checkpoint; when it will be killed is drawn now."""
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE, "text": True}
        self.process = subprocess.Popen(self.command, env=self.env, **quiet)
        self.until = time.monotonic() + self.rng.uniform(0, 2 * self.kill_every)

    def look(self) -> None:
        """Note the memory, kill if it is time, and go on."""
        if self.process.poll() is not None:
            sys.exit(f"{self.learner} ended by itself: {self.process.stderr.read()}")  # type: ignore[union-attr]
        pages = int(Path(f"/proc/{self.process.pid}/statm").read_text().split()[1])
        self.resident.append(pages * 4096 / 1e6)
        if time.monotonic() > self.until:
            self.process.kill()
            self.process.wait()
            self.kills += 1
            self.start()

    def stop(self) -> None:
        """As Ctrl-C does: the turn is finished and saved."""
        self.process.terminate()
        self.process.wait()

    def rows(self) -> list[dict[str, Any]]:
        """The log, without a last line that is being written."""
        path = self.out / "kme-0" / "progress.jsonl"
        lines = path.read_text().split("\n")[:-1] if path.exists() else []
        return [json.loads(line) for line in lines]


def numbers(row: dict[str, Any]) -> dict[str, Any]:
    """What must be the same: not seconds, nor metrics of the bonus, which are written with checkpoints only."""
    return {key: value for key, value in row.items() if not key.endswith("seconds") and "/" not in key}


def leftovers(out: Path) -> list[str]:
    """Files of writes that did not end."""
    return [str(path) for path in out.rglob("*") if path.name.endswith(".part")]


def judged(killed: Training, alone: Training) -> dict[str, Any]:
    """Figures of one learner."""
    rows, wanted = killed.rows(), alone.rows()
    turn = int(TURNS[killed.learner][1])
    return {
        "kills": killed.kills,
        "turns": len(rows),
        "lines missing or twice": sum(row["env_steps"] != turn * (n + 1) for n, row in enumerate(rows)),
        "turns that differ": sum(numbers(a) != numbers(b) for a, b in zip(rows, wanted, strict=False)),
        "turns compared": min(len(rows), len(wanted)),
        "files left of killed writes": len(leftovers(killed.out)),
        "steps": rows[-1]["env_steps"],
        "most memory in each fifth of the time, killed (MB)": fifths(killed.resident),
        "most memory in each fifth of the time, alone (MB)": fifths(alone.resident),
    }


def fifths(series: list[float]) -> list[int]:
    """The most in each fifth of a series."""
    parts = [series[n * len(series) // 5 : (n + 1) * len(series) // 5] for n in range(5)]
    return [round(max(part, default=0)) for part in parts]


def main() -> int:
    """Kill for a while, then train without, then compare."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=20)
    parser.add_argument("--kill-every", type=float, default=60, help="seconds between kills of one, on average")
    parser.add_argument("--task", default="cheetah-run")
    parser.add_argument("--seed", type=int, default=0, help="of the moments")
    parser.add_argument("--out", type=Path, required=True)
    args = parser.parse_args()
    shutil.rmtree(args.out, ignore_errors=True)
    rng = random.Random(args.seed)
    killed = [Training(x, args.task, args.out / "killed" / x, args.kill_every, rng) for x in TURNS]
    end = time.monotonic() + 60 * args.minutes
    while time.monotonic() < end:
        time.sleep(MOMENT)
        for each in killed:
            each.look()
    for each in killed:
        each.stop()
    alone = [Training(x.learner, args.task, args.out / "alone" / x.learner, float("inf"), rng) for x in killed]
    left = list(zip(killed, alone, strict=True))
    while left:
        time.sleep(MOMENT)
        for each in [one for one in left if len(one[1].rows()) >= len(one[0].rows())]:
            each[1].stop()
            left.remove(each)
        for _, other in left:
            other.look()
    found = {a.learner: judged(a, b) for a, b in zip(killed, alone, strict=True)}
    print(json.dumps(found, indent=1))
    (args.out / "figures.json").write_text(json.dumps(found, indent=1))
    bad = ("lines missing or twice", "turns that differ", "files left of killed writes")
    return int(any(one[name] for one in found.values() for name in bad))


if __name__ == "__main__":
    sys.exit(main())
