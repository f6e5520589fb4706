"""From an environment's observations to the states that a bonus sees."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Features = Callable[[Any], Any]
Observations = Any  # an array (n, ...) or a dict of them


class Reader:
    """Batches of observations -> states (n, d).

    Args:
        space: of one observation (a Gymnasium space).
        keys: of a Dict space, whose vectors are put one after the other.
        features: function from a batch of observations (with `keys`: of the joined vectors) to (n, d).
    """

    def __init__(self, space: Any, keys: Sequence[str] | None = None, features: Features | None = None) -> None:
        if isinstance(keys, str):
            raise TypeError(f"keys must be a list of names; got {keys!r}. Write keys=[{keys!r}].")
        self.keys, self.features = None if keys is None else list(keys), features
        _check(space, self.keys, features)

    def __call__(self, observations: Observations, finals: Mapping[int, Any] | None = None) -> NDArray[Any]:
        """States (n, d) in memory of their own; `finals` replaces the rows of environments whose episode ended."""
        if finals:
            observations = _with_rows(observations, finals)
        if self.keys is not None:
            observations = np.concatenate([_rows(observations[key]) for key in self.keys], axis=1)
        if self.features is None:
            return np.array(observations)
        count = len(_first(observations))
        states = np.array(self.features(observations))
        if states.ndim != 2 or len(states) != count:
            raise ValueError(
                f"features must turn {count} observations into an array ({count}, dim); got shape {states.shape}."
            )
        return states


def _check(space: Any, keys: list[str] | None, features: Features | None) -> None:
    """Refuse what could not become a vector, and say what to pass."""
    inside = getattr(space, "spaces", None)
    parts: Mapping[str, Any] | None = inside if isinstance(inside, Mapping) else None
    if keys is not None:
        _check_keys(space, parts, keys)
    elif features is None and parts is not None:
        raise ValueError(
            f"Dict observations: name what the bonus shall see with keys=[…] out of {list(parts)}, "
            "or pass features=, a function from a batch of observations to vectors (n, dim)."
        )
    elif features is None:
        _check_vector(space, "the observation", "Pass features=")


def _check_keys(space: Any, parts: Mapping[str, Any] | None, keys: list[str]) -> None:
    if parts is None:
        raise ValueError(f"keys={keys} need Dict observations; got {space}. Leave keys out.")
    if not keys or not set(keys) <= set(parts):
        raise ValueError(f"keys={keys} must name some of the observations; there are {list(parts)}.")
    for key in keys:
        _check_vector(
            parts[key], f"the observation {key!r}", "Leave it out of keys=, or pass instead of keys features="
        )


def _check_vector(space: Any, what: str, repair: str) -> None:
    shape = getattr(space, "shape", None)
    if shape is None or len(shape) != 1:
        kind = f"an image or another array of shape {shape}" if shape else f"{space}"
        raise ValueError(
            f"{what} is {kind}, and a bonus needs vectors. {repair}: a function from a batch of observations to "
            "vectors (n, dim), such as an encoder, or lambda obs: obs.reshape(len(obs), -1) for small arrays."
        )


def _first(observations: Observations) -> Any:
    return next(iter(observations.values())) if isinstance(observations, Mapping) else observations


def _rows(array: Any) -> NDArray[Any]:
    return np.asarray(array).reshape(len(array), -1)


def _with_rows(observations: Observations, rows: Mapping[int, Any]) -> Observations:
    """A copy in which environment i has the observation rows[i]."""
    if isinstance(observations, Mapping):
        return {key: _with_rows(array, {i: row[key] for i, row in rows.items()}) for key, array in observations.items()}
    copy = np.array(observations)
    for i, row in rows.items():
        copy[i] = row
    return copy
