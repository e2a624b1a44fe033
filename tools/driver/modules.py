"""The modules of a compiled program, one per level."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, TypeAlias

from ...ir.support.deferred import deferred
from ...ir.support.errors import InputError
from ...ir.support.turns import COMPILING, computed_once
from ...ir.well_known import LEVEL_NAMES

if TYPE_CHECKING:
    from ...ir.upstream import ModuleOp
    from .signature import Signature

with deferred(__name__):
    from ...dialects.random_states import set_seed
    from .program import signature

MACHINE = LEVEL_NAMES[-1]
"""The level that the machine runs."""

Loader: TypeAlias = "Callable[[], ModuleOp]"


class Modules:
    """The modules of a program, each of which is loaded when it is first asked for.

    Attributes:
        path: the name of the program in messages.
        seed: the seed of random numbers; None for the one in the modules.
    """

    def __init__(self, loaders: Mapping[str, Loader], path: str) -> None:
        self.path = path
        self.seed: int | None = None
        self._loaders = dict(loaders)
        self._loaded: dict[str, ModuleOp] = {}

    @property
    def levels(self) -> tuple[str, ...]:
        """The levels of the program, from its own down."""
        return tuple(level for level in LEVEL_NAMES if level in self._loaders)

    def at(self, level: str) -> ModuleOp:
        """The module at a level. Raises InputError if the program has no such level."""
        if level not in self._loaders:
            raise InputError(
                f"{self.path}: no level {level!r}; need one of {', '.join(self.levels)}"
            )
        if level not in self._loaded:
            with COMPILING:
                if level not in self._loaded:
                    module = self._loaders[level]()
                    if self.seed is not None:
                        set_seed(module, self.seed)
                    self._loaded[level] = module
        return self._loaded[level]

    @property
    def machine(self) -> ModuleOp:
        """The module that the machine runs. Raises InputError if the program has none."""
        return self.at(MACHINE)

    @property
    def last(self) -> ModuleOp:
        """The module at the program's lowest level."""
        return self.at(self.levels[-1])

    @computed_once
    def signature(self) -> Signature:
        """The inputs and outputs of the program."""
        return signature(self.machine, self.path)

    def set_seed(self, seed: int) -> None:
        """Draw other random numbers, in the modules that are loaded and in those that will be."""
        self.seed = seed
        for module in self._loaded.values():
            set_seed(module, seed)
