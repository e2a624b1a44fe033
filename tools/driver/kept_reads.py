"""Models as they were read, for other compiles of the same models in this process.

What a front end makes of a model does not depend on the target, the precision or the plans.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Hashable, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeAlias

from ...ir.support.errors import InputError
from ..importers.front_end import Reading
from ..importers.front_ends import Model
from .cache.key import named_files
from .cache.model_digest import file_state
from .program import ReadProgram

Read: TypeAlias = Callable[[Reading], ReadProgram]

MOST = 2
"""The models that are kept: this one and the one before. A model may take gigabytes."""


@dataclass(frozen=True)
class _Kept:
    """A program as it was read.

    Attributes:
        model: keeps the object alive that the key names.
        files: the states of the other files that it names, before it was read.
        weights: the sizes of weights that the import has asked about.
    """

    model: object
    files: Mapping[Path, Hashable]
    program: ReadProgram
    weights: dict[str, int]


class KeptReads:
    """The models that were read last.

    Compiles in a block `with reads.used():` take them from here.
    """

    def __init__(self) -> None:
        self._kept: dict[Hashable, _Kept] = {}

    @contextmanager
    def used(self) -> Generator[None]:
        """A block whose compiles read each model once, as long as few others are read between."""
        token = _USED.set(self)
        try:
            yield
        finally:
            _USED.reset(token)

    def program(self, key: Hashable, model: object, reading: Reading, read: Read) -> ReadProgram:
        """A clone of the program of a key, which is read if it is not here.

        Raises what read raises, and what the reading's check raises.
        """
        found = self._kept.pop(key, None)
        if found is None or any(_state(each) != then for each, then in found.files.items()):
            files = {each: _state(each) for each in _named_files(model)}
            sizes: dict[str, int] = {}

            def check(weights: Mapping[str, int]) -> None:
                sizes.update(weights)
                reading.check(weights)

            found = _Kept(model, files, read(replace(reading, check=check)), sizes)
            while len(self._kept) >= MOST:
                del self._kept[next(iter(self._kept))]
        elif found.weights:
            reading.check(found.weights)
        # The model that was used last stays longest.
        self._kept[key] = found
        return replace(found.program, module=found.program.module.clone())


_USED: ContextVar[KeptReads | None] = ContextVar("used reads", default=None)


def kept_or_read(model: Model, reading: Reading, read: Read, more: Hashable) -> ReadProgram:
    """The program of a model: a clone of one that is kept, or read now.

    Raises what read raises, and what the reading's check raises.

    Args:
        more: what else decides how the model is read.
    """
    reads = _USED.get()
    if reads is None or reading.values or reading.weights is not None:
        return read(reading)
    try:
        key = (*_key(model, reading), more)
    except OSError:
        # Reading says what is wrong with the file.
        return read(reading)
    return reads.program(key, model, reading, read)


def _named_files(model: object) -> list[Path]:
    """The other files that a model names; none if reading will say what is wrong with it."""
    if not isinstance(model, str | os.PathLike):
        return []
    try:
        return named_files(Path(os.fspath(model)))
    except (OSError, ValueError, InputError):
        return []


def _state(path: Path) -> Hashable:
    """The state of a file; None if it is not there."""
    try:
        return file_state(path)
    except OSError:
        return None


def _key(model: Model, reading: Reading) -> tuple[Hashable, ...]:
    """What decides the program that a front end makes of a model."""
    if isinstance(model, str | os.PathLike):
        name: Hashable = (os.path.abspath(model), file_state(Path(model)))
    else:
        name = id(model)
    sizes = tuple(sorted((key, str(size)) for key, size in reading.dims.items()))
    return name, reading.place, sizes, reading.batch, reading.lenient, reading.training
