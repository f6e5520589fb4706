"""KME: start with `kme.py`, the class; `voronaut/clusters.py` is the same idea in plain NumPy.

settings.py has what can be chosen, frames.py the coordinates of the clusters, learned.py what is saved, tensors.py
and device.py what comes from torch, many.py runs side by side, auto.py the rule without units (`balance="auto"`).
"""

from voronaut.bonuses.kme.kme import KME, LOG_FLOOR

__all__ = ["KME", "LOG_FLOOR"]
