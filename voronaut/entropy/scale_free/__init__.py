"""Balanced online k-means that does not depend on units: rule.py in plain NumPy, kernel.py the same compiled."""
