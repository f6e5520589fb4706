"""An adapter on disk: its settings, its bonus and what it has not learned yet, in one npz without pickle."""

import json
from collections.abc import Mapping
from typing import Any

import numpy as np

from voronaut.adapters.observations import Features, Reader
from voronaut.adapters.payer import Payer, Scale
from voronaut.bonuses import class_of_kind
from voronaut.bonuses.saving import Saved
from voronaut.helpers import npz
from voronaut.version import __version__

FORMAT = 1
STATE, OWN = "state.", "adapter."


def save(
    path: npz.Where, owner: str, payer: Payer, reader: Reader, state: Mapping[str, Any] | None = None, **more: Any
) -> None:
    """Write everything but functions, which must be given again to `load`; `state` has arrays of the adapter's own."""
    bonus = payer.bonus
    header = {
        "format": FORMAT,
        "adapter": owner,
        "voronaut": __version__,
        "bonus": type(bonus).__name__,
        "params": bonus.params if isinstance(bonus, Saved) else None,
        "functions": {"features": reader.features is not None, "scale": callable(payer.scale)},
        "settings": {
            "scale": None if callable(payer.scale) else payer.scale,
            "update_every": payer.update_every,
            "warmup": payer.warmup,
            "total_steps": payer.total_steps,
            "keys": reader.keys,
            **more,
        },
    }
    text = np.frombuffer(json.dumps(header, sort_keys=True).encode(), np.uint8)
    learned = {STATE + name: np.asarray(array) for name, array in bonus.state_dict().items()}
    own = {OWN + name: array for name, array in {**payer.state_dict(), **(state or {})}.items()}
    npz.write(path, {"header": text, **learned, **own})


class SavedAdapter:
    """What a file holds: keyword arguments of the adapter (`settings`, with a fresh bonus), and all that was learned.

    Args:
        path: of the file.
        owner: name of the adapter that reads it.
        bonus: needed if the saved one was not one of Voronaut's own; it must have the parameters of the saved one.
        features, scale: needed if the saved ones were functions; a scale given here replaces a saved number.
    """

    def __init__(
        self,
        path: npz.Where,
        owner: str,
        *,
        bonus: Any = None,
        features: Features | None = None,
        scale: Scale | None = None,
    ) -> None:
        self._arrays = npz.read(path)
        header = _header(path, self._arrays, owner)
        given = {"features": features, "scale": scale}
        for name, needed in header["functions"].items():
            if needed and given[name] is None:
                raise ValueError(f"{path} was saved with a function as {name}=, which no file can hold. Give it again.")
        self.settings: dict[str, Any] = {**header["settings"], "features": features}
        if scale is not None:
            self.settings["scale"] = scale
        self.settings["bonus"] = _bonus(path, header) if bonus is None else bonus

    def restore(self, payer: Payer) -> npz.Arrays:
        """Put what was learned into the bonus, and the rest into the payer; returns it for the adapter's own part."""
        learned = {k.removeprefix(STATE): v for k, v in self._arrays.items() if k.startswith(STATE)}
        payer.bonus.load_state_dict(learned)
        own = {k.removeprefix(OWN): v for k, v in self._arrays.items() if k.startswith(OWN)}
        payer.load_state_dict(own)
        return own


def _header(path: npz.Where, arrays: npz.Arrays, owner: str) -> dict[str, Any]:
    header = npz.read_json(path, arrays["header"]) if "header" in arrays else {}
    if header.get("adapter") != owner:
        saved = header.get("adapter") or "another kind of object"
        raise ValueError(f"{path} was saved by {saved}, not by {owner}. Load it with what saved it.")
    if (found := header.get("format")) != FORMAT:
        raise ValueError(f"{path} has format {found}; this voronaut ({__version__}) reads format {FORMAT}.")
    return header


def _bonus(path: npz.Where, header: dict[str, Any]) -> Any:
    kind, params = header["bonus"], header["params"]
    if params is None or params.get("features"):
        why = "is not one of Voronaut's own" if params is None else "has a function as features="
        raise ValueError(f"the bonus in {path} ({kind}) {why}: make it again and pass it as bonus=.")
    return class_of_kind(kind).from_params(params)
