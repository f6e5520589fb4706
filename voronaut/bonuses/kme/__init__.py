"""KME: start with `kme.py`, the class; `voronaut/clusters.py` is the same idea in plain NumPy.

viewed.py is the default memory (`voronaut/views.py` in NumPy) and balanced.py the paper's, settings.py has what can be
chosen, frames.py the coordinates of the clusters, readout.py what they tell, learned.py what is saved, tensors.py,
device.py and device_views.py what comes from torch, jax_program.py what is part of a JAX program.
"""

from voronaut.bonuses.kme.kme import KME

__all__ = ["KME"]
