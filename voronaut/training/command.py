"""What `voronaut train` and `voronaut eval` do around training: messages, exit codes, the closing table."""

import errno
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

import numpy as np

from voronaut.helpers import files, missing
from voronaut.tasks.factory import make
from voronaut.training import checkpoint, loop, policy
from voronaut.training.config import Config
from voronaut.training.folder import CHECKPOINTS
from voronaut.training.watching import logs, watch
from voronaut.training.watching.progress import by_method, columns, pretty, shown

INTERRUPTED = 130
FILMS = (".mp4", ".mkv", ".mov", ".avi")
GO_ON = "go on with the same command and --resume"
ROOM = f"Make room and {GO_ON}."
CLOSED = f"It cannot be written to: change that and {GO_ON}, or choose another --out."
ADVICE = {
    errno.ENOSPC: ROOM,
    errno.EDQUOT: ROOM,
    errno.EFBIG: ROOM,
    errno.EROFS: CLOSED,
    errno.EACCES: CLOSED,
    errno.EPERM: CLOSED,
    errno.EPIPE: f"Whoever read the output has gone: {GO_ON}, and --quiet.",
    **dict.fromkeys((errno.ENOENT, errno.ENOTDIR, errno.EEXIST, errno.ENAMETOOLONG), "Choose another --out."),
}


def train(
    config: Config, out: Path, *, resume: bool, quiet: bool, restart: bool = False, wandb: str | None = None
) -> int:
    """Train, and say how it ended. 0: finished, 130: interrupted and saved, 1: the disk failed."""
    started = time.monotonic()
    try:
        with watch(config, out, quiet=quiet, wandb=wandb) as report:
            ran = loop.train(config, out, resume=resume, restart=restart, report=report)
    except loop.Stopped as stopped:
        print(f"\n{stopped}; everything is saved. Go on with the same command and --resume.", file=sys.stderr)
        return INTERRUPTED
    except KeyboardInterrupt:
        print("\ninterrupted; go on from the last checkpoint with the same command and --resume.", file=sys.stderr)
        return INTERRUPTED
    except OSError as error:
        advice = ADVICE.get(error.errno or 0, f"When that is fixed, {GO_ON}.")
        print(f"\nvoronaut: {error}. {_kept(out)} {advice}", file=sys.stderr)
        return 1
    print(summary(config, out))
    print(f"{'trained in ' + pretty(time.monotonic() - started) if ran else 'nothing to do: finished before'}: {out}")
    if ran:
        place, more = out / CHECKPOINTS, f"{2 * config.steps:.3g}".replace("e+0", "e")
        held = f"{place} holds {checkpoint.size(place) / 1e6:,.1f} MB for that and can be removed."
        print(f"to go on later: --steps {more} --resume. {held}")
    return 0


def _kept(out: Path) -> str:
    with suppress(OSError):  # a path that cannot be is no place to look
        if found := checkpoint.saved(out / CHECKPOINTS):
            return f"The last good checkpoint is {found[-1]}."
    return "Nothing was saved yet."


def summary(config: Config, out: Path) -> str:
    """The last rollout by method, means over seeds; the top reward is that of the whole run."""
    runs = [logs.read(out / name / logs.NAME) for name in config.folders()]
    for name, rows in zip(config.folders(), runs, strict=True):
        if not rows:
            raise ValueError(f"{out / name / logs.NAME} is empty or missing, though the run was finished.")
    last = [{**rows[-1], "max_step_reward": max(row["max_step_reward"] for row in rows)} for rows in runs]
    table = by_method(config, last)
    width = max(map(len, table))
    head = f"{'':<{width}}" + "".join(f" {title:>11}" for title in columns(config).values())
    return "\n".join([head, *(f"{k:<{width}}" + "".join(f" {shown(n):>11}" for n in v) for k, v in table.items())])


def evaluate(folder: Path, episodes: int, seed: int, video: Path | None) -> int:
    """Print returns of the mean and of the sampled action, and film an episode if asked to."""
    if episodes < 1:
        raise ValueError(f"episodes must be at least 1; got {episodes}.")
    if video is not None:
        files.check_writable(video)
    loaded = policy.load(folder)
    if video is not None:
        check_film(loaded, seed, video)
    for name, rng in (("mean action", None), ("sampled", np.random.default_rng(seed))):
        task = make(loaded.task, [seed], episodes, threshold=loaded.threshold)
        with _counting(f"{name}: step {{}}, {{}} of {episodes} episodes done") as report:
            totals = policy.returns(loaded.act, task, rng, report)
        task.close()
        error = f" ± {totals.std(ddof=1) / np.sqrt(episodes):.2f} (standard error)" if episodes > 1 else ""
        print(f"{name:<12} return {totals.mean():.2f}{error}, best {totals.max():.2f}, episodes {episodes}")
    if video is not None:
        film(loaded, seed, video)
    return 0


@contextmanager
def _counting(text: str) -> Iterator[Callable[..., None]]:
    """A function of what stands in the text's braces, which it shows on a terminal, a few times a second."""
    shown, last = sys.stderr is not None and sys.stderr.isatty(), -np.inf

    def report(*numbers: int) -> None:
        nonlocal last
        if shown and time.monotonic() > last + 0.2:
            last = time.monotonic()
            print("\r" + text.format(*numbers), end="", file=sys.stderr, flush=True)

    yield report
    if np.isfinite(last):
        print("\r" + " " * (len(text) + 20) + "\r", end="", file=sys.stderr, flush=True)


def check_film(loaded: policy.Loaded, seed: int, video: Path) -> None:
    """ValueError or ImportError if no film can be made here: one picture is drawn."""
    missing.check("imageio", extra="train")
    if video.suffix not in FILMS:
        raise ValueError(f"{video} is not a film; end its name in {', '.join(FILMS)}.")
    try:
        with closing(make(loaded.task, [seed], 1, threshold=loaded.threshold, render=True)) as task:
            task.reset()
            task.render(0)
    except RuntimeError as error:
        raise ValueError(str(error)) from error


def film(loaded: policy.Loaded, seed: int, video: Path) -> None:
    """One episode with the mean action as a film."""
    import imageio

    with closing(make(loaded.task, [seed], 1, threshold=loaded.threshold, render=True)) as task:
        pictures = policy.frames(loaded.act, task, every=2)
    cut = [one[: len(one) // 8 * 8, : one.shape[1] // 8 * 8] for one in pictures]
    imageio.mimsave(video, cut, fps=30, macro_block_size=8)  # codecs want multiples of it
    print(f"video: {video}")
