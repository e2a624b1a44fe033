"""An example of a model's inputs, whose shapes give sizes to free dimensions."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from ...ir.support.errors import InputError
from ..importers.bounds import Bounds, GivenSize, checked_size, parts_of
from ..importers.front_end import ANY, OpenShape, OpenShapes
from .arrays import Tensor, UnknownInputError, listed, npz_shapes, numbered

GIVEN = "the example"
"""The name of arrays in memory in messages."""


@dataclass(frozen=True)
class Example:
    """The shapes of arrays that are inputs of a model.

    Attributes:
        shapes: by name; None for a size that says nothing.
        source: where they come from, in messages.
    """

    shapes: Mapping[str, Sequence[int | None]]
    source: str


def example_of(given: Example | str | os.PathLike[str] | Mapping[str, ArrayLike]) -> Example:
    """The shapes of an example. Raises InputError for a damaged file.

    Args:
        given: arrays by name, or an .npz file, of which only the headers are read.
    """
    if isinstance(given, Example):
        return given
    if isinstance(given, Mapping):
        return Example({name: np.shape(array) for name, array in given.items()}, GIVEN)
    return Example(npz_shapes(given), os.fspath(given))


def sizes_by_example(
    place: str,
    declared: OpenShapes,
    example: Example,
    dims: Mapping[str, GivenSize],
    values: Mapping[str, ArrayLike],
    batch: int | None,
) -> dict[str, int | Bounds]:
    """The sizes of free dimensions: those that are given, and those of an example.

    Raises InputError, which names both sides, for shapes that contradict each other, the model, or
    a size that is given.

    Args:
        place: the model's name in messages.
        declared: the shapes that the model declares.
        dims: sizes that are given, by name or by INPUT:AXIS; they come first in the result.
        values: inputs that are known now, which the program does not take.
        batch: the number of samples; the example then says nothing about first axes.
    """
    taken = {name: shape for name, shape in declared.items() if name not in values}
    given = numbered(example.shapes, tuple(taken))
    first = {name: checked_size(f"{place}: --dim {name}", size) for name, size in dims.items()}
    sizes = _Sizes(example.source, first)
    for name, value in values.items():
        sizes.add(name, declared.get(name), np.shape(value), f"--value {name}", None)
    for name, shape in given.items():
        if name in taken:
            sizes.add(name, taken[name], shape, repr(name), batch)
    lacking = [name for name in taken if name not in given]
    for name in lacking:
        missing = sizes.missing(name, taken[name], batch)
        if missing and not set(given) <= set(taken):
            has = ", ".join(repr(each) for each in given) or "none"
            raise InputError(
                f"{example.source}: no array {name!r}, which {place} declares as "
                f"{_text(taken[name])}; it has {has}"
            )
    return sizes.found


def check_example(example: Example, inputs: Sequence[Tensor], values: Collection[str] = ()) -> None:
    """Raise InputError for an array that is no input, and for a shape that its input cannot have.

    Args:
        values: the names of inputs that are known now, which the program does not take.
    """
    known = {each.name: each for each in inputs}
    for name, shape in numbered(example.shapes, tuple(known)).items():
        if name not in known:
            if name in values:
                continue
            raise UnknownInputError(
                f"{example.source}: no input {name!r}; the program takes {listed(inputs)}"
            )
        wanted = known[name]
        sizes = [n if size is None else size for n, size in zip(wanted.shape, shape, strict=False)]
        if len(shape) != len(wanted.shape) or not wanted.takes(tuple(sizes)):
            raise InputError(f"{example.source}: input {wanted}: got the shape {_text(shape)}")


class _Sizes:
    """Sizes of free dimensions, and where each of them comes from."""

    def __init__(self, source: str, found: dict[str, int | Bounds]) -> None:
        self.source, self.found = source, found
        self.origins = {name: f"--dim {name}={size}" for name, size in found.items()}

    def add(
        self,
        name: str,
        declared: OpenShape,
        shape: Sequence[int | None],
        what: str,
        batch: int | None,
    ) -> None:
        """Add the sizes of an input's free axes. Raises InputError for another size."""
        if declared is None:
            return
        if len(shape) != len(declared):
            raise self._contradicts(what, shape, declared)
        for axis, (wanted, size) in enumerate(zip(declared, shape, strict=True)):
            if size is None or (axis == 0 and batch is not None):
                continue
            if isinstance(wanted, int):
                if wanted != size:
                    raise self._contradicts(what, shape, declared)
                continue
            key = self._key(name, axis, wanted)
            known = self.found.get(key)
            if isinstance(known, Bounds):
                if not known.least <= size <= known.most:
                    raise InputError(
                        f"{self.source}: axis {axis} of {what} is {size}, but {self.origins[key]}"
                    )
                continue
            if any(isinstance(self.found.get(part), Bounds) for part in parts_of(key)):
                # Each run has a sum of its own.
                continue
            known = self.found.setdefault(key, size)
            origin = self.origins.setdefault(key, f"axis {axis} of {what} is {size}")
            if known != size:
                has_name = wanted not in ("", ANY) and not origin.startswith("--dim")
                same = f"; the model calls both {wanted}" if has_name else ""
                raise InputError(
                    f"{self.source}: axis {axis} of {what} is {size}, but {origin}{same}"
                )

    def _contradicts(
        self, what: str, shape: Sequence[int | None], declared: Sequence[int | str]
    ) -> InputError:
        return InputError(
            f"{self.source}: {what} has the shape {_text(shape)}, but the model declares "
            f"{_text(declared)}"
        )

    def _key(self, name: str, axis: int, symbol: str) -> str:
        """The name under which the size of an axis is given."""
        own = f"{name}:{axis}"
        if own in self.found or symbol == ANY:
            return own
        return symbol or f"{name}_{axis}"

    def missing(self, name: str, declared: OpenShape, batch: int | None) -> bool:
        """Whether a size of an input is still unknown."""
        return any(
            isinstance(size, str)
            and self._key(name, axis, size) not in self.found
            and not (axis == 0 and batch is not None)
            for axis, size in enumerate(declared or ())
        )


def _text(shape: Sequence[int | str | None] | None) -> str:
    """A shape in messages: [N, 3, ?]."""
    if shape is None:
        return "a tensor"
    return f"[{', '.join('?' if n in (None, '') else str(n) for n in shape)}]"
