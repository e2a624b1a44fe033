"""Compute values again right before a late reader, instead of keeping them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from xdsl.dialects.builtin import TensorType
from xdsl.ir import Operation, OpResult, SSAValue
from xdsl.traits import Pure

from ..dialects import nn
from ..dialects.levels import NN
from ..dialects.structured import Reinterpretation
from ..ir.edit import Edit, source_at
from ..ir.node_names import (
    EVERY,
    no_such_operator,
    node_names,
    operations_matching,
    operations_named,
)
from ..ir.provenance import locate
from ..ir.rewriting import may_rewrite
from ..ir.support.errors import InputError
from ..ir.upstream import Context, InsertPoint, ModuleOp, ModulePass
from ..ir.xdsl.walk import operations
from .analysis.checkpoints import SQRT, between_checkpoints
from .analysis.waiting import Moments, Reader, moments
from .plans.fused import FusedGroups


@dataclass(frozen=True)
class Recompute(ModulePass):
    """Compute values again instead of keeping them: cycles for memory. nn -> nn.

    A value waits where two of its readers in a block are far apart. The readers after its longest
    wait, and after each other wait at least half as long, read a copy of the operation instead. The
    copy is made right before the first of them, so the value itself dies early. An operand of the
    copy is copied too if a named operation makes it and it would otherwise wait for the copy. Other
    operands are kept, but not in their old layout: after a long wait the copy reads them through a
    reshape to their own shape, which gets a layout of its own. States and constants live for the
    whole run and are never copied. Reshapes are copied with the value that they reshape.

        %a = nn.tanh %x                  %a = nn.tanh %x
        %b = nn.exp %a                   %b = nn.exp %a
        ...                              ...
        %c = nn.mul %b, %a               %a_1 = nn.tanh %x
                                         %c = nn.mul %b, %a_1

    A value that is read at once by several operations, such as a gradient that both moments of Adam
    read, need not be stored at all: each of `apart` is copied for every reader, right before it, so
    that fuse-chains can compute reader and copy together.

        %g = nn.matmul %dy, %x           %g = nn.matmul %dy, %x
        %a = nn.square %g                %a = nn.square %g
        %b = nn.tanh %g                  %g_1 = nn.matmul %dy, %x
                                         %b = nn.tanh %g_1

    A value that several operations read in one layout, not its own, is copied to that layout
    once, and the copy waits like a value. Operations in `anew` copy it again after a long wait:
    they too read it through a reshape to its own shape.

    Attributes:
        nodes: names of framework nodes, names of nodes that were fused, or patterns with *; all
            operations if no option is given. NAME:N is the N-th of several operations of a name,
            counted from 1.
        apart: names of operations that are computed again for each reader.
        anew: names of operations before which operands that waited are laid out anew.
        schedule: sqrt, which chooses the nodes by PopART's schedule: all operations of the forward
            phase but those that are live at some places (see passes/analysis/checkpoints.py).
    """

    name = "recompute"
    takes = NN
    skips_other_levels = True

    nodes: tuple[str, ...] = ()
    apart: tuple[str, ...] = ()
    anew: tuple[str, ...] = ()
    schedule: str = ""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Run on a module. Raises InputError for a name that matches no operation."""
        if self.schedule not in ("", SQRT):
            raise InputError(
                f"pass '{self.name}': option 'schedule': {self.schedule!r}; need {SQRT}"
            )
        nodes = self.nodes or (() if self.apart or self.anew or self.schedule else (EVERY,))
        with FusedGroups(op):
            apart = chosen(self.apart, op, "apart")
            named = chosen(nodes, op) - apart
            if self.schedule:
                named |= frozenset(filter(is_repeatable, between_checkpoints(op)))
            anew = chosen(self.anew, op, "anew") - apart
            touched = named | apart | anew
            for block in dict.fromkeys(each.parent for each in operations(op) if each in touched):
                assert block is not None
                _Block(moments(block), named, anew).run()
                for each in [own for own in block.ops if own in apart]:
                    if may_rewrite():
                        _copy_for_each(each)


def chosen(nodes: Sequence[str], module: ModuleOp, option: str = "nodes") -> frozenset[Operation]:
    """The operations with these names that can be computed again.

    Raises InputError for a name or pattern that matches none of them.

    Args:
        option: of the pass, for messages.
    """
    every = operations(module)
    ops = [each for each in every if is_repeatable(each)]
    found: set[Operation] = set()
    for name in nodes:
        own = operations_named(name, ops) or operations_matching(name, ops)
        if not own and name != EVERY:
            own = numbered(name, ops)
        if not own and name != EVERY:
            why = no_such_operator(name, ops, every, "cannot be computed again")
            raise InputError(f"pass '{Recompute.name}': option '{option}': {name}: {why}")
        found.update(own)
    return frozenset(found)


def numbered(name: str, ops: Sequence[Operation]) -> list[Operation]:
    """The operation that NAME:N stands for; [] if there is none."""
    base, _, number = name.rpartition(":")
    alike = operations_named(base, ops) if number.isdecimal() else []
    return alike[int(number) - 1 :][:1] if number.isdecimal() and int(number) else []


def name_of(op: Operation, alike: Mapping[str, Sequence[Operation]]) -> str:
    """The shortest name for `nodes` that no other operation has; "" if there is none.

    Args:
        alike: the operations that can be computed again, by each of their names.
    """
    names = sorted(node_names(op), key=len)
    unique = next((name for name in names if len(alike[name]) == 1), None)
    if unique is not None or not names:
        return unique or ""
    return f"{names[-1]}:{[*alike[names[-1]]].index(op) + 1}"


def by_name(module: ModuleOp) -> dict[str, list[Operation]]:
    """The operations of a module that can be computed again, by each of their names."""
    found: dict[str, list[Operation]] = {}
    for op in operations(module):
        if is_repeatable(op):
            for name in node_names(op):
                found.setdefault(name, []).append(op)
    return found


def _copy_for_each(op: Operation) -> None:
    """Copy an operation with one result for each reader but the first, right before the reader."""
    (result,) = op.results
    order = {each: i for i, each in enumerate(op.parent.ops)} if op.parent is not None else {}
    uses = sorted(
        (use for use in result.uses if use.operation in order),
        key=lambda use: (order[use.operation], use.index),
    )
    first = uses[0].operation if uses else None
    for use in uses:
        if use.operation is first:
            continue
        with Edit(COMPUTE, op) as edit:
            copy = op.clone()
            edit.insert(copy, InsertPoint.before(use.operation))
            edit.set_operand(use.operation, use.index, copy.results[0])


def is_repeatable(op: Operation) -> bool:
    """Whether an operation gives equal results whenever it runs, and repeating it can save
    memory."""
    return (
        op.has_trait(Pure)
        and bool(op.results)
        and not op.regions
        and not isinstance(op, nn.ConstantOp | Reinterpretation)
    )


@dataclass
class _Block:
    """The operations of one block.

    Attributes:
        named: those that are copied after long waits.
        anew: those before which operands that waited are laid out anew.
        front: for each index, the first new operation inserted before it.
    """

    moments: Moments
    named: frozenset[Operation]
    anew: frozenset[Operation]
    copies: set[Operation] = field(default_factory=set[Operation])
    front: dict[int, Operation] = field(default_factory=dict[int, Operation])

    def run(self) -> None:
        """Copy users before their producers, because copies of the users read the producers too."""
        own = [op for op in self.moments.ops if op in self.named]
        for op in reversed(own):
            readers = (r for v in op.results for r in self.moments.readers_in_any_shape(v))
            for stay in self.moments.stays(readers, self.copies)[1:]:
                if may_rewrite():
                    self._copy(op, stay)
        read = {v: op for op in own for v in op.operands if v.owner not in self.named}
        asked = {v: op for op in self.moments.ops if op in self.anew for v in op.operands}
        for value, op in (asked | read).items():
            for stay in self.moments.stays(self.moments.readers(value), self.copies)[1:]:
                wanted = value in read or any(self.moments.ops[r.at] in self.anew for r in stay)
                if wanted and may_rewrite() and isinstance(value.type, TensorType):
                    self._lay_out_anew(value, op, stay)

    def _copy(self, op: Operation, readers: Sequence[Reader]) -> None:
        """Copy an operation for some readers of its results."""
        with Edit(COMPUTE, op) as edit:
            copy = op.clone()
            self._insert(copy, readers[0].at, edit)
            self.copies.add(copy)
            shapes = Shapes(dict(zip(op.results, copy.results, strict=True)), copy, edit)
            for each in readers:
                user, index = each.use.operation, each.use.index
                edit.set_operand(user, index, shapes.of(user.operands[index]))
            for shape in shapes.left:
                edit.erase(shape)

    def _lay_out_anew(self, value: SSAValue, op: Operation, readers: Sequence[Reader]) -> None:
        """Let readers use a value through a reshape to its own shape, because each value has one
        layout.
        """
        with Edit(LAY_OUT, op) as edit:
            again = nn.ReshapeOp(value, nn.shape_of(value))
            locate(again, readers[0].use.operation)
            self._insert(again, readers[0].at, edit)
            for each in readers:
                edit.set_operand(each.use.operation, each.use.index, again.result)

    def _insert(self, op: Operation, at: int, edit: Edit) -> None:
        """Insert an operation before all other new operations at an index, because they may read
        it.
        """
        edit.insert(op, InsertPoint.before(self.front.get(at, self.moments.ops[at])))
        self.moments.index[op] = at
        self.front[at] = op


@dataclass
class Shapes:
    """Replacements of values, in all the shapes in which the values are read.

    Attributes:
        values: new values by old value.
        last: the operation after which the next reshape is inserted.
    """

    values: dict[SSAValue, SSAValue]
    last: Operation
    edit: Edit

    def of(self, value: SSAValue) -> SSAValue:
        """The new value for an old one. Reshapes of the old value are cloned for the new one."""
        if value not in self.values:
            assert isinstance(value, OpResult)
            (source,) = value.op.operands
            shape = value.op.clone({source: self.of(source)})
            self.edit.insert(shape, InsertPoint.after(self.last))
            self.last = shape
            self.values[value] = shape.results[0]
        return self.values[value]

    @property
    def left(self) -> list[Operation]:
        """The old reshapes that have no users any more, users before producers."""
        found: list[Operation] = []
        for value in reversed(self.values):
            assert isinstance(value, OpResult)
            users = (use.operation for use in value.uses)
            if isinstance(value.op, Reinterpretation) and all(each in found for each in users):
                found.append(value.op)
        return found


COMPUTE = source_at("compute it again", Recompute.apply)
LAY_OUT = source_at("lay it out anew", Recompute.apply)
