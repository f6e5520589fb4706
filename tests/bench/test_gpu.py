"""`voronaut bench gpu` runs (small, on the CPU) and writes what it promises. No time is judged here."""

import json
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")

from voronaut import cli
from voronaut.bench import gpu

SMALL: dict[str, Any] = {
    "DEVICE": "cpu", "CLUSTERS": 10, "DIMS": (3, 9), "SIZES": (64, 128), "WIDE": ((20, 5),), "WIDE_STATES": 64,
    "UPDATE_STATES": 64, "ROLLOUTS": (64, 96), "MATRIX": 32, "COPY": 1000, "MEMORY_STATES": 64, "ENCODER": 8,
    "FEATURES": 4, "SECONDS": 0.0,
}  # fmt: skip


def test_the_tables_and_the_plot(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in SMALL.items():
        monkeypatch.setattr(gpu, name, value)
    text = gpu.run(tmp_path)
    assert "Ceilings" in text and "RE3 rewards, ms" in text
    result = json.loads((tmp_path / "gpu.json").read_text())
    assert [row["states"] for row in result["rewards"]] == [64, 128, 64, 128]
    assert [row["memory"] for row in result["memories"]] == [*gpu.MEMORIES] * 2
    rates = result["ceilings"]
    for row in result["rewards"]:
        flops, moved = 2 * 10 * row["dim"] / rates["float32"], (4 * row["dim"] + 4) / rates["copy"]
        assert row["of the float32 floor"] == pytest.approx(row["M states/s"] * 1e6 * max(flops, moved))
    (tmp_path / "gpu.png").unlink()
    assert cli.main(["bench", "gpu", "--draw", "--out", str(tmp_path)]) == 0
    assert (tmp_path / "gpu.png").stat().st_size > 1000


def test_without_a_device_it_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    import torch

    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert cli.main(["bench", "gpu", "--out", str(tmp_path)]) == 2
    assert "CUDA device" in capsys.readouterr().err
    assert cli.main(["bench", "gpu", "--draw", "--out", str(tmp_path)]) == 2
    assert cli.main(["bench", "kernels", "--draw", "--out", str(tmp_path)]) == 2
