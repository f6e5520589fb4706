"""Trained policies: saved beside their run, loaded as a function from observations to actions, evaluated."""

import itertools
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from voronaut.helpers import npz
from voronaut.tasks.base import VectorTask
from voronaut.training.config import Config

NAME = "policy.npz"
EXPLORER = "explorer.npz"  # of a pair: the policy that the bonus pays, beside the exploiter's
Policy = Callable[..., NDArray[Any]]
Draw = Callable[[NDArray[Any], np.random.Generator | None], NDArray[Any]]


class Loaded(NamedTuple):
    """A policy and the task it was trained on."""

    act: Policy
    task: str
    threshold: str


def save(folder: Path, params: Any, run: int, config: Config, task: VectorTask) -> None:
    """Write PPO's policy of one run of the stack to `folder`/policy.npz: a Gaussian, cut at the bounds, or logits."""
    layers = [(layer.weight[run], layer.bias[run]) for layer in params.policy]
    kind = {"choices": task.choices} if task.choices else {}
    _write(folder / NAME, layers, {"log_std": params.log_std[run]}, kind, config, task)


def save_squashed(path: Path, actor: Any, scale: Any, agent: Any, config: Config, task: VectorTask) -> None:
    """Write one of SAC's policies to `path`: standardised observations, and a Gaussian squashed by tanh."""
    deviation = np.sqrt(np.asarray(scale.variance) + 1e-6)
    frame = {"mean": np.asarray(scale.mean), "deviation": deviation, "log_stds": np.array(agent.log_std, np.float32)}
    layers = [(np.asarray(layer.weight), np.asarray(layer.bias)) for layer in actor]
    _write(path, layers, frame, {"squashed": True, "layer_norm": agent.layer_norm}, config, task)


def _write(path: Path, layers: list[Any], own: npz.Arrays, kind: dict[str, Any], config: Config, task: Any) -> None:
    arrays = {f"weight{i}": weight for i, (weight, _) in enumerate(layers)}
    arrays |= {f"bias{i}": bias for i, (_, bias) in enumerate(layers)}
    about = {"task": config.task, "threshold": config.threshold, **kind}
    bounds = {"low": np.asarray(task.action_low), "high": np.asarray(task.action_high)}
    npz.write(path, {**arrays, **bounds, **own, "about": np.frombuffer(json.dumps(about).encode(), np.uint8)})


def load(folder: Path) -> Loaded:
    """The policy of a run's folder, such as runs/cheetah/kme-0, or in a file of its own, such as its explorer.npz."""
    path = Path(folder) if Path(folder).suffix == ".npz" else Path(folder) / NAME
    if not path.exists():
        runs = ", ".join(str(found.parent) for found in sorted(Path(folder).glob(f"*/{NAME}")))
        which = f"of one of its runs: {runs}" if runs else "of one run, such as DIR/kme-0"
        raise FileNotFoundError(f"{folder} holds no {NAME}. Name the folder {which}.")
    arrays = npz.read(path)
    with npz.refusing(path):
        about = npz.read_json(path, arrays["about"])
        draw = _squashed(arrays, about["layer_norm"]) if about.get("squashed") else _tanh(arrays)
        choices = int(about.get("choices", 0))
        first, task, threshold = len(arrays["weight0"]), about["task"], about["threshold"]

    def act(observations: Any, *, rng: np.random.Generator | None = None) -> NDArray[Any]:
        x: NDArray[Any] = np.asarray(observations, np.float32)
        if not x.ndim or x.shape[-1] != first:
            raise ValueError(f"observations must end in {first}; got shape {x.shape}.")
        drawn = draw(x, rng)
        if choices:
            return np.asarray(drawn.argmax(axis=-1) + int(arrays["low"][0]))
        return np.asarray(np.clip(drawn, arrays["low"], arrays["high"]), np.float64)

    return Loaded(act, task, threshold)


def _layers(arrays: npz.Arrays) -> list[tuple[NDArray[Any], NDArray[Any]]]:
    depth = sum(name.startswith("weight") for name in arrays)
    return [(_whole(arrays[f"weight{i}"]), arrays[f"bias{i}"]) for i in range(depth)]


def _whole(weight: NDArray[Any]) -> NDArray[Any]:
    return weight.astype(np.float32) if weight.dtype == np.float16 else weight


def _tanh(arrays: npz.Arrays) -> Draw:
    """μ(s) + σ ε, tanh layers; without a σ logits, and Gumbel's noise."""
    *hidden, (head, bias) = _layers(arrays)
    spread = np.exp(arrays["log_std"])

    def draw(x: NDArray[Any], rng: np.random.Generator | None) -> NDArray[Any]:
        for weight, b in hidden:
            x = np.tanh(x @ weight + b)
        x = x @ head + bias
        if rng is None:
            return x
        noise = spread * rng.standard_normal(x.shape, dtype=np.float32) if len(spread) else rng.gumbel(size=x.shape)
        return np.asarray(x + noise)

    return draw


def _squashed(arrays: npz.Arrays, layer_norm: bool) -> Draw:
    """tanh(μ(s) + σ(s) ε) between the bounds, layers as in `learners.sac`."""
    *hidden, (head, bias) = _layers(arrays)
    mean, deviation, low, high = (arrays[name] for name in ("mean", "deviation", "low", "high"))

    def draw(x: NDArray[Any], rng: np.random.Generator | None) -> NDArray[Any]:
        x = np.clip((x - mean) / deviation, -10, 10)
        for weight, b in hidden:
            x = x @ weight + b
            if layer_norm:
                x = x - x.mean(axis=-1, keepdims=True)
                x = x / np.sqrt((x**2).mean(axis=-1, keepdims=True) + 1e-5)
            x = np.maximum(x, 0)
        middle, log_std = np.split(x @ head + bias, 2, axis=-1)
        if rng is not None:
            noise = rng.standard_normal(middle.shape, dtype=np.float32)
            middle = middle + np.exp(np.clip(log_std, *arrays["log_stds"])) * noise
        return np.asarray(low + (np.tanh(middle) + 1) / 2 * (high - low))

    return draw


def load_policy(folder: str | Path) -> Policy:
    """A function from observations (..., d) to actions (..., a): the mean action, or a sampled one with `rng=`.

    Where actions are choices they are whole numbers (...,): the likeliest, or a sampled one.
    """
    return load(Path(folder)).act


def load_many(folders: Sequence[Path]) -> Policy:
    """SAC's policies of runs of one kind as one: observations (runs, n, d) -> actions (runs, n, a)."""
    each = [npz.read(folder / NAME) for folder in folders]
    about = npz.read_json(folders[0] / NAME, each[0]["about"])
    rows = {name: np.stack([one[name] for one in each]) for name in each[0] if name != "about"}
    wide = {name: array if array.ndim == 3 else array[:, None] for name, array in rows.items()}
    wide["log_stds"] = rows["log_stds"][0]  # the bounds are the kind's
    draw = _squashed(wide, about["layer_norm"])
    return lambda observations, *, rng=None: np.asarray(draw(np.asarray(observations, np.float32), rng), np.float64)


def returns(
    policy: Policy,
    task: VectorTask,
    rng: np.random.Generator | None = None,
    report: Callable[[int, int], None] = lambda step, done: None,
) -> NDArray[np.float64]:
    """Extrinsic return of the first episode of every environment. `report` is told the step, and how many are over."""
    total, over = np.zeros(task.num_envs), np.zeros(task.num_envs, bool)
    observations = task.reset()
    for t in itertools.count(1):
        if over.all():
            break
        report(t, int(over.sum()))
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
