"""Reads a model as a module of the onnx dialect, from which the writer makes the same model."""

from __future__ import annotations

import re
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import AttributeProto, FunctionProto, GraphProto, ModelProto, NodeProto, TensorProto
from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, StringAttr
from xdsl.dialects.func import FuncOp
from xdsl.dialects.func import ReturnOp as FuncReturn
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from ....dialects.onnx import (
    BY_NAME,
    GRAPH,
    MODEL,
    NODE,
    DefaultOp,
    FunctionOp,
    InitializerOp,
    NodeOp,
    NoneOp,
    Operator,
    ReturnOp,
)
from ....dialects.onnx.attributes import MessageAttr
from ....dialects.onnx.base import OUTPUTS
from ....dialects.onnx.definitions import latest_version, plain_domain
from ....dialects.onnx.kinds import read_attribute
from ....dialects.onnx.messages import message_attribute
from ....dialects.onnx.operators import no_such_operator
from ....dialects.onnx.tensors import loaded_inline, tensor_attribute, tensor_type_of
from ....dialects.onnx.types import SKIPPED, UNKNOWN, tensor_of
from ....dialects.onnx_level import TRAINING
from ....ir.context import AbeleContext
from ....ir.provenance import named
from ....ir.support.errors import InputError
from ....ir.support.garbage import collection_paused
from ....ir.upstream import ModuleOp
from ....ir.well_known import ENTRY
from ..onnx.model_file import ModelFile, read_model_file
from ..onnx.tensors import is_external, tensor_array
from .inferred import Types, inferred_model, types_of

_IN_GRAPH = frozenset(("node", "initializer", "sparse_initializer"))
_IN_MODEL = frozenset(("graph", "functions", "training_info"))
_IN_NODE = frozenset(("input", "output", "op_type", "attribute"))

ORDER = "order"
"""The entry of a node's note with the order of its attributes, if regions come between others."""

UNSET = "unset"
"""The entry of a node's note with the attributes whose messages state a kind and no value."""

STRAY = "stray"
"""The entry of a graph's note with the names of which the file states something, and which no value
of the graph has."""

_NUMBER_BEHIND = re.compile(r"(_\d+)*\Z")
_UNFIT_IN_HINT = re.compile(r"[^A-Za-z0-9_$.-]")


def read_model(path: str | Path, context: AbeleContext) -> ModuleOp:
    """The module of an ONNX file.

    Raises InputError for a damaged file, and for a model that this onnx does not define.
    """
    place = Path(path)
    return module_of(read_model_file(place), context, str(path), place.parent)


def module_of(
    file: ModelFile | ModelProto, context: AbeleContext, place: str, folder: Path | None = None
) -> ModuleOp:
    """The module of a model.

    Raises InputError as read_model does.

    Args:
        place: its name in messages.
        folder: where its external data lie; None if it has none.
    """
    given = ModelFile(file, {}) if isinstance(file, ModelProto) else file
    with collection_paused():
        return _Reader(given, context, place, folder).module()


@dataclass
class _Scope:
    """The values of a graph, and of the graphs around it.

    Attributes:
        block: where its operations go.
        types: what is known of its values, by name.
        inferred: the same graph with what onnx infers.
    """

    block: Block
    types: Types
    inferred: GraphProto | None
    values: dict[str, SSAValue] = field(default_factory=dict[str, SSAValue])
    outer: _Scope | None = None

    def value(self, name: str) -> SSAValue | None:
        """The value of a name; None if the graph does not know it."""
        found = self.values.get(name)
        return self.outer.value(name) if found is None and self.outer is not None else found


class _Reader:
    def __init__(
        self, file: ModelFile, context: AbeleContext, place: str, folder: Path | None
    ) -> None:
        self.model, self.weights = file
        self.context, self.place, self.folder = context, place, folder
        self.opsets = {plain_domain(each.domain): each.version for each in self.model.opset_import}
        self.what = place
        self.called = {(plain_domain(each.domain), each.name) for each in self.model.functions}

    def module(self) -> ModuleOp:
        """The module of the model."""
        self._check_opsets()
        model = self.model
        fields = message_attribute(model, _IN_MODEL, self._loaded)
        attributes: dict[str, Attribute] = {MODEL: fields}
        if model.training_info:
            attributes[TRAINING] = ArrayAttr([MessageAttr.of(each) for each in model.training_info])
        functions = [self._function(each) for each in model.functions]
        inferred = inferred_model(model).graph
        main = self._main(model.graph, inferred)
        return ModuleOp([*functions, main], attributes)

    def _check_opsets(self) -> None:
        if not self.model.HasField("graph"):
            raise InputError(f"{self.place}: damaged, or not an ONNX model: it has no graph")
        for domain, version in self.opsets.items():
            latest = latest_version(domain)
            if latest is not None and version > latest:
                raise InputError(
                    f"{self.place}: opset {version} of {domain or 'ai.onnx'}; onnx "
                    f"{onnx.__version__} defines opsets up to {latest}: install a newer onnx"
                )

    # Tensors

    def _loaded(self, proto: TensorProto) -> np.ndarray[Any, Any] | None:
        if not is_external(proto):
            return loaded_inline(proto)
        what = f"{self.what}: tensor {proto.name!r}"
        array = tensor_array(proto, self.folder, what)
        self.context.blobs.add(array)
        return array

    def _tensor(self, proto: TensorProto, array: np.ndarray[Any, Any] | None) -> Attribute:
        if array is None:
            return tensor_attribute(proto, self._loaded)
        return tensor_attribute(proto, lambda _: array)

    # Graphs

    def _main(self, graph: GraphProto, inferred: GraphProto) -> FuncOp:
        self.what = self.place
        scope = self._scope(graph, inferred, None)
        for i, proto in enumerate(graph.initializer):
            self._initializer(scope, proto, self.weights.get(i))
        outputs = self._rest(scope, graph)
        end = FuncReturn(*outputs)
        end.attributes[GRAPH] = self._note(scope, graph)
        scope.block.add_op(end)
        inputs = [each.type for each in scope.block.args]
        types = (inputs, [each.type for each in outputs])
        return FuncOp(ENTRY, types, Region(scope.block))

    def _region(self, graph: GraphProto, inferred: GraphProto | None, outer: _Scope) -> Region:
        """A graph that is an attribute of a node."""
        scope = self._scope(graph, inferred or graph, outer)
        for proto in graph.initializer:
            self._initializer(scope, proto, None)
        outputs = self._rest(scope, graph)
        note = {GRAPH: self._note(scope, graph)}
        scope.block.add_op(ReturnOp(operands=[outputs], result_types=[[]], attributes=note))
        return Region(scope.block)

    def _note(self, scope: _Scope, graph: GraphProto) -> DictionaryAttr:
        """What a graph states beside its nodes and weights."""
        note = message_attribute(graph, _IN_GRAPH, self._loaded)
        stated = [each.name for each in graph.value_info]
        stated += [each.tensor_name for each in graph.quantization_annotation]
        stray = [name for name in dict.fromkeys(stated) if name not in scope.values]
        return DictionaryAttr({**note.data, STRAY: _texts(stray)}) if stray else note

    def _scope(self, graph: GraphProto, inferred: GraphProto, outer: _Scope | None) -> _Scope:
        types = types_of(graph, inferred)
        block = Block(arg_types=[types.get(each.name, UNKNOWN) for each in graph.input])
        scope = _Scope(block, types, inferred, outer=outer)
        for each, value in zip(graph.input, block.args, strict=True):
            self._bind(scope, each.name, value, "input")
        return scope

    def _bind(self, scope: _Scope, name: str, value: SSAValue, what: str) -> None:
        if name in scope.values:
            raise InputError(
                f"{self.what}: two values have the name {name!r}; the second is {what}"
            )
        scope.values[name] = value
        value.name_hint = _hint(name)

    def _initializer(
        self, scope: _Scope, proto: TensorProto, array: np.ndarray[Any, Any] | None
    ) -> None:
        attribute = self._tensor(proto, array)
        self._weight(scope, proto.name, attribute, tensor_type_of(proto))

    def _weight(self, scope: _Scope, name: str, attribute: Attribute, type_: Attribute) -> None:
        given = scope.values.get(name)
        if given is not None and given.owner is scope.block:
            op: Operation = DefaultOp.create(operands=[given], properties={"tensor": attribute})
        else:
            op = InitializerOp.create(result_types=[type_], properties={"tensor": attribute})
            self._bind(scope, name, op.results[0], "a weight")
        op.location = named(name)
        scope.block.add_op(op)

    def _rest(self, scope: _Scope, graph: GraphProto) -> list[SSAValue]:
        """Add sparse weights and nodes. Returns the outputs."""
        for each in graph.sparse_initializer:
            attribute = message_attribute(each, (), self._loaded)
            type_ = tensor_type_of(each.values)
            full = tensor_of(type_.element_type, tuple(map(int, each.dims)))  # pyright: ignore
            self._weight(scope, each.values.name, attribute, full)
        inferred = () if scope.inferred is None else scope.inferred.node
        self._nodes(scope, graph.node, inferred)
        return [self._read(scope, each.name, "the graph returns") for each in graph.output]

    def _read(self, scope: _Scope, name: str, who: str) -> SSAValue:
        found = scope.value(name)
        if found is None:
            raise InputError(
                f"{self.what}: {who} {name!r}, which no input, weight or node before it gives"
            )
        return found

    # Functions

    def _function(self, function: FunctionProto) -> FunctionOp:
        self.what = f"{self.place}: function {function.name}"
        block = Block(arg_types=[UNKNOWN] * len(function.input))
        scope = _Scope(block, {}, None)
        for name, value in zip(function.input, block.args, strict=True):
            self._bind(scope, name, value, "an input")
        opsets = {plain_domain(each.domain): each.version for each in function.opset_import}
        with self._importing(opsets):
            self._nodes(scope, function.node, ())
        outputs = [self._read(scope, name, "it returns") for name in function.output]
        block.add_op(ReturnOp(operands=[outputs], result_types=[[]]))
        fields = message_attribute(function, ("node",), self._loaded)
        return FunctionOp.create(properties={"fields": fields}, regions=[Region(block)])

    @contextmanager
    def _importing(self, opsets: Mapping[str, int]) -> Generator[None]:
        outer, self.opsets = self.opsets, dict(opsets)
        try:
            yield
        finally:
            self.opsets = outer

    # Nodes

    def _nodes(
        self, scope: _Scope, nodes: Sequence[NodeProto], inferred: Sequence[NodeProto]
    ) -> None:
        skipped: SSAValue | None = None
        for i, node in enumerate(nodes):
            who = f"node {node.name or i!r} ({node.op_type}) reads"
            operands: list[SSAValue] = []
            for name in node.input:
                if name:
                    operands.append(self._read(scope, name, who))
                    continue
                if skipped is None:
                    none = NoneOp.create(result_types=[SKIPPED])
                    scope.block.add_op(none)
                    skipped = none.results[0]
                operands.append(skipped)
            op = self._node(scope, node, operands, inferred[i] if inferred else None)
            scope.block.add_op(op)
            for name, value in zip(node.output, op.results, strict=True):
                if name:
                    self._bind(scope, name, value, f"of node {node.name or i!r}")

    def _node(
        self,
        scope: _Scope,
        node: NodeProto,
        operands: list[SSAValue],
        inferred: NodeProto | None,
    ) -> Operation:
        graphs = {
            each.name: self._region(each.g, _same(inferred, i), scope)
            for i, each in enumerate(node.attribute)
            if each.type == AttributeProto.GRAPH and not each.ref_attr_name
        }
        values: dict[str, Attribute] = {}
        unset: list[str] = []
        for each in node.attribute:
            if each.name not in graphs:
                read = read_attribute(each, self._loaded)
                values[each.name] = read.value
                unset += [each.name] * read.is_unset
        names = [each.name for each in node.attribute]
        cls = self._class(node, values, graphs)
        note = dict(message_attribute(node, _IN_NODE).data)
        properties, regions, usual = values, list(graphs.values()), [*values, *graphs]
        if issubclass(cls, Operator):
            definition = cls.DEFINITION
            regions = [graphs[name] for name in definition.graphs]
            usual = [*values, *definition.graphs]
            if node.domain and node.domain == definition.domain:
                del note["domain"]
        else:
            note.pop("domain", None)
            properties = _generic(node, values, graphs)
            if node.HasField("domain") != bool(node.domain):
                note["domain"] = StringAttr(node.domain)
        if names != usual:
            note[ORDER] = _texts(names)
        if unset:
            note[UNSET] = _texts(unset)
        note[OUTPUTS] = _texts(node.output)
        types = [scope.types.get(name, UNKNOWN) if name else UNKNOWN for name in node.output]
        op = cls.create(
            operands=operands,
            result_types=types,
            properties=properties,
            attributes={NODE: DictionaryAttr(note)},
            regions=regions,
        )
        op.location = named(node.name or next(filter(None, node.output), node.op_type))
        return op

    def _class(
        self, node: NodeProto, values: Mapping[str, Attribute], graphs: Mapping[str, Region]
    ) -> type[Operator] | type[NodeOp]:
        """The operation of a node: one of its own, or `onnx.node`.

        Raises InputError if the opset does not have the operator.
        """
        domain = plain_domain(node.domain)
        version = self.opsets.get(domain)
        found = BY_NAME.get((domain, node.op_type))
        if found is None:
            if latest_version(domain) is not None and not self._is_called(node):
                self._refuse_typing(domain, node, version)
            return NodeOp
        if self._is_called(node):
            return NodeOp
        definition = found.DEFINITION
        if version is not None and definition.at(version) is None:
            first = definition.versions[0].since_version
            raise InputError(
                f"{self.what}: node {node.name!r}: {node.op_type} exists since opset {first} of "
                f"{domain or 'ai.onnx'}; the model imports opset {version}"
            )
        constraints = found.get_irdl_definition().properties
        is_fit = set(graphs) == set(definition.graphs) and all(
            name in constraints and constraints[name].constr.verifies(value)
            for name, value in values.items()
        )
        return found if is_fit and _counts_fit(found, node) else NodeOp

    def _is_called(self, node: NodeProto) -> bool:
        """Whether a node calls a function of the model, which may have the name of an operator."""
        return (plain_domain(node.domain), node.op_type) in self.called

    def _refuse_typing(self, domain: str, node: NodeProto, version: int | None) -> None:
        """Refuse a node whose operator is close to one of the domain: its name is misspelt.

        onnxruntime adds operators to the domain of ONNX, which are kept as they are.
        """
        problem = no_such_operator(domain, node.op_type, version)
        if "did you mean" in problem and node.op_type not in _RUNTIMES:
            raise InputError(f"{self.what}: node {node.name!r}: {problem}")


def _generic(
    node: NodeProto, values: Mapping[str, Attribute], graphs: Mapping[str, Region]
) -> dict[str, Attribute]:
    """The properties of `onnx.node` for a node."""
    found: dict[str, Attribute] = {
        "domain": StringAttr(node.domain),
        "op_type": StringAttr(node.op_type),
    }
    if values:
        found["attrs"] = DictionaryAttr(values)
    if graphs:
        found["graphs"] = _texts(list(graphs))
    return found


_RUNTIMES = frozenset(("SimplifiedLayerNormalization", "SkipSimplifiedLayerNormalization"))
"""Operators that onnxruntime adds to the domain of ONNX."""


def _counts_fit(cls: type[Operator], node: NodeProto) -> bool:
    ranges = ((len(node.input), cls.operand_range()), (len(node.output), cls.result_range()))
    return all(low <= n and (most is None or n <= most) for n, (low, most) in ranges)


def _same(node: NodeProto | None, index: int) -> GraphProto | None:
    """The graph of an attribute in the same node after inference."""
    return None if node is None else node.attribute[index].g


def _texts(names: Sequence[str]) -> ArrayAttr[StringAttr]:
    return ArrayAttr([StringAttr(name) for name in names])


def _hint(name: str) -> str | None:
    """A name for the text that resembles the name in the file."""
    plain = _UNFIT_IN_HINT.sub("_", name)
    plain = f"v{plain}" if plain[:1].isdigit() else plain
    # The text adds numbers to equal names, and xDSL removes them when it reads the text.
    return plain if _NUMBER_BEHIND.sub("", plain) else None
