"""The parts of an exported program, read from the JSON of torch.export and checked.

torch calls its schema a placeholder: another major version may mean anything, so it is refused.
Fields that only concern torch are not looked at.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NoReturn, TypeAlias, TypeVar, cast

import ml_dtypes
import numpy as np

from ....ir.support.errors import InputError
from ..errors import UnsupportedError

T = TypeVar("T")

MAJOR = 8
"""The major version of the schema that is read."""

SHOWN = 60
"""The most letters of a wrong value in a message."""

LONGEST_NAME = 1000
"""The most letters of a name. Paths of modules are shorter."""

DEEPEST = 32
"""The deepest nesting of graphs in arguments of nodes."""

DTYPES: Mapping[int, np.dtype[Any]] = {
    1: np.dtype(np.uint8),
    2: np.dtype(np.int8),
    3: np.dtype(np.int16),
    4: np.dtype(np.int32),
    5: np.dtype(np.int64),
    6: np.dtype(np.float16),
    7: np.dtype(np.float32),
    8: np.dtype(np.float64),
    12: np.dtype(np.bool_),
    13: np.dtype(ml_dtypes.bfloat16),
    28: np.dtype(np.uint16),
    29: np.dtype(ml_dtypes.float8_e4m3fn),
    30: np.dtype(ml_dtypes.float8_e5m2),
    31: np.dtype(ml_dtypes.float8_e4m3fnuz),
    32: np.dtype(ml_dtypes.float8_e5m2fnuz),
    33: np.dtype(ml_dtypes.float8_e8m0fnu),
    34: np.dtype(np.uint32),
    35: np.dtype(np.uint64),
}
"""The dtypes by the schema's own numbers. Complex numbers have none."""

STRIDED = 7
"""The layout of an ordinary tensor."""


@dataclass(frozen=True)
class Tensor:
    """An argument that is a tensor."""

    name: str


@dataclass(frozen=True)
class Symbol:
    """An argument that is the name of a number which depends on sizes."""

    name: str


@dataclass(frozen=True)
class ScalarType:
    """An argument that is an element type."""

    code: int


@dataclass(frozen=True)
class Other:
    """An argument of a kind that no importer reads, such as a device.

    Attributes:
        kind: the name of the kind.
    """

    kind: str


@dataclass(frozen=True)
class GraphOf:
    """An argument that is a graph."""

    graph: Graph


Argument: TypeAlias = "bool | int | float | str | Tensor | Symbol | ScalarType | Other | GraphOf | tuple[Argument, ...] | None"  # noqa: E501
"""The value of an argument."""

Size: TypeAlias = "int | str"
"""A size: a number, or an expression of symbols as SymPy's srepr writes it."""


@dataclass(frozen=True)
class Meta:
    """What is known of a tensor."""

    code: int
    sizes: tuple[Size, ...]
    strides: tuple[Size, ...]
    offset: Size
    layout: int


@dataclass(frozen=True)
class Call:
    """A node of a graph.

    Attributes:
        target: the operator, such as "torch.ops.aten.conv2d.default".
        arguments: those that the file gives, by the name in the operator's schema.
        results: names; a tuple of names for a list of tensors; None for no result.
        stack: the lines of Python that made the node, as a traceback, the outermost first.
        modules: the modules around the node, as torch writes them.
    """

    target: str
    arguments: Mapping[str, Argument]
    results: tuple[Argument, ...]
    name: str
    stack: str
    modules: str


@dataclass(frozen=True)
class Graph:
    """A graph: its inputs and outputs, its nodes, and the types of its values."""

    inputs: tuple[Argument, ...]
    outputs: tuple[Argument, ...]
    calls: tuple[Call, ...]
    tensors: Mapping[str, Meta]


@dataclass(frozen=True)
class Input:
    """An input of the program.

    Attributes:
        kind: user_input, parameter, buffer, tensor_constant, constant_input, ...
        argument: its value in the graph.
        target: the name of the parameter, buffer or constant; "" for an input of the user.
        persistent: whether a buffer is in the state dictionary.
    """

    kind: str
    argument: Argument
    target: str = ""
    persistent: bool = True


@dataclass(frozen=True)
class Output:
    """An output of the program.

    Attributes:
        kind: user_output, buffer_mutation, user_input_mutation, ...
        argument: its value in the graph.
        target: what it changes; "" for an output of the user.
    """

    kind: str
    argument: Argument
    target: str = ""


@dataclass(frozen=True)
class Payload:
    """Where the elements of a tensor are.

    Attributes:
        path: the name of the member that holds its storage.
        pickled: whether that is a pickle.
    """

    path: str
    pickled: bool
    meta: Meta | None


@dataclass(frozen=True)
class Program:
    """An exported program.

    Attributes:
        ranges: the least and the greatest value of each symbol, None where there is none.
        returned: how the outputs were nested in Python, as torch writes it.
    """

    graph: Graph
    inputs: tuple[Input, ...]
    outputs: tuple[Output, ...]
    ranges: Mapping[str, tuple[int | None, int | None]] = field(
        default_factory=dict[str, "tuple[int | None, int | None]"]
    )
    returned: str = ""


@dataclass(frozen=True)
class Reader:
    """Reads values of JSON, and says where a wrong one is.

    Attributes:
        place: the model's name in messages.
    """

    place: str

    def bad(self, where: str, value: object, need: str) -> NoReturn:
        """Raise InputError for a value that should be another."""
        shown = repr(value) if isinstance(value, str | int | float | None) else _kind(value)
        if len(shown) > SHOWN:
            shown = f"{shown[:SHOWN]}..."
        raise InputError(f"{self.place}: damaged program: {where} is {shown}; need {need}")

    def table(self, value: object, where: str) -> dict[str, Any]:
        """A table with names."""
        if not isinstance(value, dict):
            self.bad(where, value, "a table")
        return cast("dict[str, Any]", value)

    def entries(self, value: object, where: str) -> list[Any]:
        """A list."""
        if not isinstance(value, list):
            self.bad(where, value, "a list")
        return cast("list[Any]", value)

    def text(self, value: object, where: str) -> str:
        """A text."""
        if not isinstance(value, str):
            self.bad(where, value, "a text")
        return value

    def name(self, value: object, where: str) -> str:
        """A name, which messages may repeat."""
        name = self.text(value, where)
        if len(name) > LONGEST_NAME:
            self.bad(where, value, f"a name of at most {LONGEST_NAME} letters")
        return name

    def integer(self, value: object, where: str) -> int:
        """An integer of 64 bits."""
        if not isinstance(value, int) or isinstance(value, bool) or not -(2**63) <= value < 2**63:
            self.bad(where, value, "an integer of 64 bits")
        return value

    def flag(self, value: object, where: str) -> bool:
        """True or false."""
        if not isinstance(value, bool):
            self.bad(where, value, "true or false")
        return value

    def number(self, value: object, where: str) -> float:
        """A float. JSON has no infinities, so they are texts."""
        if isinstance(value, str) and value in SPECIAL:
            return SPECIAL[value]
        if not isinstance(value, int | float) or isinstance(value, bool):
            self.bad(where, value, "a number")
        return float(value) if abs(value) < 1e309 or math.isnan(value) else math.inf

    def choice(self, value: object, where: str) -> tuple[str, Any]:
        """The only entry of a table that stands for one of several kinds."""
        table = {k: v for k, v in self.table(value, where).items() if v is not None}
        if len(table) != 1:
            self.bad(where, value, f"a table of one entry, not {len(table)}")
        return next(iter(table.items()))

    def list_of(self, read: Callable[[object, str], T], value: object, where: str) -> tuple[T, ...]:
        """A list of values, each read by a function."""
        return tuple(
            read(each, f"{where}[{i}]") for i, each in enumerate(self.entries(value, where))
        )


def nodes_in(graph: Graph) -> Iterator[Call]:
    """The nodes of a graph, and of the graphs in their arguments."""
    for call in graph.calls:
        yield call
        for each in call.arguments.values():
            if isinstance(each, GraphOf):
                yield from nodes_in(each.graph)


SPECIAL = {"Infinity": math.inf, "-Infinity": -math.inf, "NaN": math.nan}


def _kind(value: object) -> str:
    return f"a {type(value).__name__}"


def read_program(tree: Any, place: str) -> Program:
    """The program in the JSON of an archive. Raises InputError."""
    read = Reader(place)
    root = read.table(tree, "the program")
    version = read.table(root.get("schema_version"), "schema_version")
    major = read.integer(version.get("major"), "schema_version.major")
    if major != MAJOR:
        by = str(root.get("torch_version", "unknown"))[:SHOWN]
        raise UnsupportedError(
            f"{place}: version {major} of the schema of torch.export, written by torch {by}; "
            f"version {MAJOR} is read"
        )
    module = read.table(root.get("graph_module"), "graph_module")
    signature = read.table(module.get("signature"), "signature")
    return Program(
        _graph(read, module.get("graph"), "graph", 0),
        read.list_of(_input(read), signature.get("input_specs"), "input_specs"),
        read.list_of(_output(read), signature.get("output_specs"), "output_specs"),
        _ranges(read, root.get("range_constraints")),
        _returned(read, module),
    )


def _ranges(read: Reader, value: object) -> dict[str, tuple[int | None, int | None]]:
    found: dict[str, tuple[int | None, int | None]] = {}
    for name, each in read.table(value, "range_constraints").items():
        where = f"range_constraints.{name}"
        table = read.table(each, where)
        low, high = (
            None if table.get(key) is None else read.integer(table[key], f"{where}.{key}")
            for key in ("min_val", "max_val")
        )
        found[name] = (low, high)
    return found


def _returned(read: Reader, module: dict[str, Any]) -> str:
    calls = read.entries(module.get("module_call_graph", []), "module_call_graph")
    for each in calls:
        table = read.table(each, "module_call_graph")
        if table.get("fqn") == "" and table.get("signature") is not None:
            signature = read.table(table["signature"], "module_call_graph.signature")
            return read.text(signature.get("out_spec", ""), "out_spec")
    return ""


def _graph(read: Reader, value: object, where: str, depth: int) -> Graph:
    if depth > DEEPEST:
        raise read.bad(where, "nested", f"at most {DEEPEST} graphs inside one another")
    table = read.table(value, where)

    def argument(each: object, place: str) -> Argument:
        return _argument(read, each, place, depth)

    tensors = read.table(table.get("tensor_values"), f"{where}.tensor_values")
    return Graph(
        read.list_of(argument, table.get("inputs"), f"{where}.inputs"),
        read.list_of(argument, table.get("outputs"), f"{where}.outputs"),
        read.list_of(
            lambda each, place: _call(read, each, place, depth),
            table.get("nodes"),
            f"{where}.nodes",
        ),
        {name: meta_of(read, each, f"tensor_values.{name}") for name, each in tensors.items()},
    )


def _call(read: Reader, value: object, where: str, depth: int) -> Call:
    table = read.table(value, where)
    target = read.name(table.get("target"), f"{where}.target")
    arguments: dict[str, Argument] = {}
    for each in read.entries(table.get("inputs"), f"{where}.inputs"):
        entry = read.table(each, f"{where}.inputs")
        name = read.name(entry.get("name"), f"{where}: the name of an argument")
        if name in arguments and name:
            read.bad(f"{where}: argument {name[:SHOWN]!r}", "given twice", "it once")
        # The arguments of operators of higher order have no names.
        key = name or str(len(arguments))
        arguments[key] = _argument(read, entry.get("arg"), f"{where}.{key[:SHOWN]}", depth)
    results = read.list_of(
        lambda each, place: _argument(read, each, place, depth),
        table.get("outputs"),
        f"{where}.outputs",
    )
    metadata = read.table(table.get("metadata", {}), f"{where}.metadata")
    names = [each.name for each in results if isinstance(each, Tensor | Symbol)]
    own = table.get("name")
    return Call(
        target,
        arguments,
        results,
        own[:LONGEST_NAME] if isinstance(own, str) and own else names[0] if names else where,
        str(metadata.get("stack_trace") or ""),
        str(metadata.get("nn_module_stack") or ""),
    )


def _name(read: Reader, value: object, where: str) -> str:
    return read.name(read.table(value, where).get("name"), f"{where}.name")


def _tensor(read: Reader, value: object, where: str) -> Argument:
    return Tensor(_name(read, value, where))


def _optional(read: Reader, value: object, where: str) -> Argument:
    kind, inner = read.choice(value, where)
    return _tensor(read, inner, where) if kind == "as_tensor" else None


def _symbolic(read: Reader, value: object, where: str) -> Argument:
    """A number, or the name of one."""
    kind, inner = read.choice(value, where)
    if kind == "as_name":
        return Symbol(read.name(inner, where))
    scalars: dict[str, Callable[[object, str], Argument]] = {
        "as_int": read.integer,
        "as_float": read.number,
        "as_bool": read.flag,
    }
    if kind not in scalars:
        read.bad(where, kind, "as_name, as_int, as_float or as_bool")
    return scalars[kind](inner, where)


ArgumentReader = Callable[[Reader, object, str], Argument]


def _scalar_type(read: Reader, value: object, where: str) -> Argument:
    return ScalarType(read.integer(value, where))


def _several(one: ArgumentReader) -> ArgumentReader:
    def read_all(read: Reader, value: object, where: str) -> Argument:
        return read.list_of(lambda each, place: one(read, each, place), value, where)

    return read_all


def _int(read: Reader, value: object, where: str) -> Argument:
    return read.integer(value, where)


def _float(read: Reader, value: object, where: str) -> Argument:
    return read.number(value, where)


def _bool(read: Reader, value: object, where: str) -> Argument:
    return read.flag(value, where)


def _text(read: Reader, value: object, where: str) -> Argument:
    return read.text(value, where)


ARGUMENTS: Mapping[str, ArgumentReader] = {
    "as_tensor": _tensor,
    "as_tensors": _several(_tensor),
    "as_nested_tensors": _several(_several(_tensor)),
    "as_optional_tensor": _optional,
    "as_optional_tensors": _several(_optional),
    "as_int": _int,
    "as_ints": _several(_int),
    "as_int_lists": _several(_several(_int)),
    "as_float": _float,
    "as_floats": _several(_float),
    "as_float_lists": _several(_several(_float)),
    "as_bool": _bool,
    "as_bools": _several(_bool),
    "as_string": _text,
    "as_strings": _several(_text),
    "as_operator": _text,
    "as_sym_int": _symbolic,
    "as_sym_ints": _several(_symbolic),
    "as_sym_float": _symbolic,
    "as_sym_floats": _several(_symbolic),
    "as_sym_bool": _symbolic,
    "as_sym_bools": _several(_symbolic),
    "as_scalar_type": _scalar_type,
}
"""What reads an argument, by the kind that the file names. Graphs and None are read beside it."""


def _argument(read: Reader, value: object, where: str, depth: int) -> Argument:
    kind, inner = read.choice(value, where)
    if kind == "as_none":
        return None
    if kind == "as_graph":
        return GraphOf(_graph(read, read.table(inner, where).get("graph"), where, depth + 1))
    reader = ARGUMENTS.get(kind)
    return Other(kind[:SHOWN]) if reader is None else reader(read, inner, where)


def _size(read: Reader, value: object, where: str) -> Size:
    kind, inner = read.choice(value, where)
    if kind == "as_int":
        return read.integer(inner, where)
    if kind != "as_expr":
        read.bad(where, kind, "as_int or as_expr")
    return read.text(read.table(inner, where).get("expr_str"), where)


def meta_of(read: Reader, value: object, where: str) -> Meta:
    """What a file says of a tensor. Raises InputError."""
    table = read.table(value, where)

    def size(each: object, place: str) -> Size:
        return _size(read, each, place)

    return Meta(
        read.integer(table.get("dtype"), f"{where}.dtype"),
        read.list_of(size, table.get("sizes"), f"{where}.sizes"),
        read.list_of(size, table.get("strides"), f"{where}.strides"),
        size(table.get("storage_offset"), f"{where}.storage_offset"),
        read.integer(table.get("layout"), f"{where}.layout"),
    )


TARGETS = {
    "parameter": "parameter_name",
    "buffer": "buffer_name",
    "tensor_constant": "tensor_constant_name",
    "custom_obj": "custom_obj_name",
    "buffer_mutation": "buffer_name",
    "parameter_mutation": "parameter_name",
    "user_input_mutation": "user_input_name",
    "gradient_to_parameter": "parameter_name",
    "gradient_to_user_input": "user_input_name",
}
"""The field that names what an input stands for, or what an output changes, by its kind."""


def _input(read: Reader) -> Callable[[object, str], Input]:
    def one(value: object, where: str) -> Input:
        kind, inner = read.choice(value, where)
        table = read.table(inner, where)
        if kind == "constant_input":
            name = read.name(table.get("name"), where)
            return Input(kind, _argument(read, table.get("value"), where, 0), name)
        if kind == "user_input":
            return Input(kind, _argument(read, table.get("arg"), where, 0))
        if kind not in TARGETS:
            return Input(kind[:SHOWN], None)
        target = read.name(table.get(TARGETS[kind]), f"{where}.{TARGETS[kind]}")
        kept = table.get("persistent", True)
        return Input(kind, _tensor(read, table.get("arg"), where), target, kept is not False)

    return one


def _output(read: Reader) -> Callable[[object, str], Output]:
    def one(value: object, where: str) -> Output:
        kind, inner = read.choice(value, where)
        table = read.table(inner, where)
        if kind == "user_output":
            return Output(kind, _argument(read, table.get("arg"), where, 0))
        if kind not in TARGETS:
            return Output(kind[:SHOWN], None)
        target = read.name(table.get(TARGETS[kind]), f"{where}.{TARGETS[kind]}")
        return Output(kind, _tensor(read, table.get("arg"), where), target)

    return one


def read_payloads(tree: Any, place: str) -> dict[str, Payload]:
    """Where the tensors of an archive are, by name. Raises InputError."""
    read = Reader(place)
    found: dict[str, Payload] = {}
    config = read.table(read.table(tree, "the configuration").get("config"), "config")
    for name, each in config.items():
        where = f"weight {name[:SHOWN]!r}"
        table = read.table(each, where)
        meta = table.get("tensor_meta")
        found[name] = Payload(
            read.text(table.get("path_name"), f"{where}: path_name"),
            read.flag(table.get("use_pickle"), f"{where}: use_pickle"),
            None if meta is None else meta_of(read, meta, where),
        )
    return found
