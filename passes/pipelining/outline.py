"""Moves operations into a function of their own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Attribute, Block, BlockArgument, Operation, Region, SSAValue

from ...dialects import nn
from ...dialects.placement import CHIPS, Placement
from ...ir.edit import Edit
from ...ir.provenance import fused
from ...ir.support.unused_names import UnusedNames
from ...ir.symbols import symbol_of
from ...ir.upstream import InsertPoint, ModuleOp
from ..gradients.emit import Emitter
from ..gradients.way import read_by

STEP = "stage"
"""The last part of the location of operations that a pipeline adds."""


@dataclass
class Outline:
    """A function, while it is made of operations of a block.

    Attributes:
        outside: the values that the operations read and others make, without states and constants,
            which the function reads itself.
        returned: what the function returns.
    """

    edit: Edit
    main: FuncOp
    ops: Sequence[Operation]
    block: Block = field(default_factory=Block)
    outside: tuple[SSAValue, ...] = ()
    returned: list[SSAValue] = field(default_factory=list[SSAValue])

    def __post_init__(self) -> None:
        own = {value for op in self.ops for value in op.results}
        inner = {v for op in self.ops for r in op.regions for v in _made_in(r)}
        read = dict.fromkeys(v for op in self.ops for v in read_by(op))
        captured = [v for v in read if v not in own and v not in inner]
        copied = {v.owner: v for v in captured if isinstance(v.owner, nn.LoadOp | nn.ConstantOp)}
        for op in self.ops:
            self.edit.removed(op)
            op.detach()
            self.block.add_op(op)
        end = ReturnOp()
        self.block.add_op(end)
        first = self.block.first_op
        assert first is not None
        for op in copied:
            copy = op.clone()
            copy.location = op.location
            self.edit.insert(copy, InsertPoint.before(first))
            self.bind(op.results[0], copy.results[0])
        self.outside = tuple(v for v in captured if v.owner not in copied)

    def argument(self, type_: Attribute, hint: str | None = None) -> BlockArgument:
        """A new argument of the function."""
        made = self.block.insert_arg(type_, len(self.block.args))
        made.name_hint = hint
        return made

    def bind(self, old: SSAValue, new: SSAValue) -> None:
        """Let the operations read another value."""
        for use in tuple(old.uses):
            if self.block.is_ancestor(use.operation):
                use.operation.operands[use.index] = new

    @property
    def at_start(self) -> Emitter:
        """Inserts operations before all others."""
        first = self.block.first_op
        assert first is not None
        return Emitter(self.edit, first, self.main, STEP)

    @property
    def at_end(self) -> Emitter:
        """Inserts operations behind all others."""
        last = self.block.last_op
        assert last is not None
        return Emitter(self.edit, last, self.main, STEP)

    def finish(self, name: str, placement: Placement) -> None:
        """Insert the function in front of the entry."""
        last = self.block.last_op
        assert last is not None
        last.operands = self.returned
        types = [value.type for value in self.block.args], [v.type for v in self.returned]
        function = FuncOp(name, types, Region(self.block))
        function.attributes[CHIPS] = placement.attribute
        function.location = fused(self.ops)
        self.edit.insert(function, InsertPoint.before(self.main))


def _made_in(region: Region) -> set[SSAValue]:
    """The values that a region and the regions in it make."""
    found: set[SSAValue] = set()
    for block in region.blocks:
        found.update(block.args)
        for op in block.ops:
            found.update(op.results)
            for inner in op.regions:
                found |= _made_in(inner)
    return found


def names_of(module: ModuleOp) -> UnusedNames:
    """The symbols of a module, as names that are taken."""
    return UnusedNames(
        {name for op in module.body.block.ops if (name := symbol_of(op)) is not None}
    )
