"""What must work where only the core libraries are installed: `make wheel` runs this in an empty environment."""

import importlib.util
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

import voronaut as vn

COMMAND = [sys.executable, "-m", "voronaut"]


def call(*words: str, folder: str | None = None) -> subprocess.CompletedProcess[str]:
    """One call of the command line."""
    return subprocess.run([*COMMAND, *words], cwd=folder, capture_output=True, text=True, check=False)


def clusters() -> None:
    """Rewards, update, step, metrics, save and load."""
    states = np.random.default_rng(0).normal(size=(64, 4, 3))
    kme = vn.KME(dim=3, clusters=20, init="data", seed=0)
    kme.update(states)
    assert kme.rewards(states).shape == (64, 4)
    assert kme.step(states[0]).shape == (4,)
    assert np.isfinite(kme.metrics()["entropy"])
    with tempfile.TemporaryDirectory() as folder:
        kme.save(Path(folder) / "kme.npz")
        np.testing.assert_array_equal(vn.load(Path(folder) / "kme.npz").rewards(states), kme.rewards(states))


def commands() -> None:
    """Version and help of every command, without any extra."""
    assert call("--version").stdout == f"voronaut {vn.__version__}\n"
    assert (Path(sys.executable).parent / "voronaut").exists()
    for name in ("train", "eval", "reproduce", "entropy", "bench", "report", "demo"):
        assert name in call("--help").stdout
        assert "usage" in call(name, "--help").stdout


IN_PYTHON = {
    "import voronaut.sb3": "sb3",
    "import voronaut.jax": "jax",
    "import voronaut.adapters.torchrl_env": "torchrl",
    "import voronaut.adapters.rsl_rl": "rsl",
    "import voronaut.adapters.rllib": "rllib",
    "import voronaut as vn; vn.RND(dim=3)": "jax",
    "import voronaut as vn; vn.RE3(dim=3)": "jax",
    "import voronaut as vn; vn.KMeansEntropy": "entropy",
    "import voronaut as vn; vn.train('maze', out='runs', steps=512)": "train",
    "import voronaut.tasks as tasks; tasks.make('cheetah-run', [0], 1)": "train",
    "from voronaut.report import report; report(['runs'], 'report.html')": "report",
}
ON_THE_COMMAND_LINE = {
    "demo": "train",
    "train maze --out maze": "train",
    "report . --out report.html": "report",
    "entropy x.parquet": "parquet",
    "entropy x.npy --plot x.png": "plot",
}


def missing() -> None:
    """What needs an extra says which, in one line, and on the command line without a traceback."""
    for code, extra in IN_PYTHON.items():
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
        told(done, extra)
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "x.parquet").write_bytes(b"PAR1")
        np.save(Path(folder) / "x.npy", np.random.default_rng(0).normal(size=(200, 2)))
        for words, extra in ON_THE_COMMAND_LINE.items():
            done = call(*words.split(), folder=folder)
            told(done, extra)
            assert "Traceback" not in done.stderr, done.stderr


def told(done: subprocess.CompletedProcess[str], extra: str) -> None:
    """It failed, and its last line names this extra and no other."""
    assert done.returncode != 0, f"{done.args} should need voronaut[{extra}]"
    last = done.stderr.strip().rpartition("\n")[2]
    assert "pip install '" in last and last.endswith(f"[{extra}]'") and last.count("[") == 1, (done.args, done.stderr)


def entropy() -> None:
    """The command line measures a file without any extra."""
    with tempfile.TemporaryDirectory() as folder:
        np.save(Path(folder) / "x.npy", np.random.default_rng(0).normal(size=(2000, 2)))
        done = call("entropy", "x.npy", folder=folder)
    assert done.returncode == 0 and "nats" in done.stdout, done.stderr


if __name__ == "__main__":
    assert all(importlib.util.find_spec(name) is None for name in ("jax", "torch", "gymnasium", "matplotlib"))
    print(Path(vn.__file__).parent)
    clusters()
    commands()
    missing()
    entropy()
    print("voronaut works with numpy, numba and scipy alone")
