"""Balanced online k-means that knows no units: rule.py is the rule in plain NumPy, kernel.py the same compiled."""
