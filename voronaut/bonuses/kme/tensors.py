"""torch tensors for a KME: what comes from a GPU stays there, what comes from the CPU goes through the CPU's kernels.

The first CUDA tensor takes the clusters to its device (`device.OnDevice`). They live there, in buffers that never move,
until the host asks for them (`centers`, `metrics()`, `state_dict()`, a NumPy array to pay, ...): only that waits for
the device. `rewards` and `update` do not, and can be captured in CUDA graphs.
"""

from collections.abc import Callable
from typing import Any

from voronaut.bonuses.kme.settings import Settings
from voronaut.bonuses.states import is_tensor


def on_device(states: Any) -> bool:
    """Whether this is a tensor that is not on the CPU."""
    return is_tensor(states) and states.device.type != "cpu"


def vectors(states: Any, features: Callable[[Any], Any] | None, dim: int) -> Any:
    """What is clustered of states on a device, (..., dim) on that device."""
    found = states.detach() if features is None else features(states)
    if not on_device(found):
        raise ValueError(
            f"features must keep CUDA tensors on their device; got {type(found).__name__}. "
            "Let it return tensors, or pass next_states.cpu()."
        )
    if found.ndim == 0 or found.shape[-1] != dim:
        raise ValueError(
            f"states must end in dim={dim}; got shape {tuple(found.shape)}. Flatten dict observations first."
        )
    return found


def check_settings(chosen: Settings) -> None:
    """Refuse what a device cannot do."""
    if chosen.views and not chosen.normalize_bonus:
        raise ValueError(
            "on a GPU the bonus is in its own deviation; pass next_states.cpu() for normalize_bonus=False."
        )
    if chosen.normalize:
        raise ValueError("on a GPU the paper's memory has no normalize; pass next_states.cpu() for it.")


def refuse_device(states: Any) -> None:
    """Refuse what can only be done on the CPU."""
    if on_device(states):
        raise ValueError(
            f"step walks state by state on the CPU; got a tensor on {states.device}. "
            "Pass next_states.cpu(), or use rewards and update."
        )
