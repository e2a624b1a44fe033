"""The operators that a model uses, and the reasons why abele cannot import some of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import onnx
from onnx import shape_inference
from onnx.shape_inference import InferenceError

from ....ir.support.errors import InputError
from ..building import shape_of
from ..errors import UnsupportedError
from ..uses import reason_of, several_refused
from .functions import graphs_in, identity
from .node import GraphScope, Node
from .valid import light_copy

Check = Callable[[Node], None]
"""Raises UnsupportedError for a node whose operator has no importer."""


def check_operators(nodes: Sequence[Node], check: Check) -> None:
    """Raise UnsupportedError if some operators have no importer. The message lists all, with
    counts.

    Operators in nested graphs are listed too, but refuse a model only where they are imported: a
    branch that is never taken needs no importers.
    """
    first = next(_refused(nodes, check), None)
    if first is None:
        return
    refused = [(_in_words(node), node.name) for node, _ in _refused(every_node(nodes), check)]
    advice = "--list-ops shows all operators; --load a .py with @onnx_operator to add one"
    raise several_refused(first[0].graph.place, refused, advice) or first[1]


def _in_words(node: Node) -> str:
    return node.operator + ("" if node.domain == "ai.onnx" else f" of domain {node.domain}")


def _refused(nodes: Iterable[Node], check: Check) -> Iterator[tuple[Node, UnsupportedError]]:
    for node in nodes:
        try:
            check(node)
        except UnsupportedError as error:
            yield node, error


def every_node(nodes: Iterable[Node]) -> Iterator[Node]:
    """The nodes, those of nested graphs, and those of the model's functions that they use, each
    once.
    """
    seen: set[tuple[str, str, str]] = set()
    pending = list(nodes)[::-1]
    while pending:
        node = pending.pop()
        yield node
        for graph in graphs_in(node.proto.attribute):
            pending += _below(node, graph.node, node.graph)
        function = node.graph.functions.get(identity(node.proto))
        if function is not None and identity(node.proto) not in seen:
            seen.add(identity(node.proto))
            opsets = {each.domain or "ai.onnx": each.version for each in function.opset_import}
            inner = node.graph.inside({}, {**node.graph.opsets, **opsets}, ())
            pending += _below(node, function.node, inner)


def _below(node: Node, protos: Sequence[onnx.NodeProto], graph: GraphScope) -> list[Node]:
    named = [(each, each.name or next(iter(each.output), "")) for each in protos]
    return [
        Node(each, f"{node.name}/{name}", graph, node, node.below(name)) for each, name in named
    ][::-1]


# What an import of all nodes finds


@dataclass
class Tolerant:
    """An import that continues after a node that cannot be imported.

    Attributes:
        read: imports a node.
        types: the known types of values, by name.
        stand_in: gives a name a value of a type, and returns whether it could.
        reasons: the reasons why nodes were refused, by id().
    """

    read: Callable[[Node], None]
    types: Mapping[str, onnx.TypeProto]
    stand_in: Callable[[Node, str, onnx.TypeProto], bool]
    reasons: dict[int, str] = field(default_factory=dict[int, str])

    def go_on(self, nodes: Iterable[Node], refused: Mapping[int, str]) -> None:
        """Import nodes one by one.

        Args:
            refused: the reasons for nodes that are already known to be refused.
        """
        for node in nodes:
            names = [name for name in node.proto.output if name]
            reason = refused.get(id(node), "")
            if not reason and any(name in node.graph.absent for name in node.proto.input):
                # Without the types of its operands, it is unknown whether the node is supported.
                self._leave_out(node, names)
                continue
            if not reason:
                try:
                    self.read(node)
                    continue
                except InputError as error:
                    reason = reason_of(node, error)
            self.reasons[id(node)] = reason
            self._leave_out(node, names)

    def _leave_out(self, node: Node, names: Iterable[str]) -> None:
        """Give the results of a skipped node their declared types, or no value."""
        for name in names:
            if name not in node.graph.values and not (
                name in self.types and self.stand_in(node, name, self.types[name])
            ):
                node.graph.absent[name] = f"{node} is not imported"


def inferred_types(
    model: onnx.ModelProto, nodes: Sequence[Node], graph: GraphScope
) -> dict[str, onnx.TypeProto]:
    """The types that ONNX infers for the model's values, given the present sizes of inputs."""
    copy = light_copy(model, nodes)
    for value in copy.graph.input:
        known = graph.values.get(value.name)
        if known is not None and value.type.HasField("tensor_type"):
            shape = value.type.tensor_type.shape
            shape.Clear()
            for size in shape_of(known):
                shape.dim.add().dim_value = size
    try:
        inferred = shape_inference.infer_shapes(copy)
    except (InferenceError, ValueError, RuntimeError):
        inferred = copy
    found = (*inferred.graph.value_info, *inferred.graph.output)
    return {each.name: each.type for each in found}
