"""Nothing may wait for a device: what watches over it, on any machine and on CUDA."""

from typing import Any

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

WAITS = ("_local_scalar_dense", "nonzero", "unique", "masked_select", "equal")


class NoWaiting(TorchDispatchMode):  # type: ignore[misc]
    """No value is read, and nothing has a shape that depends on values."""

    def __torch_dispatch__(self, call: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = call.overloadpacket.__name__
        masks = [a for a in args[1] if a is not None and a.dtype == torch.bool] if name == "index" else []
        assert not name.startswith(WAITS) and not masks, f"{call} waits for the device"
        return call(*args, **(kwargs or {}))


def forbid_leaving(patch: pytest.MonkeyPatch) -> None:
    """No array is copied back."""

    def refuse(*_: Any) -> None:
        raise AssertionError("a tensor left its device")

    for name in ("cpu", "numpy", "tolist"):
        patch.setattr(torch.Tensor, name, refuse)


def same_in_graphs(one: Any, other: Any, batches: list[Any]) -> None:
    """CUDA itself refuses to wait; and a graph of each call does what the call does. Both have learned batches[0]."""
    torch.cuda.set_sync_debug_mode("error")
    try:
        one.rewards(batches[1])
        one.update(batches[1])
    finally:
        torch.cuda.set_sync_debug_mode("default")
    box = batches[1].clone()
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        other.rewards(box)
        other.update(box)
    torch.cuda.current_stream().wait_stream(side)
    pays, learns = torch.cuda.CUDAGraph(), torch.cuda.CUDAGraph()
    with torch.cuda.graph(pays):
        paid = other.rewards(box)
    with torch.cuda.graph(learns):
        other.update(box)
    for batch in batches[2:]:
        box.copy_(batch)
        pays.replay()
        torch.testing.assert_close(paid, one.rewards(batch), rtol=0, atol=0)
        learns.replay()
        one.update(batch)
