"""Supersteps, the sync that each begins with, and what the control program reads."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from xdsl.dialects.builtin import StringAttr, SymbolNameConstraint, SymbolRefAttr, i1
from xdsl.ir import Block, Operation, Region
from xdsl.irdl import IRDLOperation, opt_prop_def, prop_def, region_def, result_def, traits_def
from xdsl.traits import NoTerminator

from ...ir.geometry.chip_groups import ChipGroups
from ...ir.upstream import VerifyException
from ..abele import ChipGroupsAttr
from .copies import Copy
from .outside import Arrival, Departure
from .vertices import Vertices

SYNC_ZONES = ("internal", "external", "all")
"""The zones of a sync; Sync says what they mean."""


def zone_of(*, host: bool, chips: bool = False) -> str:
    """The zone of a superstep's sync.

    Args:
        host: whether it takes part.
        chips: whether words travel between chips.
    """
    return "all" if chips and not host else SYNC_ZONES[host]


class Sync(IRDLOperation):
    """Tiles wait for each other.

    The tiles of all chips of a group wait for each other. On a chip of no group that takes part in
    the superstep, the tiles wait only for each other.

    Attributes:
        zone: internal, the tiles of each chip by itself; all, those of each group of chips;
            external, those of one group of chips, and the host.
        groups: the groups of chips; all chips are one group where it is absent.
    """

    zone = prop_def(StringAttr)
    groups = opt_prop_def(ChipGroupsAttr)
    assembly_format = "$zone (`of` $groups^)? attr-dict"

    def __init__(self, zone: str, groups: ChipGroups | None = None):
        super().__init__(
            properties={
                "zone": StringAttr(zone),
                "groups": None if groups is None else ChipGroupsAttr(groups),
            }
        )

    def verify_(self) -> None:
        """Check what can be seen without other operations."""
        if self.zone.data not in SYNC_ZONES:
            raise VerifyException(
                f'sync zone "{self.zone.data}"; need one of {", ".join(SYNC_ZONES)}'
            )
        if self.groups is None:
            return
        if self.zone.data == SYNC_ZONES[0]:
            raise VerifyException(
                f'sync zone "{self.zone.data}" of a group of chips; these meet each by itself: '
                "name none"
            )
        if self.zone.data == SYNC_ZONES[1] and len(self.groups.data.groups) > 1:
            found = len(self.groups.data.groups)
            raise VerifyException(f"{found} groups; the host meets one group of chips")

    @property
    def chips(self) -> ChipGroups | None:
        """The groups of chips; None for all chips together, and where each meets by itself."""
        return None if self.groups is None else self.groups.data


PHASES: tuple[tuple[type[Operation], ...], ...] = (
    (Sync,),
    (Arrival, Copy, Departure),
    (Vertices,),
)
"""The operations that each phase of a superstep may hold, in order."""

OUTSIDE = (Arrival, Departure)
"""The operations that move a tensor to the tiles or from them. They sync with the host."""

IN_A_SUPERSTEP = tuple(kind for phase in PHASES for kind in phase)
"""The operations of a superstep. Once variables have addresses, they stand nowhere else."""


def _phase(op: Operation) -> int:
    """The phase of an operation in a superstep; -1 if it cannot be in a superstep."""
    return _phase_of(type(op))


@cache
def _phase_of(op_class: type[Operation]) -> int:
    return next((i for i, kinds in enumerate(PHASES) if issubclass(op_class, kinds)), -1)


class Superstep(IRDLOperation):
    """A sync, and the copies and vertices that had one `superstep` number.

    Attributes:
        sym_name: what reports call it.
        body: one sync, then copies and host traffic, then vertices.
    """

    sym_name = prop_def(SymbolNameConstraint())
    body = region_def("single_block")
    assembly_format = "$sym_name $body attr-dict"
    traits = traits_def(NoTerminator())

    def __init__(self, name: str, ops: Sequence[Operation]):
        super().__init__(properties={"sym_name": StringAttr(name)}, regions=[Region(Block(ops))])

    def verify_(self) -> None:
        """Check what can be seen without other operations."""
        phases = [_phase(op) for op in self.body.block.ops]
        if -1 in phases or phases != sorted(phases) or phases[:1] != [0] or phases.count(0) != 1:
            raise VerifyException(
                "a superstep is one sync, then moves and host traffic, then compute"
            )
        sync = self.body.block.first_op
        host = any(isinstance(op, OUTSIDE) for op in self.body.block.ops)
        allowed = (zone_of(host=host),) if host else (zone_of(host=host), "all")
        if isinstance(sync, Sync) and sync.zone.data not in allowed:
            takes = "takes part" if host else "takes no part"
            raise VerifyException(
                f'sync zone "{sync.zone.data}", but the host {takes}; need "{zone_of(host=host)}"'
            )


class Read(IRDLOperation):
    """The single i1 that a variable holds, for the control program.

    Attributes:
        variable: of one element, an i1.
    """

    variable = prop_def(SymbolRefAttr)
    result = result_def(i1)
    assembly_format = "$variable attr-dict `:` type($result)"

    def __init__(self, variable: str):
        super().__init__(properties={"variable": SymbolRefAttr(variable)}, result_types=[i1])
