"""Writes a module of the onnx dialect as a model: the one it was read from, if nothing changed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import onnx
from onnx import (
    AttributeProto,
    FunctionProto,
    GraphProto,
    ModelProto,
    NodeProto,
    SparseTensorProto,
    TrainingInfoProto,
    ValueInfoProto,
)
from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, StringAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Block, Operation, SSAValue

from ....dialects.onnx import (
    GRAPH,
    MODEL,
    DefaultOp,
    FunctionOp,
    InitializerOp,
    NodeOp,
    NoneOp,
    Operator,
)
from ....dialects.onnx.attributes import MessageAttr
from ....dialects.onnx.base import OUTPUTS, names_of_results, note_of_node, texts_of
from ....dialects.onnx.fields import whole_message
from ....dialects.onnx.kinds import KINDS, attribute_proto
from ....dialects.onnx.messages import message_of, set_fields
from ....dialects.onnx.tensors import tensor_proto
from ....dialects.onnx.types import UNKNOWN, agree, type_proto, value_type
from ....dialects.onnx_level import TRAINING
from ....ir.provenance import origin_names, place
from ....ir.support.errors import InputError
from ....ir.upstream import ModuleOp
from ....ir.well_known import ENTRY
from .reader import ORDER, STRAY, UNSET

_OWN = (OUTPUTS, ORDER, UNSET)
"""The entries of a node's note that are no fields of its message."""


def model_of(module: ModuleOp, path: str, *, inline: bool = False) -> ModelProto:
    """The model of a module.

    Raises InputError if the module is no model.

    Args:
        path: the name of the module in messages.
        inline: whether the elements of external data are in the message too.
    """
    return _Writer(module, path, inline).model()


@dataclass
class _Names:
    """The names of values in a graph. Those of the graphs around it are taken too.

    Attributes:
        of: by value.
        taken: the names of this graph.
    """

    outer: _Names | None = None
    of: dict[SSAValue, str] = field(default_factory=dict[SSAValue, str])
    taken: set[str] = field(default_factory=set[str])

    def is_taken(self, name: str) -> bool:
        """Whether a value that is visible has a name."""
        return name in self.taken or (self.outer is not None and self.outer.is_taken(name))

    def name(self, value: SSAValue) -> str:
        """The name of a value; None if it is not visible."""
        found = self.of.get(value)
        if found is None:
            assert self.outer is not None, "a value without a name"
            return self.outer.name(value)
        return found

    def give(self, value: SSAValue, name: str) -> None:
        """Name a value."""
        self.of[value] = name
        self.taken.add(name)


class _Writer:
    def __init__(self, module: ModuleOp, path: str, inline: bool) -> None:
        self.module, self.path, self.inline = module, path, inline
        self.reserved: set[str] = set()

    def model(self) -> ModelProto:
        fields = self.module.attributes.get(MODEL)
        main, functions = self._parts()
        if not isinstance(fields, DictionaryAttr):
            raise InputError(
                f"{self.path}: the module has no attribute {MODEL}; a model of ONNX has one, as in "
                f"{{{MODEL} = {{ir_version = 10 : i64, opset_import = [{{version = 21 : i64}}]}}}}"
            )
        model = ModelProto()
        set_fields(model, fields, f"{self.path}: {MODEL}")
        for each in self._training():
            model.training_info.append(each)
        self._main(main, model.graph)
        for each in functions:
            model.functions.append(self._function(each))
        return model

    def _parts(self) -> tuple[FuncOp, list[FunctionOp]]:
        main, functions = None, list[FunctionOp]()
        for op in self.module.body.block.ops:
            if isinstance(op, FunctionOp):
                functions.append(op)
            elif isinstance(op, FuncOp) and op.sym_name.data == ENTRY:
                main = op
            else:
                raise InputError(
                    f"{self.path}: {op.name} at {place(op)}; a model of ONNX has "
                    f"func.func @{ENTRY} and onnx.function"
                )
        if main is None:
            raise InputError(f"{self.path}: no func.func @{ENTRY}, the graph of the model")
        return main, functions

    def _training(self) -> Iterator[TrainingInfoProto]:
        given = self.module.attributes.get(TRAINING)
        for each in cast("ArrayAttr[Any]", given).data if isinstance(given, ArrayAttr) else ():
            if not isinstance(each, MessageAttr):
                raise InputError(f"{self.path}: {TRAINING}: {each}; need #onnx.message<...>")
            yield whole_message(each, TrainingInfoProto, f"{self.path}: {TRAINING}")

    # Graphs

    def _main(self, main: FuncOp, graph: GraphProto) -> None:
        block = main.body.block
        end = block.last_op
        if end is None or end.name != "func.return":
            raise InputError(f"{self.path}: func.func @{ENTRY} does not end with func.return")
        self._graph(block, graph, None)

    def _graph(self, block: Block, graph: GraphProto, outer: _Names | None) -> None:
        end = block.last_op
        assert end is not None
        note = end.attributes.get(GRAPH)
        fields = note if isinstance(note, DictionaryAttr) else DictionaryAttr({})
        where = f"{self.path}: {GRAPH}"
        set_fields(graph, fields, where, (STRAY,))
        if note is None:
            graph.name = ENTRY
        names = self._named(block, graph, outer)
        self._rows(block, graph, names)
        for i, value in enumerate(end.operands):
            name = graph.output[i].name
            if names.name(value) != name:
                # Another output, or an input, is the same value.
                graph.node.add(op_type="Identity", input=[names.name(value)], output=[name])
        self._value_infos(fields, graph, names)

    def _named(self, block: Block, graph: GraphProto, outer: _Names | None) -> _Names:
        """Name all values of a graph: as in the file, and anew what a pass has made."""
        end = block.last_op
        assert end is not None
        names = _Names(outer)
        self._need_infos(block, end, graph)
        for each, value in zip(graph.input, block.args, strict=True):
            names.give(value, each.name)
        outputs = [each.name for each in graph.output]
        reserved = set(outputs)
        weights = [op for op in block.ops if isinstance(op, InitializerOp)]
        for op in weights:
            name = _name_of_weight(op)
            if name and not names.is_taken(name):
                names.give(op.results[0], name)
        nodes = [op for op in block.ops if not isinstance(op, InitializerOp | NoneOp)]
        # What is returned has the name of the output, wherever a node of this graph makes it.
        for name, value in zip(outputs, end.operands, strict=True):
            is_free = value not in names.of and not names.is_taken(name)
            if is_free and _is_made_in(block, value):
                names.give(value, name)
        for op in nodes:
            for name, value in zip(names_of_results(op), op.results, strict=False):
                if name and value not in names.of and not names.is_taken(name):
                    names.give(value, name)
        for op in (*weights, *nodes):
            for i, value in enumerate(op.results):
                if value in names.of or _is_left_out(op, i, value):
                    continue
                names.give(value, self._fresh(op, value, names, reserved))
        return names

    def _need_infos(self, block: Block, end: Operation, graph: GraphProto) -> None:
        """Describe inputs and outputs that no note describes, for a graph that a person wrote."""
        for values, infos, what in (
            (block.args, graph.input, "input"),
            (end.operands, graph.output, "output"),
        ):
            if infos and len(infos) != len(values):
                raise InputError(
                    f"{self.path}: {GRAPH} describes {len(infos)} {what}s; the graph has "
                    f"{len(values)}"
                )
            if infos:
                continue
            for i, value in enumerate(values):
                infos.append(self._info(f"{value.name_hint or what}_{i}", value.type))

    def _info(self, name: str, type_: Attribute) -> ValueInfoProto:
        try:
            proto = type_proto(type_)
        except ValueError as error:
            raise InputError(f"{self.path}: value {name}: {error}") from None
        info = ValueInfoProto(name=name)
        if type_ != UNKNOWN:
            info.type.CopyFrom(proto)
        return info

    def _fresh(self, op: Operation, value: SSAValue, names: _Names, reserved: set[str]) -> str:
        """A name that no other value has."""
        base = value.name_hint or "+".join(origin_names(op)) or op.name.rpartition(".")[2].lower()
        found, number = base, 1
        while names.is_taken(found) or found in reserved or found in self.reserved:
            found, number = f"{base}_{number}", number + 1
        self.reserved.add(found)
        return found

    def _rows(self, block: Block, graph: GraphProto, names: _Names) -> None:
        """Add the weights and nodes of a graph."""
        seen: set[str] = set()
        for op in block.ops:
            match op:
                case InitializerOp() | DefaultOp():
                    value = op.results[0] if op.results else op.operands[0]
                    self._weight(op.tensor, names.name(value), graph)
                case NoneOp():
                    pass
                case Operator() | NodeOp():
                    graph.node.append(self._node(op, names, seen))
                case _ if op is block.last_op:
                    pass
                case _:
                    raise InputError(
                        f"{self.path}: {op.name} at {place(op)}, which no model of ONNX has"
                    )

    def _weight(self, attribute: Attribute, name: str, graph: GraphProto) -> None:
        what = f"{self.path}: weight {name}"
        if isinstance(attribute, DictionaryAttr):
            sparse = message_of(attribute, SparseTensorProto, what)
            if sparse.values.name != name:
                sparse.values.name = name
            graph.sparse_initializer.append(sparse)
            return
        proto = tensor_proto(attribute, what, inline=self.inline)
        if proto.name != name:
            proto.name = name
        graph.initializer.append(proto)

    def _value_infos(self, fields: DictionaryAttr, graph: GraphProto, names: _Names) -> None:
        """Keep what the file states about values that are still there, as far as it still holds."""
        known = {name: value for value, name in names.of.items()}
        there = known.keys() | set(texts_of(fields.data.get(STRAY)))
        kept: list[ValueInfoProto] = []
        for each in graph.value_info:
            value = known.get(each.name)
            if value is not None and not agree(value_type(each.type), value.type):
                kept.append(self._info(each.name, value.type))
            elif each.name in there:
                kept.append(each)
        del graph.value_info[:]
        graph.value_info.extend(kept)
        noted = [each for each in graph.quantization_annotation if each.tensor_name in there]
        del graph.quantization_annotation[:]
        graph.quantization_annotation.extend(noted)

    # Functions

    def _function(self, op: FunctionOp) -> FunctionProto:
        function = FunctionProto()
        set_fields(function, op.fields, f"{self.path}: onnx.function")
        block = op.body.block
        end = block.last_op
        if end is None or len(end.operands) != len(function.output):
            raise InputError(
                f"{self.path}: onnx.function {function.name}: need onnx.return with "
                f"{len(function.output)} values at its end"
            )
        if len(block.args) != len(function.input):
            raise InputError(
                f"{self.path}: onnx.function {function.name}: {len(block.args)} arguments; its "
                f"fields name {len(function.input)} inputs"
            )
        # A graph has all of what a function's nodes need.
        graph = GraphProto()
        graph.input.extend(ValueInfoProto(name=name) for name in function.input)
        graph.output.extend(ValueInfoProto(name=name) for name in function.output)
        names = self._named(block, graph, None)
        self._rows(block, graph, names)
        for name, value in zip(function.output, end.operands, strict=True):
            if names.name(value) != name:
                graph.node.add(op_type="Identity", input=[names.name(value)], output=[name])
        function.node.extend(graph.node)
        return function

    # Nodes

    def _node(self, op: Operator | NodeOp, names: _Names, seen: set[str]) -> NodeProto:
        note = note_of_node(op)
        what = f"{self.path}: {op.name} at {place(op)}"
        node = NodeProto()
        set_fields(node, DictionaryAttr(note), what, _OWN)
        if isinstance(op, NodeOp):
            node.op_type, domain = op.op_type.data, op.domain.data
        else:
            node.op_type, domain = op.DEFINITION.op_type, op.DEFINITION.domain
        if domain and "domain" not in note:
            node.domain = domain
        for value in op.operands:
            skipped = isinstance(value.owner, NoneOp)
            node.input.append("" if skipped else names.name(value))
        for value in op.results:
            node.output.append(names.of.get(value, ""))
        if not note:
            node.name = _free(seen, "+".join(origin_names(op)))
        if node.name:
            seen.add(node.name)
        self._attributes(op, node, names, what)
        return node

    def _attributes(self, op: Operator | NodeOp, node: NodeProto, names: _Names, what: str) -> None:
        note = note_of_node(op)
        unset = texts_of(note.get(UNSET))
        made: dict[str, AttributeProto] = {}
        if isinstance(op, NodeOp):
            values: Mapping[str, Attribute] = {} if op.attrs is None else op.attrs.data
            graphs = texts_of(op.graphs)
            kinds: Mapping[str, Sequence[str]] = dict.fromkeys(values, tuple(KINDS))
        else:
            values, graphs = op.properties, op.DEFINITION.graphs
            kinds = {name: op.DEFINITION.attributes[name].kinds for name in values}
        for name, value in values.items():
            made[name] = attribute_proto(name, value, kinds[name], what, is_unset=name in unset)
        for name, region in zip(graphs, op.regions, strict=True):
            proto = AttributeProto(name=name, type=AttributeProto.GRAPH)
            if not region.blocks or region.block.last_op is None:
                raise InputError(f"{what}: graph {name} does not end with onnx.return")
            self._graph(region.block, proto.g, names)
            made[name] = proto
        order = texts_of(note.get(ORDER))
        wanted = order if set(order) == made.keys() else tuple(made)
        node.attribute.extend(made[name] for name in wanted)


def _free(seen: set[str], name: str) -> str:
    found, number = name, 1
    while found in seen:
        found, number = f"{name}_{number}", number + 1
    return found


def _name_of_weight(op: InitializerOp) -> str:
    """The name of a weight in its file; "" for one that a pass has made."""
    tensor = op.tensor
    if isinstance(tensor, MessageAttr):
        return whole_message(tensor, onnx.TensorProto, "weight").name
    if isinstance(tensor, DictionaryAttr):
        values = tensor.data.get("values")
        if values is None:
            return ""
        return tensor_proto(values, "weight").name
    form = getattr(tensor, "form", None)
    name = form.data.get("name") if isinstance(form, DictionaryAttr) else None
    return name.data if isinstance(name, StringAttr) else ""


def _is_made_in(block: Block, value: SSAValue) -> bool:
    owner = value.owner
    return isinstance(owner, Operator | NodeOp) and owner.parent is block


def _is_left_out(op: Operation, index: int, value: SSAValue) -> bool:
    """Whether an optional result has no name: that of a file has none, or nothing reads it."""
    names = names_of_results(op)
    if names:
        return index < len(names) and not names[index] and value.first_use is None
    least = op.DEFINITION.results[0] if isinstance(op, Operator) else 1
    return value.first_use is None and index >= max(least, 1)
