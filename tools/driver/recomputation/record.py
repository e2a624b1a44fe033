"""What a program recomputes, recorded as an attribute of its module for reports."""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, IntegerAttr, StringAttr, i64
from xdsl.ir import Attribute

from ....ir.upstream import ModuleOp
from ....passes.narrow_stashes import Stash

ATTRIBUTE = "abele.recomputed"
"""The module's attribute."""


@dataclass(frozen=True)
class Recomputed:
    """One choice, with its estimated effect at the time of choosing.

    Attributes:
        nodes, apart, anew: as of the pass recompute.
        narrow: as `stashes` of the pass narrow-stashes.
        bytes: what it saves on the fullest tile at its fullest moment.
        cycles: what it costs.
    """

    nodes: tuple[str, ...]
    apart: tuple[str, ...]
    anew: tuple[str, ...]
    bytes: int
    cycles: int
    narrow: tuple[str, ...] = ()

    @property
    def what(self) -> str:
        """What is computed again or kept narrow, in a few words."""
        return ", ".join(
            [
                *self.nodes,
                *(f"{name} for each reader" for name in self.apart),
                *(f"layouts for {name}" for name in self.anew),
                *(f"{each.name} as {each.type}" for each in map(Stash.read, self.narrow)),
            ]
        )

    def __str__(self) -> str:
        return f"{self.what}: {self.bytes:,} bytes for {self.cycles:,} cycles"


def write_recomputed(module: ModuleOp, choices: tuple[Recomputed, ...]) -> None:
    """Record choices on a module."""
    module.attributes[ATTRIBUTE] = ArrayAttr(
        [
            DictionaryAttr(
                {
                    "nodes": ArrayAttr(map(StringAttr, each.nodes)),
                    "apart": ArrayAttr(map(StringAttr, each.apart)),
                    "anew": ArrayAttr(map(StringAttr, each.anew)),
                    "narrow": ArrayAttr(map(StringAttr, each.narrow)),
                    "bytes": IntegerAttr(each.bytes, i64),
                    "cycles": IntegerAttr(each.cycles, i64),
                }
            )
            for each in choices
        ]
    )


def read_recomputed(module: ModuleOp) -> tuple[Recomputed, ...]:
    """The choices recorded on a module. Entries of another form are skipped."""
    written = module.attributes.get(ATTRIBUTE)
    if not isinstance(written, ArrayAttr):
        return ()
    found: list[Recomputed] = []
    for each in cast(ArrayAttr[Attribute], written):
        if isinstance(each, DictionaryAttr):
            numbers = [each.data.get(key) for key in ("bytes", "cycles")]
            size, cycles = (n.value.data if isinstance(n, IntegerAttr) else -1 for n in numbers)
            nodes, apart, anew = (_names(each.data.get(k)) for k in ("nodes", "apart", "anew"))
            if min(size, cycles) >= 0:
                narrow = _names(each.data.get("narrow"))
                found.append(Recomputed(nodes, apart, anew, size, cycles, narrow))
    return tuple(found)


def _names(written: Attribute | None) -> tuple[str, ...]:
    if not isinstance(written, ArrayAttr):
        return ()
    every = cast(ArrayAttr[Attribute], written)
    return tuple(name.data for name in every if isinstance(name, StringAttr))
