"""Reads networks of Caffe as modules of the nn dialect."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

from ....dialects import nn
from ....ir.context import AbeleContext
from ....ir.support.errors import InputError
from ....ir.upstream import ModuleOp
from ..applying import applying_scope
from ..binding import InputSignature, add_inputs, bound_values, input_sizes
from ..building import Known, Names, NodeBuilder, Value
from ..front_end import OpenShapes, Reading
from ..huge_weights import Weighed
from ..uses import Use, Used, gathered, others_are, reason_of, several_refused
from .data_layers import DATA, shapes_of_data
from .files import Files, files_of
from .kinds import LOSSES
from .layer_node import F32, I32, Importer, LayerNode, Scope
from .network import Layer, Network, State
from .ops_elementwise import ELEMENTWISE
from .ops_learned import LEARNED
from .ops_losses import IDLE, LABELS, LOSS_LAYERS
from .ops_shapes import SHAPES
from .ops_windows import WINDOWS

SECTIONS: Mapping[str, Mapping[str, Importer]] = {
    "windows": WINDOWS,
    "elementwise": ELEMENTWISE,
    "moves and merges": SHAPES,
    "products and normalisations": LEARNED,
    "losses": LOSS_LAYERS,
}
"""The importers of layers by kind, as the reference lists them."""

IMPORTERS: dict[str, Importer] = {k: v for each in SECTIONS.values() for k, v in each.items()}
"""The importers of layers, by type. Layers that give data have none."""

SHOWN = 3
"""The number of names that a message lists."""

LOSS = "loss"
"""The name of the output that training minimises."""


def read_caffe(model: Any, reading: Reading) -> ModuleOp:
    """The module of a network. Its @main takes what layers of data give.

    Raises InputError for a damaged file, and UnsupportedError for what abele cannot compile.
    """
    files = files_of(Path(cast("str", model)), reading.place)
    program = _Import.of(files, reading)
    program.check_types()
    program.add_inputs()
    for layer, name in program.computing:
        program.run(layer, name)
    return program.module()


@dataclass
class _Import:
    """The import of one network.

    Attributes:
        layers: those that the phase includes.
        computing: the layers that give no data, each with a name of its own.
        given: the inputs that have a value now.
        unread: the tops that no layer has read so far.
        losses: the weights of losses in the objective, and their values.
    """

    files: Files
    network: Network
    reading: Reading
    scope: Scope
    layers: Sequence[Layer]
    computing: Sequence[tuple[Layer, str]]
    given: Mapping[str, Known]
    unread: dict[str, None]
    losses: list[tuple[float, Value]]

    @classmethod
    def of(cls, files: Files, reading: Reading) -> _Import:
        """Begin an import. Raises InputError for a damaged file."""
        network = files.network()
        trains = reading.training or files.trains
        state = State("TRAIN" if trains else "TEST").with_fields(network.state)
        if files.trains:
            state = files.training_state(state)
        graph = applying_scope(replace(reading, place=network.place, training=trains))
        scope = Scope(
            graph, state.phase, files.stored(reading.check), weighed=Weighed(reading.check)
        )
        layers = network.included(state)
        computing = [each for each in layers if each.type not in DATA]
        taken = Names()
        named = [(each, taken.unique(each.name or each.type)) for each in computing]
        made = cls(files, network, reading, scope, layers, named, {}, {}, [])
        signatures = made.signatures()
        known = bound_values(network.place, signatures, reading.values)
        made.given = {name: Known.of(name, array) for name, array in known.items()}
        return made

    # Inputs

    def signatures(self) -> list[InputSignature]:
        """The inputs that some layer reads. Raises InputError for two of one name."""
        every = [
            *self.network.inputs,
            *(
                each
                for layer in self.layers
                if layer.type in DATA
                for each in shapes_of_data(layer)
            ),
        ]
        readers: dict[str, list[tuple[str, int]]] = {}
        for layer, _ in self.computing:
            for index, bottom in enumerate(layer.bottoms):
                of_name = readers.setdefault(bottom, [])
                if layer.type not in IDLE:
                    of_name.append((layer.type, index))
        found: dict[str, InputSignature] = {}
        for name, shape in every:
            if name in found:
                raise self.bad(f"two layers give data {name[:60]!r}; need one")
            if name in readers:
                # A label: every layer that looks at it takes it for integers.
                is_label = bool(readers[name]) and all(
                    index in LABELS.get(type_, ()) for type_, index in readers[name]
                )
                found[name] = InputSignature(name, shape, I32 if is_label else F32)
        return list(found.values())

    def add_inputs(self) -> None:
        """Add the inputs to the program, and those for sizes that every run chooses.

        Raises InputError for sizes that are unknown, or cannot be.
        """
        known = {name: each.make() for name, each in self.given.items()}
        sizes = input_sizes(self.network.place, self.signatures(), self.reading.dims, known)
        sizes.complete(self.reading.batch)
        self.scope.values.update(add_inputs(self.scope.program, sizes))
        self.scope.values.update(self.given)

    # Layers

    def bad(self, message: str) -> InputError:
        """An error in the network."""
        return InputError(f"{self.network.place}: {message}")

    def node(self, layer: Layer, name: str) -> LayerNode:
        """A layer with its bottoms. Raises InputError for one that nothing has made."""
        bottoms: list[Value] = []
        for each in layer.bottoms:
            if each not in self.scope.values:
                raise layer.fields.bad("bottom", f"{each[:60]!r} is no input or earlier top")
            bottoms.append(self.scope.values[each])
        return LayerNode(layer, name, self.scope, bottoms)

    def check_types(self) -> None:
        """Raise UnsupportedError if some types have no importer. The message lists all of them."""
        refused = [each for each in self.computing if each[0].type not in IMPORTERS]
        if not refused:
            return
        pairs = [(layer.type, f"{name}, line {layer.line}") for layer, name in refused]
        error = several_refused(self.network.place, pairs, "--list-ops shows all layers")
        layer, name = refused[0]
        others = others_are(layer.type, [*IMPORTERS], "caffe")
        raise error or LayerNode(layer, name, self.scope, []).unsupported("the type", others)

    def run(self, layer: Layer, name: str) -> None:
        """Import a layer, and hold its tops."""
        node = self.node(layer, name)
        with node.checked():
            tops = IMPORTERS[layer.type](node)
        node.finish(node.bottoms, tops)
        for bottom in layer.bottoms:
            self.unread.pop(bottom, None)
        weights = layer.loss_weights()
        default = 1.0 if layer.type in LOSSES else 0.0
        if len(layer.tops) > len(tops):
            raise node.bad(f"{len(layer.tops)} tops; need at most {len(tops)}")
        for index, (top, value) in enumerate(zip(layer.tops, tops, strict=False)):
            if top in self.scope.values and top not in layer.bottoms:
                raise layer.fields.bad("top", f"{top[:60]!r} is an earlier top")
            self.scope.values[top] = value
            self.unread[top] = None
            weight = weights[index] if index < len(weights) else default * (index == 0)
            if weight and self.scope.phase == "TRAIN":
                self.losses.append((weight, value))

    # Outputs

    def module(self) -> ModuleOp:
        """The module. Its outputs are the tops that no layer reads, or the loss of training."""
        graph = self.scope.program
        outputs = [(name, self.scope.values[name]) for name in self.unread]
        if self.losses and graph.training:
            outputs = [(LOSS, self._objective())]
        if not outputs:
            raise self.bad("no layer computes anything in this phase")
        self.check_weights()
        module = graph.module(outputs)
        self.files.ask_training(module, self.scope, has_loss=bool(self.losses) and graph.training)
        return module

    def check_weights(self) -> None:
        """Raise InputError if the files of weights have no layer of the network.

        Some layers may have none, as those that fine-tuning adds: they have their fillers' values.
        """
        stored, own = self.scope.stored, {layer.name for layer, _ in self.computing}
        if self.scope.weighed.sizes and stored and not stored.keys() & own:
            shown = ", ".join(repr(name[:60]) for name in list(stored)[:SHOWN])
            raise self.bad(
                f"{', '.join(self.files.weights)} has weights of {shown}, which are no layers of "
                "this network; need weights of some of its layers"
            )

    def _objective(self) -> Value:
        """The sum of all losses, each times its weight, without axes."""
        node = NodeBuilder(LOSS, self.scope.program)
        total = None
        for weight, value in self.losses:
            each = self.scope.program.emitted(value)
            axes = range(len(nn.shape_of(each)))
            each = node.add(nn.ReduceOp(each, "sum", axes)) if axes else each
            each = each if weight == 1.0 else node.add(nn.ScaleOp(each, weight))
            total = each if total is None else node.add(nn.AddOp(total, each))
        assert total is not None, "there are losses"
        node.finish([value for _, value in self.losses], [total])
        return total


# What a network uses


def uses_of(model: Any, reading: Reading) -> tuple[list[Use], str]:
    """The types of layers of a network, and why not every layer could be checked; "" if all were.

    Raises InputError for a damaged file.
    """
    files = files_of(Path(cast("str", model)), reading.place)
    program = _Import.of(files, reading)
    problem, reasons = "", dict[str, str]()
    try:
        program.add_inputs()
    except InputError as error:
        problem = str(error)
    for layer, name in program.computing:
        if layer.type not in IMPORTERS:
            reasons[name] = "the type has no importer"
        elif not problem:
            reasons[name] = _reason(program, layer, name)
    data = ((each, each.name) for each in program.layers if each.type in DATA)
    used = (
        Used(
            layer.type,
            "abele" if layer.type in IMPORTERS or layer.type in DATA else "",
            f"{name} (line {layer.line})",
            reasons.get(name, ""),
        )
        for layer, name in (*data, *program.computing)
    )
    return gathered(used), problem


def _reason(program: _Import, layer: Layer, name: str) -> str:
    """Why a layer cannot be imported; "" if it can."""
    if any(each not in program.scope.values for each in layer.bottoms):
        # Without its bottoms, nobody knows whether the layer is supported.
        return ""
    try:
        program.run(layer, name)
    except InputError as error:
        return reason_of(LayerNode(layer, name, program.scope, []), error)
    return ""


def open_shapes(model: Any) -> OpenShapes:
    """The shapes of the inputs. Raises InputError."""
    place = str(cast("str", model))
    files = files_of(Path(place), place)
    program = _Import.of(files, Reading(AbeleContext(), place))
    return {each.name: each.shape for each in program.signatures()}
