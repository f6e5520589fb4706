"""Trained policies: saved beside their run, loaded as a function from observations to actions, evaluated."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from voronaut import npz
from voronaut.tasks.base import VectorTask
from voronaut.training.config import Config

NAME = "policy.npz"
Actions = NDArray[np.float64]
Policy = Callable[..., Actions]


class Loaded(NamedTuple):
    """A policy and the task it was trained on."""

    act: Policy
    task: str
    threshold: str


def save(folder: Path, params: Any, run: int, config: Config, task: VectorTask) -> None:
    """Write the policy of one run of the stack to `folder`/policy.npz."""
    about = {"task": config.task, "threshold": config.threshold}
    layers = {f"weight{i}": layer.weight[run] for i, layer in enumerate(params.policy)}
    layers |= {f"bias{i}": layer.bias[run] for i, layer in enumerate(params.policy)}
    text = np.frombuffer(json.dumps(about).encode(), np.uint8)
    bounds = {"low": np.asarray(task.action_low), "high": np.asarray(task.action_high)}
    npz.write(folder / NAME, {**layers, **bounds, "log_std": params.log_std[run], "about": text})


def load(folder: Path) -> Loaded:
    """The policy of a run's folder, such as runs/cheetah/kme-0."""
    path = Path(folder) / NAME
    if not path.exists():
        raise FileNotFoundError(f"{folder} holds no {NAME}. Name the folder of one run, such as DIR/kme-0.")
    arrays = npz.read(path)
    with npz.refusing(path):
        about = npz.read_json(path, arrays["about"])
        depth = sum(name.startswith("weight") for name in arrays)
        first, task, threshold = len(arrays["weight0"]), about["task"], about["threshold"]

    def act(observations: Any, *, rng: np.random.Generator | None = None) -> Actions:
        x: NDArray[Any] = np.asarray(observations, np.float32)
        if x.shape[-1] != first:
            raise ValueError(f"observations must end in {first}; got shape {x.shape}.")
        for i in range(depth):
            x = x @ arrays[f"weight{i}"] + arrays[f"bias{i}"]
            x = np.tanh(x) if i < depth - 1 else x
        if rng is not None:
            x = x + np.exp(arrays["log_std"]) * rng.standard_normal(x.shape, dtype=np.float32)
        return np.asarray(np.clip(x, arrays["low"], arrays["high"]), np.float64)

    return Loaded(act, task, threshold)


def load_policy(folder: str | Path) -> Policy:
    """A function from observations (..., d) to actions (..., a): the mean action, or a sampled one with `rng=`."""
    return load(Path(folder)).act


def returns(policy: Policy, task: VectorTask, rng: np.random.Generator | None = None) -> NDArray[np.float64]:
    """Extrinsic return of the first episode of every environment."""
    total, over = np.zeros(task.num_envs), np.zeros(task.num_envs, bool)
    observations = task.reset()
    while not over.all():
        step = task.step(policy(observations, rng=rng))
        total += np.where(over, 0.0, step.rewards)
        over |= step.terminated | step.truncated
        observations = step.obs
    return total


def frames(policy: Policy, task: VectorTask, every: int = 1) -> list[NDArray[np.uint8]]:
    """Pictures of the first environment's first episode, one in `every` steps."""
    pictures, observations = [], task.reset()
    for t in range(1_000_000):
        if t % every == 0:
            pictures.append(task.render(0))
        step = task.step(policy(observations))
        if step.terminated[0] or step.truncated[0]:
            break
        observations = step.obs
    return pictures
