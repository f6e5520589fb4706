"""`voronaut report`: any set of runs as one page that needs no network."""

from voronaut.report.command import report

__all__ = ["report"]
