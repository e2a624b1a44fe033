"""Chooses which tensors of a graph are quantised."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np
import onnx

from ...ir.support.errors import InputError
from .model import Graph
from .operators import CARRIERS, PRODUCTS


@dataclass(frozen=True)
class Choice:
    """The tensors that are quantised.

    Attributes:
        products: the names of the nodes whose products are quantised, in order.
        kept: the names of the nodes that stay in float though their products could be quantised.
        activations: for each quantised tensor that is no weight, the tensor that its scale comes
            from: itself, or the one whose elements it has.
        weights: for each quantised weight, the axis along which it has several scales, or None.
    """

    products: tuple[str, ...]
    kept: tuple[str, ...]
    activations: dict[str, str]
    weights: dict[str, int | None]

    @property
    def roots(self) -> tuple[str, ...]:
        """The tensors whose numbers decide scales."""
        return tuple(dict.fromkeys(self.activations.values()))


def kept_nodes(graph: Graph, keep: Sequence[str]) -> set[str]:
    """The names of the nodes that some expression matches somewhere.

    Raises InputError for a text that is no regular expression, and for one that matches no node.
    """
    names = {graph.name(node): node.name for node in graph.nodes if node.output}
    found: set[str] = set()
    for each in keep:
        try:
            pattern = re.compile(each)
        except re.error as error:
            raise InputError(f"--keep {each}: no regular expression: {error}") from None
        matched = {
            own for own, in_file in names.items() if pattern.search(own) or pattern.search(in_file)
        }
        if not matched:
            shown = [graph.name(node) for node in graph.nodes if node.op_type in PRODUCTS]
            raise InputError(
                f"--keep {each}: no node has such a name; products are "
                f"{', '.join(shown[:8])}{', ...' if len(shown) > 8 else ''}"
            )
        found |= matched
    return found


def chosen(graph: Graph, kept: Collection[str], floats: Collection[str] | None = None) -> Choice:
    """The tensors to quantise so that products which are not kept read quantised tensors.

    Raises InputError if no product is left.

    Args:
        kept: the names of nodes that stay in float.
        floats: the activations that are known to be float32; None if all may be.
    """
    producers = graph.producers()
    products: list[str] = []
    left: list[str] = []
    wanted: list[str] = []
    weights: dict[str, int | None] = {}
    for node in graph.nodes:
        product = PRODUCTS.get(node.op_type)
        if product is None or node.domain not in ("", "ai.onnx"):
            continue
        if graph.name(node) in kept:
            left.append(graph.name(node))
            continue
        factors = list(node.input[:2])
        held = [each for each in factors if each in graph.weights]
        others = [each for each in factors if each not in graph.weights]
        if (
            not others
            or any(graph.weights[each].dtype != np.float32 for each in held)
            or (floats is not None and not set(others) <= set(floats))
        ):
            continue
        products.append(graph.name(node))
        wanted += others
        for name in held:
            is_second = factors[1] == name and factors[0] != name
            axis = product.weight_axis(node, graph.weights[name].ndim) if is_second else None
            # A weight with several readers has several scales only where all of them agree.
            weights[name] = axis if weights.get(name, axis) == axis else None
    if not products:
        raise InputError(
            f"{graph.place}: no products of float32 numbers are left to quantise"
            + (f"; {len(left)} are kept in float" if left else "")
        )
    activations: dict[str, str] = {}
    for value in wanted:
        chain = _carried(graph, producers, value, kept)
        activations |= dict.fromkeys(chain, chain[-1])
    return Choice(tuple(products), tuple(left), activations, weights)


def _carried(
    graph: Graph, producers: dict[str, onnx.NodeProto], value: str, kept: Collection[str]
) -> list[str]:
    """A tensor, the one that it has the elements of, and so on."""
    chain = [value]
    while True:
        node = producers.get(chain[-1])
        if (
            node is None
            or node.op_type not in CARRIERS
            or node.output[0] != chain[-1]
            or node.input[0] in graph.weights
            or graph.name(node) in kept
        ):
            return chain
        chain.append(node.input[0])
