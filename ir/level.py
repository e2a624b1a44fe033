"""A level of abstraction: its name and the operations that are legal on it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field


def _nothing() -> frozenset[str]:
    return frozenset()


@dataclass(frozen=True)
class Level:
    """A level that a program passes through on its way to the machine.

    Attributes:
        name: as pipelines, files and commands spell it.
        own: the names of dialects whose operations are all legal ("nn"), and of single legal
            operations ("nn.conv").
        added: returns the names, of the same kinds, that users' dialects have added so far.
        decisions: names for how much a module of this level has decided of what the level leaves
            open, from nothing to everything.
    """

    name: str
    own: frozenset[str]
    added: Callable[[], frozenset[str]] = field(default=_nothing, compare=False, repr=False)
    decisions: tuple[str, ...] = field(default=(), compare=False, repr=False)

    @property
    def legal(self) -> frozenset[str]:
        """The names of all dialects and operations that are legal on this level."""
        return self.own | self.added()

    def is_legal(self, op_name: str) -> bool:
        """Whether an operation is legal on this level."""
        legal = self.legal
        return op_name in legal or op_name.partition(".")[0] in legal

    def __str__(self) -> str:
        return self.name
