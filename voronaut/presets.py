"""The paper's numbers and no others (appendix, "Algorithms")."""

from typing import Any, NamedTuple


class Preset(NamedTuple):
    """Keyword arguments by method; `scale` holds β, the weight of each method's bonus."""

    kme: dict[str, Any]
    rnd: dict[str, Any]
    re3: dict[str, Any]
    ppo: dict[str, Any]
    scale: dict[str, float]
    steps: int
    seeds: int


def paper() -> Preset:
    """What the paper prints. `vn.KME(dim=17, **vn.presets.paper().kme)` is the paper's KME."""
    return Preset(
        kme={"clusters": 300, "step_size": 0.05, "balance": 1e-4, "objective": "sqrt", "init": "zeros"},
        rnd={"learning_rate": 1e-4, "hidden": 1024, "features": 512},
        re3={"neighbors": 3, "hidden": 1024, "features": 50},
        ppo={"rollout": 16_384, "envs": 16},
        scale={"none": 0.0, "kme": 0.01, "rnd": 1e-5, "re3": 1e-4},
        steps=5_000_000,
        seeds=5,
    )
