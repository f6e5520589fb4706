"""What can be chosen about a KME, and what is refused."""

import math
import warnings
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

AUTO = "auto"
SMALL = 4  # up to so many coordinates the whole state is one view, beyond each coordinate is one
CLUSTERS = {1: 32, 2: 64}  # of a view of so many coordinates; 300 beyond


class Settings(NamedTuple):
    """The choices, JSON values all."""

    dim: int
    clusters: int
    step_size: float
    balance: float | str
    objective: str
    init: str
    seed: int
    dtype: str
    threads: int
    on_bad: str
    normalize: bool = False
    views: int = 0  # 0: the paper's one clustering with a number for balance
    view_dim: int = 0
    normalize_bonus: bool = False


CHOICES = {
    "objective": ("sqrt", "log"),
    "init": ("zeros", "data"),
    "dtype": ("float32", "float64"),
    "on_bad": ("raise", "drop"),
}
LEAST = {"dim": 1, "clusters": 2, "seed": 0, "threads": 1}


def chosen(settings: Settings, views: int | str, view_dim: int | None) -> Settings:
    """The settings with what was left open filled in: None, and "auto" for the views."""
    if settings.balance != AUTO:
        if views != AUTO or view_dim is not None or settings.normalize_bonus:
            raise ValueError(
                'views, view_dim and normalize_bonus go with balance="auto"; with a number for balance a KME is the '
                f"paper's. Got balance={settings.balance!r}, views={views!r}, view_dim={view_dim!r}, "
                f"normalize_bonus={settings.normalize_bonus!r}."
            )
        usual = {"clusters": 300, "init": "zeros", "normalize_bonus": False}
        return checked(_filled(settings, usual))
    if settings.objective != "sqrt" or settings.init not in (None, "data") or settings.normalize:
        raise ValueError(
            'objective="log", init="zeros" and normalize go with a number for balance, such as the paper\'s 1e-4; with '
            f'balance="auto" they are decided. Got {settings}.'
        )
    count, size = _views(settings.dim, views, view_dim)
    clusters = 300 if size == settings.dim > 1 else CLUSTERS.get(size, 300)
    filled = _filled(settings, {"clusters": clusters, "init": "data", "normalize_bonus": True})
    return checked(filled._replace(views=count, view_dim=size))


def _filled(settings: Settings, usual: Mapping[str, Any]) -> Settings:
    return settings._replace(**{name: value for name, value in usual.items() if getattr(settings, name) is None})


def _views(dim: Any, views: int | str, view_dim: int | None) -> tuple[int, int]:
    """How many views of how many coordinates each."""
    if isinstance(dim, bool) or not isinstance(dim, int | np.integer) or dim < 1:
        raise ValueError(f"dim must be a whole number of at least 1; got {dim!r}.")
    whole = dim <= SMALL if views == AUTO else views == 1
    size = view_dim if view_dim is not None else dim if whole else 1
    if isinstance(size, bool) or not isinstance(size, int | np.integer) or not 1 <= size <= dim:
        raise ValueError(f"view_dim must be a whole number from 1 to dim={dim}; got {view_dim!r}.")
    count = views if views != AUTO else 1 if size == dim else dim
    most = dim if size == 1 else 1 if size == dim else None  # more would be the same view twice
    if isinstance(count, bool | str) or not isinstance(count, int | np.integer) or count < 1 or (most or count) < count:
        limit = f" and at most {most} of {size} coordinates" if most else ""
        raise ValueError(f'views must be "auto" or a whole number of at least 1{limit}; got {views!r}.')
    return int(count), int(size)


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
    step_size, balance = settings.step_size, settings.balance
    if not _is_number(step_size) or not 0 < step_size < 1:
        raise ValueError(f"step_size (α) must lie between 0 and 1, both excluded; got {step_size!r}.")
    if balance != AUTO and not (_is_number(balance) and float(balance) >= 0):
        raise ValueError(
            f'balance must be "auto" or, as the paper has it (κ), a number of at least 0; got {balance!r}.'
        )
    for name in ("normalize", "normalize_bonus"):
        if not isinstance(given[name], bool | np.bool_):
            raise ValueError(f"{name} must be True or False; got {given[name]!r}.")
        given[name] = bool(given[name])
    numbers = {"step_size": float(step_size), "balance": balance if balance == AUTO else float(balance)}
    return Settings(**given | numbers)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float | np.number) and not isinstance(value, bool) and math.isfinite(value)


def without_retired(params: Mapping[str, Any]) -> dict[str, Any]:
    """Parameters that an older version saved, without what is no longer chosen; a warning where that changes anything.

    `chunk` was for CUDA tensors in float64 or without Triton, which it let absorb so many states at once; `replay` a
    share of old states among what the paper's clusters absorb.
    """
    kept = {name: value for name, value in params.items() if name not in ("chunk", "replay")}
    _refuse_counts(params)
    _refuse_replay(params)
    if (chunk := params.get("chunk", 1)) != 1:
        warnings.warn(
            f"this KME was saved with chunk={chunk}, which is retired: what it learned is here, and its updates are "
            "the sequence from now on, state by state.",
            UserWarning,
            stacklevel=4,
        )
    return kept


def _refuse_counts(params: Mapping[str, Any]) -> None:
    """Refuse what was saved with the rule that now is `entropy.scale_free`; "auto" was its name before views."""
    balance, step_size = params.get("balance"), params.get("step_size")
    if balance == "counts" or step_size == AUTO or (balance == AUTO and "views" not in params):
        raise ValueError(
            f"this KME was saved with balance={balance!r} and step_size={step_size!r}, a rule that counts every state "
            "for good. It has left the bonus, because such clusters fall ill on an agent's own stream "
            f"(docs/balance.md), so this one cannot go on. vn.KME({params.get('dim')}) needs no units either; for "
            "laws that stay where they are the rule is in voronaut.entropy.scale_free."
        )


def _refuse_replay(params: Mapping[str, Any]) -> None:
    """Refuse a balance by counts that old states were counted in again."""
    if replay := params.get("replay"):
        raise ValueError(
            f"this KME was saved with replay={replay}, which is no choice any more: the default memory draws half of "
            "what it absorbs from states before, and the paper's clusters take what comes, so this one cannot go on "
            f"as it was. vn.KME({params.get('dim')}) is the one that replays."
        )


def described(settings: Settings) -> str:
    """In words what is clustered, and how."""
    s = settings
    balance = "" if s.balance == AUTO else f", balance {s.balance}"
    if s.views < 2:
        return f"{s.clusters} clusters of the whole state{balance}"
    coordinates = f"{s.view_dim} coordinate{'s' if s.view_dim > 1 else ''}"
    return f"{s.views} views of {coordinates} with {s.clusters} clusters each{balance}"


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


def check_whole(settings: Settings, what: str) -> None:
    """Refuse to show clusters of whole states where there are only parts."""
    if settings.views > 1:
        raise AttributeError(f"this KME has {settings.views} views and no {what} of whole states; see .views.")
