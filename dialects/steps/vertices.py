"""What computes: one codelet on every cell of a split."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from xdsl.dialects.builtin import ArrayAttr, SymbolRefAttr
from xdsl.irdl import IRDLOperation, opt_prop_def, prop_def

from ...ir.geometry.layout import Layout
from ...ir.geometry.space import Space
from ...ir.upstream import VerifyException
from ..abele import BodyAttr, Plan, PlanAttr, SpaceAttr
from ..partition import access_layout, verify_cut
from ..structured import Structure
from ..variable import references, symbols


class Vertices(IRDLOperation):
    """One codelet on every cell of a split: which blocks it reads and writes.

    Attributes:
        space: where each point reads and writes.
        body: what happens at each point.
        plan: how the space is split over tiles, in parallel dimensions only, and over workers;
            combine is not set.
        reads: one variable per operand of the space, in the layout that the plan needs.
        writes: the variable of the result, or a list of one per result, in the layouts that the
            plan needs.
        generators: the variable with the generators of random numbers that the vertices use up, in
            the order in which they write. Vertex sets of a superstep use them one after another.
    """

    space = prop_def(SpaceAttr)
    body = prop_def(BodyAttr)
    plan = prop_def(PlanAttr)
    reads = prop_def(ArrayAttr[SymbolRefAttr])
    writes = prop_def(SymbolRefAttr | ArrayAttr[SymbolRefAttr])
    generators = opt_prop_def(SymbolRefAttr)
    assembly_format = (
        "`space` $space `body` $body `plan` $plan `reads` $reads `writes` $writes "
        "(`generators` $generators^)? attr-dict"
    )

    def __init__(self, structure: Structure, plan: Plan, reads: Sequence[str], *writes: str):
        super().__init__(
            properties={
                "space": SpaceAttr(structure.space),
                "body": BodyAttr(structure.body),
                "plan": PlanAttr(plan),
                "reads": references(reads),
                "writes": SymbolRefAttr(writes[0]) if len(writes) == 1 else references(writes),
            }
        )

    @property
    def sources(self) -> list[str]:
        """Names of the variables read, one per operand."""
        return symbols(self.reads)

    @property
    def destinations(self) -> list[str]:
        """Names of the variables written, one per result."""
        writes = self.writes
        return [writes.string_value()] if isinstance(writes, SymbolRefAttr) else symbols(writes)

    @property
    def destination(self) -> str:
        """Name of the variable of the only result, or of the first of several."""
        return self.destinations[0]

    def structure(self) -> Structure:
        """The space and the body."""
        return Structure(self.space.data, self.body.data)

    def layouts(self) -> tuple[Layout, ...]:
        """The layouts that operands and, last, the results must have."""
        return _layouts(self.space.data, self.plan.data)

    def overwritable(self) -> frozenset[str]:
        """The variables that the result may overwrite, both beginning at the same address.

        That needs elements of the same width, and no other reader of the old contents.
        """
        reads, structure = list(enumerate(self.sources)), self.structure()
        not_in_place = {name for i, name in reads if not structure.reads_in_place(i)}
        return frozenset(name for _, name in reads) - not_in_place

    def verify_(self) -> None:
        """Check what can be seen without other operations."""
        verify_cut(self.structure(), self.plan.data)
        space, written = self.space.data, self.destinations
        if len(space.operands) != len(self.reads) or len(space.results) != len(written):
            raise VerifyException(
                f"reads {len(self.reads)} variables and writes {len(written)} for a space of "
                f"{len(space.operands)} operands and {len(space.results)} results"
            )
        if len(set(written)) != len(written):
            raise VerifyException(f"writes one variable twice: {', '.join(written)}")


@lru_cache(maxsize=4096)
def _layouts(space: Space, plan: Plan) -> tuple[Layout, ...]:
    """The layouts that a split needs: each is asked for at every verification."""
    return tuple(access_layout(space, a, plan) for a in (*space.operands, *space.results))
