"""What the values of nn have become at partition, and the relayouts between them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from xdsl.dialects.builtin import FunctionType
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from ...backends.reference.operation import Meaningless
from ...dialects import partition
from ...dialects.dtypes import numpy_dtype
from ...dialects.partition import PartitionTensor, laid_out, partition_type
from ...dialects.structured import Composite
from ...ir.conversion import Conversion, Patterns
from ...ir.geometry.layout import Layout
from ...ir.provenance import place
from ...ir.support.errors import InputError
from ..replicas.gathers import gather_of, pays
from .types import Types


@dataclass
class _Scope:
    """A region that is being converted.

    Attributes:
        repeats: whether it is part of a loop.
        relayouts: the relayouts made in it, by value and layout.
    """

    block: Block
    repeats: bool
    relayouts: dict[tuple[SSAValue, Layout], SSAValue] = field(
        default_factory=dict[tuple[SSAValue, Layout], SSAValue]
    )


class ToPartition(Conversion):
    """A program at partition, while it is made.

    Attributes:
        types: the types of values that no plan lays out.
        values: what each value of nn has become.
        functions: the signatures of the functions that have been converted, by name.
    """

    def __init__(self, patterns: Patterns[ToPartition], types: Types) -> None:
        super().__init__(patterns, "partition")
        self.types = types
        self.functions: dict[str, FunctionType] = {}
        self.values: dict[SSAValue, SSAValue] = {}
        self._scopes: list[_Scope] = []

    def refusal(self, op: Operation) -> InputError:
        """The error for an operation without a pattern, with the pass that would replace it."""
        if not isinstance(op, Composite):
            return Meaningless(op)
        return InputError(
            f"{op.name} at {place(op)}: no conversion to {self.to}; run decompose first"
        )

    def become(self, op: Operation, results: Sequence[SSAValue]) -> None:
        """Note what the results of an operation have become."""
        for old, new in zip(op.results, results, strict=True):
            self.values[old] = new
            new.name_hint = old.name_hint

    def operands(self, op: Operation) -> list[SSAValue]:
        """What the operands of an operation have become."""
        return [self.values[value] for value in op.operands]

    def in_layout(self, value: SSAValue, layout: Layout, role: str) -> SSAValue:
        """A value in a layout: the value itself, an earlier relayout of it, or a new one.

        A value that a loop does not change is relaid once, before the loop.

        Args:
            role: what the value is for, for the location of the relayout.
        """
        given = partition_type(value)
        if given.layout.data == layout:
            return value
        for scope in self._scopes:
            if (value, layout) in scope.relayouts:
                return scope.relayouts[value, layout]
        target = self.types.homes.target
        itemsize = numpy_dtype(given.tensor.element_type).itemsize
        gather = gather_of(given.layout.data, layout, target)
        op = partition.RelayoutOp(
            [value],
            None,
            laid_out(given.tensor, layout),
            rounds=gather is not None and pays(gather, itemsize, target),
        )
        scope = self._before_loops(value)
        with self.into(scope.block):
            self.add(op, role)
        scope.relayouts[value, layout] = op.result
        return op.result

    def brought(self, value: SSAValue, old: SSAValue) -> SSAValue:
        """A value, brought to the part of the machine on which a function lies that uses it.

        It is the value itself if it lies there, and if the function lies on the whole machine.

        Args:
            old: the value at nn.
        """
        part = self.types.homes.parts.around(old)
        if part.has(partition_type(value).layout.data):
            return value
        return self.in_layout(value, self.types.near_reader(old).layout.data, "brought")

    def in_types(self, values: Sequence[SSAValue], types: Sequence[Attribute]) -> list[SSAValue]:
        """Values in the layouts of types, for a function or a region that hands them on."""
        result: list[SSAValue] = []
        for value, type_ in zip(values, types, strict=True):
            assert isinstance(type_, PartitionTensor)
            result.append(self.in_layout(value, type_.layout.data, "carried"))
        return result

    def _before_loops(self, value: SSAValue) -> _Scope:
        """The outermost region reached from here without entering a loop that contains the value's
        definition.
        """
        home = value.owner if isinstance(value.owner, Block) else value.owner.parent
        at = len(self._scopes) - 1
        while self._scopes[at].repeats and self._scopes[at].block is not home:
            at -= 1
        return self._scopes[at]

    def region(
        self,
        region: Region,
        types: Sequence[Attribute],
        finish: Callable[[Sequence[SSAValue]], Sequence[SSAValue]],
        *,
        repeats: bool = False,
    ) -> Region:
        """Convert a region.

        Args:
            types: the types of its arguments.
            finish: maps the operands of its last operation to the new ones.
            repeats: whether it is part of a loop.
        """
        old = region.block
        with self.into(Block(arg_types=types)) as block:
            for before, after in zip(old.args, block.args, strict=True):
                self.values[before] = after
                after.name_hint = before.name_hint
            self._scopes.append(_Scope(block, repeats))
            last = self.convert_body(old)
            operands = finish(self.operands(last))
            self.add(type(last).create(operands=operands, properties=dict(last.properties)))
            self._scopes.pop()
        return Region(block)
