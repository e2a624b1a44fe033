"""Checks a model against ONNX's own rules, and names the node that breaks one."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from difflib import get_close_matches
from math import prod

import onnx
from google.protobuf.message import EncodeError
from onnx import checker, defs

from ....ir.support.errors import InputError, one_line
from .functions import schema_of
from .node import GraphScope, Node, kind_name
from .sparse_weights import check_sparse, weights_of, without_elements
from .tensors import check_stored, dtype_or_none, is_external

LENIENT = "--lenient skips this check"
"""The end of messages about rules that lenient imports do not check."""

CHECKED_BYTES = 1 << 12
"""Weights with more bytes become inputs in the copy for ONNX's checker, so that they are not
copied.
"""

_TAG = "abele-node-"
"""The prefix of node names in the copy that is checked. Models may use a name twice, or none."""

_TAGGED = re.compile(rf"{_TAG}(\d+)-")
_IN_CONTEXT = re.compile(rf"name: {_TAGGED.pattern}", re.IGNORECASE)
_MADE_TWICE = re.compile(r"'(.*)' has been used as output names multiple times", re.DOTALL)

_NO_OUTPUT = re.compile(r"Graph output '(.*)' is not an output of any node", re.DOTALL)
_UNKNOWN = re.compile(r"topologically sorted, however input '(.*)' of node", re.DOTALL)

INTERNAL = "__"
"""The prefix of attributes that ONNX does not check."""

LISTED = 12
"""The most attributes that a message lists."""


def check_valid(
    proto: onnx.ModelProto, graph: GraphScope, nodes: Sequence[Node], own: Collection[str]
) -> None:
    """Raise InputError if a model breaks a rule of ONNX.

    The rules are those of onnx.checker: the number of a node's operands and results, the names and
    kinds of its attributes, the order of nodes, and the fields of graphs and tensors. Two things
    are exempt: operators that only users' importers know, and missing types of outputs, which abele
    infers.

    Args:
        nodes: those of the model's graph, in order.
        own: the operators of ai.onnx that abele imports.
    """
    for node in nodes:
        check_node(node, own)
    for value in proto.graph.input:
        _check_input(value, graph)
    _check_weights(proto, graph)
    try:
        checker.check_model(light_copy(proto, nodes))
    except checker.ValidationError as error:
        outside = {value.name for value in (*proto.graph.input, *weights_of(proto.graph))}
        outside |= {name for node in nodes for name in node.proto.output}
        raise _named(str(error), graph, nodes, outside) from None
    except (EncodeError, ValueError, RuntimeError) as error:
        raise graph.bad(f"ONNX's checker fails: {one_line(error)}; {LENIENT}") from None


def _schema(node: Node) -> defs.OpSchema | None:
    """ONNX's definition of a node's operator, or None if ONNX has none."""
    return schema_of(node.operator, node.opset, node.domain)


# Nodes


def check_node(node: Node, own: Collection[str]) -> None:
    """Raise InputError for a node with wrong operands, results or attributes.

    Unlike the checker's own messages, these say what is allowed.

    Args:
        own: as for check_valid.
    """
    schema = _schema(node)
    if schema is None:
        if node.domain == "ai.onnx" and node.operator in own:
            raise node.bad(f"opset {node.opset} of {node.domain} has no {node.operator}; {LENIENT}")
        return
    if schema.deprecated:
        raise node.bad(
            f"{node.operator} is deprecated since opset {schema.since_version}; the model imports "
            f"opset {node.opset}; {LENIENT}"
        )
    _check_counts(node, schema)
    _check_given(node, "operand", node.proto.input, schema.inputs)
    _check_given(node, "result", node.proto.output, schema.outputs)
    _check_attributes(node, schema)


def _check_counts(node: Node, schema: defs.OpSchema) -> None:
    operands, results = node.proto.input, node.proto.output
    least, most = schema.min_input, schema.max_input
    if len(operands) < least:
        given = f"{len(operands)} are given"
        raise node.bad(f"operand {len(operands)} is missing; {given}; {LENIENT}")
    if len(operands) > most:
        raise node.bad(f"operand {most} {operands[most]!r}: the operator has {most}; {LENIENT}")
    if len(results) < schema.min_output:
        raise node.bad(f"result {len(results)} is missing; {LENIENT}")
    if len(results) > schema.max_output:
        extra, most = results[schema.max_output], schema.max_output
        raise node.bad(f"result {most} {extra!r}: the operator has {most}; {LENIENT}")


def _check_given(
    node: Node, what: str, names: Sequence[str], wanted: Sequence[defs.OpSchema.FormalParameter]
) -> None:
    """Check that an operand or result without a name may be left out."""
    for index, (name, one) in enumerate(zip(names, wanted, strict=False)):
        if not name and one.option == defs.OpSchema.FormalParameterOption.Single:
            raise node.bad(f"{what} {index} ({one.name}) has no name; {LENIENT}")


def _check_attributes(node: Node, schema: defs.OpSchema) -> None:
    known = schema.attributes
    seen: set[str] = set()
    for attribute in node.proto.attribute:
        name = attribute.name
        if name in seen:
            raise node.bad(f"attribute {name} is given twice; need it once; {LENIENT}")
        seen.add(name)
        if name.startswith(INTERNAL):
            continue
        if name not in known:
            near = get_close_matches(name, known)
            guess = f"; did you mean {near[0]}?" if near else ""
            allowed = f"{node.operator} has {_listed(known)}{guess}"
            raise node.bad(f"attribute {name} is unknown; {allowed}; {LENIENT}")
        wanted = str(known[name].type).rpartition(".")[2].lower()
        kind = kind_name(attribute.type)
        if kind != wanted:
            raise node.bad(f"attribute {name} is a {kind}; need a {wanted}; {LENIENT}")
    for name, one in known.items():
        if one.required and name not in seen:
            raise node.bad(f"attribute {name} is missing; {LENIENT}")


def _listed(names: Collection[str]) -> str:
    shown = ", ".join(sorted(names)[:LISTED]) or "none"
    return shown if len(names) <= LISTED else f"{shown} and {len(names) - LISTED} others"


# Inputs and weights


def _check_input(value: onnx.ValueInfoProto, graph: GraphScope) -> None:
    type_ = value.type
    if type_.WhichOneof("value") is None:
        raise graph.bad(f"input {value.name!r} has no type; {LENIENT}")
    if type_.HasField("tensor_type") and not type_.tensor_type.HasField("shape"):
        raise graph.bad(f"input {value.name!r} has no shape; give the model one; {LENIENT}")


def _check_weights(proto: onnx.ModelProto, graph: GraphScope) -> None:
    """Check the weights that are not in the checker's copy."""
    inputs = {value.name for value in proto.graph.input}
    seen: set[str] = set()
    for tensor in weights_of(proto.graph):
        name = tensor.name
        what = f"{graph.place}: weight {name!r}"
        if not name:
            raise graph.bad(f"a weight has no name; {LENIENT}")
        if name in seen:
            raise InputError(f"{what} is given twice; need different names; {LENIENT}")
        seen.add(name)
        if proto.ir_version < 4 and name not in inputs:
            raise InputError(
                f"{what} is not an input, as IR version {proto.ir_version} asks of weights; "
                f"{LENIENT}"
            )
    for tensor in proto.graph.initializer:
        check_stored(tensor, graph.folder, f"{graph.place}: weight {tensor.name!r}")
    for sparse in proto.graph.sparse_initializer:
        check_sparse(sparse, graph.folder, f"{graph.place}: weight {sparse.values.name!r}")


# The copy


def light_copy(proto: onnx.ModelProto, nodes: Sequence[Node]) -> onnx.ModelProto:
    """The model without its large weights, and without external data.

    The checker gets the model as bytes, so each weight would otherwise be copied twice.

    Args:
        nodes: those of its graph.
    """
    copy = onnx.ModelProto(ir_version=proto.ir_version)
    copy.opset_import.extend(proto.opset_import)
    copy.metadata_props.extend(proto.metadata_props)
    copy.graph.name = proto.graph.name
    copy.graph.input.extend(proto.graph.input)
    copy.graph.output.extend(_with_type(each) for each in proto.graph.output)
    copy.graph.value_info.extend(proto.graph.value_info)
    inputs = {value.name for value in proto.graph.input}
    for name, tensor in _tensors(proto, nodes):
        if name not in inputs:
            value = copy.graph.input.add(name=name)
            value.type.tensor_type.elem_type = tensor.data_type
            value.type.tensor_type.shape.dim.extend(
                onnx.TensorShapeProto.Dimension(dim_value=n) for n in tensor.dims
            )
    copy.graph.initializer.extend(each for each in proto.graph.initializer if not _is_large(each))
    for index, node in enumerate(nodes):
        if _large_constant(node) is None:
            made = copy.graph.node.add()
            made.CopyFrom(node.proto)
            made.name = f"{_TAG}{index}-"
            if _schema(node) is None:
                made.domain = _FREE_DOMAIN
    copy.opset_import.add(domain=_FREE_DOMAIN, version=1)
    return copy


_FREE_DOMAIN = "abele.users"
"""The domain of nodes that only users' importers know, for which the checker has no rules."""


def _with_type(output: onnx.ValueInfoProto) -> onnx.ValueInfoProto:
    """An output with any type, if it has none. abele infers types, and so does onnxruntime."""
    kind = output.type.WhichOneof("value")
    if kind != "tensor_type" and kind is not None:
        return output
    tensor = output.type.tensor_type
    filled = onnx.ValueInfoProto(name=output.name)
    filled.type.tensor_type.elem_type = tensor.elem_type or onnx.TensorProto.FLOAT
    filled.type.tensor_type.shape.CopyFrom(tensor.shape)
    return filled


def _tensors(
    proto: onnx.ModelProto, nodes: Sequence[Node]
) -> Iterator[tuple[str, onnx.TensorProto]]:
    """The tensors that become inputs of the copy, by name."""
    for tensor in proto.graph.initializer:
        if _is_large(tensor):
            yield tensor.name, tensor
    for sparse in proto.graph.sparse_initializer:
        yield sparse.values.name, without_elements(sparse)
    for node in nodes:
        tensor = _large_constant(node)
        if tensor is not None:
            yield node.proto.output[0], tensor


def _is_large(tensor: onnx.TensorProto) -> bool:
    # ByteSize would serialise the tensor to count its bytes. Each element of a list takes at least
    # one.
    dtype = dtype_or_none(tensor.data_type)
    bits = 8 if dtype is None else dtype.itemsize * 8
    return is_external(tensor) or prod(tensor.dims) * bits > 8 * CHECKED_BYTES


def _large_constant(node: Node) -> onnx.TensorProto | None:
    """The tensor of a Constant that is large and otherwise well formed."""
    attributes = node.proto.attribute
    if node.operator != "Constant" or node.domain != "ai.onnx":
        return None
    if len(attributes) != 1 or len(node.proto.output) != 1 or node.proto.input:
        return None
    (attribute,) = attributes
    is_tensor = attribute.name == "value" and attribute.HasField("t")
    return attribute.t if is_tensor and _is_large(attribute.t) else None


# Messages


def _named(text: str, graph: GraphScope, nodes: Sequence[Node], outside: set[str]) -> InputError:
    """The checker's error, turned into an error about the node that breaks the rule.

    Args:
        outside: the values of the model's graph, which nested graphs may read.
    """
    problem, *contexts = text.split("\n\n==> Context")
    problem = " ".join(problem.split()).rstrip(".")
    # The last context is the outermost one: a node of the model's graph.
    tags = _IN_CONTEXT.findall(" ".join([problem, *contexts]))
    node = nodes[int(tags[-1])] if tags else None
    twice, unknown = _MADE_TWICE.search(problem), _UNKNOWN.search(problem)
    absent = _NO_OUTPUT.search(problem)
    makers = [each for each in nodes if twice is not None and twice[1] in each.proto.output]
    if twice is not None and makers:
        return makers[-1].bad(f"result {twice[1]!r} is the name of an earlier value; {LENIENT}")
    if unknown is not None and node is not None:
        return graph.unknown(unknown[1], str(node))
    if absent is not None and absent[1] in outside:
        return graph.bad(
            f"a branch or loop body returns {absent[1]!r}, a value of the graph around it; need a "
            f"value that its own nodes make, such as Identity({absent[1]}); {LENIENT}"
        )
    if absent is not None:
        return graph.unknown(absent[1], f"output {absent[1]!r}")
    problem = _TAGGED.sub(lambda tag: repr(nodes[int(tag[1])].name), problem)
    return (graph if node is None else node).bad(f"{problem}; {LENIENT}")
