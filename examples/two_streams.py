"""Two streams of points, a uniform square and a narrow Gaussian: their clusters, gaps and entropy, and a picture.

Run: python examples/two_streams.py [picture.png]
"""

import math
import sys
from pathlib import Path

import numpy as np

import voronaut as vn
from voronaut.helpers.plotting import figure

rng = np.random.default_rng(0)
streams = {
    "uniform square": (lambda: rng.uniform(-1, 1, size=(4096, 2)), math.log(4)),
    "narrow Gaussian": (lambda: rng.normal(0, 0.2, size=(4096, 2)), math.log(2 * math.pi * math.e * 0.2**2)),
}
path = Path(sys.argv[1] if len(sys.argv) > 1 else "out/two_streams.png")

print(f"{'stream':<16} {'mean gap':>9} {'objective':>10} {'entropy':>9} {'truth':>7}  (nats)")
with figure(path, 2, (10, 5)) as axes:
    for axis, (name, (draw, truth)) in zip(axes, streams.items(), strict=True):
        kme = vn.KME(dim=2, clusters=300, init="data", seed=0)
        for _ in range(24):
            kme.update(draw())
        print(f"{name:<16} {kme.gaps.mean():9.4f} {kme.objective_value():10.2f} {kme.entropy():9.3f} {truth:7.3f}")

        grid = np.stack(np.meshgrid(*[np.linspace(-1.15, 1.15, 160)] * 2), axis=-1)
        bonus = np.maximum(kme.rewards(grid), 0)
        axis.imshow(np.sqrt(bonus), origin="lower", extent=(-1.15, 1.15) * 2, cmap="YlGn", interpolation="bilinear")
        axis.plot(*draw()[:2500].T, ".", ms=1.5, color="#3b6fb6", alpha=0.35)
        axis.plot(*kme.centers.T, "o", ms=3.2, color="#d9622b")
        axis.set(title=f"{name}: {kme.entropy():.2f} nats (truth {truth:.2f})", xlim=(-1.15, 1.15), ylim=(-1.15, 1.15))
        axis.set_aspect("equal")
print(f"The wider stream has the larger gaps and the larger entropy. Points, centers and bonus (green): {path}")
