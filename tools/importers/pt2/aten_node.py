"""One node of an exported graph that is being imported: its arguments, and where to build."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field
from typing import Any, TypeAlias, TypeGuard, cast

import numpy as np
from xdsl.ir import Attribute, SSAValue

from ....dialects.dtypes import element_type
from ....ir.support.number_kinds import is_floating
from ....ir.upstream import LocationAttr
from ..applying import ApplyingNode
from ..building import Known, Names, Value, dtype_of, shape_of
from ..lengths import Length
from ..onnx.node import GraphScope
from .node_names import line_of
from .payloads import dtype_of_code
from .promotion import DEFAULTS, Number, Operand, Size, Undecided, promoted
from .schema import Argument, Call, Graph, Meta, Other, ScalarType, Symbol, Tensor

MISSING = object()


@dataclass
class Scope:
    """A graph that is being read: the meanings of its names, in the program so far.

    Attributes:
        program: the program that the graph becomes a part of.
        run: imports the nodes of an inner graph, in a scope of its own.
        values: tensors by name.
        numbers: sizes, and what is computed from them, by name.
        absent: for a name without a meaning, the reason.
        tensors: what the file says of tensors.
        ranges: the least and the greatest value of numbers that depend on values, by name.
        views: the tensors that share the elements of another, by name.
        views_of: the names of the views of a tensor, by its name.
        stale: views that must be read again, because the other tensor was written to.
        taken: the names of nodes in this graph, in those around it, and in those inside.
    """

    program: GraphScope
    run: Callable[[Scope, Graph], None]
    values: dict[str, Value] = field(default_factory=dict[str, Value])
    numbers: dict[str, Size] = field(default_factory=dict[str, "Size"])
    absent: dict[str, str] = field(default_factory=dict[str, str])
    tensors: Mapping[str, Meta] = field(default_factory=dict[str, Meta])
    ranges: Mapping[str, tuple[int | None, int | None]] = field(
        default_factory=dict[str, "tuple[int | None, int | None]"]
    )
    views: dict[str, View] = field(default_factory=dict[str, "View"])
    views_of: dict[str, list[str]] = field(default_factory=dict[str, "list[str]"])
    stale: set[str] = field(default_factory=set[str])
    taken: Names = field(default_factory=Names)

    def add_view(self, name: str, view: View) -> None:
        """Remember that a tensor shares the elements of another."""
        self.views[name] = view
        self.views_of.setdefault(view.base, []).append(name)

    def current(self, name: str) -> Value:
        """The tensor with a name, after all writes so far."""
        if name in self.stale:
            self.stale.discard(name)
            self.values[name] = self.views[name].read()
        return self.values[name]


@dataclass(frozen=True)
class View:
    """A tensor that shares the elements of another one.

    Attributes:
        base: the name of the other tensor.
        node: makes the view of the other tensor.
        read: makes it again, once the other tensor was written to.
        write: returns the other tensor with new elements of the view.
    """

    base: str
    node: AtenNode
    read: Callable[[], Value]
    write: Callable[[Value, Value], Value]


class AtenNode(ApplyingNode):
    """One node of an exported graph.

    An importer reads the arguments by the names of the operator's schema, and returns one value, or
    a list of them:

        def relu(node):
            return node.add(nn.ReluOp(node["self"]))

    Attributes:
        call: the node as the file has it.
        operator: its operator, such as "aten.conv2d".
        scope: the graph around it.
    """

    def __init__(self, call: Call, name: str, scope: Scope, source: LocationAttr | None):
        super().__init__(name, scope.program, source)
        self.call = call
        self.scope = scope
        self.operator = call.target.removeprefix("torch.ops.")
        self.operands: list[Value | None] = []
        self.replaced: dict[str, Any] = {}

    def meaning(self) -> str:
        """Its operator, in messages of the operators of ONNX that it applies."""
        return self.operator

    def __str__(self) -> str:
        return f"node {self.name!r} ({self.operator}{self.line})"

    @property
    def line(self) -> str:
        """The line of Python that made the node, in messages; "" if the file names none."""
        place = line_of(self.call)
        return "" if place is None else f" at {place}"

    @property
    def heading(self) -> str:
        """The node, its operator and its line, in messages about what is not supported."""
        return f"node {self.name!r}{self.line}: operator {self.operator}"

    # Arguments

    def has(self, name: str) -> bool:
        """Whether an argument is given, and is not None."""
        return self.call.arguments.get(name) is not None

    def resolved(self, argument: Argument) -> Any:
        """An argument in which names are replaced by values. Raises InputError."""
        if isinstance(argument, tuple):
            return [self.resolved(each) for each in argument]
        if isinstance(argument, Tensor):
            return self.tensor(argument.name)
        if isinstance(argument, Symbol):
            return self.symbol(argument.name)
        return argument

    def tensor(self, name: str) -> Value:
        """The tensor with a name."""
        if name in self.scope.absent:
            raise self.unsupported(f"reading {name!r}", self.scope.absent[name])
        if name not in self.scope.values:
            raise self.bad(f"reads {name!r}, which is no input, weight or earlier result")
        value = self.scope.current(name)
        self.operands.append(value)
        return value

    def symbol(self, name: str) -> Size:
        """The number with a name."""
        if name in self.scope.absent:
            raise self.unsupported(f"reading {name!r}", self.scope.absent[name])
        if name not in self.scope.numbers:
            raise self.bad(f"reads {name!r}, which is no earlier number")
        return self.scope.numbers[name]

    def get(self, name: str, default: Any = MISSING) -> Any:
        """An argument of any kind, or the default if it is not given or None."""
        if name in self.replaced:
            return self.replaced[name]
        argument = self.call.arguments.get(name)
        if argument is not None:
            return self.resolved(argument)
        if default is MISSING:
            given = ", ".join(self.call.arguments) or "none"
            raise self.bad(f"argument {name} is missing; given are {given}")
        return default

    def value(self, name: str) -> Value:
        """A tensor, or a number as a tensor without axes."""
        given: Any = self.get(name)
        if is_value(given):
            return given
        if isinstance(given, bool | int | float):
            return self.known(np.array(given, number_dtype(given)))
        raise self.bad(f"argument {name} is {kind_of(given)}; need a tensor")

    def __getitem__(self, name: str) -> SSAValue:
        """A tensor, as the result of an operation."""
        return self.program.emitted(self.value(name))

    def shape(self, name: str) -> tuple[int, ...]:
        """The shape of a tensor."""
        return shape_of(self.value(name))

    def dtype(self, name: str) -> np.dtype[Any]:
        """The dtype of a tensor's elements."""
        return dtype_of(self.value(name))

    def several(self, name: str) -> list[Value]:
        """A list of tensors."""
        given = self.get(name)
        values = as_list(given)
        if not all(is_value(each) for each in values):
            raise self.bad(f"argument {name} is {kind_of(given)}; need tensors")
        return values

    def operand(self, name: str) -> Value | None:
        """A tensor; None if it is not given."""
        return self.value(name) if self.has(name) else None

    def replacing(self, values: Mapping[str, Any]) -> AtenNode:
        """This node, with other values for some arguments."""
        other = copy(self)
        other.replaced = {**self.replaced, **values}
        return other

    def lengths_read(self) -> list[Length]:
        """Sizes that only a run knows, of tensors or numbers that the node reads."""
        found: list[Length] = []
        pending = [*self.call.arguments.values()]
        while pending:
            each = pending.pop()
            if isinstance(each, tuple):
                pending += each
            elif isinstance(each, Tensor) and each.name in self.scope.values:
                value = self.scope.current(each.name)
                if isinstance(value, SSAValue):
                    found += self.program.sizes.get(value, {}).values()
            elif isinstance(each, Symbol):
                number = self.scope.numbers.get(each.name)
                found += [number] if isinstance(number, Length) else []
        return found

    def length(self, name: str, default: int | None = None) -> int | Length:
        """An integer, which may be one that only a run knows, or the default."""
        given: Any = self.get(name, MISSING if default is None else default)
        return given if isinstance(given, Length) else self.integer(name, default)

    def lengths(self, name: str) -> list[int | Length]:
        """A list of integers, of which only a run may know some."""
        items = as_list(self.get(name))
        found = [self.scalar(each, name) if is_value(each) else each for each in items]
        if not all(isinstance(each, int | Length) for each in found):
            raise self.bad(f"argument {name} is no list of integers")
        return cast("list[int | Length]", found)

    def _fixed(self, given: Any, name: str) -> Any:
        """What is given for an argument. Raises NotConstantError for what only a run knows."""
        for each in as_list(given):
            if isinstance(each, Length | Undecided):
                length = each if isinstance(each, Length) else each.length
                raise self.size_refused(f"argument {name}", length)
        return given

    def integer(self, name: str, default: int | None = None) -> int:
        """An integer, or the default. Raises InputError for another kind."""
        given: Any = self._fixed(self.get(name, MISSING if default is None else default), name)
        if is_value(given):
            given = self.scalar(given, name)
        if isinstance(given, float) and given.is_integer():
            given = int(given)
        if not isinstance(given, int):
            raise self.bad(f"argument {name} is {kind_of(given)}; need an integer")
        return int(given)

    def number(self, name: str, default: float | None = None) -> float:
        """A number, or the default. Raises InputError for another kind."""
        given: Any = self._fixed(self.get(name, MISSING if default is None else default), name)
        if is_value(given):
            given = self.scalar(given, name)
        if not isinstance(given, int | float):
            raise self.bad(f"argument {name} is {kind_of(given)}; need a number")
        try:
            return float(given)
        except OverflowError:
            raise self.bad(f"argument {name} is no float") from None

    def scalar(self, value: Value, what: str) -> Number:
        """The number in a tensor of one element, which must be known at import."""
        array = self.graph.known(value)
        if array is None:
            raise self.not_constant(f"argument {what}", [value])
        if array.size != 1:
            raise self.bad(f"argument {what} has shape {list(array.shape)}; need one element")
        return array.reshape(-1)[0].item()

    def flag(self, name: str, default: bool | None = None) -> bool:
        """True or false, or the default. Raises InputError for another kind."""
        given: Any = self.get(name, MISSING if default is None else default)
        if not isinstance(given, bool | int):
            raise self.bad(f"argument {name} is {kind_of(given)}; need true or false")
        return bool(given)

    def text(self, name: str, default: str | None = None) -> str:
        """A text, or the default. Raises InputError for another kind."""
        given: Any = self.get(name, MISSING if default is None else default)
        if not isinstance(given, str):
            raise self.bad(f"argument {name} is {kind_of(given)}; need a text")
        return given

    def integers(self, name: str, default: Sequence[int] | None = None) -> list[int]:
        """A list of integers, or the default; one integer stands for a list of it."""
        given: Any = self.get(name, MISSING if default is None else list(default))
        given = self._fixed(given, name)
        items = as_list(given)
        found = [self.scalar(each, name) if is_value(each) else each for each in items]
        if not all(isinstance(each, int) for each in found):
            raise self.bad(f"argument {name} is {kind_of(given)}; need integers")
        return [int(each) for each in found]

    def numbers(self, name: str, default: Sequence[float] | None = None) -> list[float]:
        """A list of numbers, or the default."""
        given: Any = self.get(name, MISSING if default is None else list(default))
        items = as_list(given)
        if not all(isinstance(each, int | float) for each in items):
            raise self.bad(f"argument {name} is {kind_of(given)}; need numbers")
        return [float(each) for each in items]

    def spatial(
        self, name: str, rank: int, default: Sequence[int] | int | None = None
    ) -> list[int]:
        """A list with an integer for each spatial axis; one integer stands for all of them.

        An empty list stands for the default.
        """
        given = self.integers(name, [] if default is not None else None)
        if not given:
            given = [default] if isinstance(default, int) else list(default or ())
        given = given * rank if len(given) == 1 else given
        if len(given) != rank:
            raise self.bad(f"argument {name} is {given}; need {rank} integers")
        return given

    def axes(self, name: str, rank: int) -> list[int]:
        """Axes counted from the front; all of them if none are given."""
        given = self.integers(name, [])
        return sorted({self.along(a, rank) for a in given}) if given else list(range(rank))

    def along(self, axis: int, rank: int) -> int:
        """An axis counted from the front. A tensor without axes has an axis 0 in torch."""
        return self.axis(axis, max(rank, 1))

    def wanted_dtype(self, default: np.dtype[Any]) -> np.dtype[Any]:
        """The dtype in the argument dtype, or the default."""
        given = self.get("dtype", None)
        if given is None:
            return default
        if not isinstance(given, ScalarType):
            raise self.bad(f"argument dtype is {kind_of(given)}; need an element type")
        return dtype_of_code(given.code, f"{self.graph.place}: {self}")

    def result_dtype(self, index: int = 0) -> np.dtype[Any]:
        """The dtype of a result, as the file says."""
        result = self.call.results[index] if index < len(self.call.results) else None
        meta = self.scope.tensors.get(result.name) if isinstance(result, Tensor) else None
        if meta is None:
            raise self.bad(f"the type of result {index} is missing")
        return dtype_of_code(meta.code, f"{self.graph.place}: {self}")

    def wants(self, index: int) -> bool:
        """Whether a result has a name, so that other nodes may read it."""
        return index < len(self.call.results) and self.call.results[index] is not None

    # Building

    def alike(self, *values: Value | Number) -> list[SSAValue]:
        """Operands of one operation, in the element type to which torch promotes them."""
        dtype = promoted([_operand(each) for each in values])
        return [self.as_dtype(each, dtype) for each in values]

    def as_dtype(self, value: Value | Number, dtype: np.dtype[Any]) -> SSAValue:
        """A value or a number, with an element type."""
        if isinstance(value, bool | int | float):
            with np.errstate(all="ignore"):
                try:
                    return self.ssa(self.known(np.array(value).astype(dtype)))
                except (OverflowError, ValueError, TypeError) as error:
                    raise self.bad(f"{value!r} as {dtype.name}: {error}") from None
        return self.converted(value, dtype)

    def floats(self, name: str) -> SSAValue:
        """A tensor as floats: integers become float32."""
        value = self.value(name)
        return self.ssa(value) if is_floating(dtype_of(value)) else self.converted(value, F32)

    def element(self, dtype: np.dtype[Any]) -> Attribute:
        """The element type of the IR for a dtype."""
        return element_type(dtype)


F32 = np.dtype(np.float32)
I64 = np.dtype(np.int64)

Results: TypeAlias = "Value | Sequence[Value | Size | None] | Size | None"
"""The return values of an importer: one result, or a list of them; a number for a size."""

Importer = Callable[[AtenNode], Results]


def _operand(value: Value | Number) -> Operand:
    """What decides the promotion of an operand."""
    if isinstance(value, bool | int | float):
        return value
    return dtype_of(value), bool(shape_of(value))


def is_value(value: object) -> TypeGuard[Value]:
    """Whether an argument is a tensor."""
    return isinstance(value, SSAValue | Known)


def only(results: Results) -> Value:
    """The first result of an importer, which must be a tensor."""
    found = results[0] if isinstance(results, list | tuple) else results
    assert is_value(found), "the importer returns a tensor"
    return found


def as_list(value: Any) -> list[Any]:
    """A list; one value stands for a list of it."""
    return cast("list[Any]", value) if isinstance(value, list) else [value]


def number_dtype(number: Number) -> np.dtype[Any]:
    """The dtype that torch gives to a number of Python."""
    return DEFAULTS[0 if isinstance(number, bool) else 1 if isinstance(number, int) else 2]


def kind_of(value: object) -> str:
    """What an argument is, for messages."""
    if isinstance(value, Other):
        return f"of kind {value.kind}"
    if is_value(value):
        return "a tensor"
    return (
        repr(value)[:60]
        if isinstance(value, bool | int | float | str)
        else f"a {type(value).__name__}"
    )
