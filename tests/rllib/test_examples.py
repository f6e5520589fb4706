"""The example runs, shortened, and so does the code of the page."""

import re
import runpy
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PPO, SAC = ROOT / "examples" / "rllib_ppo.py", ROOT / "examples" / "rllib_sac.py"
PAGE = ROOT / "docs" / "adapters" / "rllib.md"

pytestmark = pytest.mark.usefixtures("cluster")


def test_example(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys, "argv", [PPO.name, "--steps", "512", "--batch", "256"])
    runpy.run_path(str(PPO), run_name="__main__")
    assert "The bonus has seen 512 states." in capsys.readouterr().out
    assert len(PPO.read_text().splitlines()) <= 40


def test_off_policy_example(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys, "argv", [SAC.name, "--steps", "1024", "--runners", "0"])
    runpy.run_path(str(SAC), run_name="__main__")
    assert "The bonus has seen 1024 states." in capsys.readouterr().out
    assert len(SAC.read_text().splitlines()) <= 50


def test_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"```py\n(.*?)```", PAGE.read_text(), re.DOTALL)
    names: dict[str, object] = {}
    for block in blocks:
        exec(compile(block, PAGE.name, "exec"), names)
    assert len(blocks) >= 3
