"""`voronaut report DIR… --out report.html`: read, build, write whole or not at all."""

import time
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from voronaut.helpers import files, missing
from voronaut.report import folders, page, stored, trained
from voronaut.report.content import content
from voronaut.report.records import Reading


def report(asked: Sequence[str | Path], out: str | Path, *, now: float | None = None) -> Path:
    """One page about all runs in and below the folders, finished or not; returns where it was written.

    `now` (seconds since 1970) tells a run that is under way from one that stopped.
    """
    missing.check("jinja2", "plotly", extra="report")
    moment = time.time() if now is None else now
    reading = read([Path(folder) for folder in asked], moment)
    if not reading.runs:
        named = ", ".join(f"'{folder}'" for folder in asked) or "no folder"
        why = f" {reading.troubles[-1]}" if reading.troubles else ""
        raise ValueError(
            f"there are no runs in {named}.{why} Name folders that voronaut train or reproduce wrote "
            "(of reproduce hard there is docs/hard.md)."
        )
    return write(Path(out), page.page(content(reading), datetime.fromtimestamp(moment, UTC)))


def read(asked: Sequence[Path], now: float) -> Reading:
    """All runs and results in and below the folders."""
    places, troubles = folders.find(asked)
    whole = Reading([], [], troubles)
    for place in places:
        if place.runs or not place.results:
            trained.read(place, now, whole)
        if place.results:
            stored.read(place, whole)
    return whole


def write(out: Path, text: str) -> Path:
    """Whole or not at all: whoever looks sees the old page or the new one."""
    try:
        if out.is_dir():
            raise IsADirectoryError(21, "it is a folder")
        out.parent.mkdir(parents=True, exist_ok=True)
        files.write_text(out, text)
    except OSError as error:
        raise ValueError(
            f"{out} cannot be written: {files.why_not(error)}. Choose another --out, such as report.html."
        ) from error
    return out
