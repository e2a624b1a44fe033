"""One node of a graph being imported: its operands, its attributes, and where to build."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeVar

import numpy as np
import onnx
from numpy.typing import DTypeLike
from xdsl.ir import Attribute, Block, Operation, OpResult, SSAValue

from ....backends.reference import evaluate_pure, is_evaluable
from ....dialects import nn
from ....dialects.dtypes import element_type, numpy_dtype
from ....dialects.random_states import SEED, STEP
from ....ir.context import AbeleContext
from ....ir.provenance import is_known, named
from ....ir.support.errors import InputError
from ....ir.support.limits import TABLE_ELEMENTS
from ....ir.support.number_kinds import is_floating, is_whole
from ..errors import NotConstantError, UnsupportedError
from .tensors import Array, tensor_array, tensor_dtype, tensor_kind

if TYPE_CHECKING:
    from .batching import Batch, Shapes

T = TypeVar("T")

MAX_KNOWN_ELEMENTS = 1 << 16
"""The most elements of a parameter that is computed at import."""

MAX_FILLED_BYTES = 1 << 16
"""Larger tensors that repeat one number are expanded on the machine, as fold-constants leaves
them."""

AttributeType = onnx.AttributeProto.AttributeType

SCALAR_FIELDS: dict[int, Literal["i", "f", "s", "t"]] = {
    AttributeType.INT: "i",
    AttributeType.FLOAT: "f",
    AttributeType.STRING: "s",
    AttributeType.TENSOR: "t",
}
"""The fields that hold the values of attributes, by kind. Lists have none, because they may be
empty."""


@dataclass(frozen=True)
class Known:
    """A value known at import. It becomes an operation when one is needed.

    Attributes:
        make: returns the array; called at most once.
        state: the name of a weight, None for a constant.
    """

    name: str
    shape: tuple[int, ...]
    dtype: np.dtype[np.generic]
    make: Callable[[], Array]
    state: str | None = None


Value = SSAValue | Known


@dataclass(frozen=True, eq=False)
class Listed:
    """A sequence, whose length is known at import.

    Attributes:
        items: its elements, in order.
    """

    items: tuple[Value, ...]

    def __str__(self) -> str:
        return "a sequence"


@dataclass(frozen=True, eq=False)
class Maybe:
    """An optional. Import knows whether it holds a value: None if it does not."""

    value: Value | Listed | None

    def __str__(self) -> str:
        return "an optional"


Held = Value | Listed | Maybe
"""The meanings that a name in a graph may have."""


@dataclass
class Names:
    """Names that are taken, and the next number to try for each name that is requested again."""

    taken: set[str] = field(default_factory=set[str])
    next: dict[str, int] = field(default_factory=dict[str, int])

    def unique(self, name: str) -> str:
        """The name, numbered if it is taken. Takes the name."""
        unique = name
        while unique in self.taken:
            number = self.next.get(name, 1)
            unique, self.next[name] = f"{name}_{number}", number + 1
        self.taken.add(unique)
        return unique


@dataclass(frozen=True)
class Size:
    """The number of elements along an axis of a value that exist; padding follows.

    Attributes:
        axis: counted from 0; its size in the value's type is the largest possible number.
        count: the actual number, an i32 without axes.
    """

    axis: int
    count: SSAValue


@dataclass
class Counts:
    """Running totals of an import.

    Attributes:
        inlined: the number of nodes of function bodies so far.
        draws: the number of operations that draw random bits.
    """

    inlined: int = 0
    draws: int = 0


def given_by(inputs: Sequence[str]) -> str:
    """The options and the argument with which a user gives values to inputs, for messages."""
    options = " ".join(f"--value {name}=X.npy" for name in inputs)
    arguments = ", ".join(f"{name!r}: array" for name in inputs)
    return f"{options}, or values={{{arguments}}} in Python"


@dataclass
class GraphScope:
    """The program so far: values by name, states, and operations.

    Attributes:
        values, lists: the meanings of names.
        absent: for a name without a meaning, the reason.
        place: the model's name in messages.
        folder: the folder of external data.
        read: imports a node of this graph or of one inside it, and returns its operations; the
            reader sets it.
        functions: of the model, by domain, name and overload.
        path: the functions that this graph is the body of, from the outermost.
        inputs: the names of the model's inputs.
        body: the block to which nodes add operations: main, the body of @main, or a region of
            control flow.
        sizes: the values of which an axis has a size that depends on values.
        shapes: records the shapes of all values, or None.
        batch: the number of samples, if it differs from the file's.
        training: whether the program is to be trained, so that weights stay separate states, and
            dropout is active.
    """

    context: AbeleContext
    place: str
    folder: Path | None
    opsets: dict[str, int]
    values: dict[str, Value] = field(default_factory=dict[str, Value])
    absent: dict[str, str] = field(default_factory=dict[str, str])
    lists: dict[str, Listed | Maybe] = field(default_factory=dict[str, Listed | Maybe])
    states: list[nn.StateOp] = field(default_factory=list[nn.StateOp])
    loads: list[nn.LoadOp] = field(default_factory=list[nn.LoadOp])
    body: Block = field(kw_only=True)
    main: Block = field(kw_only=True)
    made: dict[Known, SSAValue] = field(default_factory=dict[Known, SSAValue])
    computed: dict[SSAValue, Array | None] = field(default_factory=dict[SSAValue, Array | None])
    names: Names = field(default_factory=lambda: Names({"main", SEED, STEP}))
    random: dict[str, SSAValue] = field(default_factory=dict[str, SSAValue])
    functions: dict[tuple[str, str, str], onnx.FunctionProto] = field(
        default_factory=dict[tuple[str, str, str], onnx.FunctionProto]
    )
    path: tuple[tuple[str, str, str], ...] = ()
    count: Counts = field(default_factory=Counts)
    inputs: dict[SSAValue, str] = field(default_factory=dict[SSAValue, str])
    shapes: Shapes | None = None
    batch: Batch | None = None
    training: bool = False
    sizes: dict[SSAValue, Size] = field(default_factory=dict[SSAValue, Size])
    read: Callable[[Node], list[Operation]] = field(default_factory=lambda: _read_by_nobody)

    def inside(
        self,
        values: Mapping[str, Held],
        opsets: dict[str, int],
        path: tuple[tuple[str, str, str], ...],
    ) -> GraphScope:
        """A graph within this one, such as a function's body: other names, the same program.

        Args:
            values: the values that its nodes may read by name.
            opsets, path: of the graph.
        """
        inner = replace(self, opsets=opsets, values={}, lists={}, absent={}, path=path)
        for name, value in values.items():
            inner.hold(name, value)
        return inner

    def nested(self, values: Mapping[str, Held]) -> GraphScope:
        """The graph in an attribute of a node, whose nodes may also read the names of this graph.

        Args:
            values: the values that the node gives it by name.
        """
        inner = replace(
            self, values=dict(self.values), lists=dict(self.lists), absent=dict(self.absent)
        )
        for name, value in values.items():
            inner.hold(name, value)
        return inner

    def hold(self, name: str, value: Held) -> None:
        """Give a name its meaning."""
        self.values.pop(name, None)
        self.lists.pop(name, None)
        if isinstance(value, Listed | Maybe):
            self.lists[name] = value
        else:
            self.values[name] = value

    def add_weight(self, tensor: onnx.TensorProto, read: Array | None = None) -> None:
        """Make a weight the meaning of its name. Raises InputError for a tensor that cannot be a
        weight.

        Args:
            read: its array, if the tensor does not hold its bytes.
        """
        what = f"{self.place}: weight {tensor.name!r}"
        # The function must not refer to the graph: a reference cycle would keep the bytes of all
        # weights.
        folder = self.folder
        made: list[Array] = [] if read is None else [read]

        def make() -> Array:
            if not made:
                made.append(tensor_array(tensor, folder, what))
            return made[0]

        dtype, shape = tensor_kind(tensor, what)
        self.hold(tensor.name, Known(tensor.name, shape, dtype, make, tensor.name))

    def bad(self, message: str) -> InputError:
        """An error in the model."""
        return InputError(f"{self.place}: {message}")

    def unknown(self, name: str, user: str) -> InputError:
        """An error about an undefined name.

        Args:
            user: reads it.
        """
        return self.bad(f"{user} reads {name!r}, which is not an input, weight or earlier result")

    def value(self, name: str, user: str) -> Value:
        """The value with a name. Raises InputError if no earlier node computes it."""
        if name in self.absent:
            raise UnsupportedError(f"{self.place}: {user} reads {name!r}: {self.absent[name]}")
        if name in self.lists:
            raise self.bad(f"{user} reads {name!r}, which is {self.lists[name]}; need a tensor")
        if name not in self.values:
            raise self.unknown(name, user)
        return self.values[name]

    def held(self, name: str, user: str) -> Held:
        """The meaning of a name. Raises the errors of `value`, except for a sequence or an
        optional.
        """
        return self.lists[name] if name in self.lists else self.value(name, user)

    def emitted(self, value: Value) -> SSAValue:
        """A value as the result of an operation."""
        if isinstance(value, SSAValue):
            return value
        if value not in self.made:
            blob = self.context.blobs.add(value.make())
            if value.state is None:
                constant = nn.ConstantOp(blob)
                constant.location = named(value.name)
                # At the top of @main, outside all regions, so that every operation may use the
                # constant.
                self.main.add_op(constant)
                self.made[value] = constant.result
            else:
                symbol = self.names.unique(value.state)
                state = nn.StateOp(symbol, blob)
                load = nn.LoadOp(symbol, nn.tensor_of(state.elements))
                state.location = load.location = named(value.name)
                self.states.append(state)
                self.loads.append(load)
                self.made[value] = load.result
        return self.made[value]

    def random_state(self, name: str) -> SSAValue:
        """The state SEED or STEP of the program, of ui32. It is 0 in the first run."""
        if name not in self.random:
            state = nn.StateOp(name, self.context.blobs.add(np.zeros((), np.uint32)))
            load = nn.LoadOp(name, nn.tensor_of(state.elements))
            state.location = load.location = named(name)
            self.states.append(state)
            self.loads.append(load)
            self.random[name] = load.result
        return self.random[name]

    def known(self, value: Value) -> Array | None:
        """The array of a value known at import, if it is small; None for a value that depends on
        inputs.
        """
        if isinstance(value, Known):
            return value.make()
        # Computing a value twice would compute its operands four times, so results are kept.
        if value not in self.computed:
            self.computed[value] = self._computed(value)
        return self.computed[value]

    def exact(self, value: Value) -> Array | None:
        """The array of a value known at import without any rounding, if it is small.

        Floats that operations compute are left to the program, because its checks know their
        errors.
        """
        if isinstance(value, SSAValue) and dtype_of(value).kind not in "biu":
            return None
        return self.known(value)

    def _computed(self, value: SSAValue) -> Array | None:
        """The array of the result of an operation, if all its operands are known."""
        if not isinstance(value, OpResult) or prod(nn.shape_of(value)) > MAX_KNOWN_ELEMENTS:
            return None
        op = value.op
        if isinstance(op, nn.LoadOp):
            origin = next((k for k, v in self.made.items() if v is value), None)
            return None if origin is None else origin.make()
        if not is_evaluable(op):
            return None
        operands = [self.known(v) for v in op.operands]
        given = [a for a in operands if a is not None]
        return evaluate_pure(op, given)[value.index] if len(given) == len(operands) else None

    def inputs_behind(self, value: Value) -> tuple[str, ...]:
        """The inputs of the model that a value depends on."""
        found: dict[str, None] = {}
        seen: set[SSAValue] = set()
        pending = [value] if isinstance(value, SSAValue) else []
        while pending:
            each = pending.pop()
            if each in seen:
                continue
            seen.add(each)
            if isinstance(each, OpResult):
                inner = (op for region in each.op.regions for op in region.walk())
                pending += [v for op in (each.op, *inner) for v in op.operands]
            else:
                found.update((name, None) for v, name in self.inputs.items() if v is each)
        return tuple(found)


def _read_by_nobody(node: Node) -> list[Operation]:
    raise NotImplementedError(f"{node}: the graph has no reader")


def shape_of(value: Value) -> tuple[int, ...]:
    """The shape of a value."""
    return value.shape if isinstance(value, Known) else nn.shape_of(value)


def dtype_of(value: Value) -> np.dtype[np.generic]:
    """The dtype of a value's elements."""
    return value.dtype if isinstance(value, Known) else numpy_dtype(nn.element_of(value))


def known(name: str, array: Array) -> Known:
    """A constant with an array's elements."""
    return Known(name, array.shape, array.dtype, lambda: array)


class Node:
    """One node of an ONNX graph that is being imported.

    An importer receives a node. It reads the operands (`node[0]`, `node.array`) and attributes
    (`node.number`, `node.integers`), builds operations of nn with `node.add`, and returns the
    result. Operands and results are counted from 0.

        @onnx_operator("ScaledAdd", "com.example")
        def scaled_add(node):
            if not node.has(1):
                raise node.unsupported("one operand", "need two")
            scaled = node.add(nn.ScaleOp(node[0], node.number("factor", 1.0)))
            return node.add(nn.AddOp(scaled, node[1]))

    Attributes:
        name: of the node, or of its first result if it has none.
        operator, domain, opset: what the node applies, and the version of the domain that the model
            imports, 0 if it imports none.
        attributes: by name, as ONNX stores them.
        read: the attributes that were asked for.
        ops: the operations that `add` has appended so far.
        proto, graph: the node as ONNX stores it, and the program so far.
        outer: the node in whose function body this node is, if it is in one.
    """

    def __init__(
        self, proto: onnx.NodeProto, name: str, graph: GraphScope, outer: Node | None = None
    ):
        self.proto = proto
        self.outer = outer
        self.name = name
        self.graph = graph
        self.operator = proto.op_type
        self.domain = proto.domain or "ai.onnx"
        self.opset = graph.opsets.get(self.domain, 0)
        self.ops: list[Operation] = []
        self.attributes = {a.name: a for a in proto.attribute}
        self.read: set[str] = set()
        self.replaced: dict[int, SSAValue] = {}

    # Errors

    def __str__(self) -> str:
        where = "" if self.outer is None else f", in the function body of {self.outer.operator}"
        return f"node {self.name!r} ({self.operator}{where})"

    def meaning(self) -> str:
        """The operator in words: its name, its domain, and the domain's version."""
        if self.domain not in self.graph.opsets:
            return f"{self.operator} of domain {self.domain}, which the model does not import"
        return f"{self.operator} of domain {self.domain}, opset {self.opset}"

    def bad(self, message: str) -> InputError:
        """Return an error that names this node, for the importer to raise."""
        return self.graph.bad(f"{self}: {message}")

    def unsupported(self, what: str, supported: str) -> UnsupportedError:
        """Return an error for a valid node that cannot be compiled, for the importer to raise.

        Args:
            what: what the node uses, such as "axis -1".
            supported: what is supported instead.
        """
        return UnsupportedError(
            f"{self.graph.place}: node {self.name!r}: operator {self.meaning()}: {what} is not "
            f"supported; {supported}"
        )

    # Operands

    @property
    def operand_count(self) -> int:
        """The number of operands. An optional operand that is left out between others counts."""
        return len(self.proto.input)

    def has(self, index: int) -> bool:
        """Whether the operand at an index is given."""
        return index < len(self.proto.input) and self.proto.input[index] != ""

    def wants(self, index: int) -> bool:
        """Whether the result at an index has a name, so that other nodes may read it."""
        return index < len(self.proto.output) and self.proto.output[index] != ""

    def value(self, index: int) -> Value:
        """The operand at an index: a Known if it is known at import, else a result.

        Raises InputError if it is missing, and UnsupportedError if no importer could make it.
        """
        if index in self.replaced:
            return self.replaced[index]
        if not self.has(index):
            raise self.bad(f"operand {index} is missing; {len(self.proto.input)} are given")
        return self.graph.value(self.proto.input[index], str(self))

    def size(self, index: int) -> Size | None:
        """The size of an operand whose size depends on values; None if its shape is fixed, or if it
        is left out.
        """
        value = self.held(index) if self.has(index) else None
        return self.graph.sizes.get(value) if isinstance(value, SSAValue) else None

    def held(self, index: int) -> Held:
        """The operand at an index, which may be a sequence or an optional. Raises as `value`."""
        if not self.has(index):
            raise self.bad(f"operand {index} is missing; {len(self.proto.input)} are given")
        return self.graph.held(self.proto.input[index], str(self))

    def inner_graph(self, name: str) -> onnx.GraphProto:
        """The graph in an attribute. Raises InputError if it is missing or of another kind."""
        return self._attribute(name, AttributeType.GRAPH, lambda a: a.g, None)

    def __getitem__(self, index: int) -> SSAValue:
        """The operand at an index, as the result of an operation. Raises as `value`."""
        return self.graph.emitted(self.value(index))

    def all(self) -> list[SSAValue]:
        """All operands, as results of operations. Raises InputError if there are none."""
        if not self.operand_count:
            raise self.bad("no operands; need one or more")
        return [self[i] for i in range(self.operand_count)]

    def shape(self, index: int) -> tuple[int, ...]:
        """The shape of the operand at an index. Raises as `value`."""
        return shape_of(self.value(index))

    def array(self, index: int, what: str) -> Array:
        """The array of the operand at an index, which must be known at import.

        Raises NotConstantError if the operand depends on inputs of the model, and otherwise as
        `value`.

        Args:
            what: the name of the operand in messages.
        """
        array = self.graph.known(self.value(index))
        if array is None:
            inputs = self.graph.inputs_behind(self.value(index))
            raise NotConstantError(
                f"{self.graph.place}: node {self.name!r}: operator {self.meaning()}: {what} "
                f"{self.proto.input[index]!r} depends on inputs ({', '.join(inputs)}), which is "
                f"not supported; need a constant, or its values: {given_by(inputs)}",
                inputs,
            )
        return array

    def array_integers(self, index: int, what: str) -> list[int]:
        """The integers of the operand at an index, which must be known at import.

        Returns a list of one for an operand without axes. Raises InputError for an operand of
        another dtype or with two axes or more, and otherwise as `array`.
        """
        array = self.array(index, what)
        if not is_whole(array.dtype) or array.ndim > 1:
            raise self.bad(f"{what} is {array.dtype.name}{list(array.shape)}; need integers")
        return [int(n) for n in array.reshape(-1)]

    def array_scalar(self, index: int, what: str) -> float:
        """The number in the operand at an index, which must be known at import.

        Raises InputError unless the operand has one element, and otherwise as `array`.
        """
        array = self.array(index, what)
        if array.size != 1:
            raise self.bad(f"{what} has shape {list(array.shape)}; need one element")
        return float(array.reshape(-1)[0])

    # Attributes

    def _attribute(
        self, name: str, kind: int, get: Callable[[onnx.AttributeProto], T], default: T | None
    ) -> T:
        self.read.add(name)
        if name not in self.attributes:
            if default is None:
                raise self.bad(f"attribute {name} is missing")
            return default
        attribute = self.attributes[name]
        if attribute.type != kind:
            given, wanted = kind_name(attribute.type), kind_name(kind)
            raise self.bad(f"attribute {name} is a {given}; need a {wanted}")
        if attribute.ref_attr_name:
            raise self.bad(
                f"attribute {name} stands for {attribute.ref_attr_name!r} of a function, but the "
                "node is in none; need a value"
            )
        if kind in SCALAR_FIELDS and not attribute.HasField(SCALAR_FIELDS[kind]):
            raise self.bad(f"attribute {name} has no value; need a {kind_name(kind)}")
        return get(attribute)

    def has_attribute(self, name: str) -> bool:
        """Whether the node has an attribute of this name."""
        return name in self.attributes

    def integer(self, name: str, default: int | None = None) -> int:
        """The integer in an attribute, or the default.

        Raises InputError if it is missing without a default, or of another kind.
        """
        return self._attribute(name, AttributeType.INT, lambda a: a.i, default)

    def flag(self, name: str, default: bool = False) -> bool:
        """The integer in an attribute, as true or false, or the default.

        Raises InputError if the attribute is of another kind.
        """
        return bool(self.integer(name, int(default)))

    def number(self, name: str, default: float | None = None) -> float:
        """The float in an attribute, or the default, which is rounded to float32 as well.

        Raises InputError if it is missing without a default, or of another kind.
        """
        rounded = None if default is None else float(np.float32(default))
        return self._attribute(name, AttributeType.FLOAT, lambda a: a.f, rounded)

    def text(self, name: str, default: str | None = None) -> str:
        """The text in an attribute, or the default.

        Raises InputError if it is missing without a default, or of another kind.
        """
        return self._attribute(
            name, AttributeType.STRING, lambda a: a.s.decode(errors="replace"), default
        )

    def numbers(self, name: str, default: Sequence[float] = ()) -> list[float]:
        """The list of floats in an attribute, or the default.

        Raises InputError if the attribute is of another kind.
        """
        return self._attribute(name, AttributeType.FLOATS, lambda a: list(a.floats), list(default))

    def integers(self, name: str, default: Sequence[int] | None = None) -> list[int]:
        """The list of integers in an attribute, or the default.

        Raises InputError if it is missing without a default, or of another kind.
        """
        given = None if default is None else list(default)
        return self._attribute(name, AttributeType.INTS, lambda a: list(a.ints), given)

    def tensor(self, name: str) -> Array:
        """The array in a tensor attribute. Raises InputError if it is missing or malformed."""
        return self._attribute(
            name,
            AttributeType.TENSOR,
            lambda a: tensor_array(
                a.t, self.graph.folder, f"{self.graph.place}: {self}: attribute {name}"
            ),
            None,
        )

    def element(self, code: int) -> Attribute:
        """The element type for an ONNX type code, such as that of an attribute `to`.

        Raises UnsupportedError for a type that abele does not have.
        """
        return element_type(tensor_dtype(code, f"{self.graph.place}: {self}"))

    def parameter(self, name: str, index: int, since: int) -> list[int] | None:
        """A list of integers that is an attribute before an opset, and an operand from then on.

        Returns None if it is not given. Raises as `integers` and `array_integers`.

        Args:
            name: of the attribute.
            index: of the operand.
            since: the first opset with the operand.
        """
        if self.opset < since:
            return self.integers(name) if self.has_attribute(name) else None
        return self.array_integers(index, name) if self.has(index) else None

    # Building

    def add_control(self, op: Operation) -> list[SSAValue]:
        """Append a loop, a branch or the end of a region to the program; return its results."""
        self.graph.body.add_op(op)
        self.ops.append(op)
        return list(op.results)

    def add(self, op: nn.PureTensorOp | nn.ConstantOp) -> SSAValue:
        """Append an operation to the program, and return its result.

        The operation that makes the first result gets the name of the node, and the others a name
        below it ("layer1/scale").
        """
        self.graph.body.add_op(op)
        self.ops.append(op)
        return op.result

    def add_several(self, op: nn.CombiningOp) -> Sequence[SSAValue]:
        """Append an operation with several results, as add does, and return them."""
        self.graph.body.add_op(op)
        self.ops.append(op)
        return op.results

    def constant(self, value: float, like: SSAValue) -> SSAValue:
        """Append a constant without axes, and return it.

        Args:
            like: a value of the same element type.
        """
        dtype = numpy_dtype(nn.element_of(like))
        return self.add(nn.ConstantOp(self.graph.context.blobs.add(np.array(value, dtype))))

    def reshape(self, value: SSAValue, shape: Sequence[int]) -> SSAValue:
        """The value in another shape: the result of a new reshape, or the value if it fits already.

        Raises VerifyException if the number of elements differs.
        """
        if nn.shape_of(value) == tuple(shape):
            return value
        return self.add(nn.ReshapeOp(value, shape))

    def cast(self, value: SSAValue, element: Attribute) -> SSAValue:
        """The value in another element type: the result of a new cast, or the value if it fits."""
        return value if nn.element_of(value) == element else self.add(nn.CastOp(value, element))

    def wide(self, value: SSAValue) -> SSAValue:
        """The value for sums and squares: cast to f32 if its elements are narrower floats."""
        return self.cast(value, nn.wide_element(nn.element_of(value)))

    def emitted(self, array: Array, like: SSAValue | None = None) -> SSAValue:
        """An array that is known at import, as a constant of the program.

        Args:
            like: a value to whose element type the array is converted.
        """
        dtype = array.dtype if like is None else numpy_dtype(nn.element_of(like))
        return self.graph.emitted(self.known(np.asarray(array, dtype, order="C")))

    def known(self, array: Array) -> Known:
        """A result that is known at import, and becomes a constant if an operation needs it."""
        return known(self.name, array)

    def check_table(self, *shape: int) -> None:
        """Raise InputError if a table of this shape is too large to be computed at import.

        Sizes of tables come from attributes and small constants, so a file of a hundred bytes can
        request any number of elements.
        """
        if prod(shape) > TABLE_ELEMENTS.most:
            raise self.bad(TABLE_ELEMENTS.refusal(f"a table of {list(shape)}"))

    def counted(self, size: int, dtype: DTypeLike = np.int64) -> Array:
        """The numbers from 0 to size - 1. Raises InputError if there are too many."""
        self.check_table(size)
        return np.arange(size, dtype=dtype)

    def filled(self, value: Array, shape: Sequence[int]) -> Value:
        """A tensor that repeats one number.

        Returns a Known if the tensor is small. If not, appends an expand, so that the host never
        stores the tensor whole.

        Args:
            value: an array without axes.
        """
        if prod(shape) * value.itemsize <= MAX_FILLED_BYTES:
            return self.known(np.broadcast_to(value, tuple(shape)))
        one = self.add(nn.ConstantOp(self.graph.context.blobs.add(value)))
        return self.add(nn.ExpandOp(one, shape))

    def axis(self, axis: int, rank: int, *, end: bool = False) -> int:
        """An axis counted from the front, for one that may be negative.

        Raises InputError for an axis out of range.

        Args:
            rank: the number of axes.
            end: allow the position after the last axis.
        """
        if not -rank <= axis <= rank - (not end):
            raise self.bad(f"axis {axis} of rank {rank}; need {-rank}..{rank - (not end)}")
        return axis + rank if axis < 0 else axis

    def locate(self, result: Held | None) -> None:
        """Give the operation that makes the result the name of this node, and the others names
        below it.

        The importer's caller calls this.

        The operations of a function body have locations already.

        Args:
            result: None if the first result is absent.
        """
        steps = Names()
        for op in self.ops:
            if is_known(op.location):
                continue
            if result in op.results:
                op.location = named(self.name)
            else:
                step = steps.unique(op.name.rpartition(".")[2])
                op.location = named(f"{self.name}/{step}")


def kind_name(code: int) -> str:
    """The name of a kind of attributes, such as ints; its number if ONNX has no such kind."""
    kinds = {number: name for name, number in onnx.AttributeProto.AttributeType.items()}
    return kinds.get(code, str(code)).lower()


def is_float(value: SSAValue) -> bool:
    """Whether the elements are floating-point numbers."""
    return is_floating(numpy_dtype(nn.element_of(value)))


Results = Held | Sequence[Held | str]
"""The return values of an importer: one result or several; a text is the reason why one is
absent."""


def listed(results: Results) -> list[Held | str]:
    """The results of an importer as a list."""
    return [results] if isinstance(results, SSAValue | Known | Listed | Maybe) else [*results]


Importer = Callable[[Node], Results]
