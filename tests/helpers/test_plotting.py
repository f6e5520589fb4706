"""Figures are written whole, small, and look as they were drawn."""

from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("matplotlib")

from voronaut.helpers.plotting import COLORS, figure


def test_a_picture_keeps_its_colours_and_has_a_palette(tmp_path: Path) -> None:
    from PIL import Image, ImageColor

    with figure(tmp_path / "new" / "lines.png", 2) as axes:
        for axis, color in zip(axes, (COLORS["kme"], COLORS["rnd"]), strict=True):
            axis.fill_between([0, 1], [0, 0], [1, 2], color=color)
    with Image.open(tmp_path / "new" / "lines.png") as picture:
        assert picture.mode == "P"
        pixels = np.asarray(picture.convert("RGB")).reshape(-1, 3).astype(int)
    for color in ("#ffffff", COLORS["kme"], COLORS["rnd"]):
        assert np.abs(pixels - ImageColor.getrgb(color)).max(axis=1).min() <= 1


def test_other_formats_are_left_alone(tmp_path: Path) -> None:
    with figure(tmp_path / "line.svg") as axes:
        axes.plot([0, 1], [0, 1])
    assert "<svg" in (tmp_path / "line.svg").read_text()
