"""Schedules of the learning rate: what the host gives a training program at each step."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import cos, exp, inf, isfinite, pi

from ...ir.support.errors import InputError
from ...ir.support.suggestions import suggestion

Schedule = Callable[[int], float]
"""The learning rate of a step, counted from 0."""

DECAY = 0.1
"""What `step` multiplies the rate by, if it is not told."""


@dataclass(frozen=True)
class Shape:
    """A kind of schedule.

    Attributes:
        form: how it is written, such as "step:N[:F]".
        least, most: how many numbers follow its name.
        factor: what it multiplies the rate by, from its numbers, the step, and all steps.
    """

    form: str
    least: int
    most: int
    factor: Callable[[Sequence[float], int, int], float]


def _step(numbers: Sequence[float], step: int, steps: int) -> float:
    return (numbers[1] if len(numbers) > 1 else DECAY) ** (step // int(numbers[0]))


def _several_steps(numbers: Sequence[float], step: int, steps: int) -> float:
    return numbers[0] ** sum(step >= edge for edge in numbers[1:])


def _power(numbers: Sequence[float], step: int, steps: int) -> float:
    last = numbers[1] if len(numbers) > 1 else steps
    return max(1.0 - step / last, 0.0) ** numbers[0]


def _logistic(numbers: Sequence[float], step: int, steps: int) -> float:
    return 1.0 / (1.0 + exp(min(-numbers[0] * (step - numbers[1]), MOST_EXPONENT)))


MOST_RATE = (2.0 - 2.0**-23) * 2.0**127
"""The largest learning rate: the largest float32, which programs take it as."""

MOST_EXPONENT = 700.0
"""The largest argument of exp that is taken; larger ones overflow."""

KINDS: Mapping[str, Shape] = {
    "constant": Shape("constant", 0, 0, lambda n, step, steps: 1.0),
    "cosine": Shape(
        "cosine", 0, 0, lambda n, step, steps: (1.0 + cos(pi * min(step / steps, 1.0))) / 2.0
    ),
    "step": Shape("step:N[:F]", 1, 2, _step),
    "linear-warmup": Shape(
        "linear-warmup:N", 1, 1, lambda n, step, steps: min((step + 1) / n[0], 1.0)
    ),
    "exp": Shape("exp:F", 1, 1, lambda n, step, steps: n[0] ** step),
    "inv": Shape("inv:G:P", 2, 2, lambda n, step, steps: (1.0 + n[0] * step) ** -n[1]),
    "multistep": Shape("multistep:F:N:N...", 2, 1000, _several_steps),
    "poly": Shape("poly:P[:N]", 1, 2, _power),
    "sigmoid": Shape("sigmoid:G:N", 2, 2, _logistic),
}
"""The kinds of schedules by name. N is a number of steps, F a factor, P a power."""

SHAPES = tuple(KINDS)
"""The names of the kinds."""

COUNTED = {"step": (0,), "linear-warmup": (0,), "poly": (1,)}
"""Which numbers of a kind are steps that it divides by, 1 or more."""


def schedule(text: str, rate: float, steps: int) -> Schedule:
    """The learning rate by step, from text such as "linear-warmup:100+cosine".

    constant: rate. cosine: from rate to 0 over all steps, as half a wave. step:N[:F]: times F after
    each N steps. linear-warmup:N: grows evenly to rate in the first N steps. exp:F: times F after
    each step. inv:G:P: divided by (1 + G * step)^P. multistep:F:N:N...: times F from each of these
    steps on. poly:P[:N]: times (1 - step / N)^P, N steps or all. sigmoid:G:N: divided by
    1 + exp(-G * (step - N)). Parts that are joined by + multiply.

    Raises InputError; the schedule does so too, at a step whose rate float32 cannot hold.
    """
    parts = [_part(each, text) for each in text.split("+")]

    def at(step: int) -> float:
        found = rate
        try:
            for shape, numbers in parts:
                found *= shape.factor(numbers, step, steps)
        except OverflowError:
            found = inf
        if not found <= MOST_RATE:
            raise InputError(
                f"--schedule {text}: the rate of step {step + 1} is more than float32 can hold"
            )
        return found

    return at


def _part(part: str, text: str) -> tuple[Shape, list[float]]:
    """One part of a schedule: its kind and its numbers."""
    name, *given = part.split(":")
    shape = KINDS.get(name)
    if shape is None:
        raise InputError(f"--schedule {text}: no schedule {name!r}{suggestion(name, SHAPES)}")
    forms = ", ".join(each.form for each in KINDS.values())
    problem = InputError(
        f"--schedule {text}: need one of {forms}, with N steps of 1 or more, and a factor of 0 or "
        "more"
    )
    if not shape.least <= len(given) <= shape.most:
        raise problem
    try:
        numbers = [float(each) for each in given]
    except ValueError:
        raise problem from None
    may_be_negative = name == "sigmoid"
    if not all(isfinite(n) and (n >= 0.0 or may_be_negative) for n in numbers):
        raise problem
    counted = [numbers[i] for i in COUNTED.get(name, ()) if i < len(numbers)]
    if any(n < 1 or n != int(n) for n in counted):
        raise problem
    return shape, numbers
