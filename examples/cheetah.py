"""Cheetah with a sparse reward, SAC alone and a pair of explorer and exploiter: a table and a picture in minutes.

Run: python examples/cheetah.py [steps] [folder] [seeds]
"""

import sys
import time
from pathlib import Path

import numpy as np

import voronaut as vn
from voronaut.helpers.plotting import COLORS, figure
from voronaut.training.watching.logs import read

NAMES = {"none": "SAC alone", "kme": "pair with KME"}
STEP_LINES = 5  # of the log: what "at the end" means, about 50,000 steps
given = dict(enumerate(sys.argv))
steps, out, seeds = float(given.get(1, 153_600)), Path(given.get(2, "out/cheetah")), int(given.get(3, 2))
rollout = int(min(10_240, steps))

print(f"Cheetah gets no reward below 2.5 m/s. {steps:,.0f} steps of SAC alone and of a pair that is also paid by KME.")
print("Compiling takes half a minute; then there is a line, and the time left, every few seconds.", flush=True)
started = time.monotonic()
# Networks for a core or two; one clustering of the whole state, which on Cheetah finds speed soonest.
small = {"sac": {"size": "small"}, "kme": {"balance": 1e-4, "init": "data"}}
folders = vn.train(
    "cheetah-run", learner="sac", bonuses=list(NAMES), seeds=seeds, steps=steps, rollout=rollout, options=small,
    out=out, resume=True,
)  # fmt: skip
runs = {name: [read(f / "progress.jsonl") for f in folders if f.name.startswith(name)] for name in NAMES}


def curve(rows: list[dict], key: str) -> np.ndarray:
    """One number per line of the log, NaN where nothing was known."""
    return np.array([np.nan if row[key] is None else row[key] for row in rows], float)


panels = {
    "return (at most 1000)": lambda rows: curve(rows, "extrinsic_return"),
    "top speed so far (m/s)": lambda rows: 10 * np.maximum.accumulate(curve(rows, "max_step_reward")),
}
known = {name: [curve(rows, "extrinsic_return")[-STEP_LINES:] for rows in own] for name, own in runs.items()}
ends = {name: float(np.nanmean(last)) if np.isfinite(last).any() else 0.0 for name, last in known.items()}
with figure(out.with_suffix(".png"), 2, (10, 4)) as axes:
    for axis, (title, measure) in zip(axes, panels.items(), strict=True):
        for name, own in runs.items():
            for index, rows in enumerate(own):
                label = f"{NAMES[name]}: {ends[name]:.0f} at the end" if index == 0 else None
                steps_then, values = curve(rows, "env_steps") / 1e3, measure(rows)
                there = np.isfinite(values)  # in some turns no episode ends
                axis.plot(steps_then[there], values[there], color=COLORS[name], lw=2, label=label)
        axis.set(title=title, xlabel="thousand steps", ylim=(0, None))
    axes[0].legend(loc="upper left")
    axes[1].axhline(2.5, color="0.6", ls=":", lw=1, label="reward begins")
    axes[1].legend(*[each[-1:] for each in axes[1].get_legend_handles_labels()], loc="lower right")

print(f"\n{'':<15}{'return at the end':>18}{'top speed (m/s)':>18}{'rewarded steps':>18}")
for name, own in runs.items():
    top = np.mean([panels["top speed so far (m/s)"](rows)[-1] for rows in own])
    paid = np.mean([rows[-1]["rewarded_steps"] for rows in own])
    print(f"{NAMES[name]:<15}{ends[name]:>18.1f}{top:>18.2f}{paid:>18,.0f}")
print(f"{(time.monotonic() - started) / 60:.1f} minutes; the picture: {out.with_suffix('.png')}")
print(f"Next: voronaut eval {folders[-1]} --video {out}.mp4, and voronaut report {out}")
