"""The kinds of arguments that functions take from Python code, and errors for all others.

A type checker sees a wrong argument, but a notebook has none, and the error that would come later
names a line of abele's own.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, is_dataclass
from numbers import Integral, Real
from reprlib import repr as short_repr
from typing import Any, cast

from ...backends.target import Target
from ...ir.support.errors import InputError
from ..importers.bounds import size_or_bounds


@dataclass(frozen=True)
class Kind:
    """A kind of argument: a test of values, and the kind in words."""

    accepts: Callable[[Any], bool]
    words: str

    def __or__(self, other: Kind) -> Kind:
        """Values of either kind."""
        return Kind(
            lambda v: self.accepts(v) or other.accepts(v), f"{self.words}, or {other.words}"
        )


def is_path(value: object) -> bool:
    """Whether a value is a path: text, or an object that stands for text."""
    return isinstance(value, str) or (
        isinstance(value, os.PathLike) and isinstance(cast(Any, value).__fspath__(), str)
    )


def is_whole(value: object) -> bool:
    """Whether a value is an integer of Python or NumPy. A truth value is not."""
    return not isinstance(value, bool) and isinstance(value, Integral)


def _is_number(value: object) -> bool:
    return not isinstance(value, bool) and isinstance(value, Real)


def _is_list(value: object) -> bool:
    return isinstance(value, Iterable) and not isinstance(value, str | bytes | Mapping)


def by_name(accepts: Callable[[Any], bool]) -> Callable[[Any], bool]:
    """Whether a value is a mapping from names to values that are all accepted."""

    def accepts_all(value: object) -> bool:
        if not isinstance(value, Mapping):
            return False
        given = cast("Mapping[object, object]", value)
        return all(isinstance(key, str) for key in given) and all(map(accepts, given.values()))

    return accepts_all


def _list_of(accepts: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda value: _is_list(value) and all(map(accepts, value))


def _is_anything(_: object) -> bool:
    return True


NONE = Kind(lambda value: value is None, "None")
TEXT = Kind(lambda value: isinstance(value, str), "text")
PATH = Kind(is_path, "a path")
PATHS = Kind(_list_of(is_path), "a list of paths")
TEXTS = Kind(_list_of(lambda value: isinstance(value, str)), "a list of texts")
COUNT = Kind(is_whole, "a whole number")
NUMBER = Kind(_is_number, "a number")
SWITCH = Kind(_is_anything, "True or False")
SIZES = Kind(by_name(is_whole), "whole numbers by name, such as {'N': 1}")
BOUNDS = Kind(
    by_name(lambda value: size_or_bounds(value) is not None),
    "whole numbers by name, such as {'N': 1}, or bounds, such as {'N': (0, 64)}",
)
NAMES = Kind(by_name(lambda value: isinstance(value, str)), "names by name")
ARRAYS = Kind(by_name(_is_anything), "arrays by name, such as {'x': x}")
TARGET = Kind(lambda value: isinstance(value, str | Target), "the name of a target or a Target")
FUNCTION = Kind(callable, "a function")
TRAINING = Kind(
    lambda value: is_dataclass(value) and not isinstance(value, type), "a Training with its options"
)


def check_arguments(what: str, kinds: Mapping[str, Kind], given: Mapping[str, object]) -> None:
    """Raise InputError for the first argument that is not of its kind.

    Args:
        what: the function, for the message.
        kinds: the kind of each parameter; a parameter without one may be anything.
        given: the argument of each parameter.
    """
    for name, kind in kinds.items():
        if not kind.accepts(given[name]):
            raise InputError(
                f"{what}: {name} is {short_repr(given[name])}, of type "
                f"{type(given[name]).__name__}; need {kind.words}"
            )
