"""Every example runs, shortened; every code block of the adapters' pages too."""

import os
import re
import runpy
import sys
import warnings
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
EXAMPLES = {
    "sb3_ppo.py": ["--steps", "1024", "--rollout", "32", "--task", "voronaut/CartpoleSwingupSparse-v0"],
    "sb3_sac.py": ["--steps", "150"],
    "sb3_pair.py": ["--steps", "150"],
    "minigrid_ppo.py": ["--steps", "4096", "--task", "MiniGrid-DoorKey-5x5-v0"],
    "cleanrl_ppo.py": ["--steps", "3840", "--rollout", "10"],
    "gymnasium_vector.py": ["--steps", "500"],
    "torchrl_ppo.py": ["--steps", "1600"],
    "torchrl_sac.py": ["--steps", "1152", "--task", "Pendulum-v1"],
}


@pytest.mark.parametrize("name", EXAMPLES)
def test_example(name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys, "argv", [name, *EXAMPLES[name]])
    monkeypatch.syspath_prepend(ROOT / "examples")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        runpy.run_path(str(ROOT / "examples" / name), run_name="__main__")
    assert re.search(r"-?\d+\.\d+", capsys.readouterr().out)


@pytest.mark.parametrize(
    "name", ["sb3_ppo.py", "sb3_sac.py", "sb3_pair.py", "minigrid_ppo.py", "gymnasium_vector.py", "torchrl_ppo.py"]
)
def test_an_example_is_at_most_forty_lines(name: str) -> None:
    assert len((ROOT / "examples" / name).read_text().splitlines()) <= 40


@pytest.mark.parametrize("name", ["sb3", "gymnasium", "torchrl"])
def test_page(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "adapters" / f"{name}.md").read_text(), re.DOTALL)
    names: dict[str, object] = {}
    for block in blocks:
        exec(compile(block, name, "exec"), names)
    assert len(blocks) >= 2 and not os.path.samefile(tmp_path, ROOT)
