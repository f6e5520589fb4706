"""What absorbing a stream in chunks changes: `voronaut reproduce chunks`.

200 rollouts of a stationary and of a drifting stream, absorbed in chunks of 4 to 4096 states, with frozen assignments
and exactly. Two questions: how far a chunked run has gone from the sequential one (`run`), and how far one chunked
rollout goes from the sequential one if both start from the same clusters (`rollout`). Beside them what no GPU is
needed for: the sequence in another order, in float64, and with one center moved by one last bit.
"""

import argparse
import json
from collections.abc import Callable

from voronaut.experiments.chunks.figures import draw
from voronaut.experiments.chunks.run import FIGURES, FOLDER, STREAMS, Size, measure
from voronaut.experiments.chunks.tables import computed, read

__all__ = ["computed", "draw", "reproduce"]


def reproduce(options: argparse.Namespace, say: Callable[[str], None] = print) -> int:
    """Measure what is missing, draw, and print the table."""
    folder, size = options.folder or FOLDER, Size()
    if options.steps is not None:
        size = size._replace(rollouts=max(1, int(options.steps) // size.states))
    if options.methods or options.work or options.seeds is not None:
        raise ValueError("this experiment has no --method, no --seeds and no --work: choose a stream with --only.")
    for name in options.only:
        if name not in STREAMS:
            raise ValueError(f"there is no stream {name!r}; there are {', '.join(STREAMS)}.")
    for stream in options.only or STREAMS:
        path = folder / f"{stream}.json"
        if not (options.draw or options.status or path.exists()):
            folder.mkdir(parents=True, exist_ok=True)
            path.write_text(json.dumps(measure(stream, size), indent=1) + "\n")
    found = read(folder)
    if not options.status and found:
        say(str(draw(folder, options.figures or FIGURES)[0]))
    say(computed(folder)["chunks"] if found else "nothing is there yet")
    return 0
