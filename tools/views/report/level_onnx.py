"""The levels of a program as ONNX, for Netron and for scripts: graphs with costs, without weights.

Each operation is a node. Its op_type is the operation or the codelet, its domain the dialect. The
attributes are those of the operation, and its costs; metadata_props say where it comes from. At
tile and exchange, an edge is the value of a variable: NAME, and NAME#2 after it is written again.
The bodies of loops are graphs in attributes. Called functions, and the supersteps of exchange, are
functions of the model. Source: onnx/onnx, docs/IR.md.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any, cast

import numpy as np
import onnx
from onnx import helper, numpy_helper
from xdsl.dialects.builtin import SymbolRefAttr
from xdsl.dialects.func import CallOp, FuncOp
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.traits import IsTerminator

from ....backends.graph.graph import codelet_name
from ....backends.target import Target
from ....dialects.blob_attr import BlobAttr
from ....dialects.levels import EXCHANGE
from ....dialects.partition import ComputeOp
from ....dialects.settable import listed_names
from ....dialects.steps import Superstep, Sync, Vertices
from ....dialects.tile import ComputeSetOp
from ....dialects.variable import Variable
from ....ir.upstream import ModuleOp
from ....ir.well_known import ENTRY
from ...driver.executable import Executable
from ...driver.shown_text import shown
from .collect import MOST_NODES, Report
from .level_costs import Costs, level_costs, operation_texts
from .made_by import attribute_text
from .nodes import Nodes, origin_text
from .onnx_attributes import (
    cost_attributes,
    named_variables,
    operation_attributes,
    own_names,
)
from .onnx_types import array_number, element_number, layout_text, named_info, tensor_of

FOLDER = "levels"

IR_VERSION = 10
"""The first version in which nodes have metadata. Source: onnx/onnx, docs/Versioning.md."""

SUPERSTEPS, FUNCTIONS = "abele.supersteps", "abele.functions"
"""The domains of a model's functions."""

FEW = 16
"""The most elements of a constant whose values are kept. A larger one is an empty sparse tensor."""

LEFT_OUT = "values are left out"


def level_files(exe: Executable, report: Report) -> dict[str, bytes]:
    """The files of all levels that are not too large, by path.

    Args:
        report: of this program.
    """
    nodes = report.nodes
    if nodes is None:
        raise ValueError("a report without nodes; need one that was collected")
    counts = report.program["operations_by_level"]
    return {
        f"{FOLDER}/{level}.onnx": level_model(
            level, exe.module_at(level), report, nodes, exe.target
        ).SerializeToString(deterministic=True)
        for level in exe.levels
        if counts[level] <= MOST_NODES
    }


def level_model(
    level: str, module: ModuleOp, report: Report, nodes: Nodes, target: Target
) -> onnx.ModelProto:
    """The model of one level of a program."""
    program = report.program
    made = _Level(
        level,
        module,
        nodes,
        level_costs(level, module, report, nodes, target),
        operation_texts(report),
    )
    graph = made.entry(str(program["name"]))
    facts = {
        "level": level,
        **{name: program[name] for name in ("cycles", "max_tile_bytes", "over_bytes")},
        "target": program["target"]["name"],
    }
    model = helper.make_model(
        graph,
        producer_name="abele",
        ir_version=IR_VERSION,
        functions=list(made.functions.values()),
        opset_imports=[helper.make_opsetid(domain, 1) for domain in sorted(made.domains)],
        doc_string=f"{program['name']} at {level} on {program['target']['name']}",
    )
    helper.set_model_props(model, {name: str(value) for name, value in facts.items()})
    return model


@dataclass
class _Scope:
    """A graph while it is built: of the program, of a loop's body, or of a function.

    Attributes:
        parent: the scope around the body of a loop.
        is_function: whether values outside of the graph are out of reach.
        current: the name of each variable's value.
        taken: the variables that come from outside, with the names of their values.
        written: the variables that the graph writes.
        sums: the cycles of its nodes.
    """

    parent: _Scope | None = None
    is_function: bool = False
    nodes: list[onnx.NodeProto] = field(default_factory=list[onnx.NodeProto])
    types: dict[str, onnx.ValueInfoProto] = field(default_factory=dict[str, onnx.ValueInfoProto])
    current: dict[str, str] = field(default_factory=dict[str, str])
    taken: dict[str, str] = field(default_factory=dict[str, str])
    written: dict[str, None] = field(default_factory=dict[str, None])
    sums: dict[str, int] = field(default_factory=dict[str, int])

    def in_function(self) -> bool:
        """Whether this scope is a function or inside a function."""
        return self.is_function or (self.parent is not None and self.parent.in_function())


class _Level:
    """Builds the graph and the functions of one level."""

    def __init__(
        self,
        level: str,
        module: ModuleOp,
        nodes: Nodes,
        costs: Mapping[Operation, Costs],
        texts: Mapping[int, Mapping[str, str]],
    ) -> None:
        self.level, self.nodes, self.costs, self.texts = level, nodes, costs, texts
        ops = list(module.body.block.ops)
        self.module = module
        self.callees = {op.sym_name.data: op for op in ops if isinstance(op, FuncOp)}
        self.variables = {op.symbol: op for op in ops if isinstance(op, Variable)}
        self.functions: dict[tuple[str, str], onnx.FunctionProto] = {}
        self.scopes: dict[tuple[str, str], _Scope] = {}
        self.domains: set[str] = set()
        self.dense: dict[str, onnx.TensorProto] = {}
        self.sparse: dict[str, onnx.SparseTensorProto] = {}
        self.values: dict[SSAValue, str] = {}
        self.names: dict[str, int] = {}

    # Graphs and functions

    def entry(self, name: str) -> onnx.GraphProto:
        """The graph of the entry function."""
        function = self.callees[ENTRY]
        arguments = function.body.block.args
        names = listed_names(function, "arg_names") or ()
        for value, given in zip(arguments, names, strict=False):
            self.values[value] = self._unique(given)
        results = self._results(function.body.block)
        for value, given in zip(
            results, listed_names(function, "result_names") or (), strict=False
        ):
            if value not in self.values and value not in arguments:
                self.values[value] = self._unique(given)
        scope = _Scope()
        inputs = [self._info(value, scope) for value in arguments]
        self._block(function.body.block, scope)
        outputs = [self._info(value, scope) for value in dict.fromkeys(results)]
        ends = {each.name for each in (*inputs, *outputs)}
        graph = helper.make_graph(
            scope.nodes,
            name,
            inputs,
            outputs,
            list(self.dense.values()),
            sparse_initializer=list(self.sparse.values()),
            value_info=[each for name, each in scope.types.items() if name not in ends],
        )
        return graph

    def _body(self, block: Block, parent: _Scope, name: str) -> tuple[_Scope, onnx.GraphProto]:
        """The graph of a region, such as a loop's body. Its outputs are the yielded values."""
        scope = _Scope(parent)
        inputs = [self._info(value, scope) for value in block.args]
        self._block(block, scope)
        outputs = [self._info(value, scope) for value in dict.fromkeys(self._results(block))]
        ends = {each.name for each in (*inputs, *outputs)}
        types = [each for name, each in scope.types.items() if name not in ends]
        return scope, helper.make_graph(scope.nodes, name, inputs, outputs, value_info=types)

    def _function(self, domain: str, name: str, block: Block) -> _Scope:
        """The scope of a function, built on first use."""
        key = domain, name
        if key not in self.scopes:
            scope = self.scopes[key] = _Scope(is_function=True)
            arguments = [self._info(value, scope).name for value in block.args]
            self._block(block, scope)
            inputs = [*arguments, *scope.taken.values()]
            outputs = self._outputs(block, scope, inputs)
            self.functions[key] = helper.make_function(
                domain,
                name,
                inputs,
                outputs,
                scope.nodes,
                [helper.make_opsetid(each, 1) for each in sorted(_domains(scope.nodes))],
                value_info=list(scope.types.values()),
            )
            self.domains.add(domain)
        return self.scopes[key]

    def _outputs(self, block: Block, scope: _Scope, inputs: Sequence[str]) -> list[str]:
        """The names of a function's outputs, distinct from each other and from its inputs.

        A value that is returned twice, or that is an input, goes through a node `same`.
        """
        found: list[str] = []
        results = [self._value(value) for value in self._results(block)]
        for name in (*results, *(scope.current[each] for each in scope.written)):
            if name in found or name in inputs:
                again = self._unique(name)
                self._add(scope, "abele", "same", [name], [again], [], {})
                name = again
            found.append(name)
        return found

    def _results(self, block: Block) -> list[SSAValue]:
        last = block.last_op
        return list(last.operands) if last is not None and last.has_trait(IsTerminator) else []

    # Operations

    def _block(self, block: Block, scope: _Scope) -> None:
        for op in block.ops:
            flat = isinstance(op, ComputeSetOp | Superstep) and self.level != EXCHANGE.name
            if flat:
                self._block(op.regions[0].block, scope)
            elif isinstance(op, Superstep):
                name = op.sym_name.data
                inner = self._function(SUPERSTEPS, shown(name), op.body.block)
                self._call(op, scope, SUPERSTEPS, shown(name), inner)
            elif isinstance(op, CallOp):
                name = op.callee.string_value()
                inner = self._function(FUNCTIONS, shown(name), self.callees[name].body.block)
                self._call(op, scope, FUNCTIONS, shown(name), inner)
            elif not isinstance(op, Sync) and not op.has_trait(IsTerminator):
                self._operation(op, scope)

    def _call(self, op: Operation, scope: _Scope, domain: str, name: str, inner: _Scope) -> None:
        operands = [self._value(value) for value in op.operands]
        taken = [self._read(each, scope) for each in inner.taken]
        outputs = [self._info(value, scope).name for value in op.results]
        written = [self._written(each, scope) for each in inner.written]
        costs = dict(self.costs.get(op, {}))
        if isinstance(op, CallOp) and inner.sums:
            costs |= {"cycles_of_all_calls": inner.sums.get("cycles", 0)}
        if isinstance(op, Superstep):
            costs |= {"sync": cast(Sync, op.body.block.first_op).zone.data}
        self._add(
            scope,
            domain,
            name,
            operands + taken,
            outputs + written,
            cost_attributes(costs),
            self._metadata(op),
        )

    def _operation(self, op: Operation, scope: _Scope) -> None:
        if self._kept(op, scope):
            return
        blocks = zip(
            own_names(op, "regions"), (region.blocks for region in op.regions), strict=False
        )
        made = [
            (name, *self._body(block, scope, name)) for name, every in blocks for block in every
        ]
        taken = {name: text for _, inner, _ in made for name, text in inner.taken.items()}
        written = dict.fromkeys(name for _, inner, _ in made for name in inner.written)
        for _, inner, graph in made:
            for name in written:
                graph.output.append(named_info(self._type_of(name), self._read(name, inner)))
        reads = [self._read(name, scope) for name in named_variables(op, ("reads", "variable"))]
        operands = [self._value(value) for value in op.operands]
        outputs = [self._info(value, scope).name for value in op.results]
        outputs += [
            self._written(name, scope)
            for name in (*named_variables(op, ("writes", "turn")), *written)
        ]
        costs = dict(self.costs.get(op, {}))
        if made:
            costs |= {"cycles": sum(inner.sums.get("cycles", 0) for _, inner, _ in made)}
        attributes = [*operation_attributes(op), *cost_attributes(costs)]
        attributes += [helper.make_attribute(name, graph) for name, _, graph in made]
        inputs = [*operands, *dict.fromkeys([*reads, *taken.values()])]
        dialect, _, name = op.name.partition(".")
        if isinstance(op, ComputeOp | Vertices):
            # Both have a body and a plan.
            name = codelet_name(cast(Vertices, op))
        self._add(scope, f"abele.{dialect}", name, inputs, outputs, attributes, self._metadata(op))

    def _add(
        self,
        scope: _Scope,
        domain: str,
        kind: str,
        inputs: Sequence[str],
        outputs: Sequence[str],
        attributes: Iterable[onnx.AttributeProto],
        metadata: Mapping[str, str],
    ) -> None:
        """Add a node, unless it has no edge.

        Args:
            metadata: its metadata_props; the origin names it.
        """
        if not inputs and not outputs:
            return
        node = helper.make_node(
            kind, inputs, outputs, name=metadata.get("origin", ""), domain=domain
        )
        by_name = {each.name: each for each in attributes}
        node.attribute.extend(by_name.values())
        helper.set_model_props(cast(Any, node), dict(metadata))
        scope.nodes.append(node)
        self.domains.add(domain)
        for each in node.attribute:
            if each.name == "cycles":
                scope.sums["cycles"] = scope.sums.get("cycles", 0) + each.i

    def _metadata(self, op: Operation) -> dict[str, str]:
        """The metadata_props of an operation: its origin, layer, line and superstep."""
        found = {"origin": origin_text(op)} if origin_text(op) else {}
        found |= self.texts.get(self.nodes.known_operation(op), {})
        names = own_names(op, "operands")
        if len(names) == len(op.operands) > 0:
            # Netron shows these beside the inputs.
            found["input_names"] = f"[{', '.join(map(repr, names))}]"
        step = op.parent_op()
        if isinstance(step, Superstep):
            found["superstep"] = shown(step.sym_name.data)
        return found

    # Values

    def _unique(self, text: str) -> str:
        """A unique name for a value: the text, with a number if the text is taken."""
        base = shown(text) or "value"
        while True:
            count = self.names[base] = self.names.get(base, 0) + 1
            name = base if count == 1 else f"{base}#{count}"
            if count == 1 or name not in self.names:
                self.names.setdefault(name, 1)
                return name

    def _value(self, value: SSAValue) -> str:
        if value not in self.values:
            owner = value.owner
            text = origin_text(owner) if isinstance(owner, Operation) else value.name_hint or ""
            self.values[value] = self._unique(text)
        return self.values[value]

    def _info(self, value: SSAValue, scope: _Scope) -> onnx.ValueInfoProto:
        """The name and the type of a value; the scope records them."""
        info = named_info(value.type, self._value(value))
        return scope.types.setdefault(info.name, info)

    def _type_of(self, variable: str) -> Attribute:
        return self.variables[variable].tensor

    def _read(self, variable: str, scope: _Scope) -> str:
        """The name of a variable's value. In a body or a function, it may come from outside."""
        if variable not in scope.current:
            if scope.parent is not None:
                name = self._read(variable, scope.parent)
                scope.taken[variable] = name
            else:
                name = self._unique(variable)
                if scope.is_function:
                    scope.taken[variable] = name
                    scope.types[name] = self._variable_info(variable, name)
                else:
                    op = self.variables[variable]
                    array = None if op.initial is None else op.initial.array
                    self._initializer(name, op.tensor, array)
            scope.current[variable] = name
        return scope.current[variable]

    def _written(self, variable: str, scope: _Scope) -> str:
        """A new name for the value of a variable after a write."""
        name = scope.current[variable] = self._unique(variable)
        scope.written[variable] = None
        scope.types[name] = self._variable_info(variable, name)
        return name

    def _variable_info(self, variable: str, name: str) -> onnx.ValueInfoProto:
        op = self.variables[variable]
        placed = op.placed
        where = f"tiles {placed.tiles.first} to {placed.tiles.end - 1}, "
        where += f"{op.bytes_per_tile:,} bytes on each"
        start = getattr(op, "start", None)
        where += "" if start is None else f" at 0x{start:x}"
        return named_info(op.tensor, name, f"{where}; layout {attribute_text(op.layout)}")

    # Weights and constants

    def _kept(self, op: Operation, scope: _Scope) -> bool:
        """Whether an operation is a load or a constant, which becomes an initializer."""
        state, value = op.properties.get("state"), op.properties.get("value")
        if op.operands or op.regions or len(op.results) != 1 or scope.in_function():
            return False
        if isinstance(value, BlobAttr):
            array: Any = value.array
        elif isinstance(state, SymbolRefAttr):
            array = None
            if op.results[0] not in self.values:
                self.values[op.results[0]] = self._unique(state.string_value())
        else:
            return False
        return self._initializer(self._value(op.results[0]), op.results[0].type, array)

    def _initializer(self, name: str, type_: Attribute, array: Any) -> bool:
        """Add an initializer, and return True; False for a type that initializers cannot have.

        Args:
            array: its values; None if they change.
        """
        tensor = tensor_of(type_)
        shape = [] if tensor is None else list(tensor.get_shape())
        kind = onnx.TensorProto.FLOAT if tensor is None else element_number(tensor.element_type)
        if array is not None and 0 < array.size <= FEW and kind == array_number(array):
            self.dense[name] = numpy_helper.from_array(np.ascontiguousarray(array), name)
            self.dense[name].doc_string = layout_text(type_)
            return True
        # Only a tensor with axes can be sparse; any other has one element.
        values = onnx.TensorProto(
            name=name, data_type=kind, dims=[0] if prod(shape) and shape else [1]
        )
        values.doc_string = "; ".join(filter(None, (LEFT_OUT, layout_text(type_))))
        if prod(shape) and shape:
            indices = onnx.TensorProto(data_type=onnx.TensorProto.INT64, dims=[0])
            self.sparse[name] = onnx.SparseTensorProto(values=values, indices=indices, dims=shape)
            return True
        return False


def _domains(nodes: Iterable[onnx.NodeProto]) -> set[str]:
    """The domains of some nodes, and of the nodes in their graphs."""
    found: set[str] = set()
    for node in nodes:
        found.add(node.domain)
        for attribute in node.attribute:
            found |= _domains(attribute.g.node)
    return found
