"""Writes quantisation into a graph: QuantizeLinear and DequantizeLinear around tensors (QDQ)."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import onnx
from onnx import helper

from ...ir.support.arrays import Array
from .choice import Choice
from .formats import FP8, SYMMETRIC, Format, Scaling
from .histogram import Histogram
from .model import Graph
from .operators import PRODUCTS, Product
from .ranges import METHODS

MOST_BIAS = 2**30
"""The largest bias in units of its scale. Sums that it is added to have room up to 2**31."""


def weight_scaling(form: Format, array: Array, axis: int | None, what: str) -> Scaling:
    """The scaling of a weight: one scale for each index along an axis, or one for all.

    8-bit floats have one scale for a tensor, which loses the least.
    """
    if form is FP8:
        seen = Histogram()
        seen.add(array)
        return METHODS["mse"](seen, form, what)
    if axis is None:
        return form.for_range(float(array.min()), float(array.max()), what)
    others = tuple(i for i in range(array.ndim) if i != axis)
    most = np.abs(array).max(axis=others)
    scales = [float(form.for_range(-float(m), float(m), what).scale) for m in most]
    return Scaling(np.array(scales, np.float32))


def write_quantised(
    graph: Graph, choice: Choice, scalings: Mapping[str, Scaling], activations: Format
) -> dict[str, Scaling]:
    """Quantise the tensors of a choice. Returns the scalings of weights by name.

    Args:
        scalings: of the activations that scales come from.
        activations: their format; weights have the format that belongs to it.
    """
    weight_form = FP8 if activations is FP8 else SYMMETRIC
    writer = _Writer(graph, choice, scalings, activations, weight_form)
    writer.choose_weights()
    writer.write()
    return writer.weights


class _Writer:
    """What is written so far."""

    def __init__(
        self,
        graph: Graph,
        choice: Choice,
        scalings: Mapping[str, Scaling],
        activations: Format,
        weight_form: Format,
    ) -> None:
        self.graph, self.choice, self.scalings = graph, choice, scalings
        self.activations, self.weight_form = activations, weight_form
        self.weights: dict[str, Scaling] = {}
        self.before: list[onnx.NodeProto] = []
        self.read_as: dict[str, str] = {}
        self.shared: dict[str, tuple[str, str]] = {}

    def choose_weights(self) -> None:
        """Choose the scaling of each weight, so that the biases fit too."""
        graph, form = self.graph, self.weight_form
        for name, axis in self.choice.weights.items():
            what = f"{graph.place}: weight {name!r}"
            self.weights[name] = weight_scaling(form, graph.weights[name], axis, what)
        if form is FP8:
            return
        for node in graph.nodes:
            bias = self._bias(node)
            if bias is None:
                continue
            of_input, own = self.scalings[self.choice.activations[node.input[0]]], node.input[1]
            scale = self.weights[own].scale
            least = np.abs(bias) / (np.float64(of_input.scale) * MOST_BIAS)
            if scale.ndim:
                least = least.reshape(-1, len(scale)).max(axis=0)
            wide = np.maximum(scale, least.max() if not scale.ndim else least)
            self.weights[own] = Scaling(np.asarray(wide, np.float32))

    def _bias(self, node: onnx.NodeProto) -> Array | None:
        """The bias of a quantised product, if it is quantised too."""
        product = PRODUCTS.get(node.op_type)
        if product is None or self.graph.name(node) not in self.choice.products:
            return None
        if len(node.input) < 3 or not node.input[2] or not product.adds(node):
            return None
        bias = self.graph.weights.get(node.input[2])
        is_weight = node.input[1] in self.weights and node.input[0] in self.choice.activations
        return bias if bias is not None and bias.ndim == 1 and is_weight else None

    def write(self) -> None:
        """Replace the nodes of the graph."""
        graph, choice = self.graph, self.choice
        stays = set(choice.kept)
        nodes: list[onnx.NodeProto] = []
        for name in choice.weights:
            self.before.append(self._weight(name))
        inputs = {each.name for each in graph.model.graph.input}
        for value in choice.activations:
            if value in inputs:
                self.before += self._pair(value)
        for node in graph.nodes:
            own = onnx.NodeProto()
            own.CopyFrom(node)
            if graph.name(node) not in stays:
                if graph.name(node) in choice.products:
                    self._quantise_bias(node, own)
                for i, value in enumerate(node.input):
                    is_factor = graph.name(node) in choice.products and i < 2
                    if value in choice.activations or is_factor:
                        own.input[i] = self.read_as.get(value, own.input[i])
            nodes += [*self._taken(), own]
            for value in node.output:
                if value in choice.activations:
                    nodes += self._pair(value)
        graph.replace_nodes(nodes)

    def _taken(self) -> list[onnx.NodeProto]:
        taken, self.before = self.before, []
        return taken

    def _weight(self, name: str) -> onnx.NodeProto:
        scaling, axis = self.weights[name], self.choice.weights[name]
        stored = self.weight_form.stored(self.graph.weights[name], scaling, axis)
        return self._dequantised(name, stored, scaling.scale, axis)

    def _dequantised(
        self, name: str, stored: Array, scale: Array, axis: int | None
    ) -> onnx.NodeProto:
        """Hold a weight in 8 or 32 bits; returns the node that gives its numbers."""
        held, scales, result = (
            self.graph.fresh(name + end) for end in ("_quantized", "_scale", "_dequantized")
        )
        zeros = self.graph.fresh(name + "_zero_point")
        self.graph.set_weight(held, stored)
        self.graph.set_weight(scales, scale)
        self.graph.set_weight(zeros, np.zeros(scale.shape, stored.dtype))
        self.read_as[name] = result
        node = helper.make_node(
            "DequantizeLinear", [held, scales, zeros], [result], name=f"{name}/dequantize"
        )
        if scale.ndim and axis is not None:
            node.attribute.append(helper.make_attribute("axis", axis))
        return node

    def _quantise_bias(self, node: onnx.NodeProto, own: onnx.NodeProto) -> None:
        bias = None if self.weight_form is FP8 else self._bias(node)
        if bias is None:
            return
        product: Product = PRODUCTS[node.op_type]
        of_input = self.scalings[self.choice.activations[node.input[0]]].scale
        of_weight = np.tile(self.weights[node.input[1]].scale, product.repeats(node))
        scale = np.asarray(of_input * of_weight, np.float32)
        if self.weights[node.input[1]].scale.ndim == 0:
            scale = scale.reshape(())
        limit = np.iinfo(np.int32)
        stored = np.rint(bias.astype(np.float64) / scale).clip(limit.min, limit.max)
        name = self.graph.fresh(f"{self.graph.name(node)}.bias")
        self.before.append(self._dequantised(name, stored.astype(np.int32), scale, 0))
        own.input[2] = self.read_as.pop(name)

    def _pair(self, value: str) -> list[onnx.NodeProto]:
        """The nodes that round a value to the numbers of its format."""
        root = self.choice.activations[value]
        if root not in self.shared:
            scaling = self.scalings[root]
            scale, zero = (self.graph.fresh(root + end) for end in ("_scale", "_zero_point"))
            self.graph.set_weight(scale, np.asarray(scaling.scale, np.float32))
            self.graph.set_weight(zero, np.asarray(scaling.zero).astype(self.activations.dtype))
            self.shared[root] = scale, zero
        scale, zero = self.shared[root]
        held, result = (self.graph.fresh(value + end) for end in ("_quantized", "_dequantized"))
        self.read_as[value] = result
        return [
            helper.make_node(
                "QuantizeLinear", [value, scale, zero], [held], name=f"{value}/quantize"
            ),
            helper.make_node(
                "DequantizeLinear", [held, scale, zero], [result], name=f"{value}/dequantize"
            ),
        ]
