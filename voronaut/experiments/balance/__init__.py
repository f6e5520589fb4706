"""Which balance survives a moving agent: rules of online k-means on fixed laws and moving streams.

`voronaut reproduce balance` records agents first (in --work), then judges what is missing in --results. Tables:
docs/balance.md.
"""

import argparse
import json
from collections.abc import Callable
from pathlib import Path

from voronaut.experiments.balance import judge, streams
from voronaut.helpers import files

__all__ = ["reproduce"]
WORK = Path("runs/balance")


def reproduce(options: argparse.Namespace, say: Callable[[str], None] = print) -> int:
    """Record and judge what is missing, and print the tables."""
    if options.methods or options.seeds is not None or options.steps is not None or options.draw:
        raise ValueError(
            f"this experiment has no --method, --seeds, --steps and --draw: choose {', '.join(judge.PLANS)}."
        )
    for name in options.only:
        if name not in judge.PLANS:
            raise ValueError(f"there is no part {name!r}; there are {', '.join(judge.PLANS)}.")
    folder, work = options.folder or judge.FOLDER, options.work or WORK
    for plan in options.only or judge.PLANS:
        path = folder / f"{plan}.json"
        if not (options.status or path.exists()):
            streams.record_missing(work)
            folder.mkdir(parents=True, exist_ok=True)
            files.write_text(path, json.dumps(judge.judge(*judge.PLANS[plan], work), indent=1) + "\n")
        say(judge.tables(path) if path.exists() else f"{plan}: not judged yet")
    return 0
