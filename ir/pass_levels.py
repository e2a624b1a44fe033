"""The levels that a pass declares: which one it takes, which one it leaves, and whether it rounds.

A pass declares them with class attributes, all of which are optional:

    @dataclass(frozen=True)
    class MergeCopies(ModulePass):
        name = "merge-copies"
        takes = TILE
        decided = "numbered"

A file of rules declares them in its first lines: `takes tile`, `leaves exchange`, `rounds`.

`abele opt` then refuses a module of another level, and verifies that the result is legal on the
level that the pass leaves. The testing kit generates programs of the level that the pass takes, in
which as much is decided as the pass needs.
"""

from __future__ import annotations

from dataclasses import dataclass

from .level import Level
from .support.errors import InputError
from .upstream import ModulePass


@dataclass(frozen=True)
class PassLevels:
    """The declarations of a pass. Each field is the class attribute of the same name.

    Attributes:
        takes: the level whose operations the pass works on; None for any level.
        leaves: the level of the module afterwards; None for the level it was on before.
        rounds: whether the pass may lose precision. Each loss must be a cast in the resulting
            module, so that an error bound can be computed for it.
        wide_sums: whether each sum of one operand stays as wide as it was, for a pass that rounds.
        skips_other_levels: whether the pass leaves operations of other levels unchanged. If not, a
            module with such operations is refused.
        decided: how much must be decided in a module for the pass: one of `takes.decisions`, or ""
            if it does not matter.
    """

    takes: Level | None = None
    leaves: Level | None = None
    rounds: bool = False
    wide_sums: bool = False
    skips_other_levels: bool = False
    decided: str = ""

    def declare(self, cls: type[ModulePass]) -> None:
        """Set these declarations as class attributes of a pass."""
        for name in DECLARATIONS:
            setattr(cls, name, getattr(self, name))

    def __str__(self) -> str:
        rest = ", other levels are left as they are" * self.skips_other_levels
        return (
            f"takes {self.takes or 'any level'}"
            + f" ({self.decided})" * bool(self.decided)
            + rest
            + f", leaves {self.leaves}" * (self.leaves is not None)
            + ", may give up precision" * self.rounds
            + ", keeps sums wide" * self.wide_sums
        )

    @property
    def needs(self) -> Level | None:
        """The only level whose modules the pass accepts; None if it accepts every module."""
        return None if self.skips_other_levels else self.takes


DECLARATIONS: dict[str, type] = {
    "takes": Level,
    "leaves": Level,
    "rounds": bool,
    "wide_sums": bool,
    "skips_other_levels": bool,
    "decided": str,
}
"""The class attributes that a pass may have, with their types."""


_NEED = {
    Level: "a Level, such as abele.dialects.levels.NN",
    str: "a name among the decisions of a Level, such as 'planned'",
    bool: "True or False",
}


def declared_levels(cls: type[ModulePass]) -> PassLevels | None:
    """The declarations of a pass; None for a pass without any, which may do anything.

    Raises InputError if an attribute has the wrong type, or if `decided` is not one of the
    `decisions` of the level that the pass takes.
    """
    values: dict[str, object] = {
        name: getattr(cls, name) for name in DECLARATIONS if hasattr(cls, name)
    }
    for name, value in values.items():
        kind = DECLARATIONS[name]
        if not isinstance(value, kind) and not (kind is Level and value is None):
            raise InputError(f"pass '{cls.name}': {name} is {value!r}; need {_NEED[kind]}")
    if not values:
        return None
    declared = PassLevels(**values)  # pyright: ignore[reportArgumentType]
    known = declared.takes.decisions if declared.takes else ()
    if declared.decided and declared.decided not in known:
        need = f"one of {', '.join(known)}" if known else "a level with decisions in takes"
        raise InputError(f"pass '{cls.name}': decided is {declared.decided!r}; need {need}")
    return declared


def level_after(cls: type[ModulePass], before: Level | None) -> Level | None:
    """The level of a module after a pass; None if unknown.

    Args:
        before: the level of the module before the pass; None if unknown.
    """
    declared = declared_levels(cls)
    return None if declared is None else declared.leaves or before
