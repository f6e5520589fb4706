"""Everything that wants to hear of each rollout: the terminal and, where asked for, Weights & Biases."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from voronaut.training.config import Config
from voronaut.training.watching.progress import Report, Rows, display


@contextmanager
def watch(config: Config, out: Path, *, quiet: bool = False, wandb: str | None = None) -> Iterator[Report]:
    """One function to be called after each rollout with its number and rows."""
    with ExitStack() as stack:
        reports = [stack.enter_context(display(config, quiet=quiet))]
        if wandb is not None:
            from voronaut.training.watching.wandb_log import send

            reports.append(stack.enter_context(send(config, out, wandb)))

        def report(done: int, rows: Rows) -> None:
            for each in reports:
                if each is not None:
                    each(done, rows)

        yield report
