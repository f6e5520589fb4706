"""What an experiment is: a task, methods, seeds, and the number of steps. Plain values that go into config.json."""

import ast
import dataclasses
import difflib
import inspect
import itertools
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from voronaut import presets
from voronaut.bonuses import BONUSES, bonus_class
from voronaut.bonuses.base import Steps
from voronaut.bonuses.weight import checked
from voronaut.training.population import ABSORB, SHUFFLED, check_absorb


@dataclasses.dataclass(frozen=True)
class Method:
    """A bonus, its parameters and its weight; `label` names the folders of its runs."""

    kind: str
    label: str
    scale: str  # a number, or a schedule such as linear:0.01:0
    params: Mapping[str, Any]


@dataclasses.dataclass(frozen=True)
class Config:
    """One experiment: every method with every seed, all trained side by side."""

    task: str
    methods: tuple[Method, ...]
    seeds: tuple[int, ...]
    steps: int
    threshold: str
    backend: str
    envs: int
    rollout: int  # steps of a turn of the loop: PPO's rollout, or how often SAC is logged
    learner: str = "ppo"
    pair: bool | str = True  # SAC: explorer and exploiter where there is a bonus; "stored": api.PAIRS
    numbers: Mapping[str, Any] = dataclasses.field(default_factory=dict)  # what is chosen of the learner's settings

    @property
    def rollouts(self) -> int:
        """Rollouts per run: as many as it takes to have at least `steps` steps."""
        return math.ceil(self.steps / self.rollout)

    @property
    def runs(self) -> list[tuple[Method, int]]:
        """(method, seed) of every run, in the order in which they are stacked."""
        return [(method, seed) for method in self.methods for seed in self.seeds]

    def folders(self) -> list[str]:
        """The folder name of every run."""
        return [f"{method.label}-{seed}" for method, seed in self.runs]

    def to_json(self) -> dict[str, Any]:
        """Plain values for config.json; two experiments are the same if these are."""
        plain = dataclasses.asdict(self)
        usual = {"learner": "ppo", "pair": True, "numbers": {}}  # not said, as in files from before there were others
        return {key: given for key, given in plain.items() if key not in usual or given != usual[key]}


def nearest(name: str, known: Iterable[str]) -> str:
    """'Did you mean …?' for a name that is not known."""
    close = difflib.get_close_matches(name, list(known), n=1, cutoff=0.4)
    return f" Did you mean {close[0]!r}?" if close else ""


def make_methods(
    bonuses: Sequence[str],
    options: Mapping[str, Mapping[str, Any]],
    sweep: Mapping[str, Sequence[Any]],
    defaults: Mapping[str, Mapping[str, Any]] | None = None,
) -> tuple[Method, ...]:
    """Methods from names, options by method ({"kme": {"scale": 0.01}}) and a sweep ({"kme.balance": [1e-5, 1e-4]})."""
    for name in [*bonuses, *options, *(key.partition(".")[0] for key in sweep)]:
        if name not in BONUSES:
            raise ValueError(f"there is no bonus {name!r}.{nearest(name, BONUSES)} Known: {', '.join(BONUSES)}.")
    for name in {*options, *(key.partition(".")[0] for key in sweep)} - set(bonuses):
        raise ValueError(f"options are given for {name!r}, which is not trained. Add --bonus {name}.")
    if len(set(bonuses)) < len(bonuses) or not bonuses:
        raise ValueError(f"name each bonus once; got {', '.join(bonuses) or 'none'}.")
    usual = defaults_of(None) if defaults is None else defaults
    given = {name: {**usual.get(name, {}), **options.get(name, {})} for name in bonuses}
    return tuple(method for name in bonuses for method in _variants(name, given[name], sweep))


def defaults_of(preset: str | None) -> dict[str, dict[str, Any]]:
    """Parameters and weights by bonus where none are given: the paper's, or each bonus's own.

    RND and RE3 are the paper's in both: they have no others.
    """
    if preset not in (None, "paper"):
        raise ValueError(f"preset must be 'paper', or be left out; got {preset!r}.")
    paper = presets.paper()
    scale = {name: entry.scale for name, entry in BONUSES.items()} | paper.scale
    usual = {name: {**getattr(paper, name, {}), "scale": scale[name]} for name in BONUSES}
    return usual if preset else {**usual, "kme": {"scale": BONUSES["kme"].scale}}


def check_numbers(learner: str, given: Mapping[str, Any], known: Iterable[str]) -> dict[str, Any]:
    """What is chosen of a learner's settings, as numbers; ValueError for what it does not have."""
    known = list(known)
    for key in given:
        if key not in known:
            raise ValueError(f"{learner} has no {key!r}.{nearest(key, known)} It has {', '.join(known)}.")
    return {key: plain_value(f"{learner}.{key}", each) for key, each in given.items()}


def _variants(name: str, options: dict[str, Any], sweep: Mapping[str, Sequence[Any]]) -> list[Method]:
    """One method, or one per cell of the sweep's grid."""
    keys = [key.partition(".")[2] for key in sweep if key.partition(".")[0] == name]
    for key in keys:
        _check_apart(f"{name}.{key}", sweep[f"{name}.{key}"])
    grid = itertools.product(*(sweep[f"{name}.{key}"] for key in keys))
    return [_method(name, options, dict(zip(keys, values, strict=True))) for values in grid]


def _check_apart(key: str, values: Sequence[Any]) -> None:
    """Runs of two values must not meet in one folder."""
    meant = [value(given) for given in values]
    for index, given in enumerate(values):
        if meant[index] in meant[:index]:
            raise ValueError(f"{key} has the value {given} more than once. Name each value once.")
        if short(given) in map(short, values[:index]):
            raise ValueError(f"{key}={given} would have the same folder as another value. Name them differently.")


def _method(name: str, options: dict[str, Any], swept: dict[str, Any]) -> Method:
    chosen = {key: plain_value(f"{name}.{key}", given) for key, given in {**options, **swept}.items()}
    scale = str(checked(str(chosen.pop("scale", BONUSES[name].scale))))
    known = _known(bonus_class(name))
    for key in chosen:
        if key not in known:
            raise ValueError(
                f"{name} has no parameter {key!r}.{nearest(key, [*known, 'scale'])} It has scale, {', '.join(known)}."
            )
    if check_absorb(chosen.get(ABSORB, SHUFFLED)) == SHUFFLED:
        chosen.pop(ABSORB, None)  # said or not, it is the same experiment
    return Method(name, ",".join([name, *(f"{k}={short(v)}" for k, v in swept.items())]), scale, chosen)


def _known(kind: Any) -> list[str]:
    """What may be chosen of a bonus besides its scale, and about how a rollout meets it: nothing that is a function."""
    known = inspect.signature(kind.__init__).parameters
    function = "features" if "features" in known and known["features"].default is None else None  # RND's is a number
    own = [name for name in known if name not in ("self", "dim", "seed", function)]
    return [*own, ABSORB] if issubclass(kind, Steps) else own


def value(given: Any) -> Any:
    """A parameter as a command line writes it: "1e-4" -> 0.0001, "300" -> 300, "true" -> True, "log" -> "log"."""
    if not isinstance(given, str):
        return given
    if given in ("true", "false"):
        return given == "true"
    try:
        return ast.literal_eval(given)
    except (ValueError, SyntaxError):
        return given


def plain_value(name: str, given: Any) -> Any:
    """The `value` of a parameter, if a file can hold it: settings stand in config.json."""
    found = given.item() if isinstance(given, np.generic) else value(given)
    try:
        json.dumps(found)
    except TypeError:
        raise ValueError(
            f"{name} must be a number, a text or a list of them, as settings stand in a file; got {given!r}. A "
            "function of states is for vn.KME(...) in a loop of your own; here, wrap the environment."
        ) from None
    return found


def short(given: Any) -> str:
    """A parameter in a folder's name: as it was written, numbers as 1e-5 and not 1e-05, and with all their digits."""
    text = str(given)
    if isinstance(given, float) and float(f"{given:g}") == given:
        text = f"{given:g}"
    return text.replace("e-0", "e-").replace("/", "_")
