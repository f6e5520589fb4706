"""What a KME has learned, as named arrays and back."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from voronaut.bonuses.kme.balanced import KEPT, Balanced
from voronaut.bonuses.kme.frames import Shifted

if TYPE_CHECKING:
    from voronaut.bonuses.kme import KME

Arrays = Mapping[str, NDArray[Any]]


def to_arrays(kme: "KME") -> dict[str, NDArray[Any]]:
    """Copies of everything learned."""
    own = kme._memory
    rest = (own.grown, own.recomputed) if isinstance(own, Balanced) else (kme._replayed,)
    totals = np.array([kme._reservoir.seen, kme._updates, kme._bad, *rest])
    sample = {"sample": kme._reservoir.sample.copy(), "totals": totals}
    return {**own.to_arrays(), **kme._frame.to_arrays(), **sample}


def from_arrays(kme: "KME", arrays: Arrays) -> None:
    """Let a KME take over what `to_arrays` gave; what it had on a device is dropped."""
    own = kme._memory
    own.from_arrays(arrays)
    kme._frame, kme._device = kme._frame.from_arrays(arrays), None
    seen, kme._updates, kme._bad, *rest = (int(n) for n in arrays["totals"])
    if isinstance(own, Balanced):
        own.grown, own.recomputed = rest
    else:
        kme._replayed = rest[0]
    kme._reservoir.restore(arrays["sample"], seen)


def to_device(kme: "KME", device: Any) -> Any:
    """What a KME has learned, on a device: an `OnDevice`, or an `OnDeviceViews`."""
    own, s = kme._memory, kme.settings
    if isinstance(own, Balanced):
        from voronaut.bonuses.kme.device import OnDevice

        return OnDevice(kme, device)
    from voronaut.bonuses.kme.device_views import OnDeviceViews

    arrays = {
        **own.to_arrays(), **kme._frame.to_arrays(), "columns": own.columns, "margin": own.margins,
        "absorbed": np.array(own.seen), "deviation": np.array(own.deviation), "updates": np.array(kme._updates),
        "bad": np.array(kme._bad), "sample": kme._reservoir.sample,
    }  # fmt: skip
    room: dict[str, Any] = {"step_size": float(s.step_size), "seed": s.seed, "sample_size": kme._reservoir.size}
    return OnDeviceViews(arrays, **room, device=device)


def from_device(kme: "KME", learned: Arrays) -> None:
    """Let a KME take over what the `learned` of an `OnDevice` or an `OnDeviceViews` gave."""
    own = kme._memory
    kme._updates, kme._bad = int(learned["updates"]), int(learned["bad"])
    if isinstance(own, Balanced):
        own.from_arrays(learned)
        kme._frame = Shifted(learned["origin"])
        kme._reservoir.restore(learned["sample"], int(learned["seen"]))
        return
    seen, absorbed = int(learned["frame.states.seen"]), int(learned["absorbed"])
    own.from_arrays({
        **learned, "margins": learned["margin"], "deviation": learned["deviation"].reshape(1),
        "passes": np.array([absorbed, kme._updates]),
    })  # fmt: skip
    kme._frame, kme._replayed = kme._frame.from_arrays(learned), absorbed - seen
    kme._reservoir.restore(learned["sample"], seen)


def check(arrays: Mapping[str, NDArray[Any]], room: int) -> None:
    """Refuse a KME state whose numbers contradict each other."""
    if "usage" in arrays:
        _refuse(_sound_views(arrays, room))
        return
    totals, counts, clusters = arrays["totals"], arrays["counts"], len(arrays["counts"])
    kept = [len(arrays[name]) for name in KEPT]
    nearest = arrays["kept_nearest"]
    sound = {
        "counts must add up to less than 2⁶²": counts.sum(dtype=float) < 2**62,  # a float does not wrap around
        "counts must start at 1 and add up to clusters + states": counts.min() >= 1
        and counts.sum() == clusters + totals[0],
        "deviations must not be negative": "frame.deviation" not in arrays or arrays["frame.deviation"].min() >= 0,
        "totals must not be negative": totals.min() >= 0,
        "sample must hold the states seen, up to its size": len(arrays["sample"]) == min(totals[0], room),
        "floor must be positive": arrays["floor"][0] > 0,
        "kept gaps must be there for all clusters or none": kept in ([0] * 3, [clusters] * 3),
        "kept_nearest must name clusters": not len(nearest) or (nearest.min() >= 0 and nearest.max() < clusters),
    }
    _refuse(sound)


def _sound_views(arrays: Arrays, room: int) -> dict[str, Any]:
    totals, passes, usage, centers = arrays["totals"], arrays["passes"], arrays["usage"], arrays["centers"]
    positive = ("margins", "deviations", "deviation", "frame.deviation")
    return {
        "totals must not be negative": totals.min() >= 0 and passes.min() >= 0,
        "passes must count the states seen and replayed": passes[0] == totals[0] + totals[3],
        "sample must hold the states seen, up to its size": len(arrays["sample"]) == min(totals[0], room),
        "usage must be positive": usage.min() > 0,
        "margins and deviations must not be negative": all(arrays[name].min() >= 0 for name in positive),
        "centers of one coordinate must be sorted": centers.shape[2] > 1
        or (np.diff(centers[..., 0], axis=1) >= 0).all(),
    }


def _refuse(sound: Mapping[str, Any]) -> None:
    for rule, holds in sound.items():
        if not holds:
            raise ValueError(f"this KME state is damaged: {rule}. Nothing was loaded.")
