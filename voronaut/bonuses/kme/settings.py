"""What can be chosen about a KME, and what is refused."""

import math
import warnings
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

AUTO = "auto"


class Settings(NamedTuple):
    """The choices, JSON values all."""

    dim: int
    clusters: int
    step_size: float | str
    balance: float | str
    objective: str
    init: str
    seed: int
    dtype: str
    threads: int
    on_bad: str
    normalize: bool = False
    replay: float = 0.0


CHOICES = {
    "objective": ("sqrt", "log"),
    "init": ("zeros", "data"),
    "dtype": ("float32", "float64"),
    "on_bad": ("raise", "drop"),
}
LEAST = {"dim": 1, "clusters": 2, "seed": 0, "threads": 1}


def checked(settings: Settings) -> Settings:
    """The settings as plain Python values, or a ValueError that names what to change."""
    given = settings._asdict()
    for name, least in LEAST.items():
        value = given[name]
        if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
            raise ValueError(f"{name} must be a whole number of at least {least}; got {value!r}.")
        given[name] = int(value)
    for name, allowed in CHOICES.items():
        if given[name] not in allowed:
            raise ValueError(f"{name} must be {' or '.join(map(repr, allowed))}; got {given[name]!r}.")
    step_size, balance, replay = settings.step_size, settings.balance, settings.replay
    if step_size != AUTO and not (_is_number(step_size) and 0 < float(step_size) < 1):
        raise ValueError(f'step_size (α) must lie between 0 and 1, both excluded, or be "auto"; got {step_size!r}.')
    if balance != AUTO and not (_is_number(balance) and float(balance) >= 0):
        raise ValueError(f'balance (κ) must be a finite number of at least 0, or "auto"; got {balance!r}.')
    if not _is_number(replay) or not 0 <= replay < 1:
        raise ValueError(f"replay must be a share of at least 0 and below 1; got {replay!r}. Half is 0.5.")
    if not isinstance(settings.normalize, bool | np.bool_):
        raise ValueError(f"normalize must be True or False; got {settings.normalize!r}.")
    numbers = {"step_size": _plain(step_size), "balance": _plain(balance), "replay": float(replay)}
    return Settings(**{**given, **numbers, "normalize": bool(settings.normalize)})


def _plain(value: float | str) -> float | str:
    return AUTO if value == AUTO else float(value)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float | np.number) and not isinstance(value, bool) and math.isfinite(value)


def without_retired(params: Mapping[str, Any]) -> dict[str, Any]:
    """Parameters that an older version saved, without what is no longer chosen; a warning where that changes anything.

    `chunk` was for CUDA tensors in float64 or without Triton, which it let absorb so many states at once.
    """
    kept = {name: value for name, value in params.items() if name != "chunk"}
    if (chunk := params.get("chunk", 1)) != 1:
        warnings.warn(
            f"this KME was saved with chunk={chunk}, which is retired: what it learned is here, and its updates are "
            "the sequence from now on, state by state.",
            UserWarning,
            stacklevel=4,
        )
    return kept


def fresh_seed(seed: int | None) -> int:
    """The seed, or one drawn from the system."""
    return int(np.random.SeedSequence().generate_state(1, np.uint64)[0]) if seed is None else seed


def check_features(features: Any) -> Any:
    """`features` if it is a function or None."""
    if features is not None and not callable(features):
        raise ValueError(
            f"features must be a function from states to (..., dim) arrays; got {features!r}. A saved KME cannot hold "
            "a function: load it with vn.load(path, features=the_same_function)."
        )
    return features
