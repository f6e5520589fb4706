"""`voronaut entropy FILE`: the entropy of a file or of lines on stdin, with its error."""

import json
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from voronaut.entropy.readers import CHUNK, MARKS, Source, Wanted, open_rows
from voronaut.entropy.stream import EntropyStream, Reading, fewest, too_few

LOOKS = MARKS[3:]  # from 1000 rows on
TICKS_APART = 2.2  # the last tick and the one before it must not touch


class Trace(NamedTuple):
    """Readings on the way, and the last rows, for the plot."""

    readings: list[Reading]
    rows: NDArray[np.float64]


def entropy(
    file: str, *, key: str | None = None, columns: str | None = None, plot: Path | None = None, as_json: bool = False,
    **options: Any,
) -> int:  # fmt: skip
    """Read the file, print the entropy, draw the plot if one is asked for."""
    stream = EntropyStream(**options)
    if plot is not None:
        from voronaut.helpers.plotting import check

        check(plot)
    live = file == "-" and not as_json
    wanted = Wanted(key, columns, strict=options.get("on_bad") != "drop")
    with open_rows(file, wanted) as source, warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # what they say stands in the report
        trace = _absorb(stream, source, live=live, watch=plot is not None or live)
    reading = _checked(stream, trace.rows)
    print(as_line(reading) if as_json else report(reading, source, trace.rows.shape[1]))
    if plot is not None:
        draw(plot, stream, trace, reading)
        print(f"plot           {plot}", file=sys.stderr if as_json else sys.stdout)
    return 0


def _absorb(stream: EntropyStream, source: Source, *, live: bool, watch: bool) -> Trace:
    readings: list[Reading] = []
    last = np.zeros((0, 0))
    with _progress(source.total, live) as advance:
        chunks = _until_stopped(source.chunks) if live else source.chunks
        for chunk in cut(chunks) if watch else chunks:
            before = stream.rows
            stream.update(chunk)
            last = np.concatenate([last, chunk])[-CHUNK:] if last.size else chunk
            advance(len(chunk))
            enough = stream.rows >= 4 * (chunk.shape[1] + 2)
            if watch and enough and any(before < mark <= stream.rows for mark in LOOKS):
                readings.append(stream.read())
                if live:
                    print(f"{stream.rows:>12,} rows  {_value(readings[-1])} nats", flush=True)
    return Trace(readings, last)


def cut(chunks: Iterator[NDArray[np.float64]]) -> Iterator[NDArray[np.float64]]:
    """The same rows in chunks that end at the marks, so that readings are of round numbers of rows."""
    seen = 0
    for chunk in chunks:
        inside = [mark - seen for mark in LOOKS if 0 < mark - seen < len(chunk)]
        yield from np.split(chunk, inside)
        seen += len(chunk)


def _until_stopped(chunks: Iterator[NDArray[np.float64]]) -> Iterator[NDArray[np.float64]]:
    """The chunks until there are no more, or until Ctrl-C: what was read so far still counts."""
    try:
        yield from chunks
    except KeyboardInterrupt:
        print(file=sys.stderr)


def _checked(stream: EntropyStream, rows: NDArray[np.float64]) -> Reading:
    width = rows.shape[1] if rows.ndim == 2 else 0
    if stream.rows < fewest(width):
        left_out = f" ({stream.bad} more were not finite.)" if stream.bad else ""
        raise ValueError(too_few(stream.rows, width) + left_out)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return stream.read()


def _value(reading: Reading) -> str:
    return f"{reading.entropy:.4f} ± {reading.std:.4f}"


def report(reading: Reading, source: Source, width: int) -> str:
    """The lines that are printed."""
    kept = width - len(reading.dropped)
    lines = [
        f"entropy        {_value(reading)} nats",
        f"rows           {reading.rows:,} of {width} column{'s' if width > 1 else ''}",
        f"effective dim  {reading.effective_dim:.2f} of {kept}",
        f"model          {reading.model or 'none: no column varies'}",
    ]
    if reading.bad:
        lines.append(f"bad rows       {reading.bad:,} left out (not finite)")
    if reading.far:
        lines.append(
            f"far rows       {reading.far:,} so far from the others that one can decide the entropy: look at them"
        )
    lines += [f"dropped        column {source.name(j)}: {why}" for j, why in reading.dropped.items()]
    lines += [
        f"resolution     column {source.name(j)}: {w:.3g} (values repeat: without this blur, -inf)"
        for j, w in reading.resolution.items()
    ]
    return "\n".join(lines)


def as_line(reading: Reading) -> str:
    """The reading as one JSON object; −inf and NaN become null."""
    plain = {k: None if isinstance(v, float) and not np.isfinite(v) else v for k, v in reading._asdict().items()}
    return json.dumps(plain)


@contextmanager
def _progress(total: int | None, live: bool) -> Iterator[Any]:
    """A function that takes the number of rows done: a bar on a terminal, nothing elsewhere."""
    if live or sys.stderr is None or not sys.stderr.isatty():
        yield lambda rows: None
        return
    try:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeRemainingColumn
    except ImportError:
        yield lambda rows: None
        return
    with Progress(
        "rows", BarColumn(), MofNCompleteColumn(), TimeRemainingColumn(), console=Console(stderr=True), transient=True
    ) as bar:
        task = bar.add_task("rows", total=total)
        yield lambda rows: bar.advance(task, rows)


def draw(path: Path, stream: EntropyStream, trace: Trace, reading: Reading) -> None:
    """The estimate over the rows, and how surprising the last rows were."""
    from voronaut.helpers.plotting import COLORS, figure

    readings = [*(r for r in trace.readings if r.rows < reading.rows), reading]
    rows, values = [r.rows for r in readings], np.array([r.entropy for r in readings])
    errors = np.array([2 * r.std for r in readings])
    good = trace.rows[np.isfinite(trace.rows).all(axis=1)]
    surprise = -stream.log_density(good)
    with figure(path, 2, (10, 4)) as (left, right):
        left.plot(rows, values, "o-", color=COLORS["kme"])
        left.fill_between(rows, values - errors, values + errors, color=COLORS["kme"], alpha=0.25, linewidth=0)
        left.set_xscale("log")
        ticks = [n for n in rows[:-1] if n * TICKS_APART <= rows[-1]]
        ticks = [n for i, n in enumerate(ticks) if i == 0 or str(n)[0] in "15"] + rows[-1:]
        left.set_xticks(ticks, [f"{n:,}" for n in ticks])
        left.set_xticks([], minor=True)
        left.set(xlabel="rows", ylabel="entropy in nats", title="Estimate, ± 2 standard errors")
        if np.isfinite(surprise).all():
            low, high = np.quantile(surprise, [0.001, 0.999])
            right.hist(surprise, bins=60, range=(low, high), color=COLORS["none"], alpha=0.7)
            right.axvline(reading.entropy, color=COLORS["kme"], label=f"entropy {reading.entropy:.3f}")
            right.legend()
        right.set(xlabel="−ln p(row) in nats", ylabel="rows", title=f"Surprise of the last {len(good):,} rows")
