"""Cheetah with a sparse reward, PPO alone and with KME: a table and a picture after a few minutes.

Run: python examples/cheetah.py [steps] [folder]
"""

import sys
from pathlib import Path

import numpy as np

import voronaut as vn
from voronaut.helpers.plotting import COLORS, figure
from voronaut.training.watching.logs import read

NAMES = {"none": "PPO alone", "kme": "PPO + KME"}
steps = float(sys.argv[1]) if len(sys.argv) > 1 else 1.6e6
out = Path(sys.argv[2] if len(sys.argv) > 2 else "out/cheetah")
rollout = int(min(16_384, steps))

print(f"Cheetah: no reward below 2.5 m/s. {steps:,.0f} steps of PPO alone and with KME, two seeds each, side by side.")
folders = vn.train("cheetah-run", bonuses=list(NAMES), seeds=2, steps=steps, rollout=rollout, out=out, resume=True)
runs = {name: [read(f / "progress.jsonl") for f in folders if f.name.startswith(name)] for name in NAMES}


def curve(rows: list[dict], key: str) -> np.ndarray:
    """One number per rollout, NaN where nothing was known."""
    return np.array([np.nan if row[key] is None else row[key] for row in rows], float)


panels = {
    "top speed so far (m/s)": lambda rows: 10 * np.maximum.accumulate(curve(rows, "max_step_reward")),
    "entropy of visited states (nats)": lambda rows: curve(rows, "state_entropy"),
    "return": lambda rows: curve(rows, "extrinsic_return"),
}
with figure(out.with_suffix(".png"), 3, (13, 4)) as axes:
    for axis, (title, measure) in zip(axes, panels.items(), strict=True):
        for name, seeds in runs.items():
            million = curve(seeds[0], "env_steps") / 1e6
            lines = np.array([measure(rows) for rows in seeds])
            axis.plot(million, lines.T, color=COLORS[name], alpha=0.35, lw=1)
            axis.plot(million, lines.mean(axis=0), color=COLORS[name], lw=2.2, label=NAMES[name])
        axis.set(title=title, xlabel="million steps")
    axes[0].axhline(2.5, color="0.6", ls=":", lw=1)
    axes[0].legend()

print(f"\n{'':<10}" + "".join(f"{title:>34}" for title in panels))
for name, seeds in runs.items():
    last = [np.nanmean([np.mean(measure(rows)[-5:]) for rows in seeds]) for measure in panels.values()]
    print(f"{NAMES[name]:<10}" + "".join(f"{number:34.2f}" for number in last))
print(f"Thin lines are seeds, thick ones their mean: {out.with_suffix('.png')}")
