"""From an environment's observations to the states that a bonus sees."""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Features = Callable[[Any], Any]
Observations = Any  # an array (n, ...) or a dict of them
LARGE = 1024  # numbers: arrays with more are taken for images


class Reader:
    """Batches of observations -> states (n, d).

    Boxes of any shape and MultiBinary are flattened, Discrete and MultiDiscrete become one-hot vectors. Images need
    `features`.

    Args:
        space: of one observation (a Gymnasium space).
        keys: of a Dict space, whose vectors are put one after the other.
        features: function from a batch of observations (with `keys`: of the joined vectors) to (n, d).
    """

    def __init__(self, space: Any, keys: Sequence[str] | None = None, features: Features | None = None) -> None:
        if isinstance(keys, str):
            raise TypeError(f"keys must be a list of names; got {keys!r}. Write keys=[{keys!r}].")
        self.space, self.keys, self.features = space, None if keys is None else list(keys), features
        self._parts = _parts(space, self.keys, features)

    @property
    def dim(self) -> int | None:
        """Length of a state; of `features` as seen on an observation of zeros, None if they refuse it."""
        if self.features is None:
            return sum(part.width for part in self._parts.values())
        try:
            return int(self(_zeros(self.space)).shape[1])
        except Exception:  # a function of the user's, given what no environment gave
            return None

    def __call__(self, observations: Observations, finals: Mapping[int, Any] | None = None) -> NDArray[Any]:
        """States (n, d) in memory of their own; `finals` replaces the rows of environments whose episode ended."""
        if finals:
            observations = _with_rows(observations, finals)
        if self._parts:
            observations = self._joined(observations)
        if self.features is None:
            return np.array(observations)
        return checked_features(np.array(self.features(observations)), len(_first(observations)))

    def _joined(self, observations: Observations) -> NDArray[Any]:
        if self.keys is None:
            return self._parts[""].vectors(observations)
        return np.concatenate([part.vectors(observations[key]) for key, part in self._parts.items()], axis=1)


class Part(NamedTuple):
    """How one space becomes a vector: flattened, or one-hot in so many levels from `start` on."""

    width: int
    levels: NDArray[np.int64] | None = None
    start: NDArray[np.int64] | None = None

    def vectors(self, values: Any) -> NDArray[Any]:
        """(n, …) -> (n, width)."""
        rows = np.asarray(values).reshape(len(values), -1)
        if self.levels is None or self.start is None:
            return rows
        hot = np.zeros((len(rows), self.width), np.float32)
        offsets = np.concatenate([[0], np.cumsum(self.levels)[:-1]])
        hot[np.arange(len(rows))[:, None], offsets + rows.astype(np.int64) - self.start] = 1
        return hot


def _parts(space: Any, keys: list[str] | None, features: Features | None) -> dict[str, Part]:
    """What is joined, by key ("" if there are no keys); empty if `features` takes observations as they are."""
    inside = getattr(space, "spaces", None)
    spaces: Mapping[str, Any] | None = inside if isinstance(inside, Mapping) else None
    if keys is not None:
        _check_keys(space, spaces, keys)
        assert spaces is not None
        return {key: _part(spaces[key], f"the observation {key!r}", "Leave it out of keys=, or pass ") for key in keys}
    if features is not None:
        return {}
    if spaces is not None:
        raise ValueError(_which_keys(spaces))
    return {"": _part(space, "the observation", "Pass ")}


def _part(space: Any, what: str, repair: str) -> Part:
    shape = getattr(space, "shape", None)
    if shape is None:
        raise ValueError(
            f"{what} is {space}, and a bonus needs vectors. {repair}features=: a function from a batch of observations "
            "to vectors (n, dim)."
        )
    if _is_image(space):
        raise ValueError(
            f"{what} is an image or another large array of shape {shape}. {repair}features=: an encoder such as "
            f"vn.features.RandomConv({shape}), or lambda obs: obs.reshape(len(obs), -1) to take every number."
        )
    if hasattr(space, "nvec"):  # MultiDiscrete
        return _one_hot(space.nvec, space.start)
    if hasattr(space, "n") and not shape:  # Discrete
        return _one_hot(space.n, space.start)
    return Part(int(np.prod(shape)))


def _one_hot(levels: Any, start: Any) -> Part:
    each = np.ravel(levels).astype(np.int64)
    return Part(int(each.sum()), each, np.ravel(start).astype(np.int64))


def _is_image(space: Any) -> bool:
    return hasattr(space, "high") and looks_like_image(getattr(space, "shape", None) or (), space.dtype)


def looks_like_image(shape: Sequence[int], kind: Any) -> bool:
    """Whether an array of one observation, NumPy's or torch's, is taken for an image: bytes, or many numbers."""
    return len(shape) >= 2 and (str(kind).endswith("uint8") or math.prod(shape) > LARGE)


def rows_of(what: str, part: Any) -> Any:
    """A batch of tensors (n, …) -> (n, d), images refused; for libraries whose observations are tensors."""
    shape = tuple(part.shape[1:])
    if looks_like_image(shape, part.dtype):
        raise ValueError(
            f"{what} is an image or another large array of shape {shape}, and a bonus needs vectors. Pass features=: a "
            "function from a batch of observations to vectors (n, dim), such as an encoder."
        )
    return part.reshape(len(part), -1)


def checked_features(states: NDArray[Any], count: int) -> NDArray[Any]:
    """What a function made of so many observations, if it is a vector for each."""
    if states.ndim != 2 or len(states) != count:
        raise ValueError(
            f"features must turn {count} observations into an array ({count}, dim); got shape {states.shape}."
        )
    return states


def _which_keys(spaces: Mapping[str, Any]) -> str:
    """What to say about Dict observations of which nothing is chosen."""
    images = [key for key, space in spaces.items() if _is_image(space)]
    rest = [key for key, space in spaces.items() if key not in images and getattr(space, "shape", None) is not None]
    left = f" leaves out the images {images}" if images else " takes all"
    return (
        f"Dict observations: name what the bonus shall see with keys=[…] out of {list(spaces)} (keys={rest}{left}), "
        "or pass features=, a function from a batch of observations to vectors (n, dim)."
    )


def _check_keys(space: Any, spaces: Mapping[str, Any] | None, keys: list[str]) -> None:
    if spaces is None:
        raise ValueError(f"keys={keys} need Dict observations; got {space}. Leave keys out.")
    if not keys or not set(keys) <= set(spaces):
        raise ValueError(f"keys={keys} must name some of the observations; there are {list(spaces)}.")


def _zeros(space: Any) -> Observations:
    """A batch of one observation, made up."""
    inside = getattr(space, "spaces", None)
    if isinstance(inside, Mapping):
        return {key: _zeros(one) for key, one in inside.items() if getattr(one, "shape", None) is not None}
    return np.zeros((1, *space.shape), space.dtype)


def _first(observations: Observations) -> Any:
    return next(iter(observations.values())) if isinstance(observations, Mapping) else observations


def mapped(act: Callable[..., Any], first: Any, *others: Any) -> Any:
    """act(first, …) of arrays; of Dict observations, and of dicts of dicts, the same for every key."""
    if isinstance(first, Mapping):
        return {key: mapped(act, array, *(other[key] for other in others)) for key, array in first.items()}
    return act(first, *others)


def _with_rows(observations: Observations, rows: Mapping[int, Any]) -> Observations:
    """A copy in which environment i has the observation rows[i]."""
    if isinstance(observations, Mapping):
        return {key: _with_rows(array, {i: row[key] for i, row in rows.items()}) for key, array in observations.items()}
    copy = np.array(observations)
    for i, row in rows.items():
        copy[i] = row
    return copy
