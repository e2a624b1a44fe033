"""Schedules of the learning rate: what the host gives a training program at each step."""

from __future__ import annotations

from collections.abc import Callable
from math import cos, pi

from ...ir.support.errors import InputError
from ...ir.support.suggestions import suggestion

Schedule = Callable[[int], float]
"""The learning rate of a step, counted from 0."""

SHAPES = ("constant", "cosine", "step", "linear-warmup")
"""The kinds of schedules."""

DECAY = 0.1
"""What `step` multiplies the rate by, if it is not told."""


def schedule(text: str, rate: float, steps: int) -> Schedule:
    """The learning rate by step, from text such as "linear-warmup:100+cosine".

    constant: rate. cosine: from rate to 0 over all steps, as half a wave. step:N[:F]: times F after
    each N steps. linear-warmup:N: grows evenly to rate in the first N steps. Parts that are joined
    by + multiply. Raises InputError.
    """
    parts = [_factor(each, text, steps) for each in text.split("+")]

    def at(step: int) -> float:
        found = rate
        for part in parts:
            found *= part(step)
        return found

    return at


def _factor(part: str, text: str, steps: int) -> Schedule:
    """What one part of a schedule multiplies the rate by."""
    shape, *numbers = part.split(":")
    most = {"constant": 0, "cosine": 0, "step": 2, "linear-warmup": 1}.get(shape)
    if most is None:
        raise InputError(f"--schedule {text}: no schedule {shape!r}{suggestion(shape, SHAPES)}")
    count, factor = _numbers(numbers, bool(most), most, text)
    if shape == "step":
        return lambda step: factor ** (step // count)
    if shape == "linear-warmup":
        return lambda step: min((step + 1) / count, 1.0)
    if shape == "cosine":
        return lambda step: (1.0 + cos(pi * min(step / steps, 1.0))) / 2.0
    return lambda step: 1.0


def _numbers(numbers: list[str], least: int, most: int, text: str) -> tuple[int, float]:
    """A number of steps and a factor."""
    problem = InputError(
        f"--schedule {text}: need step:N or step:N:FACTOR, linear-warmup:N, cosine or constant, "
        "with N steps of 1 or more, and a factor of 0 or more"
    )
    if not least <= len(numbers) <= most:
        raise problem
    try:
        count = int(numbers[0]) if numbers else 1
        factor = float(numbers[1]) if len(numbers) > 1 else DECAY
    except ValueError:
        raise problem from None
    if count < 1 or not 0.0 <= factor < float("inf"):
        raise problem
    return count, factor
