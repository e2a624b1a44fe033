"""One node of a graph being imported: its operands, its attributes, and where to build."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal, TypeVar

import numpy as np
import onnx
from xdsl.ir import Attribute, Operation, SSAValue

from ....dialects.dtypes import element_type
from ....ir.provenance import note_of
from ....ir.support.arrays import Array
from ....ir.support.errors import InputError
from ....ir.support.number_kinds import is_whole
from ....ir.upstream import LocationAttr
from ..building import Known, NodeBuilder, ProgramBuilder, Sizes, Value, shape_of
from ..errors import NotConstantError, UnsupportedError
from .dequantised import Dequantised
from .sparse_weights import dense_array, without_elements
from .tensors import decoded_text, tensor_array, tensor_dtype, tensor_kind, tensor_texts

T = TypeVar("T")

AttributeType = onnx.AttributeProto.AttributeType

SCALAR_FIELDS: dict[int, Literal["i", "f", "s", "t"]] = {
    AttributeType.INT: "i",
    AttributeType.FLOAT: "f",
    AttributeType.STRING: "s",
    AttributeType.TENSOR: "t",
}
"""The fields that hold the values of attributes, by kind. Lists have none, because they may be
empty."""


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


@dataclass(frozen=True, eq=False)
class Texts:
    """A tensor of strings. The program computes with integers that stand for them.

    Attributes:
        places: of the strings in GraphScope.texts, i32; -1 is a string that is not in it.
        is_known: whether all of them are in it.
    """

    places: Value
    is_known: bool

    def __str__(self) -> str:
        return "a tensor of strings"


@dataclass(frozen=True, eq=False)
class Maps:
    """A sequence of maps, one per row of a table, from the names of its columns to its entries."""

    table: SSAValue
    columns: tuple[str, ...]

    def __str__(self) -> str:
        return "a sequence of maps"


NotTensor = Listed | Maybe | Texts | Maps
"""The meanings of names that are no tensors of the program."""

Held = Value | NotTensor
"""The meanings that a name in a graph may have."""


@dataclass
class Counts:
    """Running totals of an import.

    Attributes:
        inlined: the number of nodes of function bodies so far.
        draws: the number of operations that draw random bits.
    """

    inlined: int = 0
    draws: int = 0


@dataclass(kw_only=True)
class GraphScope(ProgramBuilder):
    """The graph that is being read: the meanings of its names, in the program so far.

    Attributes:
        values, lists: the meanings of names.
        texts: the places of the strings that the model holds.
        absent: for a name without a meaning, the reason.
        dequantised: the integers of few bits that a matrix of floats comes from.
        folder: the folder of external data.
        opsets: the version of each domain.
        read: imports a node of this graph or of one inside it, and returns its operations; the
            reader sets it.
        functions: of the model, by domain, name and overload.
        path: the functions that this graph is the body of, from the outermost.
    """

    folder: Path | None
    opsets: dict[str, int]
    values: dict[str, Value] = field(default_factory=dict[str, Value])
    absent: dict[str, str] = field(default_factory=dict[str, str])
    lists: dict[str, NotTensor] = field(default_factory=dict[str, NotTensor])
    texts: dict[str, int] = field(default_factory=dict[str, int])
    dequantised: dict[SSAValue, Dequantised] = field(default_factory=dict[SSAValue, Dequantised])
    functions: dict[tuple[str, str, str], onnx.FunctionProto] = field(
        default_factory=dict[tuple[str, str, str], onnx.FunctionProto]
    )
    path: tuple[tuple[str, str, str], ...] = ()
    count: Counts = field(default_factory=Counts)
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
        if isinstance(value, NotTensor):
            self.lists[name] = value
        else:
            self.values[name] = value

    def add_weight(
        self, tensor: onnx.TensorProto, read: Array | None = None, *, fixed: bool = False
    ) -> None:
        """Make a weight the meaning of its name. Raises InputError for a tensor that cannot be a
        weight.

        Args:
            read: its array, if the tensor does not hold its bytes.
            fixed: whether the model's framework does not train it.
        """
        what, folder = f"{self.place}: weight {tensor.name!r}", self.folder
        if tensor.data_type == onnx.TensorProto.STRING:
            self.hold(tensor.name, self.known_texts(tensor.name, tensor_texts(tensor, what)))
            return
        dtype, shape = tensor_kind(tensor, what)

        def make() -> Array:
            return tensor_array(tensor, folder, what) if read is None else read

        self.hold(tensor.name, self.weight(tensor.name, shape, dtype, make, fixed=fixed))

    def add_sparse_weight(self, sparse: onnx.SparseTensorProto) -> None:
        """Make a sparse weight the meaning of its name. Only reading it makes its zeros.

        Raises InputError for a tensor that cannot be a weight.
        """
        name, folder = sparse.values.name, self.folder
        what = f"{self.place}: weight {name!r}"
        dtype, shape = tensor_kind(without_elements(sparse), what)

        def make() -> Array:
            return dense_array(sparse, folder, what)

        self.hold(name, self.weight(name, shape, dtype, make))

    def text_places(self, texts: Iterable[str]) -> Array:
        """The places of strings in the table of the model's strings, to which they are added."""
        found = [self.texts.setdefault(each, len(self.texts)) for each in texts]
        return np.array(found, np.int32)

    def known_texts(self, name: str, array: Array) -> Texts:
        """An array of str as a tensor of strings.

        Args:
            name: for the tensor.
        """
        places = self.text_places(array.reshape(-1)).reshape(array.shape)
        return Texts(Known.of(name, places), is_known=True)

    def unknown(self, name: str, user: object) -> InputError:
        """An error about an undefined name.

        Args:
            user: reads it.
        """
        return self.bad(f"{user} reads {name!r}, which is not an input, weight or earlier result")

    def value(self, name: str, user: object) -> Value:
        """The value with a name. Raises InputError if no earlier node computes it."""
        if name in self.absent:
            raise UnsupportedError(f"{self.place}: {user} reads {name!r}: {self.absent[name]}")
        if name in self.lists:
            raise self.bad(f"{user} reads {name!r}, which is {self.lists[name]}; need a tensor")
        if name not in self.values:
            raise self.unknown(name, user)
        return self.values[name]

    def held(self, name: str, user: object) -> Held:
        """The meaning of a name. Raises the errors of `value`, except for a sequence or an
        optional.
        """
        return self.lists[name] if name in self.lists else self.value(name, user)


def _read_by_nobody(node: Node) -> list[Operation]:
    raise NotImplementedError(f"{node}: the graph has no reader")


class Node(NodeBuilder):
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
        self,
        proto: onnx.NodeProto,
        name: str,
        graph: GraphScope,
        outer: Node | None = None,
        source: LocationAttr | None = None,
    ):
        super().__init__(name, graph, source)
        self.proto = proto
        self.outer = outer
        self.graph = graph
        self.operator = proto.op_type
        self.domain = proto.domain or "ai.onnx"
        self.opset = graph.opsets.get(self.domain, 0)
        self.attributes = {a.name: a for a in proto.attribute}
        self.read: set[str] = set()
        self.replaced: dict[int, SSAValue] = {}

    # Errors

    def __str__(self) -> str:
        where = "" if self.outer is None else f", in the function body of {self.outer.operator}"
        note = note_of(self.location)
        return f"node {self.name!r} ({self.operator}{where}{note and f', {note}'})"

    def meaning(self) -> str:
        """The operator in words: its name, its domain, and the domain's version."""
        if self.domain not in self.graph.opsets:
            return f"{self.operator} of domain {self.domain}, which the model does not import"
        return f"{self.operator} of domain {self.domain}, opset {self.opset}"

    @property
    def heading(self) -> str:
        """The node and its operator, in messages about what is not supported."""
        return f"{super().__str__()}: operator {self.meaning()}"

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
        return self.graph.value(self.proto.input[index], self)

    def sizes(self, index: int) -> Sizes:
        """The number of elements that exist along each axis of an operand that has padding."""
        if index in self.replaced:
            value: Held | None = self.replaced[index]
        else:
            value = self.held(index) if self.has(index) else None
        return self.graph.sizes.get(value, {}) if isinstance(value, SSAValue) else {}

    def size_depends(self, index: int) -> NotConstantError:
        """Return an error for an operand whose size depends on values, for the importer to
        raise.
        """
        axis, length = next(iter(self.sizes(index).items()))
        what = f"the size of axis {axis} of operand {index} {self.proto.input[index]!r}"
        return self.size_refused(what, length)

    def held(self, index: int) -> Held:
        """The operand at an index, which may be a sequence or an optional. Raises as `value`."""
        if not self.has(index):
            raise self.bad(f"operand {index} is missing; {len(self.proto.input)} are given")
        return self.graph.held(self.proto.input[index], self)

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

    def operands(self) -> list[Value | None]:
        """The operands; None for one that is left out, or that has no value."""
        values = self.graph.values
        return [
            self.value(i) if self.has(i) and self.proto.input[i] in values else None
            for i in range(self.operand_count)
        ]

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
            raise self.not_constant(f"{what} {self.proto.input[index]!r}", [self.value(index)])
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

    def texts(self, name: str) -> list[str]:
        """The list of strings in an attribute.

        Raises InputError if it is missing, of another kind, or no UTF-8.
        """
        return self._attribute(
            name,
            AttributeType.STRINGS,
            lambda a: [decoded_text(each, f"{self.graph.place}: {self}") for each in a.strings],
            None,
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


def kind_name(code: int) -> str:
    """The name of a kind of attributes, such as ints; its number if ONNX has no such kind."""
    kinds = {number: name for name, number in onnx.AttributeProto.AttributeType.items()}
    return kinds.get(code, str(code)).lower()


Results = Held | Sequence[Held | str]
"""The return values of an importer: one result or several; a text is the reason why one is
absent."""


def listed(results: Results) -> list[Held | str]:
    """The results of an importer as a list."""
    return [results] if isinstance(results, _ONE) else [*results]


_ONE = SSAValue | Known | NotTensor


Importer = Callable[[Node], Results]
