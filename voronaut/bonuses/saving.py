"""Bonuses on disk: one npz without pickle, written whole or not at all, refused whole if anything is amiss."""

import inspect
import json
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from voronaut.bonuses import class_of_kind
from voronaut.helpers import npz
from voronaut.version import __version__

FORMAT = 1


class Saved(ABC):
    """A bonus that can be written to a file: its parameters, and what it learned."""

    @property
    def params(self) -> dict[str, Any]:
        """Keyword arguments (plain JSON values) that make this bonus again: its attributes of their names."""
        return {name: getattr(self, name) for name in inspect.signature(type(self)).parameters}

    @abstractmethod
    def state_dict(self) -> dict[str, NDArray[Any]]:
        """Everything learned, as named arrays."""

    @abstractmethod
    def load_state_dict(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Take over what `state_dict` gave."""

    @classmethod
    def from_params(cls, params: Mapping[str, Any]) -> Any:
        """A fresh bonus with the parameters of a saved one, which an older version may have written."""
        return cls(**params)

    def save(self, path: npz.Where) -> None:
        """Write everything to one file. The file at `path` is replaced at once, or stays as it was."""
        header = {
            "format": FORMAT,
            "kind": type(self).__name__,
            "params": self.params,
            "voronaut": __version__,
        }
        text = np.frombuffer(json.dumps(header, sort_keys=True).encode(), np.uint8)
        npz.write(path, {"header": text, **{f"state.{name}": array for name, array in self.state_dict().items()}})


def load(path: npz.Where, **extra: Any) -> Any:
    """The bonus saved at `path`, ready to go on. `extra` gives what a file cannot hold, such as `features=`."""
    arrays = npz.read(path)
    if "header" not in arrays:
        raise ValueError(f"{path} is not a bonus saved by voronaut: it has no header. Save one with bonus.save(path).")
    header = npz.read_json(path, arrays.pop("header"))
    with npz.refusing(path, ValueError):
        if (found := header["format"]) != FORMAT:
            raise ValueError(f"{path} has format {found}; this voronaut ({__version__}) reads format {FORMAT}.")
        bonus = class_of_kind(header["kind"]).from_params({**header["params"], **extra})
        bonus.load_state_dict({name.removeprefix("state."): array for name, array in arrays.items()})
        return bonus


def check_state(state: Mapping[str, NDArray[Any]], expected: Mapping[str, NDArray[Any]], owner: str) -> None:
    """Refuse a state whose names, shapes or kinds are not those of `expected`; lengths of 0 in `expected` are free."""
    if set(state) != set(expected):
        missing, foreign = sorted(set(expected) - set(state)), sorted(set(state) - set(expected))
        raise ValueError(f"this is not the state of a {owner}: missing {missing}, unknown {foreign}.")
    for name, like in expected.items():
        array = np.asarray(state[name])
        fits = len(array.shape) == len(like.shape) and all(
            b in (0, a) for a, b in zip(array.shape, like.shape, strict=True)
        )
        if not fits or array.dtype != like.dtype:
            raise ValueError(
                f"{name} must be {like.dtype} {like.shape}; got {array.dtype} {array.shape}. "
                f"Make the {owner} with the parameters it was saved with."
            )
        if array.dtype.kind == "f" and not np.isfinite(array).all():
            raise ValueError(f"{name} holds numbers that are not finite. Nothing was loaded.")
