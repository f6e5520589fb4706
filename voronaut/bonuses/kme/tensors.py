"""torch tensors for a KME: what comes from a GPU stays there, what comes from the CPU goes through the CPU's kernels.

The first CUDA tensor takes the clusters to its device. They live there, in buffers that never move, until the host
asks for them (`centers`, `metrics()`, `state_dict()`, a NumPy array to pay, ...): only that waits for the device.
`rewards` and `update` do not, and can be captured in CUDA graphs.
"""

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from voronaut.bonuses.kme.frames import Near
from voronaut.bonuses.kme.settings import AUTO

if TYPE_CHECKING:
    from voronaut.bonuses.kme import KME

Class = TypeVar("Class", bound=type)
ASKS = ("entropy", "entropy_bound", "metrics", "objective_value", "state_dict")
SHOWS = ("centers", "counts", "gaps")


def is_tensor(states: Any) -> bool:
    """Whether this is a torch tensor, without importing torch."""
    return type(states).__module__.partition(".")[0] == "torch"


def welcome(kind: Class) -> Class:
    """Let a KME take tensors, and come home before the host looks at it."""
    own = vars(kind)
    changed = {
        "rewards": _pays(own["rewards"]),
        "update": _learns(own["update"]),
        "step": _walks(own["step"]),
        "load_state_dict": _forgets(own["load_state_dict"]),
        **{name: _after_home(own[name]) for name in ASKS},
        **{name: property(_after_home(own[name].fget)) for name in SHOWS},
        **{name: staticmethod(_all_home(own[name].__func__)) for name in ("rewards_many", "update_many")},
    }
    for name, value in changed.items():
        setattr(kind, name, value)
    return kind


def _after_home(method: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(method)
    def asked(self: "KME") -> Any:
        come_home(self)
        return method(self)

    return asked


def _all_home(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def together(members: Any, states: Any) -> Any:
        for member in members:
            _leave(member)
        return function(members, states)

    return together


def _forgets(method: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(method)
    def load_state_dict(self: "KME", state: Any) -> None:
        method(self, state)
        self._resident = None

    return load_state_dict


def _pays(method: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(method)
    def rewards(self: "KME", next_states: Any) -> Any:
        if _on_device(next_states):
            return _resident(self, next_states).rewards(_vectors(self, next_states))
        come_home(self)
        return _like(next_states, method(self, _plain(next_states)))

    return rewards


def _learns(method: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(method)
    def update(self: "KME", next_states: Any) -> None:
        if _on_device(next_states):
            _resident(self, next_states).update(_vectors(self, next_states))
            return
        _leave(self)
        method(self, _plain(next_states))

    return update


def _walks(method: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(method)
    def step(self: "KME", next_states: Any) -> Any:
        if _on_device(next_states):
            raise ValueError(
                f"step walks state by state on the CPU; got a tensor on {next_states.device}. "
                "Pass next_states.cpu(), or use rewards and update."
            )
        _leave(self)
        return _like(next_states, method(self, _plain(next_states)))

    return step


def _on_device(states: Any) -> bool:
    return is_tensor(states) and states.device.type != "cpu"


def _plain(states: Any) -> Any:
    """A CPU tensor without its graph, in a precision that NumPy has."""
    if not is_tensor(states):
        return states
    import torch

    return states.detach().float() if states.dtype == torch.bfloat16 else states.detach()


def _like(states: Any, paid: Any) -> Any:
    """Rewards of the kind that the states are."""
    if not is_tensor(states):
        return paid
    import torch

    return torch.from_numpy(np.ascontiguousarray(paid))


def _vectors(self: "KME", states: Any) -> Any:
    """What is clustered, (..., dim) on the device."""
    vectors = states.detach() if self.features is None else self.features(states)
    if not _on_device(vectors):
        raise ValueError(
            f"features must keep CUDA tensors on their device; got {type(vectors).__name__}. "
            "Let it return tensors, or pass next_states.cpu()."
        )
    if vectors.ndim == 0 or vectors.shape[-1] != self.dim:
        raise ValueError(
            f"states must end in dim={self.dim}; got shape {tuple(vectors.shape)}. Flatten dict observations first."
        )
    return vectors


def _resident(self: "KME", states: Any) -> Any:
    """The clusters on the states' device, brought there if they are elsewhere."""
    from voronaut.bonuses.kme.device import Resident

    chosen = self.settings
    if AUTO in (chosen.step_size, chosen.balance) or chosen.normalize or chosen.replay:
        raise ValueError(
            "on a GPU step_size and balance must be numbers, without normalize and replay; pass next_states.cpu() for "
            f"the rest. Got step_size={chosen.step_size!r}, balance={chosen.balance!r}, "
            f"normalize={chosen.normalize!r}, replay={chosen.replay!r}."
        )
    if self._resident is None or self._resident.device != states.device:
        come_home(self)
        self._resident = Resident(self, states.device)
    return self._resident


def come_home(self: "KME") -> None:
    """Copy what was learned on a device to the host; this waits for the device."""
    there = self._resident
    if there is None:
        return
    state = there.state()
    self._centers, self._counts, self._frame = state["centers"], state["counts"], Near(state["origin"])
    self._floor = float(state["floor"])
    self._updates, self._bad = int(state["updates"]), int(state["bad"])
    self._reservoir.restore(state["sample"], int(state["seen"]))
    self._prepared = self._kept = None


def _leave(self: "KME") -> None:
    """Come home for good: the host is about to learn, and what is on the device is then out of date."""
    come_home(self)
    self._resident = None
