"""Moves what a program computes once in a run to functions on the chips that need it.

Besides the loop over micro-batches, a step of training updates weights and prepares sums. What
belongs to the stages of one chip becomes functions there. What belongs to several chips, such as
the norm of all gradients, stays in @main.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from xdsl.dialects.func import CallOp, FuncOp
from xdsl.ir import Operation, OpResult, SSAValue

from ...dialects import nn
from ...dialects.placement import Placement
from ...dialects.structured import Reinterpretation
from ...ir.edit import Edit
from ...ir.support.unused_names import UnusedNames
from ...ir.upstream import InsertPoint, ModuleOp
from ...ir.xdsl.around import in_block
from ..gradients.control_flow import function_of
from ..gradients.way import read_by
from .outline import Outline
from .stages import operations_of, stage_of

Unit = int | None
"""A chip; None for what stays in @main."""


@dataclass
class Outside:
    """The operations of @main, while they move to functions.

    Attributes:
        chips: the chip of each stage.
        inside: the chip of each operation in the loops over micro-batches.
        loops: for each of these loops, the chip of each value that it carries.
        units: the chip of each operation, where it is known.
        stored: the states to which functions store.
    """

    module: ModuleOp
    main: FuncOp
    chips: Sequence[int]
    names: UnusedNames
    edit: Edit
    replicas: int
    apart: int
    inside: Mapping[Operation, int]
    loops: Mapping[Operation, Sequence[int]]
    units: dict[Operation, int] = field(default_factory=dict[Operation, int])
    stored: dict[FuncOp, set[str]] = field(default_factory=dict[FuncOp, set[str]])

    def run(self) -> None:
        """Move the operations."""
        self._find_units()
        groups = self._groups()
        for (unit, _), ops in groups.items():
            if unit is not None and not all(isinstance(each, _LEFT) for each in ops):
                self._outline(unit, ops)

    def _find_units(self) -> None:
        """Find the chip of each operation: that of its stage, of all that read it, or of all that
        it reads."""
        ops = [op for op in operations_of(self.main.body.block) if op not in self.loops]
        ops = [op for op in ops if not isinstance(op, nn.LoadOp | nn.ConstantOp)]
        for op in ops:
            stage = stage_of(op)
            if stage is not None:
                self.units[op] = self.chips[stage]
        known = -1
        while known < len(self.units):
            # Once an operation has a chip, its neighbours on both sides may get one from it.
            known = len(self.units)
            self._find_by_neighbours(ops)

    def _find_by_neighbours(self, ops: Sequence[Operation]) -> None:
        """Find the chips of operations by those that read them, and then by those that they
        read."""
        for op in reversed(ops):
            readers = {self._reader(use.operation, use.index) for v in op.results for use in v.uses}
            if op not in self.units and len(readers) == 1:
                (unit,) = readers
                if unit is not None:
                    self.units[op] = unit
        for op in ops:
            makers = {self._maker(v) for v in read_by(op) if not _is_everywhere(v)}
            known = makers - {None}
            is_number = all(not nn.shape_of(value) for value in op.results)
            # Numbers of several chips, such as the norm of all gradients, stay where they meet.
            if op not in self.units and len(known) == 1 and not (None in makers and is_number):
                self.units[op] = next(unit for unit in known if unit is not None)

    def _reader(self, op: Operation, index: int) -> Unit:
        """The chip of an operation that reads a value, or of the one around it."""
        if op in self.loops:
            return self.loops[op][index]
        outer: Operation | None = op
        while outer is not None:
            if outer in self.inside:
                return self.inside[outer]
            if outer in self.units:
                return self.units[outer]
            outer = outer.parent_op()
        return None

    def _maker(self, value: SSAValue) -> Unit:
        owner = value.owner
        if isinstance(owner, Operation) and owner in self.loops:
            return self.loops[owner][value.index] if isinstance(value, OpResult) else None
        return self.units.get(owner) if isinstance(owner, Operation) else None

    def _groups(self) -> dict[tuple[Unit, int], list[Operation]]:
        """The operations that can be computed together, in the order in which they now stand in
        @main.

        An operation is one level deeper than what it reads of other units, so functions never wait
        for each other in a circle.
        """
        depth: dict[Operation, int] = {}
        stores: dict[str, Operation] = {}
        groups: dict[tuple[Unit, int], list[Operation]] = {}
        block = self.main.body.block
        for op in operations_of(block):
            makers = {v.owner for v in read_by(op) if not _is_everywhere(v)}
            own = 0 if isinstance(op, nn.LoadOp | nn.ConstantOp) else 1
            for maker in makers:
                if isinstance(maker, Operation) and maker in depth:
                    is_loop = maker in self.loops or op in self.loops
                    same = not is_loop and self.units.get(maker) == self.units.get(op)
                    own = max(own, depth[maker] + (0 if same else 1))
            # Of several stores to a state, the last one counts.
            for state in self._stored_by(op):
                before = stores.get(state)
                if before is not None:
                    same = self.units.get(before) == self.units.get(op)
                    own = max(own, depth[before] + (0 if same else 1))
                stores[state] = op
            depth[op] = own
            groups.setdefault((self.units.get(op), own), []).append(op)
        # Operations of one group stand together.
        ordered = sorted(groups.values(), key=lambda ops: depth[ops[0]])
        place = block.first_op
        for op in (op for ops in ordered for op in ops):
            if op is place:
                place = op.next_op
                continue
            assert place is not None
            self.edit.removed(op)
            op.detach()
            self.edit.insert(op, InsertPoint.before(place))
        return groups

    def _stored_by(self, op: Operation) -> set[str]:
        """The states to which an operation stores, perhaps in a function that it calls."""
        found: set[str] = set()
        for each in op.walk():
            if isinstance(each, nn.StoreOp):
                found.add(each.state.string_value())
            elif isinstance(each, CallOp):
                callee = function_of(self.module, each)
                if callee is not None and callee not in self.stored:
                    self.stored[callee] = self._stored_by(callee)
                found |= set() if callee is None else self.stored[callee]
        return found

    def _outline(self, unit: int, ops: Sequence[Operation]) -> None:
        """Move operations that stand together to a function."""
        after = ops[-1].next_op
        assert after is not None
        own, block = set(ops), self.main.body.block
        read = [
            value
            for op in ops
            for value in op.results
            if any(in_block(use.operation, block) not in own for use in value.uses)
        ]
        outline = Outline(self.edit, self.main, ops)
        for value in outline.outside:
            outline.bind(value, outline.argument(value.type, value.name_hint))
        outline.returned = [*read]
        name = self.names.unused(f"chip{unit}")
        outline.finish(name, Placement(unit, self.replicas, self.apart))
        call = CallOp(name, outline.outside, [value.type for value in read])
        call.location = ops[-1].location
        self.edit.insert(call, InsertPoint.before(after))
        for old, new in zip(read, call.results, strict=True):
            for use in tuple(old.uses):
                if not outline.block.is_ancestor(use.operation):
                    self.edit.set_operand(use.operation, use.index, new)
            new.name_hint = old.name_hint


_LEFT = nn.StoreOp | Reinterpretation


def _is_everywhere(value: SSAValue) -> bool:
    return isinstance(value.owner, nn.LoadOp | nn.ConstantOp)
