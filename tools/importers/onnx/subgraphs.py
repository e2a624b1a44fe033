"""Imports the graphs inside nodes: branches and the bodies of loops."""

from __future__ import annotations

from collections.abc import Sequence

import onnx
from xdsl.ir import SSAValue

from ....dialects import nn
from ....dialects.dtypes import numpy_dtype
from ..building import Names, Value, shape_of
from ..lengths import Length
from ..padding import sizes_of
from .node import Held, Node, NotTensor

MOST_NODES = 1 << 18
"""The most nodes of nested graphs, each counted as often as it is imported."""


def read_graph(node: Node, graph: onnx.GraphProto, given: Sequence[Held]) -> list[Held]:
    """Import a nested graph in place of its node, and return the graph's outputs.

    Raises InputError for another number of inputs, and the errors of importing its nodes.

    Operations go to the block to which the node adds operations.

    Args:
        given: its inputs.
    """
    if len(given) != len(graph.input):
        raise node.bad(f"graph {graph.name!r} has {len(graph.input)} inputs; need {len(given)}")
    outer = node.graph
    if graph.sparse_initializer:
        raise node.unsupported("a sparse weight of a graph inside it", "need dense ones")
    outer.count.inlined += len(graph.node)
    if outer.count.inlined > MOST_NODES:
        raise node.bad(
            f"graphs inside nodes have more than {MOST_NODES} nodes altogether, each as often as "
            "it is repeated; need fewer"
        )
    inner = outer.nested(dict(zip((each.name for each in graph.input), given, strict=True)))
    for tensor in graph.initializer:
        inner.add_weight(tensor)
    names = Names()
    for proto in graph.node:
        # The outer meanings of these names are hidden, as when a loop is unrolled.
        for name in proto.output:
            inner.values.pop(name, None)
            inner.lists.pop(name, None)
        own = proto.name or next((name for name in proto.output if name), proto.op_type)
        step = names.unique(own)
        each = Node(proto, f"{node.name}/{step}", inner, source=node.below(step))
        node.ops += inner.read(each)
    return [inner.held(each.name, f"the graph {graph.name!r} of {node}") for each in graph.output]


def tensors(node: Node, values: Sequence[Held], what: str) -> list[SSAValue]:
    """Values as results of operations. Raises UnsupportedError for a sequence or an optional."""
    found: list[SSAValue] = []
    for value in values:
        if isinstance(value, NotTensor):
            raise node.unsupported(f"{value} that {what}", "only tensors are")
        found.append(node.graph.emitted(value))
    return found


def of_fixed_size(node: Node, value: Value) -> Value:
    """A value that leaves a region of control flow, which cannot carry a size with it.

    Raises NotConstantError if its size depends on values.
    """
    sizes = sizes_of(node, value) if isinstance(value, SSAValue) else dict[int, Length]()
    for axis, length in sizes.items():
        raise node.size_refused(f"the size of axis {axis} of a result of its graph", length)
    return value


def text_of(value: Value) -> str:
    """The dtype and the shape of a value, for messages."""
    dtype = value.dtype if not isinstance(value, SSAValue) else numpy_dtype(nn.element_of(value))
    return f"{dtype.name}{list(shape_of(value))}"


def truth(node: Node, value: Value, what: str) -> bool | None:
    """The value of a condition; None if it depends on inputs.

    Raises InputError unless it is a single boolean.
    """
    element = numpy_dtype(nn.element_of(value)) if isinstance(value, SSAValue) else value.dtype
    shape = shape_of(value)
    if element.kind != "b" or any(n != 1 for n in shape):
        raise node.bad(f"{what} is {text_of(value)}; need one boolean")
    array = node.graph.known(value)
    return None if array is None else bool(array.reshape(()))
