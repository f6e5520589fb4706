"""Part of `voronaut bench train`: a gradient step of SAC beside Stable-Baselines3's and SBX's, and the bonus's share.

Cheetah's sizes: 17 observations, 6 actions. Everybody draws its batches from a replay of its own and learns in float32
on the CPU, torch with one thread (two are slower on a shared machine), JAX with those it takes. SBX, which is JAX as
well, is measured where it is installed: pip install sbx-rl.
"""

import importlib
import importlib.util
from collections.abc import Callable
from typing import Any

import jax
import numpy as np

from voronaut.bench import measure
from voronaut.bench.measure import CHEETAH, Cost
from voronaut.tasks.factory import make
from voronaut.training import pair, replay
from voronaut.training.api import configure
from voronaut.training.off_policy import SACTrainer

SIZES = {"256 × 256, batch 256": (256, 256), "128 × 128, batch 128": (128, 128)}
STEPS = 8  # gradient steps of a call
KEPT = 16_384  # transitions in each replay
SB3, SBX, ALIKE = "SB3", "SBX", "this, as SB3"
BONUSES: dict[str, tuple[str, dict[str, Any]]] = {
    "zero: no bonus": ("zero", {}),
    "kme: one clustering": ("kme", {"balance": 1e-4}),
    "kme: one view": ("kme", {"views": 1}),
    "kme: views": ("kme", {}),
    "rnd": ("rnd", {}),
}
TURN = 1024


def gradient_steps(width: int, batch: int) -> dict[str, float]:
    """Seconds of one gradient step of one agent, by who takes it."""
    plain = {"n_step": 1, "layer_norm": False, "near_reward": 0.0}  # what SB3 does
    work = {SB3: rival("stable_baselines3", width, batch)}
    if importlib.util.find_spec("sbx"):
        work[SBX] = rival("sbx", width, batch)
    work |= {ALIKE: own(width, batch, 1, plain), "this": own(width, batch, 1), "this, a pair": own(width, batch, 2)}
    took = measure.seconds(work, budget=20)
    return {name: each / STEPS / (2 if "pair" in name else 1) for name, each in took.items()}


def own(width: int, batch: int, agents: int, numbers: dict[str, Any] | None = None) -> Callable[[], Any]:
    """Draw and learn, `STEPS` times, with one agent or with both of a pair."""
    chosen = pair.settings({"width": width, "batch": batch, "gradient_steps": STEPS, **(numbers or {})})
    shares, curious = ((16,), (False,)) if agents == 1 else ((8, 8), (False, False))
    lane = pair.Lane([0], replay.Shape(KEPT // 16, 16, 17, 6), shares, curious, chosen)
    rng = np.random.default_rng(0)
    for _ in range(KEPT // 16):
        lane.keep(jax.tree.map(lambda x: x[None], _happened(rng, 16)))

    def call() -> None:
        lane.draw_and_learn(0)
        np.asarray(lane.run.batches)  # waits for the program

    return call


def _happened(rng: np.random.Generator, envs: int) -> replay.Transition:
    drawn, none = rng.uniform(-1, 1, (envs, 41)).astype(np.float32), np.zeros(envs, bool)
    return replay.Transition(drawn[:, :17], drawn[:, 17:23], drawn[:, 23:40], drawn[:, 40], none, none)


def rival(module: str, width: int, batch: int) -> Callable[[], Any]:
    """The same of SB3's or SBX's SAC."""
    import gymnasium
    import torch
    from stable_baselines3.common.logger import Logger

    torch.set_num_threads(1)
    env = gymnasium.make(CHEETAH)
    settings: dict[str, Any] = {"policy_kwargs": {"net_arch": [width, width]}, "buffer_size": KEPT, "seed": 0}
    settings |= {"batch_size": batch, "device": "cpu"}
    model = importlib.import_module(module).SAC("MlpPolicy", env, **settings)
    model.set_logger(Logger(None, []))
    rng = np.random.default_rng(0)
    for _ in range(KEPT):
        one = _happened(rng, 1)
        model.replay_buffer.add(one.observations, one.next_states, one.actions, one.rewards, one.terminated, [{}])
    return lambda: model.train(gradient_steps=STEPS, batch_size=batch)


def turner(kind: str, options: dict[str, Any]) -> Callable[[], Cost]:
    """A function that takes `TURN` steps of a small pair, which learns already, and tells where its seconds went."""
    numbers = {"size": "small", "random_steps": TURN}
    given = {kind: options} if options else {}
    config = configure("cheetah-run", learner="sac", bonuses=kind, seeds=1, steps=50 * TURN, rollout=TURN,
                       options={"sac": numbers, **given})  # fmt: skip
    return measure.turner(SACTrainer(config, make("cheetah-run", [0], config.envs, backend=config.backend)))


def step_rows() -> list[dict[str, Any]]:
    """Milliseconds per gradient step of one agent, and how many times faster than SB3's that is."""
    rows = []
    for size, (width, batch) in SIZES.items():
        took = gradient_steps(width, batch)
        ratios = {name: took[SB3] / each for name, each in took.items()}
        rows += [{"": f"{name}, {size}", "ms": 1e3 * took[name], "SB3 / this": ratio} for name, ratio in ratios.items()]
    return rows


def parts(steps: list[dict[str, Any]], shares: list[dict[str, Any]]) -> list[Any]:
    """Both tables."""
    absent = "" if any(SBX in row[""] for row in steps) else " SBX is not installed here (pip install sbx-rl)."
    return [
        "## SAC: one gradient step of one agent on a CPU, its batch drawn from a replay",
        f"`{ALIKE}` has one-step targets and no LayerNorm, as the others. torch has one thread.{absent}",
        steps,
        f"## A small pair (`--sac.size small`): seconds of {TURN} steps of Cheetah, and the bonus's share of them",
        shares,
    ]
