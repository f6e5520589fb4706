"""Where PPO has been in the maze with and without KME: what is kept of two runs, a picture and a film of it."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from voronaut.entropy.batch import batch_entropy
from voronaut.helpers import npz
from voronaut.helpers.plotting import COLORS, figure
from voronaut.tasks.backends.maze import MAZE, Plan, read_plan, walls
from voronaut.training.watching import logs, snapshots

METHODS = {"none": "PPO", "kme": "PPO + KME"}
PARTS = 4  # a cell of the maze has PARTS × PARTS squares
FINE = 2000  # steps of a cell that are told apart, in the file and in the numbers made of it
LAST = 5  # rollouts of which the return is the mean
SIZE = (8.0, 4.4)
MIXTURES = 16  # of each pair of colours that meet in a picture
DARK, GOLD = "#20242b", "#fff1b8"
Floats = NDArray[np.float64]


class Record(NamedTuple):
    """Two runs of the same number of steps, none and kme (axis 0 of 2), as their snapshots show them."""

    steps: NDArray[np.int64]  # (frames,) environment steps so far
    states: Floats  # (2, frames, n, 2) some of each frame's rollout
    centers: Floats  # (frames, k, 2)
    returns: Floats  # (2, rollouts); NaN where no episode ended
    progress: Floats  # (2, rollouts) the highest dense reward: the share of the way to the goal


class Numbers(NamedTuple):
    """One run in four numbers."""

    seen: float  # share of the maze's squares
    entropy: float  # nats, of all states
    progress: float  # the farthest it ever got on the way to the goal, from 0 to 1
    returns: float  # mean of the last rollouts


def collect(none: Path, kme: Path, rollout: int) -> Record:
    """The record of two runs that have ended, positions as the file has them: it gives the numbers of its runs."""
    runs = [none, kme]
    frames = [[snapshots.read(path) for path in snapshots.saved(run)] for run in runs]
    rows = [logs.read(run / "progress.jsonl") for run in runs]

    def curves(key: str) -> Floats:
        return np.array([[np.nan if row[key] is None else row[key] for row in run] for run in rows], float)

    return Record(
        steps=np.array([frame.rollout * rollout for frame in frames[1]]),
        states=_rounded([[frame.states for frame in run] for run in frames]),
        centers=_rounded([frame.centers for frame in frames[1]]),
        returns=curves("extrinsic_return"),
        progress=curves("max_step_reward"),
    )


def _rounded(places: Any) -> Floats:
    return np.rint(np.array(places, np.float32) * FINE).astype(np.int16) / FINE


def save(path: Path, record: Record) -> None:
    """A small file: positions in steps of 1/2000 cell."""
    path.parent.mkdir(parents=True, exist_ok=True)
    arrays: npz.Arrays = {name: np.asarray(values, np.float32) for name, values in record._asdict().items()}
    for name in ("states", "centers"):
        arrays[name] = np.rint(arrays[name] * FINE).astype(np.int16)
    np.savez_compressed(path, allow_pickle=False, **{**arrays, "steps": record.steps})


def load(path: Path) -> Record:
    """What `save` wrote."""
    with np.load(path, allow_pickle=False) as arrays:
        found = {name: arrays[name] for name in Record._fields}
    found |= {name: found[name] / FINE for name in ("states", "centers")}
    return Record(**found)


def numbers(record: Record) -> dict[str, Numbers]:
    """The four numbers of both runs."""
    return {
        name: Numbers(
            seen=seen(record.states[run]),
            entropy=batch_entropy(record.states[run]),
            progress=float(record.progress[run].max()),
            returns=_mean(record.returns[run, -LAST:]),
        )
        for run, name in enumerate(METHODS)
    }


def _mean(values: Floats) -> float:
    """The mean of what is known; NaN where nothing is."""
    known = values[np.isfinite(values)]
    return float(known.mean()) if len(known) else float("nan")


def seen(states: Floats, plan: Plan | None = None) -> float:
    """Share of the maze's squares, 16 to a cell, that hold at least one of the states (..., 2)."""
    plan = plan or read_plan(MAZE)
    rows, columns = plan.progress.shape
    square = np.floor((states.reshape(-1, 2) + 0.5 + np.array(plan.origin)) * PARTS).astype(int)
    return len(np.unique(square, axis=0)) / float(rows * columns * PARTS**2)


def draw(record: Record, path: Path) -> Path:
    """The picture: everywhere each run has been, and where the centers are at the end."""
    with figure(path, 2, SIZE) as axes:
        paint(axes, record, len(record.steps) - 1)
    return path


def film(record: Record, path: Path, width: int = 720) -> Path:
    """The same as an animated GIF, frame by frame. Holds the last frame for three seconds."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure
    from PIL import Image

    canvas = FigureCanvasAgg(Figure(figsize=SIZE, dpi=width / SIZE[0], layout="constrained"))
    axes, pictures = canvas.figure.subplots(1, 2), []
    for frame in range(len(record.steps)):
        for axis in axes:
            axis.clear()
        paint(axes, record, frame)
        canvas.draw()
        canvas.figure.set_layout_engine("none")  # the first frame's layout serves them all
        pictures.append(Image.fromarray(np.asarray(canvas.buffer_rgba())[..., :3].copy()))
    small = [_few_colours(picture) for picture in pictures]
    times = [160] * (len(small) - 1) + [3000]
    path.parent.mkdir(parents=True, exist_ok=True)
    small[0].save(path, save_all=True, append_images=small[1:], duration=times, loop=0, optimize=True)
    return path


def _few_colours(picture: Any) -> Any:
    """A picture of flat colours with a palette of their mixtures: three times smaller, the same in every frame."""
    from PIL import Image, ImageColor

    rgb = {name: np.array(ImageColor.getrgb(name)) for name in ("white", DARK, GOLD, *map(COLORS.get, METHODS))}
    white, dark, gold, none, kme = rgb.values()
    pairs = ((white, none), (white, kme), (white, dark), (gold, dark), (kme, dark))
    mixed = [np.rint(one + (other - one) * t) for one, other in pairs for t in np.linspace(0, 1, MIXTURES)]
    palette = Image.new("P", (1, 1))
    palette.putpalette(np.array(mixed).astype(int).ravel().tolist())
    return picture.quantize(palette=palette, dither=Image.Dither.NONE)


def paint(axes: Any, record: Record, frame: int) -> None:
    """Both panels after one of the frames: the states so far, those of the frame itself stronger, and the centers."""
    plan = read_plan(MAZE)
    for run, (name, title) in enumerate(METHODS.items()):
        axis, states = axes[run], record.states[run, : frame + 1]
        _ground(axis, plan)
        axis.plot(*states.reshape(-1, 2).T, "o", color=COLORS[name], alpha=0.35, markersize=2.2, markeredgewidth=0)
        axis.plot(*states[-1].T, "o", color=COLORS[name], markersize=2.6, markeredgewidth=0)
        if name == "kme":
            style: Mapping[str, Any] = {"markersize": 3.6, "markeredgecolor": "white", "markeredgewidth": 0.5}
            axis.plot(*record.centers[frame].T, "o", color=DARK, **style)
        caption = f"after {record.steps[frame]:,} steps" + ("; black: cluster centers" if name == "kme" else "")
        axis.text(0.5, 0.02, caption, transform=axis.transAxes, ha="center", va="top", fontsize=10)
        axis.set_title(f"{title}: {seen(states, plan):.0%} of the maze seen", fontsize=12)


def _ground(axis: Any, plan: Plan) -> None:
    """Walls, start and goal."""
    (row,), (column,) = np.nonzero(plan.progress == 1)
    x, y = float(column - plan.origin[0]), float(row - plan.origin[1])
    axis.fill_between([x - 0.5, x + 0.5], y - 0.5, y + 0.5, color=GOLD, linewidth=0, zorder=0)
    axis.text(x, y, "reward", color=DARK, ha="center", va="center", fontsize=9)
    box = {"boxstyle": "round,pad=0.15", "facecolor": "white", "edgecolor": "none", "alpha": 0.8}
    axis.text(0, -0.3, "start", color=DARK, ha="center", va="center", fontsize=9, bbox=box, zorder=4)
    broken = np.array([[*wall, (np.nan, np.nan)] for wall in walls(plan)])  # one line, lifted between the pieces
    axis.plot(*broken.reshape(-1, 2).T, color=DARK, linewidth=2.2, solid_capstyle="round", zorder=3)
    axis.set_aspect("equal")
    axis.axis("off")
