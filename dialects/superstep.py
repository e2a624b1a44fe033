"""What a superstep is, grouped at tile and with addresses at exchange: sync, exchange, compute."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import StringAttr, SymbolNameConstraint
from xdsl.ir import Block, Operation, Region
from xdsl.irdl import IRDLOperation, prop_def, region_def
from xdsl.utils.exceptions import VerifyException

from .program import Copy, HostInput, HostOutput, Vertices

SYNC_ZONES = ("internal", "external")
"""internal: the tiles of one chip; external: the host takes part."""


class Sync(IRDLOperation):
    """All tiles of a zone wait for each other.

    zone: internal, the tiles alone, or external, the host too.
    """

    zone = prop_def(StringAttr)

    def __init__(self, zone: str):
        super().__init__(properties={"zone": StringAttr(zone)})

    def verify_(self) -> None:
        """Check what can be seen without other operations."""
        if self.zone.data not in SYNC_ZONES:
            raise VerifyException(
                f'sync zone "{self.zone.data}"; need one of {", ".join(SYNC_ZONES)}'
            )


PHASES: tuple[tuple[type[Operation], ...], ...] = (
    (Sync,),
    (HostInput, Copy, HostOutput),
    (Vertices,),
)
"""What may stand in each phase of a superstep, in order."""


class Superstep(IRDLOperation):
    """Sync, then exchange, then compute.

    sym_name: what reports call it. body: one sync, then copies and host traffic, then vertices.
    """

    sym_name = prop_def(SymbolNameConstraint())
    body = region_def("single_block")

    def __init__(self, name: str, ops: Sequence[Operation]):
        super().__init__(properties={"sym_name": StringAttr(name)}, regions=[Region(Block(ops))])

    def verify_(self) -> None:
        """Check what can be seen without other operations."""
        phases = [_phase(op) for op in self.body.block.ops]
        if -1 in phases or phases != sorted(phases) or phases[:1] != [0] or phases.count(0) != 1:
            raise VerifyException(
                "a superstep is one sync, then moves and host traffic, then compute"
            )


def _phase(op: Operation) -> int:
    """The phase that an operation belongs to; -1 if it is no part of a superstep."""
    return next((i for i, kinds in enumerate(PHASES) if isinstance(op, kinds)), -1)
