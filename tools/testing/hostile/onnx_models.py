"""ONNX models with damaged structure: graphs, nodes, attributes, tensors, types and bytes.

The damage resembles mistakes of exporters, editors and broken files. Each change is small, so most
models reach the importer's last step, and some are imported.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from random import Random
from typing import Any, TypeVar

import numpy as np
import onnx
from onnx import helper, numpy_helper

from ..generators.sketch import random_sketch
from ..onnx_graphs.build import build_graph, operators_of
from .case import Damaged

Item = TypeVar("Item")

POOL = 200
"""Number of undamaged models to choose from. The damage differs, so few models suffice."""

MOST_CHANGES = 3

SIZES = (0, 1, -1, 2, 3, 7, 255, 65536, 2**31 - 1, 2**31, 2**40, 2**62, 2**63 - 1, -(2**63))
SPARSE_INDICES = ([0, 1], [1, 0], [1, 1], [-1, 0], [0, 2**40], [[0, 0], [0, 1]], [[0], [2]])
FLOATS = (0.0, -0.0, -1.0, 1e-38, 1e38, float("inf"), float("-inf"), float("nan"))
NAMES = (
    *("", " ", "x", "y", "main", "file", "y\0a", "../../y", "/etc/passwd", "[/b]", "[red]"),
    *("a" * 70_000, "\u202e", "\n", '"', "%0", "@main", "{{DATA}}", "</script>", "é" * 40_000),
    "y.npy",
)
"""Names with a special meaning elsewhere: paths, markup, reserved names."""

LOCATIONS = (
    *("", "..", "../w.bin", "/etc/passwd", "/dev/zero", "w.bin", ".", "a\0b", "model.onnx"),
    "w" * 5000,
)
DIGITS = ("0", "-1", "1e3", "9" * 5000, "18446744073709551616", "4", " 4", "٤", "")

ATTRIBUTE = onnx.AttributeProto
KINDS = (
    *(ATTRIBUTE.UNDEFINED, ATTRIBUTE.FLOAT, ATTRIBUTE.INT, ATTRIBUTE.STRING, ATTRIBUTE.TENSOR),
    *(ATTRIBUTE.GRAPH, ATTRIBUTE.FLOATS, ATTRIBUTE.INTS, ATTRIBUTE.STRINGS, ATTRIBUTE.TENSORS),
    *(ATTRIBUTE.GRAPHS, ATTRIBUTE.SPARSE_TENSOR, ATTRIBUTE.TYPE_PROTO),
)
DTYPES = (*onnx.TensorProto.DataType.values(), 77, -1)

DEPTHS = (2, 15, 30)
"""How deep subgraphs are nested. protobuf reads about 30 of them."""


def onnx_model(random: np.random.Generator) -> Damaged:
    """A damaged model made of operators that abele imports, and a description of the damage."""
    model = onnx.ModelProto()
    model.CopyFrom(undamaged(int(random.integers(POOL))))
    done: list[str] = []
    wanted = int(random.integers(1, MOST_CHANGES + 1))
    while len(done) < wanted:
        change = _one(CHANGES, random)
        try:
            said = change(model, random)
        except (ValueError, TypeError):
            # protobuf refuses some values, such as text that is too large for a field.
            continue
        if said:
            done.append(said)
    data = model.SerializeToString()
    if random.random() < 0.2:
        data, said = _damaged_bytes(data, random)
        done.append(said)
    return Damaged(data, "; ".join(done))


@lru_cache(maxsize=POOL)
def undamaged(number: int) -> onnx.ModelProto:
    """A valid model, the same one on every host. Callers must not change it."""
    return build_graph(random_sketch(Random(f"{number} onnx"))).proto


def _one(items: Sequence[Item], random: np.random.Generator) -> Item:
    return items[int(random.integers(len(items)))]


def _any_node(model: onnx.ModelProto, random: np.random.Generator) -> onnx.NodeProto | None:
    return _one(model.graph.node, random) if model.graph.node else None


def _any_tensor(model: onnx.ModelProto, random: np.random.Generator) -> onnx.TensorProto | None:
    """A random weight or tensor attribute of a model; a new weight if it has none."""
    attributes = [a.t for n in model.graph.node for a in n.attribute if a.HasField("t")]
    tensors = [*model.graph.initializer, *attributes]
    return _one(tensors, random) if tensors else None


def _any_value(model: onnx.ModelProto, random: np.random.Generator) -> onnx.ValueInfoProto:
    graph = model.graph
    return _one([*graph.input, *graph.output, *graph.output, *graph.value_info], random)


def _value_names(model: onnx.ModelProto) -> list[str]:
    graph = model.graph
    made = [name for node in graph.node for name in node.output]
    return [*(v.name for v in graph.input), *(t.name for t in graph.initializer), *made]


def _short(name: str) -> str:
    return repr(name if len(name) <= 20 else f"{name[:20]}...")


# Nodes


def _remove_node(model: onnx.ModelProto, random: np.random.Generator) -> str:
    if not model.graph.node:
        return ""
    place = int(random.integers(len(model.graph.node)))
    said = f"without {model.graph.node[place].op_type}"
    del model.graph.node[place]
    return said


def _repeat_node(model: onnx.ModelProto, random: np.random.Generator) -> str:
    node = _any_node(model, random)
    if node is None:
        return ""
    model.graph.node.append(node)
    return f"{node.op_type} twice"


def _move_node(model: onnx.ModelProto, random: np.random.Generator) -> str:
    nodes = list(model.graph.node)
    if len(nodes) < 2:
        return ""
    node = nodes.pop(int(random.integers(len(nodes))))
    nodes.insert(int(random.integers(len(nodes) + 1)), node)
    del model.graph.node[:]
    model.graph.node.extend(nodes)
    return f"{node.op_type} elsewhere"


def _other_operator(model: onnx.ModelProto, random: np.random.Generator) -> str:
    node = _any_node(model, random)
    if node is None:
        return ""
    old, node.op_type = node.op_type, _one((*operators_of(17), "Foo", "", "If", "Loop"), random)
    return f"{node.op_type} for {old}"


def _other_domain(model: onnx.ModelProto, random: np.random.Generator) -> str:
    node = _any_node(model, random)
    if node is None:
        return ""
    node.domain = _one(("ai.onnx", "ai.onnx.ml", "com.example", "\0"), random)
    return f"domain {node.domain!r}"


def _operands(model: onnx.ModelProto, random: np.random.Generator) -> str:
    node = _any_node(model, random)
    if node is None:
        return ""
    names = [*_value_names(model), "", "nowhere"]
    what = int(random.integers(4))
    if what == 0 or not node.input:
        node.input.append(_one(names, random))
        return f"{node.op_type}: another operand"
    place = int(random.integers(len(node.input)))
    if what == 1:
        del node.input[place]
        return f"{node.op_type}: without operand {place}"
    if what == 2:
        node.input.extend([node.input[place]] * 1000)
        return f"{node.op_type}: 1000 operands"
    node.input[place] = _one(names, random)
    return f"{node.op_type}: operand {place} is {_short(node.input[place])}"


def _results(model: onnx.ModelProto, random: np.random.Generator) -> str:
    node = _any_node(model, random)
    if node is None:
        return ""
    what = int(random.integers(3))
    if what == 0 or not node.output:
        node.output.append(_one((*_value_names(model), "other", ""), random))
        return f"{node.op_type}: another result"
    if what == 1:
        del node.output[-1]
        return f"{node.op_type}: a result less"
    node.output[0] = _one((*_value_names(model), *NAMES), random)
    return f"{node.op_type}: result {_short(node.output[0])}"


def _rename(model: onnx.ModelProto, random: np.random.Generator) -> str:
    """Rename a value in all nodes and lists that mention it."""
    names = _value_names(model)
    if not names:
        return ""
    old, new = _one(names, random), _one(NAMES, random)
    graph = model.graph
    for node in graph.node:
        for values in (node.input, node.output):
            for place, name in enumerate(values):
                if name == old:
                    values[place] = new
    for each in (*graph.input, *graph.output, *graph.value_info, *graph.initializer):
        if each.name == old:
            each.name = new
    return f"{_short(new)} for {_short(old)}"


def _name_node(model: onnx.ModelProto, random: np.random.Generator) -> str:
    node = _any_node(model, random)
    if node is None:
        return ""
    node.name = _one(NAMES, random)
    return f"{node.op_type} called {_short(node.name)}"


# Attributes


def _new_attribute(model: onnx.ModelProto, random: np.random.Generator) -> str:
    node = _any_node(model, random)
    if node is None:
        return ""
    name = _one([*_attribute_names(node.op_type), "bogus", "__private"], random)
    node.attribute.append(helper.make_attribute(name, _attribute_value(random)))
    return f"{node.op_type}: new attribute {name}"


@lru_cache(maxsize=256)
def _attribute_names(operator: str) -> tuple[str, ...]:
    schemas = onnx.defs.get_all_schemas_with_history()
    return tuple(sorted({n for s in schemas if s.name == operator for n in s.attributes}))


def _attribute_value(random: np.random.Generator) -> Any:
    values: tuple[Any, ...] = (
        _one(SIZES, random),
        _one(FLOATS, random),
        _one(NAMES, random),
        [_one(SIZES, random) for _ in range(int(random.integers(1, 6)))],
        [_one(FLOATS, random)],
        [1] * 100_000,
        numpy_helper.from_array(np.zeros(3, np.float32), "t"),
    )
    return _one(values, random)


def _attribute(model: onnx.ModelProto, random: np.random.Generator) -> str:
    nodes = [node for node in model.graph.node if node.attribute]
    if not nodes:
        return ""
    node = _one(nodes, random)
    place = int(random.integers(len(node.attribute)))
    attribute = node.attribute[place]
    said = f"{node.op_type}: attribute {attribute.name}"
    what = int(random.integers(7))
    if what == 0:
        del node.attribute[place]
        return f"{said} removed"
    if what == 1:
        node.attribute.append(attribute)
        return f"{said} twice"
    if what == 2:
        attribute.type = _one(KINDS, random)
        return f"{said} of kind {attribute.type}"
    if what == 3:
        attribute.ref_attr_name = "outer"
        return f"{said} of a function"
    if what == 4 and attribute.ints:
        attribute.ints[int(random.integers(len(attribute.ints)))] = _one(SIZES, random)
        return f"{said} is {list(attribute.ints)[:8]}"
    if what == 5 and attribute.ints:
        attribute.ints.append(_one(SIZES, random))
        return f"{said} is longer"
    attribute.CopyFrom(helper.make_attribute(attribute.name, _attribute_value(random)))
    return f"{said} has another value"


def _subgraph(model: onnx.ModelProto, random: np.random.Generator) -> str:
    """Nest conditionals in an attribute of a node."""
    node = _any_node(model, random)
    if node is None:
        return ""
    depth = _one(DEPTHS, random)
    graph = helper.make_graph([], "innermost", [], [])
    for _ in range(depth):
        inner = helper.make_node("If", ["c"], ["q"], then_branch=graph)
        graph = helper.make_graph([inner], "branch", [], [])
    node.attribute.append(helper.make_attribute("body", graph))
    return f"{node.op_type}: {depth} nested graphs"


# Tensors


def _tensor(model: onnx.ModelProto, random: np.random.Generator) -> str:
    tensor = _any_tensor(model, random)
    if tensor is None:
        return ""
    said = f"tensor {_short(tensor.name)}"
    what = int(random.integers(9))
    if what == 0:
        tensor.raw_data = tensor.raw_data[: int(random.integers(len(tensor.raw_data) + 1))]
        return f"{said}: {len(tensor.raw_data)} bytes"
    if what == 1:
        tensor.raw_data += b"\0" * int(random.integers(1, 9))
        return f"{said}: {len(tensor.raw_data)} bytes"
    if what == 2:
        tensor.data_type = _one(DTYPES, random)
        return f"{said} of type {tensor.data_type}"
    if what == 3:
        tensor.float_data.extend([1.0, float("nan")])
        return f"{said} in two fields"
    if what == 4:
        tensor.dims.extend([1] * 70)
        return f"{said} of rank {len(tensor.dims)}"
    if what == 5 and tensor.dims:
        tensor.dims[int(random.integers(len(tensor.dims)))] = _one(SIZES, random)
        return f"{said} of {list(tensor.dims)}"
    if what == 6:
        size = int(np.prod(tensor.dims, dtype=np.float64).clip(0, 1e6))
        noise = random.integers(-(2**31), 2**31, size)
        dtype = np.int64 if tensor.data_type == onnx.TensorProto.INT64 else np.int32
        if tensor.data_type in (onnx.TensorProto.INT64, onnx.TensorProto.FLOAT):
            tensor.raw_data = noise.astype(dtype).tobytes()
        return f"{said} of other numbers"
    if what == 7:
        tensor.segment.begin, tensor.segment.end = 0, 5
        return f"{said} in segments"
    return _external(tensor, said, random)


def _external(tensor: onnx.TensorProto, said: str, random: np.random.Generator) -> str:
    tensor.data_location = onnx.TensorProto.EXTERNAL
    tensor.external_data.add(key="location", value=_one(LOCATIONS, random))
    for key in ("offset", "length", "location", "bogus"):
        if random.random() < 0.4:
            tensor.external_data.add(key=key, value=_one(DIGITS, random))
    if random.random() < 0.5:
        tensor.ClearField("raw_data")
    return f"{said} in {_short(tensor.external_data[0].value)}"


def _weights(model: onnx.ModelProto, random: np.random.Generator) -> str:
    graph = model.graph
    what = int(random.integers(4))
    if what == 0:
        text = numpy_helper.from_array(np.array(["a", "b"], dtype=object), "text")
        graph.initializer.append(text)
        return "a weight of text"
    if not graph.initializer:
        return ""
    if what == 1:
        dense = _one(graph.initializer, random)
        sparse = graph.sparse_initializer.add()
        sparse.values.CopyFrom(numpy_helper.from_array(np.ones(2, np.float32), dense.name))
        indices = _one(SPARSE_INDICES, random)
        sparse.indices.CopyFrom(numpy_helper.from_array(np.array(indices), "at"))
        sparse.dims.extend(_one(((2**60,), (2**31, 2**31), dense.dims), random))
        graph.initializer.remove(dense)
        return f"a sparse weight at {indices} of {list(sparse.dims)}"
    if what == 2:
        graph.initializer.append(_one(graph.initializer, random))
        return "a weight twice"
    graph.output.add().name = _one(graph.initializer, random).name
    return "a weight is an output"


# Types


def _type(model: onnx.ModelProto, random: np.random.Generator) -> str:
    value = _any_value(model, random)
    said = f"value {_short(value.name)}"
    what = int(random.integers(8))
    tensor = value.type.tensor_type
    if what == 0:
        value.ClearField("type")
        return f"{said} without a type"
    if what == 1:
        tensor.ClearField("shape")
        return f"{said} without a shape"
    if what == 2:
        tensor.elem_type = _one(DTYPES, random)
        return f"{said} of type {tensor.elem_type}"
    if what == 3:
        tensor.shape.dim.extend([onnx.TensorShapeProto.Dimension(dim_value=1)] * 70)
        return f"{said} of rank {len(tensor.shape.dim)}"
    if what == 4:
        value.type.CopyFrom(helper.make_sequence_type_proto(value.type))
        return f"{said} is a sequence"
    if what == 5:
        tensor.shape.dim.add().dim_value = 0
        tensor.shape.dim.add().dim_value = 2**62
        return f"{said} empty and huge"
    if not tensor.shape.dim:
        return ""
    size = _one(tensor.shape.dim, random)
    if what == 6:
        size.dim_param = _one(("N", "?", *NAMES), random)
        return f"{said}: a symbol"
    size.dim_value = _one(SIZES, random)
    return f"{said}: a size of {size.dim_value}"


# Graphs and models


def _graph(model: onnx.ModelProto, random: np.random.Generator) -> str:
    graph = model.graph
    what = int(random.integers(7))
    if what == 0:
        del graph.output[:]
        return "no outputs"
    if what == 1:
        del graph.input[:]
        return "no inputs"
    if what == 2 and graph.input:
        graph.input.append(graph.input[0])
        return "an input twice"
    if what == 3 and graph.output:
        graph.output.append(graph.output[0])
        return "an output twice"
    if what == 4:
        graph.output.add().name = _one((*_value_names(model), "nowhere"), random)
        return f"output {_short(graph.output[-1].name)}"
    if what == 5:
        graph.name = ""
        return "a graph without a name"
    graph.ClearField("node")
    return "no nodes"


def _versions(model: onnx.ModelProto, random: np.random.Generator) -> str:
    what = int(random.integers(6))
    if what == 0:
        model.ir_version = _one((0, 1, 2, 3, 99, *SIZES), random)
        return f"format {model.ir_version}"
    if what == 1:
        del model.opset_import[:]
        return "no opset"
    if what == 2:
        model.opset_import.add(domain="", version=_one((6, 13, 27, *SIZES), random))
        return "two opsets"
    if what == 3:
        model.opset_import.add(domain="com.example", version=_one(SIZES, random))
        return "an opset of another domain"
    if what == 4:
        model.metadata_props.add(key="k", value="v")
        model.metadata_props.add(key="k", value="w")
        return "a key of the metadata twice"
    if not model.opset_import:
        return ""
    model.opset_import[0].version = _one((*range(5, 30), *SIZES), random)
    return f"opset {model.opset_import[0].version}"


def _functions(model: onnx.ModelProto, random: np.random.Generator) -> str:
    """Add a function that calls itself, or a function that nothing calls."""
    calls = _one(("F", "Relu"), random)
    domain = "local" if calls == "F" else ""
    body = helper.make_node(calls, ["a"], ["b"], domain=domain)
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("local", 1)]
    model.functions.append(helper.make_function("local", "F", ["a"], ["b"], [body], opsets))
    return f"a function that calls {calls}"


CHANGES: tuple[Callable[[onnx.ModelProto, np.random.Generator], str], ...] = (
    *(_remove_node, _repeat_node, _move_node, _other_operator, _other_domain),
    *(_operands, _operands, _results, _rename, _name_node),
    *(_new_attribute, _attribute, _attribute, _attribute, _subgraph),
    *(_tensor, _tensor, _tensor, _weights, _type, _type, _type),
    *(_graph, _versions, _functions),
)
"""The changes of a model. Each returns "" if it finds nothing to change."""


# Bytes


def _damaged_bytes(data: bytes, random: np.random.Generator) -> tuple[bytes, str]:
    """Damage the bytes of a file, as transfers and editors do. Returns the bytes and the damage."""
    held = bytearray(data)
    place = int(random.integers(max(len(held), 1)))
    what = int(random.integers(4))
    if what == 0:
        return bytes(held[:place]), f"the first {place} bytes"
    if what == 1 and held:
        held[place] ^= 1 << int(random.integers(8))
        return bytes(held), f"a bit of byte {place}"
    if what == 2:
        held[place:place] = random.bytes(int(random.integers(1, 20)))
        return bytes(held), f"more bytes at {place}"
    names = [name for name in (b"Relu", b"result", b"input", b"float") if name in held]
    if not names:
        return b"", "no bytes"
    name = _one(names, random)
    at = held.index(name)
    held[at : at + 2] = b"\xff\xfe"
    return bytes(held), f"{name.decode()} is not UTF-8"
