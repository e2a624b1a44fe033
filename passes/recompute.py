"""What waits long for its next reader, made again right before it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, TensorType
from xdsl.ir import Operation, OpResult, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter
from xdsl.traits import Pure

from ..dialects import nn
from ..dialects.structured import Reinterpretation
from ..ir.errors import InputError
from ..ir.node_names import EVERY, called, fitting, nobody
from ..ir.provenance import locate
from ..ir.rewriting import Rewrite, Source, may_rewrite
from ..ir.walk import operations
from .analysis.waiting import Moments, Reader, moments


@dataclass(frozen=True)
class Recompute(ModulePass):
    """Compute values again instead of keeping them: cycles for memory. nn -> nn.

    A value waits where two of its readers in a block are far apart. Those behind its longest wait,
    and behind any other that is at least half as long, read a copy of the operation, made right
    before the first of them, so that the value itself dies early. What a copy reads is copied with
    it if it is of a named operation too, and would wait for the copy else. What it reads of others
    stays, but not in the layout that it was read in: behind a long wait it is read through a
    reshape to its own shape, so that it is laid out anew. States and constants always live, and
    are never copied; reshapes go with what they reshape.
    nodes: names of framework nodes, of those that were fused, or patterns with *; all operations if
    none is given.

        %a = nn.tanh %x                  %a = nn.tanh %x
        %b = nn.exp %a                   %b = nn.exp %a
        ...                              ...
        %c = nn.mul %b, %a               %a_1 = nn.tanh %x
                                         %c = nn.mul %b, %a_1
    """

    name = "recompute"

    nodes: tuple[str, ...] = (EVERY,)

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Run on a module. Raises InputError for a name that no operation has."""
        named = chosen(self.nodes, op)
        for block in dict.fromkeys(each.parent for each in operations(op) if each in named):
            assert block is not None
            _Block(moments(block), named).run()


def chosen(nodes: Sequence[str], module: ModuleOp) -> frozenset[Operation]:
    """The operations of some names that can be computed again.

    Raises InputError for a name that none of them has, nor fits if it is a pattern.
    """
    every = operations(module)
    ops = [each for each in every if is_repeatable(each)]
    found: set[Operation] = set()
    for name in nodes:
        own = called(name, ops) or fitting(name, ops)
        if not own and name != EVERY:
            why = nobody(name, ops, every, "cannot be computed again")
            raise InputError(f"pass '{Recompute.name}': option 'nodes': {name}: {why}")
        found.update(own)
    return frozenset(found)


def is_repeatable(op: Operation) -> bool:
    """Whether an operation gives the same whenever it is done, and its results do not live
    anyway."""
    return (
        op.has_trait(Pure)
        and bool(op.results)
        and not op.regions
        and not isinstance(op, nn.ConstantOp | Reinterpretation)
    )


@dataclass
class _Block:
    """The operations of one block. front: what stands first of all that is new before an index."""

    moments: Moments
    named: frozenset[Operation]
    copies: set[Operation] = field(default_factory=set[Operation])
    front: dict[int, Operation] = field(default_factory=dict[int, Operation])

    def run(self) -> None:
        """Users before what they use, which their copies read too."""
        own = [op for op in self.moments.ops if op in self.named]
        for op in reversed(own):
            readers = (r for v in op.results for r in self.moments.readers_in_any_shape(v))
            for stay in self.moments.stays(readers, self.copies)[1:]:
                if may_rewrite():
                    self._copy(op, stay)
        read = {v: op for op in own for v in op.operands if v.owner not in self.named}
        for value, op in read.items():
            for stay in self.moments.stays(self.moments.readers(value), self.copies)[1:]:
                if may_rewrite() and isinstance(value.type, TensorType):
                    self._lay_out_anew(value, op, stay)

    def _copy(self, op: Operation, readers: Sequence[Reader]) -> None:
        """Let readers have the results of a copy."""
        rewrite = Rewrite(COMPUTE, op)
        copy = op.clone()
        self._insert(copy, readers[0].at, rewrite)
        self.copies.add(copy)
        shapes = _Shapes(dict(zip(op.results, copy.results, strict=True)), copy, rewrite)
        for each in readers:
            _read(each, shapes.of(each.use.operation.operands[each.use.index]), rewrite)
        for shape in shapes.left:
            rewrite.removed(shape)
            Rewriter.erase_op(shape)
        rewrite.done()

    def _lay_out_anew(self, value: SSAValue, op: Operation, readers: Sequence[Reader]) -> None:
        """Let readers have a value by another name: what is laid out is found by its name."""
        rewrite = Rewrite(LAY_OUT, op)
        again = nn.ReshapeOp(value, nn.shape_of(value))
        locate(again, readers[0].use.operation)
        self._insert(again, readers[0].at, rewrite)
        for each in readers:
            _read(each, again.result, rewrite)
        rewrite.done()

    def _insert(self, op: Operation, at: int, rewrite: Rewrite) -> None:
        """Put an operation before all that is new before an index: that may read it."""
        self.moments.block.insert_op_before(op, self.front.get(at, self.moments.ops[at]))
        self.moments.index[op] = at
        self.front[at] = op
        rewrite.inserted(op)


def _read(reader: Reader, value: SSAValue, rewrite: Rewrite) -> None:
    reader.use.operation.operands[reader.use.index] = value
    rewrite.modified(reader.use.operation)


@dataclass
class _Shapes:
    """What takes the place of values, in all the shapes that these are read in.

    values: the new ones by the old ones. last: what the next new reshape is put behind.
    """

    values: dict[SSAValue, SSAValue]
    last: Operation
    rewrite: Rewrite

    def of(self, value: SSAValue) -> SSAValue:
        """The new value for an old one; a reshape of it is made anew."""
        if value not in self.values:
            assert isinstance(value, OpResult)
            block = self.last.parent
            assert block is not None
            (source,) = value.op.operands
            shape = value.op.clone({source: self.of(source)})
            block.insert_op_after(shape, self.last)
            self.last = shape
            self.rewrite.inserted(shape)
            self.values[value] = shape.results[0]
        return self.values[value]

    @property
    def left(self) -> list[Operation]:
        """The old reshapes that nobody reads any more, users first."""
        found: list[Operation] = []
        for value in reversed(self.values):
            assert isinstance(value, OpResult)
            users = (use.operation for use in value.uses)
            if isinstance(value.op, Reinterpretation) and all(each in found for each in users):
                found.append(value.op)
        return found


_FILE, _LINE = Path(__file__).name, Recompute.apply.__code__.co_firstlineno
COMPUTE = Source("compute it again", _FILE, _LINE)
LAY_OUT = Source("lay it out anew", _FILE, _LINE)
