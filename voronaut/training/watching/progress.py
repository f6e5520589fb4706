"""What a person sees while training: a live table in a terminal, plain lines elsewhere."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from voronaut.training.config import Config

Rows = list[dict[str, Any]]
Report = Callable[[int, Rows], None]


@contextmanager
def display(config: Config, *, quiet: bool = False) -> Iterator[Report | None]:
    """A function to be called after each rollout with its number and rows."""
    if quiet or sys.stdout is None:  # a program without a console has no output
        yield None
    elif sys.stdout.isatty():
        with _live(config) as report:
            yield report
    else:
        yield _plain(config)


def columns(config: Config) -> dict[str, str]:
    """What is shown of a row, and its title."""
    theirs = {"explorer_return": "explorer"} if config.learner == "sac" and config.pair else {}
    more = {"max_step_reward": "top reward", "state_entropy": "entropy", "bonus_mean": "bonus"}
    return {"extrinsic_return": "return"} | theirs | more


def by_method(config: Config, rows: Rows) -> dict[str, list[float]]:
    """Means over seeds of the columns shown, by method; NaN where nothing is known yet."""
    count = len(config.seeds)
    table = {}
    for index, method in enumerate(config.methods):
        mine = rows[index * count : (index + 1) * count]
        known = [[row[name] for row in mine if row[name] is not None] for name in columns(config)]
        table[method.label] = [float(np.mean(values)) if values else float("nan") for values in known]
    return table


class Clock:
    """Steps per second and time left, from the rollouts of this sitting."""

    def __init__(self, config: Config) -> None:
        self.config, self.started, self.first = config, time.monotonic(), -1

    def read(self, done: int) -> tuple[float, float]:
        """(steps per second of all runs together, seconds left)."""
        if self.first < 0:
            self.first = done - 1
        took = (time.monotonic() - self.started) / max(done - self.first, 1)
        steps = self.config.rollout * len(self.config.runs)
        return steps / took, took * (self.config.rollouts - done)


def shown(number: float) -> str:
    """A number of the table; a dash where nothing is known yet."""
    return "–" if np.isnan(number) else f"{number:.3f}"


def pretty(seconds: float) -> str:
    """1:02:03 or 2:03."""
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"


def _plain(config: Config) -> Report:
    clock, last, titles = Clock(config), [-np.inf], columns(config).values()

    def report(done: int, rows: Rows) -> None:
        speed, left = clock.read(done)
        if time.monotonic() - last[0] < 5 and done < config.rollouts:
            return
        last[0] = time.monotonic()
        head = f"{done * config.rollout:>9,} of {config.rollouts * config.rollout:,} steps, {speed:,.0f}/s, "
        print(head + f"{pretty(left)} left", flush=True)
        for label, numbers in by_method(config, rows).items():
            print(
                f"  {label:<12}" + "".join(f" {t} {shown(n):>8}" for t, n in zip(titles, numbers, strict=True)),
                flush=True,
            )

    return report


@contextmanager
def _live(config: Config) -> Iterator[Report]:
    try:
        from rich.console import Group
        from rich.live import Live
        from rich.progress_bar import ProgressBar
        from rich.table import Table
    except ImportError:
        yield _plain(config)
        return
    clock = Clock(config)

    def picture(done: int, rows: Rows) -> Any:
        speed, left = clock.read(done)
        steps = f"{done * config.rollout:,} of {config.rollouts * config.rollout:,} steps"
        table = Table(
            "method",
            *columns(config).values(),
            title=f"{config.task}: {steps}, {speed:,.0f}/s, {pretty(left)} left",
            min_width=60,
        )
        for label, numbers in by_method(config, rows).items():
            table.add_row(label, *map(shown, numbers))
        return Group(table, ProgressBar(total=config.rollouts, completed=done, width=60))

    with Live(f"{config.task}: first rollout…", refresh_per_second=4) as live:
        yield lambda done, rows: live.update(picture(done, rows))
