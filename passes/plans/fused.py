"""Groups as single operations, for the time in which plans are made and applied."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from types import TracebackType

from xdsl.dialects.builtin import IntegerAttr, StringAttr, TensorType, i64
from xdsl.ir import Block, Operation, SSAValue
from xdsl.irdl import (
    IRDLOperation,
    irdl_op_definition,
    prop_def,
    result_def,
    traits_def,
    var_operand_def,
)
from xdsl.traits import Pure

from ...dialects import nn
from ...dialects.abele import BodyAttr, SpaceAttr
from ...dialects.structured import Structure, Structured
from ...ir.provenance import fused, place
from ...ir.support.errors import InputError
from ...ir.upstream import ModuleOp, Rewriter
from ...ir.xdsl.walk import operations
from .coordinates import Read, can_read, reading


@irdl_op_definition
class FusedOp(IRDLOperation, Structured):
    """A group of operations, or an operation that reads coordinates, while FusedGroups is active.

    Attributes:
        inputs: the operands of the group, without those that are coordinates.
        space, body: its structure.
        key: the number of the group in its FusedGroups.
        root: the name of its root.
    """

    name = "nn.fused"
    inputs = var_operand_def(TensorType)
    space = prop_def(SpaceAttr)
    body = prop_def(BodyAttr)
    key = prop_def(IntegerAttr)
    root = prop_def(StringAttr)
    result = result_def(TensorType)
    traits = traits_def(Pure())

    def __init__(self, group: nn.Group, read: Read, key: int):
        structure = read.structure
        super().__init__(
            operands=[read.operands],
            properties={
                "space": SpaceAttr(structure.space),
                "body": BodyAttr(structure.body),
                "key": IntegerAttr(key, i64),
                "root": StringAttr(group.root.name),
            },
            result_types=[group.result.type],
        )
        if "plan" in group.root.attributes:
            self.attributes["plan"] = group.root.attributes["plan"]
        self.location = fused(group.members)

    def structure(self) -> Structure:
        """The space and the body."""
        return Structure(self.space.data, self.body.data)


def operator_name(op: Operation) -> str:
    """The name of an operation; for a group, the name of its root."""
    return op.root.data if isinstance(op, FusedOp) else op.name


@dataclass
class FusedGroups:
    """Within the block, each group of a module is one FusedOp at the place of its last member.

    Each operation that reads an nn.iota as a coordinate is a FusedOp too. An nn.iota that no
    operation reads as a tensor is removed for the time of the block.

    Planner and conversion therefore need not know groups. After the block, each FusedOp is replaced
    by the members of its group, and its plan is written on the root. A copy of a FusedOp becomes
    copies of the members.
    Raises InputError for a plan on a member that is not the root.
    """

    module: ModuleOp
    _members: list[tuple[Operation, ...]] = field(default_factory=list[tuple[Operation, ...]])
    _inputs: list[Block] = field(default_factory=list[Block])
    _iotas: list[tuple[nn.IotaOp, Operation | None]] = field(
        default_factory=list[tuple[nn.IotaOp, "Operation | None"]]
    )
    _free: int = 0

    def __enter__(self) -> FusedGroups:
        self.fuse()
        return self

    def fuse(self) -> None:
        """Replace each group by one operation permanently."""
        every = operations(self.module)
        self._free = nn.free_number(every)
        blocks = dict.fromkeys(op.parent for op in every)
        groups = [g for block in blocks if block is not None for g in nn.groups_of(block)]
        for group in groups:
            for op in group.members[1:]:
                if "plan" in op.attributes:
                    raise InputError(
                        f"{op.name} at {place(op)}: a plan, but {group.root.name} at "
                        f"{place(group.root)} is the root of its group; remove the plan"
                    )
        for group in groups:
            self._fuse(group)
        self._absorb([op for op in every if isinstance(op, nn.IotaOp)])

    def root(self, op: Operation) -> Operation:
        """The first member of a group that a FusedOp stands for; any other operation itself."""
        return self._members[op.key.value.data][0] if isinstance(op, FusedOp) else op

    def _absorb(self, iotas: Sequence[nn.IotaOp]) -> None:
        """Replace each operation that can read a coordinate by a FusedOp that does."""
        for iota in iotas:
            for use in tuple(iota.result.uses):
                if use.operation.parent is None or not can_read(use.operation):
                    continue
                alone = nn.Group((use.operation,))
                if reading(alone.structure, alone.operands, alone.result).absorbed:
                    self._fuse(alone)
        for iota in iotas:
            readers = [use.operation for use in iota.result.uses]
            if readers and all(each.parent is None for each in readers):
                self._iotas.append((iota, iota.next_op))
                iota.detach()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        for iota, after in reversed(self._iotas):
            # The next operation is still in the block, unless it has been replaced.
            if after is None or after.parent is None:
                after = next(op for op in operations(self.module) if isinstance(op, FusedOp))
            assert after.parent is not None
            after.parent.insert_op_before(iota, after)
        found: dict[int, list[FusedOp]] = {}
        for op in operations(self.module):
            if isinstance(op, FusedOp):
                found.setdefault(op.key.value.data, []).append(op)
        for key, (first, *copies) in found.items():
            for op in copies:
                self._expand(op, self._members[key], is_copy=True)
            self._expand(first, self._members[key], is_copy=False)

    def _fuse(self, group: nn.Group) -> None:
        read = reading(group.structure, group.operands, group.result)
        made = FusedOp(group, read, len(self._members))
        last = group.members[-1]
        assert last.parent is not None
        last.parent.insert_op_before(made, last)
        hint = group.result.name_hint
        group.result.replace_all_uses_with(made.result)
        made.result.name_hint = hint
        # Detached members read the arguments of a block of their own.
        inputs = Block(arg_types=[v.type for v in read.operands])
        given = iter(inputs.args)
        inner = {op.results[0] for op in group.members}
        number = 0
        for op in group.members:
            operands: list[SSAValue] = []
            for value in op.operands:
                is_read = value in inner or number in read.absorbed
                operands.append(value if is_read else next(given))
                number += value not in inner
            op.operands = operands
            op.detach()
        self._members.append(group.members)
        self._inputs.append(inputs)

    def _expand(self, op: FusedOp, members: tuple[Operation, ...], *, is_copy: bool) -> None:
        inputs = self._inputs[op.key.value.data]
        values: dict[SSAValue, SSAValue] = dict(zip(inputs.args, op.inputs, strict=True))
        if is_copy:
            members = tuple(each.clone(values) for each in members)
            nn.join(self._free, members)
            self._free += 1
        else:
            for each in members:
                each.operands = [values.get(v, v) for v in each.operands]
        members[0].attributes.pop("plan", None)
        if "plan" in op.attributes:
            members[0].attributes["plan"] = op.attributes["plan"]
        assert op.parent is not None
        for each in members:
            op.parent.insert_op_before(each, op)
        last = members[-1].results[0]
        hint = op.result.name_hint
        op.result.replace_all_uses_with(last)
        last.name_hint = hint
        Rewriter.erase_op(op)
