"""`python -m voronaut.experiments.hard.film`: the gaits that were learned, as a strip, and Humanoid's as a film."""

from contextlib import closing
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from voronaut.experiments.hard.figures import FIGURES
from voronaut.experiments.hard.results import POLICIES
from voronaut.experiments.hard.settings import CELLS, FOLDER
from voronaut.helpers import missing
from voronaut.tasks.factory import make
from voronaut.training import policy

SEED, EVERY_STEPS = 7, 2
FILM, CELL = "humanoid", "humanoid-0.2-5M"  # the film, and the cell whose best policy it shows
FIRST, APART, SHOWN = 120, 8, 9  # pictures: where a strip begins, how far they are apart, how many it has
FILMED, PER_SECOND = slice(100, 320), 20  # pictures of the film; so many per second are Humanoid's own time
Pictures = NDArray[np.uint8]


def pictures(file: Path) -> Pictures:
    """One episode of a policy's mean action, (pictures, height, width, 3)."""
    loaded = policy.load(file)
    with closing(make(loaded.task, [SEED], 1, threshold=loaded.threshold, render=True)) as task:
        return np.stack(policy.frames(loaded.act, task, every=EVERY_STEPS))


def strip(path: Path, shown: dict[str, Pictures]) -> Path:
    """A row for every cell, its pictures from left to right."""
    from voronaut.helpers.plotting import figure

    with figure(path, columns=1, rows=len(shown), size=(13, 1.45 * len(shown))) as grid:
        for axes, (cell, all_of_it) in zip(np.ravel(grid), shown.items(), strict=True):
            some = all_of_it[FIRST : FIRST + APART * SHOWN : APART, :, 60:-60]
            axes.imshow(np.concatenate(list(some), axis=1))
            axes.set_axis_off()
            axes.set_title(CELLS[cell].title, fontsize=10, loc="left")
    return path


def film(path: Path, all_of_it: Pictures) -> Path:
    """Some seconds of an episode that a browser plays by itself, again and again."""
    missing.check("PIL", extra="train")
    from PIL import Image

    first, *rest = [Image.fromarray(one).resize((360, 270)) for one in all_of_it[FILMED]]
    first.save(path, save_all=True, append_images=rest, duration=1000 // PER_SECOND, loop=0, quality=55, method=6)
    return path


def main(folder: Path = FOLDER, figures: Path = FIGURES) -> None:
    """Everything that there are policies of."""
    files = [path for name in CELLS if (path := folder / POLICIES / f"{name}.npz").exists()]
    shown = {path.stem: pictures(path) for path in files}
    print(strip(figures / "gaits.png", shown))
    if (longer := folder / POLICIES / f"{CELL}.npz").exists():
        print(film(figures / f"{FILM}.webp", pictures(longer)))


if __name__ == "__main__":
    main()
