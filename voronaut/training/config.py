"""What an experiment is: a task, methods, seeds, and the number of steps. Plain values that go into config.json."""

import ast
import dataclasses
import difflib
import inspect
import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from voronaut import presets
from voronaut.bonuses import BONUSES, bonus_class
from voronaut.bonuses.base import Steps
from voronaut.training.population import ABSORB, SHUFFLED, check_absorb, check_scale


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
    rollout: int

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
        return dataclasses.asdict(self)


def nearest(name: str, known: Iterable[str]) -> str:
    """'Did you mean …?' for a name that is not known."""
    close = difflib.get_close_matches(name, list(known), n=1, cutoff=0.4)
    return f" Did you mean {close[0]!r}?" if close else ""


def make_methods(
    bonuses: Sequence[str], options: Mapping[str, Mapping[str, Any]], sweep: Mapping[str, Sequence[Any]]
) -> tuple[Method, ...]:
    """Methods from names, options by method ({"kme": {"scale": 0.01}}) and a sweep ({"kme.balance": [1e-5, 1e-4]})."""
    for name in [*bonuses, *options, *(key.partition(".")[0] for key in sweep)]:
        if name not in BONUSES:
            raise ValueError(f"there is no bonus {name!r}.{nearest(name, BONUSES)} Known: {', '.join(BONUSES)}.")
    for name in {*options, *(key.partition(".")[0] for key in sweep)} - set(bonuses):
        raise ValueError(f"options are given for {name!r}, which is not trained. Add --bonus {name}.")
    if len(set(bonuses)) < len(bonuses) or not bonuses:
        raise ValueError(f"name each bonus once; got {', '.join(bonuses) or 'none'}.")
    return tuple(method for name in bonuses for method in _variants(name, dict(options.get(name, {})), sweep))


def _variants(name: str, options: dict[str, Any], sweep: Mapping[str, Sequence[Any]]) -> list[Method]:
    """One method, or one per cell of the sweep's grid."""
    keys = [key.partition(".")[2] for key in sweep if key.partition(".")[0] == name]
    grid = itertools.product(*(sweep[f"{name}.{key}"] for key in keys))
    return [_method(name, options, dict(zip(keys, values, strict=True))) for values in grid]


def _method(name: str, options: dict[str, Any], swept: dict[str, Any]) -> Method:
    defaults = getattr(presets.paper(), name, {})
    chosen = {key: value(given) for key, given in {**defaults, **options, **swept}.items()}
    scale = check_scale(str(chosen.pop("scale", presets.paper().scale.get(name, BONUSES[name].scale))))
    known = _known(bonus_class(name))
    for key in chosen:
        if key not in known:
            raise ValueError(
                f"{name} has no parameter {key!r}.{nearest(key, [*known, 'scale'])} It has scale, {', '.join(known)}."
            )
    if check_absorb(chosen.get(ABSORB, SHUFFLED), chosen.get("replay", 0)) == SHUFFLED:
        chosen.pop(ABSORB, None)  # said or not, it is the same experiment
    return Method(name, ",".join([name, *(f"{k}={short(v)}" for k, v in swept.items())]), scale, chosen)


def _known(kind: Any) -> list[str]:
    """What may be chosen about a bonus, and about how a rollout meets it, besides its scale."""
    own = [p for p in inspect.signature(kind.__init__).parameters if p not in ("self", "dim", "seed")]
    return [*own, ABSORB] if issubclass(kind, Steps) else own


def value(given: Any) -> Any:
    """A parameter as a command line writes it: "1e-4" -> 0.0001, "300" -> 300, "log" -> "log"."""
    if not isinstance(given, str):
        return given
    try:
        return ast.literal_eval(given)
    except (ValueError, SyntaxError):
        return given


def short(given: Any) -> str:
    """A parameter in a folder's name: as it was written, numbers as 1e-5 and not 1e-05."""
    text = f"{given:g}" if isinstance(given, float) else str(given)
    return text.replace("e-0", "e-").replace("/", "_")
