"""Puts a sample of a rule's left side into a whole program.

Each leaf of the sample becomes an argument, a state, a constant, the result of another operation,
or a value that another leaf uses already. Other operations read the sample's results too. Sometimes
the whole sample is in a loop or a branch. The program returns the root's result and the results of
the other readers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import prod
from random import Random
from typing import Literal, TypeAlias, cast

from xdsl.dialects import func
from xdsl.dialects.builtin import TensorType, i1
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from .....backends.target import Target
from .....dialects import control, nn
from .....dialects.dtypes import numpy_dtype
from .....dialects.structured import Structured
from .....ir.blob import BlobStore
from .....ir.context import AbeleContext
from .....ir.provenance import named
from .....ir.rules.samples import Sample
from .....ir.tensor_type import tensor_type
from .....ir.upstream import ModuleOp, VerifyException
from .....ir.verify import verify
from .....ir.well_known import ENTRY
from ....driver.arrays import Array
from ..build import MOST_POINTS, Operators
from ..program import Program
from ..sketch import Data
from ..values import values_of

Flow: TypeAlias = Literal["", "repeat", "if", "split"]
"""The control flow around a sample. split: a loop around its root alone."""

MOST_ELEMENTS = 4096
"""The most elements that a tensor may have."""
MADE = 0.25
"""How often a leaf is the result of a generated operation."""
SHARED = 0.3
"""How often a leaf is an existing leaf, if there is one of its type."""
STORED = 0.15
"""How often a program stores one of its results."""


class Unsuited(Exception):
    """Raised for a sample that no program can contain, for its size or its types."""


@dataclass(frozen=True)
class Style:
    """How a sample is put into a program.

    Attributes:
        flow: the control flow around it.
        plain: all leaves are arguments, and nothing but the program's results reads the sample.
        shared: other operations read the results of its inner operations.
        data: the values of inputs.
    """

    flow: Flow = ""
    plain: bool = False
    shared: bool = False
    data: Data = "integers"


@dataclass(frozen=True)
class Instance:
    """A program that contains a rule's left side.

    Attributes:
        root: the root of that left side.
    """

    program: Program
    root: Operation


def embedded(
    sample: Sample | Operation,
    style: Style,
    operators: Operators,
    sizes: Sequence[int],
    target: Target,
    random: Random,
) -> Instance:
    """A program around a sample, or around the root operation of a sample. Raises Unsuited."""
    root = sample.root if isinstance(sample, Sample) else sample
    return _Embedding(style, operators, sizes, target, random).instance(root)


@dataclass
class _Embedding:
    style: Style
    operators: Operators
    sizes: Sequence[int]
    target: Target
    random: Random
    context: AbeleContext = field(default_factory=AbeleContext)
    main: Block = field(default_factory=Block)
    head: list[Operation] = field(default_factory=list[Operation])
    states: list[nn.StateOp] = field(default_factory=list[nn.StateOp])
    inputs: dict[str, Array] = field(default_factory=dict[str, Array])
    ops: list[Operation] = field(default_factory=list[Operation])
    leaves: list[SSAValue] = field(default_factory=list[SSAValue])
    results: list[SSAValue] = field(default_factory=list[SSAValue])
    copies: dict[SSAValue, SSAValue] = field(default_factory=dict[SSAValue, SSAValue])

    def instance(self, root: Operation) -> Instance:
        """The program around the sample. Raises Unsuited if it does not verify."""
        block = root.parent_block()
        assert block is not None
        _check_size(block)
        self.context = self.operators.context.clone()
        self.context.blobs = BlobStore()
        for leaf in block.args:
            self.copies[leaf] = self._leaf(leaf.type)
        flow = self.style.flow if len(root.results) == 1 else ""
        new = _PLACED[flow](self, list(block.ops), root)
        self._store()
        return Instance(self._program(), new)

    def _program(self) -> Program:
        for number, op in enumerate((*self.head, *self.ops)):
            op.location = named(f"node{number}")
        self.main.add_ops([*self.head, *self.ops])
        returned = list(dict.fromkeys(self.results)) or self.leaves[:1]
        self.main.add_op(func.ReturnOp(*returned))
        types = ([a.type for a in self.main.args], [v.type for v in returned])
        module = ModuleOp([*self.states, func.FuncOp(ENTRY, types, Region(self.main))])
        try:
            verify(module)
        except VerifyException as error:
            raise Unsuited(str(error)) from None
        return Program(module, self.context, self.inputs, self.target)

    # Leaves

    def _leaf(self, type_: Attribute) -> SSAValue:
        alike = [v for v in self.leaves if v.type == type_]
        if alike and not self.style.plain and self.random.random() < SHARED:
            return self.random.choice(alike)
        found = self._made(type_) if not self.style.plain and self.random.random() < MADE else None
        self.leaves.append(found or self._given(type_))
        return self.leaves[-1]

    def _given(self, type_: Attribute) -> SSAValue:
        """An argument, a state or a constant."""
        chance = self.random.random()
        if self.style.plain or chance < 0.6:
            array = self._array(type_)
            self.inputs[f"arg{len(self.main.args)}"] = array
            return self.main.insert_arg(type_, len(self.main.args))
        if chance < 0.8:
            op = nn.LoadOp(self._state(type_), cast("TensorType[Attribute]", type_))
        else:
            op = nn.ConstantOp(self.context.blobs.add(self._array(type_)))
        self.head.append(op)
        return op.results[0]

    def _state(self, type_: Attribute) -> str:
        name = f"w{len(self.states)}"
        self.states.append(nn.StateOp(name, self.context.blobs.add(self._array(type_))))
        return name

    def _array(self, type_: Attribute) -> Array:
        if not isinstance(type_, TensorType):
            raise Unsuited(f"{type_} is no tensor")
        tensor = cast("TensorType[Attribute]", type_)
        try:
            dtype = numpy_dtype(tensor.element_type)
        except ValueError as error:
            raise Unsuited(str(error)) from None
        seed = self.random.randrange(1 << 30)
        return values_of(tensor.get_shape(), dtype, seed, self.style.data)

    def _made(self, type_: Attribute) -> SSAValue | None:
        """The result, of the given type, of a generated operation on a leaf; None if none fits."""
        op = self._reader(type_)
        if op is None or op.results[0].type != type_:
            return None
        self._connect(op, [self._given(v.type) for v in op.operands])
        self.head.append(op)
        return op.results[0]

    def _reader(self, type_: Attribute) -> Operation | None:
        """An operation with an operand of the given type; None if none is found.

        Its operands are placeholders.
        """
        if not isinstance(type_, TensorType):
            return None
        tensor = cast("TensorType[Attribute]", type_)
        classes = [cls for cls in self.operators.classes if issubclass(cls, nn.ElementwiseOp)]
        for cls in self.random.sample(classes, min(4, len(classes))):
            if self.operators.instances.takes(cls, tensor):
                op = self.operators.instances.make(cls, self.random, self.sizes, tensor)
                if op is not None:
                    return op
        return None

    def _connect(self, op: Operation, operands: Sequence[SSAValue]) -> None:
        op.operands = operands

    def read(self, value: SSAValue) -> Operation | None:
        """An operation that reads a value."""
        op = self._reader(value.type)
        if op is None:
            return None
        at = next(i for i, v in enumerate(op.operands) if v.type == value.type)
        others = [self._given(v.type) if i != at else value for i, v in enumerate(op.operands)]
        self._connect(op, others)
        return op

    # Where the sample is

    def _copied(self, op: Operation) -> Operation:
        """A copy of an operation of the sample, on the copies of its operands."""
        return op.clone(self.copies)

    def in_main(self, ops: Sequence[Operation], root: Operation) -> Operation:
        """Put the sample in the main block. Returns the copy of its root."""
        new = root
        for op in ops:
            copy = self._copied(op)
            self.ops.append(copy)
            if op is root:
                new = copy
            elif self.style.shared and self.random.random() < 0.6:
                self._seen(copy)
        self.results += new.results
        if not self.style.plain:
            self._seen(new)
        return new

    def _seen(self, op: Operation) -> None:
        """Make the program return the results of an operation, or values computed from them."""
        for value in op.results:
            reader = self.read(value) if self.random.random() < 0.5 else None
            if reader is None:
                self.results.append(value)
            else:
                self.ops.append(reader)
                self.results += reader.results

    def in_repeat(self, ops: Sequence[Operation], root: Operation) -> Operation:
        """Put the sample in a loop that carries the root's result. Returns the copy of its root."""
        return self._loop(ops, root, [])

    def split(self, ops: Sequence[Operation], root: Operation) -> Operation:
        """Put the root in a loop, and the other operations before it. Returns the root's copy."""
        return self._loop([root], root, [op for op in ops if op is not root])

    def _loop(
        self, inside: Sequence[Operation], root: Operation, before: Sequence[Operation]
    ) -> Operation:
        self.ops += map(self._copied, before)
        type_ = root.results[0].type
        body = Block(arg_types=[type_])
        for leaf, value in list(self.copies.items()):
            # A leaf may be the value that the loop carries.
            is_leaf = not isinstance(leaf.owner, Operation)
            if is_leaf and value.type == type_ and self.random.random() < 0.5:
                self.copies[leaf] = body.args[0]
        new = self._into(body, inside, root)
        body.add_op(control.YieldOp(new.results[0]))
        iterations = self.random.choice((0, 1, 2, 2, 3))
        self._flow(control.RepeatOp(iterations, [self._leaf(type_)], Region(body)))
        return new

    def in_branch(self, ops: Sequence[Operation], root: Operation) -> Operation:
        """Put the sample in one of two branches. Returns the copy of its root."""
        type_ = root.results[0].type
        chosen, other = Block(), Block()
        new = self._into(chosen, ops, root)
        chosen.add_op(control.YieldOp(new.results[0]))
        other.add_op(control.YieldOp(self._leaf(type_)))
        branches = [Region(chosen), Region(other)]
        self.random.shuffle(branches)
        predicate = self._given(tensor_type(i1, []))
        self._flow(control.IfOp(predicate, [type_], branches[0], branches[1]))
        return new

    def _into(self, block: Block, ops: Sequence[Operation], root: Operation) -> Operation:
        new = root
        for op in ops:
            # An operation without operands may also be before the loop or branch.
            outside = not op.operands and self.random.random() < 0.5
            copy = self._copied(op)
            self.ops.append(copy) if outside else block.add_op(copy)
            new = copy if op is root else new
            if self.style.shared and op is not root and self.random.random() < 0.6:
                reader = self.read(copy.results[0]) if copy.results else None
                if reader is not None:
                    self.ops.append(reader) if outside else block.add_op(reader)
        return new

    def _flow(self, op: Operation) -> None:
        self.ops.append(op)
        self.results += op.results

    def _store(self) -> None:
        if self.style.plain or not self.results or self.random.random() >= STORED:
            return
        value = self.random.choice(self.results)
        alike = [s for s in self.states if s.elements == value.type]
        name = alike[0].sym_name.data if alike else self._state(value.type)
        self.ops.append(nn.StoreOp(value, name))


_PLACED = {
    "": _Embedding.in_main,
    "repeat": _Embedding.in_repeat,
    "if": _Embedding.in_branch,
    "split": _Embedding.split,
}


def _check_size(block: Block) -> None:
    """Raise Unsuited for a sample that takes too long to run."""
    for op in block.ops:
        for value in (*op.operands, *op.results):
            if isinstance(value.type, TensorType):
                shape = cast("TensorType[Attribute]", value.type).get_shape()
                if prod(shape) > MOST_ELEMENTS:
                    raise Unsuited(f"{op.name} on {list(shape)}")
        if isinstance(op, Structured) and prod(op.structure().space.sizes) > MOST_POINTS:
            raise Unsuited(f"{op.name} on many points")
