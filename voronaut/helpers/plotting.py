"""The one way to make a figure here: no screen needed, one look for all, written whole."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from voronaut.helpers import files
from voronaut.helpers.missing import require

DPI = 150
COLORS = {"kme": "#2a9d62", "none": "#3b6fb6", "rnd": "#e08a1e", "re3": "#c8443f", "hash": "#7b5ea7"}


@contextmanager
def figure(path: Path, columns: int = 1, size: tuple[float, float] = (6, 4), rows: int = 1) -> Iterator[Any]:
    """Axes to draw on; the picture is saved at `path` when the block ends."""
    matplotlib, drawing = require("matplotlib", "plot"), require("matplotlib.figure", "plot")
    look = {"axes.spines.top": False, "axes.spines.right": False, "legend.frameon": False, "font.size": 10}
    with matplotlib.rc_context(look):
        canvas = drawing.Figure(figsize=size, layout="constrained")
        axes = canvas.subplots(rows, columns)
        yield axes
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.suffix == ".png":
            save_small(canvas, path)
        else:
            with files.replacing(path) as file:
                canvas.savefig(file, dpi=DPI, format=path.suffix[1:])


def check(path: Path) -> None:
    """ValueError if no figure can be saved here; to be asked before the work that is to be drawn."""
    kinds = require("matplotlib.figure", "plot").Figure().canvas.get_supported_filetypes()
    if path.suffix[1:].lower() not in kinds:
        raise ValueError(f"{path} is not a picture; end its name in .png, or one of {', '.join(sorted(kinds))}.")
    files.check_writable(path)


def save_small(drawn: Any, path: Path) -> None:
    """A PNG with 256 colours, which are enough for lines and bands: a third of the bytes."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from PIL import Image  # matplotlib brings it

    drawn.set_dpi(DPI)
    canvas = FigureCanvasAgg(drawn)
    canvas.draw()
    picture = Image.frombuffer("RGBA", canvas.get_width_height(), canvas.buffer_rgba())
    with files.replacing(path) as file:
        picture.convert("RGB").quantize(256, dither=Image.Dither.NONE).save(file, "png")
