"""KME: start with `kme.py`, the class; `voronaut/clusters.py` is the same idea in plain NumPy.

viewed.py is the default memory (`voronaut/views.py` in NumPy), settings.py has what can be chosen, frames.py the
coordinates of the clusters, learned.py what is saved, tensors.py, device.py and device_views.py what comes from torch,
many.py and many_views.py runs side by side, auto.py a rule that the entropy experiments rest on (`balance="counts"`).
"""

from voronaut.bonuses.kme.kme import KME, LOG_FLOOR

__all__ = ["KME", "LOG_FLOOR"]
