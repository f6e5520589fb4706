"""The weight of the bonus over the course of training."""

import math

USE = "use a number such as 0.01, or linear:FROM:TO such as linear:0.01:0"


def check_schedule(text: str) -> str:
    """The schedule as given, if it can be read."""
    weight(text, 0.0)
    return text


def weight(text: str, progress: float) -> float:
    """β at a progress from 0 (start) to 1 (end): a constant, or a straight line between two numbers."""
    kind, _, rest = text.partition(":")
    try:
        numbers = [float(part) for part in rest.split(":")] if kind == "linear" else [float(text)] * 2
    except ValueError:
        raise ValueError(f"{text!r} is no scale: {USE}.") from None
    if len(numbers) != 2 or not all(map(math.isfinite, numbers)):
        raise ValueError(f"{text!r} is no scale: {USE}.")
    start, end = numbers
    return start + (end - start) * progress
