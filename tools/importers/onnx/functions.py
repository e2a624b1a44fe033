"""Inlines the functions of ONNX: operators that a function body defines, and functions of a model.

A body is a list of nodes that reads its operands, and attributes of the outer node, by name. Its
nodes are imported one by one in place of the outer node, under names below the outer node's
("attention/MatMul"). A body may use other functions, but never itself.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from graphlib import CycleError, TopologicalSorter
from typing import Any

import onnx
from onnx import defs, helper
from xdsl.ir import OpResult

from ....ir.provenance import named
from ....ir.support.errors import InputError
from ....ir.support.limits import INLINED_NODES, short
from ..building import Names, Value, dtype_of, shape_of
from .node import GraphScope, Node, Results

DEEPEST = 64
"""The deepest nesting of functions."""

Function = tuple[str, str, str]
"""The identity of a model's function: domain, name, and overload."""


def model_functions(model: onnx.ModelProto) -> dict[Function, onnx.FunctionProto]:
    """The functions of a model by identity."""
    return {(f.domain or "ai.onnx", f.name, f.overload): f for f in model.functions}


def identity(node: onnx.NodeProto) -> Function:
    """The identity of the function that a node applies, if it applies one."""
    return node.domain or "ai.onnx", node.op_type, node.overload


def is_function(node: Node) -> bool:
    """Whether a node's operator has a function body, of the model or of ONNX."""
    if identity(node.proto) in node.graph.functions:
        return True
    schema = schema_of(node.operator, node.opset, node.domain)
    return schema is not None and has_body(schema)


def has_body(schema: defs.OpSchema) -> bool:
    """Whether ONNX defines an operator by a function body."""
    # The stubs of onnx leave out half of what the class has.
    full: Any = schema
    return bool(full.has_function or full.has_context_dependent_function)


@lru_cache(maxsize=1024)
def schema_of(operator: str, opset: int, domain: str) -> defs.OpSchema | None:
    """ONNX's definition of an operator at a version of its domain, or None if ONNX has none."""
    try:
        return defs.get_schema(operator, opset, "" if domain == "ai.onnx" else domain)
    except defs.SchemaError:
        return None


def inlined(node: Node) -> Results:
    """The results of a node's function body, for the results that have names.

    Appends the operations of the body's nodes to node.ops. Raises InputError for a body that breaks
    a rule of ONNX, and the errors of importing its nodes.
    """
    graph = node.graph
    function = graph.functions.get(identity(node.proto)) or _body_of_schema(node)
    path = (*graph.path, identity(node.proto))
    if identity(node.proto) in graph.path:
        chain = " calls ".join(name for _, name, _ in path)
        raise node.bad(f"the function calls itself: {chain}")
    if len(path) > DEEPEST:
        raise node.bad(f"{len(path)} functions inside one another; need {DEEPEST} or fewer")
    _check_operands(node, function)
    body = _bound(node, function)
    graph.count.inlined += len(body)
    if graph.count.inlined > INLINED_NODES.most:
        raise node.bad(INLINED_NODES.refusal(_altogether(graph.count.inlined)))
    inner = graph.inside(_operands(node, function), _opsets(node, function), path)
    names = Names()
    for proto in body:
        step = names.unique(proto.name or proto.op_type)
        each = Node(proto, f"{node.name}/{step}", inner, node, node.below(step))
        node.ops += graph.read(each)
    return _results(node, function, inner)


def _opsets(node: Node, function: onnx.FunctionProto) -> dict[str, int]:
    """The versions of domains in a body: its own, else the model's.

    Bodies that ONNX makes for other domains may leave out the version of ai.onnx.
    """
    own = {each.domain or "ai.onnx": each.version for each in function.opset_import}
    return {"ai.onnx": defs.onnx_opset_version(), **node.graph.opsets, **own}


def _check_operands(node: Node, function: onnx.FunctionProto) -> None:
    for what, given, most in (
        ("operand", node.proto.input, len(function.input)),
        ("result", node.proto.output, len(function.output)),
    ):
        if len(given) > most:
            raise node.bad(f"{what} {most} {given[most]!r}: the function has {most}")


def _operands(node: Node, function: onnx.FunctionProto) -> dict[str, Value]:
    """The values that the node gives to the function's parameters."""
    return {name: node.value(i) for i, name in enumerate(function.input) if node.has(i)}


def _results(node: Node, function: onnx.FunctionProto, inner: GraphScope) -> list[Value | str]:
    """The function's results; a text for a result that the node does not name, or that is
    absent."""
    results: list[Value | str] = []
    for index, name in enumerate(function.output):
        if not node.wants(index):
            results.append("the result has no name")
        elif name in inner.absent:
            results.append(inner.absent[name])
        else:
            results.append(inner.value(name, f"result {index} of {node}"))
    made = set(node.ops)
    first = results[0] if results else None
    # Values from outside may pass through a body. They keep their names.
    if isinstance(first, OpResult) and first.op in made:
        first.op.location = named(node.name)
    return results


# Bodies


def _body_of_schema(node: Node) -> onnx.FunctionProto:
    """ONNX's own body of an operator, for the types of a node's operands."""
    schema = schema_of(node.operator, node.opset, node.domain)
    assert schema is not None
    try:
        function = body_of(schema, node.proto, _types(node), node.opset)
    except (RuntimeError, ValueError, TypeError) as error:
        raise node.bad(f"ONNX makes no function body for it: {error}") from None
    if not function.node:
        raise node.unsupported("this form", "ONNX has no function body for these types")
    return function


def body_of(
    schema: defs.OpSchema,
    node: onnx.NodeProto,
    types: Sequence[onnx.TypeProto | None],
    opset: int | None = None,
) -> onnx.FunctionProto:
    """The function body of an operator, with the defaults of its attributes; empty if it has none.

    Args:
        node, types: a node of the operator, and the types of its operands; None for one that is
            left out.
        opset: None for the newest.
    """
    full: Any = schema
    opset = schema.since_version if opset is None else opset
    if full.has_function:
        version = _version(full.function_opset_versions, opset)
        body = full.get_function_with_opset_version(version)
    else:
        version = _version(full.context_dependent_function_opset_versions, opset)
        given = [b"" if each is None else each.SerializeToString() for each in types]
        body = full.get_context_dependent_function_with_opset_version(
            version, node.SerializeToString(), given
        )
    function = onnx.FunctionProto.FromString(body)
    for name, attribute in schema.attributes.items():
        if attribute.default_value.type:
            function.attribute_proto.append(attribute.default_value)
            function.attribute_proto[-1].name = name
    return function


def _version(versions: Sequence[int], opset: int) -> int:
    """The version of the body for an opset: the last one that is not newer, or the first."""
    return max((v for v in versions if v <= opset), default=min(versions))


def _types(node: Node) -> list[onnx.TypeProto | None]:
    """The types of a node's operands; None for those that are left out."""
    return [_type(node.value(i)) if node.has(i) else None for i in range(node.operand_count)]


def _type(value: Value) -> onnx.TypeProto:
    return helper.make_tensor_type_proto(
        helper.np_dtype_to_tensor_dtype(dtype_of(value)), shape_of(value)
    )


# Binding


@dataclass(frozen=True)
class _Binding:
    """The meanings of names in a function body.

    Attributes:
        missing: parameters that the node leaves out.
        attributes: of the node, or default ones.
    """

    missing: frozenset[str]
    attributes: Mapping[str, onnx.AttributeProto]


def _bound(node: Node, function: onnx.FunctionProto) -> list[onnx.NodeProto]:
    """The nodes of a body that are needed for the named results, with the outer node's
    attributes."""
    defaults = {each.name: each for each in function.attribute_proto}
    for name in function.attribute:
        if name not in node.attributes and name not in defaults and _is_model(node):
            raise node.bad(f"attribute {name} is missing; the function needs it")
    binding = _Binding(
        frozenset(name for i, name in enumerate(function.input) if not node.has(i)),
        {**defaults, **node.attributes},
    )
    wanted = {name for i, name in enumerate(function.output) if node.wants(i)}
    needed: list[onnx.NodeProto] = []
    for each in reversed(function.node):
        if not wanted.isdisjoint(each.output):
            needed.append(_bound_node(each, binding))
            wanted.update(_read(each))
    return needed[::-1]


def _is_model(node: Node) -> bool:
    return identity(node.proto) in node.graph.functions


def _read(node: onnx.NodeProto) -> Iterator[str]:
    """The names that a node, and the graphs in its attributes, may read."""
    yield from node.input
    for graph in graphs_in(node.attribute):
        yield from (each.name for each in graph.output)
        for inner in graph.node:
            yield from _read(inner)


def _nodes_in(nodes: Iterable[onnx.NodeProto]) -> Iterator[onnx.NodeProto]:
    """The nodes, and all nodes of graphs in their attributes."""
    for node in nodes:
        yield node
        for graph in graphs_in(node.attribute):
            yield from _nodes_in(graph.node)


def graphs_in(attributes: Iterable[onnx.AttributeProto]) -> Iterator[onnx.GraphProto]:
    """The graphs in attributes of a node."""
    for attribute in attributes:
        if attribute.HasField("g"):
            yield attribute.g
        yield from attribute.graphs


def _bound_node(node: onnx.NodeProto, binding: _Binding) -> onnx.NodeProto:
    """A copy of a node, without references to attributes of a function."""
    made = onnx.NodeProto()
    made.CopyFrom(node)
    _bind(made, binding)
    return made


def _bind(node: onnx.NodeProto, binding: _Binding) -> None:
    """Replace the names and attribute references in a node, and in its graphs, by their
    bindings."""
    for index, name in enumerate(node.input):
        if name in binding.missing:
            node.input[index] = ""
    kept: list[onnx.AttributeProto] = []
    for attribute in node.attribute:
        bound = attribute
        if attribute.ref_attr_name:
            given = binding.attributes.get(attribute.ref_attr_name)
            # If the outer node lacks such an attribute, the inner node lacks it too.
            if given is None:
                continue
            bound = onnx.AttributeProto()
            bound.CopyFrom(given)
            bound.name = attribute.name
        kept.append(bound)
    if len(kept) != len(node.attribute) or any(a.ref_attr_name for a in node.attribute):
        copies = [onnx.AttributeProto.FromString(each.SerializeToString()) for each in kept]
        del node.attribute[:]
        node.attribute.extend(copies)
    for graph in graphs_in(node.attribute):
        for inner in graph.node:
            _bind(inner, binding)


def check_calls(
    nodes: Iterable[onnx.NodeProto],
    functions: Mapping[Function, onnx.FunctionProto],
    place: str,
) -> None:
    """Raise InputError for a function that calls itself, and for bodies of too many nodes.

    A function that calls itself is refused even if no node calls it. All nodes are counted, so that
    nothing is inlined before functions that grow exponentially are refused.

    Args:
        nodes: of the model's graph.
    """
    calls = {
        name: Counter(identity(node) for node in _nodes_in(function.node))
        for name, function in functions.items()
    }
    try:
        order = TopologicalSorter(
            {name: each.keys() & functions.keys() for name, each in calls.items()}
        ).static_order()
        total: dict[Function, int] = {}
        for name in order:
            total[name] = _inlined(calls[name], total) + calls[name].total()
    except CycleError as error:
        chain = " calls ".join(name for _, name, _ in reversed(error.args[1]))
        raise InputError(f"{place}: the function calls itself: {chain}") from None
    count = _inlined(Counter(map(identity, _nodes_in(nodes))), total)
    if count > INLINED_NODES.most:
        raise InputError(f"{place}: {INLINED_NODES.refusal(_altogether(count))}")


def _altogether(nodes: int) -> str:
    return f"functions of {short(nodes)} nodes, once every call is replaced"


def _inlined(calls: Counter[Function], total: Mapping[Function, int]) -> int:
    """The nodes that take the place of calls.

    Args:
        total: the nodes of each function.
    """
    return sum(n * total.get(name, 0) for name, n in calls.items())


def check_function(function: onnx.FunctionProto, place: str) -> None:
    """Raise InputError for a function with two parameters, or two results, of one name."""
    for what, names in (("parameters", function.input), ("results", function.output)):
        twice = {name for name in names if list(names).count(name) > 1}
        if twice:
            raise InputError(
                f"{place}: function {function.name!r}: two {what} are called {min(twice)!r}"
            )
