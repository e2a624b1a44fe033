"""Reads graphs of MXNet as modules of the nn dialect."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, cast

import numpy as np
from xdsl.dialects.builtin import StringAttr
from xdsl.ir import SSAValue

from ....ir.context import AbeleContext
from ....ir.support.arrays import Array
from ....ir.support.errors import InputError
from ....ir.upstream import ModuleOp
from ....ir.well_known import ASKED
from ....passes.gradients.factors import write_factors
from ..applying import applying_scope
from ..binding import InputSignature, add_inputs, bound_values, input_sizes
from ..building import Known, Names, Value
from ..errors import UnsupportedError
from ..front_end import OpenShape, OpenShapes, Reading
from ..huge_weights import Weighed
from ..uses import Use, Used, gathered, others_are, reason_of, several_refused
from .files import stored, weights_beside
from .ops_elementwise import ELEMENTWISE
from .ops_layers import LAYERS
from .ops_outputs import LABELLED, OUTPUTS
from .ops_sequences import AXES, SEQUENCES
from .ops_shapes import SHAPES
from .symbol import VARIABLE, Symbol, SymbolNode, read_symbol
from .symbol_node import F32, Importer, MxNode, Scope, Variable

SECTIONS: Mapping[str, Mapping[str, Importer]] = {
    "layers": LAYERS,
    "elementwise": ELEMENTWISE,
    "moves and merges": SHAPES,
    "sequences": SEQUENCES,
    "outputs": OUTPUTS,
}
"""The importers of operators by kind, as the reference lists them."""

IMPORTERS: dict[str, Importer] = {k: v for each in SECTIONS.values() for k, v in each.items()}
"""The importers of operators by name."""

WEIGHTS: Mapping[str, tuple[int, ...]] = {
    "Convolution": (1, 2),
    "Deconvolution": (1, 2),
    "FullyConnected": (1, 2),
    "BatchNorm": (1, 2, 3, 4),
    "LayerNorm": (1, 2),
    "InstanceNorm": (1, 2),
    "Embedding": (1,),
    "LeakyReLU": (1,),
    "RNN": (1,),
}
"""The operands of operators that are weights, also if no file has their elements."""

AUXILIARY: Mapping[str, Sequence[str]] = {"BatchNorm": ("moving_mean", "moving_var")}
"""Weights that graphs before 2017 leave out: they are the last operands, called NODE_NAME."""

SHOWN = 3
"""The number of names that a message lists."""

SPATIAL = ("Convolution", "Deconvolution", "Pooling")
"""Operators whose attribute kernel tells the number of axes of their operand."""


def read_mxnet(model: Any, reading: Reading) -> ModuleOp:
    """The module of a graph. Its @main takes the variables that are no weights.

    Raises InputError for a damaged file, and UnsupportedError for what abele cannot compile.
    """
    program = _Import.of(Path(cast("str", model)), reading)
    program.check_operators()
    program.add_inputs()
    for index in program.computing:
        program.run(index)
    return program.module()


@dataclass
class _Import:
    """The import of one graph.

    Attributes:
        names: of all nodes, each different.
        needed: the nodes that the heads depend on, without labels.
        given: the inputs that have a value now.
    """

    symbol: Symbol
    reading: Reading
    scope: Scope
    arrays: Mapping[str, Array]
    names: Sequence[str]
    needed: frozenset[int]
    given: Mapping[str, Known]

    @classmethod
    def of(cls, path: Path, reading: Reading) -> _Import:
        """Begin an import. Raises InputError for a damaged file."""
        symbol = _with_auxiliaries(read_symbol(path, reading.place))
        arrays = stored(path, reading.place, reading.check)
        taken = Names()
        names = [taken.unique(each.name or each.operator) for each in symbol.nodes]
        scope = Scope(applying_scope(reading), weighed=Weighed(reading.check))
        made = cls(symbol, reading, scope, arrays, names, _needed(symbol), {})
        weights = made.weights()
        for index in made.variables():
            node = symbol.nodes[index]
            if index in weights or node.name in arrays:
                scope.variables[index] = Variable(node, arrays.get(node.name))
        held = scope.variables.values()
        if held and arrays and all(each.array is None for each in held):
            shown = ", ".join(repr(name[:60]) for name in list(arrays)[:SHOWN])
            raise InputError(
                f"{reading.place}: {', '.join(weights_beside(path))} has {shown}, which are no "
                "weights of this graph; need some of its weights"
            )
        known = bound_values(reading.place, made.signatures(), reading.values)
        made.given = {name: Known.of(name, array) for name, array in known.items()}
        return made

    @cached_property
    def computing(self) -> list[int]:
        """The nodes that compute what is needed, in order."""
        return [i for i in sorted(self.needed) if self.symbol.nodes[i].operator != VARIABLE]

    # Inputs

    def variables(self) -> list[int]:
        """The variables that are needed."""
        return [i for i in sorted(self.needed) if self.symbol.nodes[i].operator == VARIABLE]

    def weights(self) -> set[int]:
        """The variables that operators take for weights."""
        return {
            node
            for i in self.computing
            for place, (node, _) in enumerate(self.symbol.nodes[i].inputs)
            if place in WEIGHTS.get(self.symbol.nodes[i].operator, ())
        }

    def signatures(self) -> list[InputSignature]:
        """The inputs: the variables that are no weights."""
        return [
            InputSignature(self.symbol.nodes[i].name, self.shape(i), self.dtype(i))
            for i in self.variables()
            if i not in self.scope.variables
        ]

    @cached_property
    def readers(self) -> Mapping[int, Sequence[tuple[SymbolNode, int]]]:
        """The nodes that read each node, and the place of the operand."""
        found: dict[int, list[tuple[SymbolNode, int]]] = {}
        for i in self.computing:
            for place, (node, _) in enumerate(self.symbol.nodes[i].inputs):
                found.setdefault(node, []).append((self.symbol.nodes[i], place))
        return found

    def shape(self, index: int) -> OpenShape:
        """The shape of an input: as `__shape__` says, in which 0 is free; or as many free axes as
        its first reader needs, and its channels if the file of weights tells them.
        """
        node = self.symbol.nodes[index]
        scope = MxNode(node, node.name, self.scope)
        for name in ("__shape__", "shape"):
            if scope.has(name):
                sizes = scope.integers(name)
                if any(n < -1 for n in sizes):
                    raise scope.wrong(name, "need sizes of 0 or more")
                return tuple("" if n in (0, -1) else n for n in sizes)
        for reader, place in self.readers.get(index, ()):
            if place in AXES.get(reader.operator, {}):
                return ("",) * AXES[reader.operator][place]
            if reader.operator in SPATIAL and "kernel" in reader.attributes:
                of_reader = MxNode(reader, reader.name, self.scope)
                free: list[int | str] = [""] * (len(of_reader.integers("kernel")) + 2)
                first = reader.inputs[1][0] if len(reader.inputs) > 1 else index
                weight = self.arrays.get(self.symbol.nodes[first].name)
                if reader.operator == "Convolution" and weight is not None and weight.ndim > 1:
                    free[1] = weight.shape[1] * of_reader.integer("num_group", 1, 1)
                return tuple(free)
            if reader.operator == "FullyConnected" and len(reader.inputs) > 1:
                weight = self.arrays.get(self.symbol.nodes[reader.inputs[1][0]].name)
                return ("", weight.shape[1] if weight is not None and weight.ndim > 1 else "")
        return ("", "")

    def dtype(self, index: int) -> np.dtype[Any]:
        """The element type of an input: integers for what is looked up, and f32."""
        readers = self.readers.get(index, ())
        looks_up = [(reader.operator, place) == ("Embedding", 0) for reader, place in readers]
        return np.dtype(np.int32) if looks_up and all(looks_up) else F32

    def add_inputs(self) -> None:
        """Add the inputs to the program, and those for sizes that every run chooses.

        Raises InputError for sizes that are unknown, or cannot be.
        """
        known = {name: each.make() for name, each in self.given.items()}
        sizes = input_sizes(self.reading.place, self.signatures(), self.reading.dims, known)
        sizes.complete(self.reading.batch)
        place_of = {self.symbol.nodes[i].name: i for i in self.variables()}
        values: dict[str, Value] = {**add_inputs(self.scope.program, sizes), **self.given}
        self.scope.values.update({place_of[name]: [value] for name, value in values.items()})

    # Nodes

    def node(self, index: int) -> MxNode:
        """A node to import."""
        return MxNode(self.symbol.nodes[index], self.names[index], self.scope)

    def check_operators(self) -> None:
        """Raise UnsupportedError if some operators have no importer. The message lists all."""
        nodes = [self.node(i) for i in self.computing]
        refused = [each for each in nodes if each.node.operator not in IMPORTERS]
        if not refused:
            return
        pairs = [
            (n.node.operator, f"{n.name}, line {n.node.line}" if n.node.line else n.name)
            for n in refused
        ]
        error = several_refused(self.reading.place, pairs, "--list-ops shows all operators")
        first = refused[0]
        others = others_are(first.node.operator, [*IMPORTERS], "mxnet")
        raise error or first.unsupported("the operator", others)

    def run(self, index: int) -> None:
        """Import a node, and hold its outputs."""
        node = self.node(index)
        with node.checked():
            found = IMPORTERS[node.node.operator](node)
            node.check_attributes()
        outputs = _outputs_of(found)
        node.finish(node.operands, outputs)
        self.scope.values[index] = outputs

    # Outputs

    def module(self) -> ModuleOp:
        """The module, with what it says of its training."""
        scope, taken = self.scope, Names()
        outputs: list[tuple[str, Value]] = []
        for index, output in self.symbol.heads:
            values = scope.values.get(index)
            name = self.names[index]
            if values is None and index in scope.variables:
                raise UnsupportedError(f"{self.reading.place}: head {name!r} is a weight")
            if values is None or output >= len(values):
                raise InputError(f"{self.reading.place}: head {name!r} has no output {output}")
            more = "" if len(values) == 1 else str(output)
            outputs.append((taken.unique(f"{name}_output{more}"), values[output]))
        module = scope.program.module(outputs)
        if self.reading.training:
            write_factors(module, scope.factors)
            options = dict(scope.trained)
            label = self._label()
            if label and options.get("loss") not in (None, "given"):
                options["target"] = label
            if "loss" in options:
                text = " ".join(f"{name}={value}" for name, value in options.items())
                module.attributes[ASKED] = StringAttr(text)
        return module

    def _label(self) -> str:
        """The name of the label that the loss reads; "" if there is none, or if it is odd."""
        for node in self.symbol.nodes:
            if node.operator in LABELLED and len(node.inputs) > 1:
                name = self.symbol.nodes[node.inputs[1][0]].name
                return name if name.replace("_", "a").isalnum() else ""
        return ""


def _outputs_of(found: Sequence[Value] | Value) -> Sequence[Value]:
    """The outputs of an importer, of which one may stand alone."""
    return [found] if isinstance(found, SSAValue | Known) else found


def _with_auxiliaries(symbol: Symbol) -> Symbol:
    """The graph with variables for weights that old graphs leave out."""
    nodes = list(symbol.nodes)
    for i, node in enumerate(symbol.nodes):
        names = AUXILIARY.get(node.operator, ())
        if names and len(node.inputs) == 3:
            added = [SymbolNode(f"{node.name}_{name}", VARIABLE, [], {}, 0) for name in names]
            first = len(nodes)
            nodes += added
            inputs = [*node.inputs, *((first + j, 0) for j in range(len(names)))]
            nodes[i] = SymbolNode(node.name, node.operator, inputs, node.attributes, node.line)
    return Symbol(nodes, symbol.heads)


def _needed(symbol: Symbol) -> frozenset[int]:
    """The nodes that the heads depend on. Labels of outputs are no dependency."""
    found: set[int] = set()
    pending = [index for index, _ in symbol.heads]
    while pending:
        index = pending.pop()
        if index in found:
            continue
        found.add(index)
        node = symbol.nodes[index]
        inputs = node.inputs[:1] if node.operator in LABELLED else node.inputs
        pending += [each for each, _ in inputs]
    return frozenset(found)


# What a graph uses


def uses_of(model: Any, reading: Reading) -> tuple[list[Use], str]:
    """The operators of a graph, and why not every node could be checked; "" if all were.

    Raises InputError for a damaged file.
    """
    program = _Import.of(Path(cast("str", model)), reading)
    problem, reasons = "", dict[int, str]()
    try:
        program.add_inputs()
    except InputError as error:
        problem = str(error)
    for index in program.computing:
        if program.symbol.nodes[index].operator not in IMPORTERS:
            reasons[index] = "the operator has no importer"
        elif not problem:
            reasons[index] = _reason(program, index)
    used = (
        Used(
            program.symbol.nodes[i].operator,
            "abele" if program.symbol.nodes[i].operator in IMPORTERS else "",
            f"{program.names[i]} (line {program.symbol.nodes[i].line})",
            reasons.get(i, ""),
        )
        for i in program.computing
    )
    return gathered(used), problem


def _reason(program: _Import, index: int) -> str:
    """Why a node cannot be imported; "" if it can, or if nobody knows."""
    scope = program.scope
    inputs = [each for each, _ in program.symbol.nodes[index].inputs]
    labels = program.symbol.nodes[index].operator in LABELLED
    needed = inputs[:1] if labels else inputs
    if any(each not in scope.values and each not in scope.variables for each in needed):
        return ""
    try:
        program.run(index)
    except InputError as error:
        return reason_of(program.node(index), error)
    return ""


def open_shapes(model: Any) -> OpenShapes:
    """The shapes of the inputs. Raises InputError."""
    place = str(cast("str", model))
    program = _Import.of(Path(place), Reading(AbeleContext(), place))
    return {each.name: each.shape for each in program.signatures()}
