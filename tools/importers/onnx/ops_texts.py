"""Strings in ONNX models: the program computes with places in a table of the model's strings.

An operator that only moves elements moves places instead. A string that the host passes in, and
that the model does not hold, is -1: it equals no string of the model.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from xdsl.ir import SSAValue

from ....dialects import nn
from ..building import Known
from .node import Held, Importer, Node, Results, Texts, listed
from .tensors import Array

MOVERS: dict[str, tuple[int, ...]] = {
    **dict.fromkeys(("Reshape", "Flatten", "Squeeze", "Unsqueeze", "Transpose", "Expand"), (0,)),
    **dict.fromkeys(("Slice", "Split", "Tile", "Compress"), (0,)),
    **dict.fromkeys(("Gather", "GatherElements", "GatherND", "ArrayFeatureExtractor"), (0,)),
    **dict.fromkeys(("ScatterElements", "ScatterND"), (0, 2)),
    "Where": (1, 2),
}
"""The operators that move strings, with the operands that may be strings. Concat takes any."""

READERS = ("Identity", "Equal", "LabelEncoder", "OneHotEncoder", "CategoryMapper", "Shape", "Size")
"""The other operators that take strings."""


def with_texts(node: Node, importer: Importer) -> Results:
    """The results of an importer for a node whose operands may be strings.

    Raises UnsupportedError for an operator that would need the letters of strings.
    """
    held = {
        i: each
        for i in range(node.operand_count)
        if node.has(i) and isinstance(each := node.graph.lists.get(node.proto.input[i]), Texts)
    }
    if not held or node.operator in ("Identity", *_MAPPERS):
        return importer(node)
    moved = range(node.operand_count) if node.operator == "Concat" else MOVERS.get(node.operator)
    if moved is not None and not held.keys() <= {*moved}:
        raise node.bad(f"operand {min(held.keys() - {*moved})} is a tensor of strings")
    if moved is None and node.operator not in READERS:
        raise node.unsupported(
            "strings", f"{', '.join(sorted((*MOVERS, 'Concat', *READERS)))} take them"
        )
    if node.operator == "Equal" and not any(each.is_known for each in held.values()):
        raise node.unsupported(
            "two inputs that are strings", "need a string of the model to compare with"
        )
    for i, each in held.items():
        node.replaced[i] = node.graph.emitted(each.places)
    results = importer(node)
    if moved is None:
        return results
    is_known = all(each.is_known for each in held.values())
    return [
        Texts(each, is_known) if isinstance(each, SSAValue | Known) else each
        for each in listed(results)
    ]


_MAPPERS = ("LabelEncoder", "OneHotEncoder", "CategoryMapper")
"""The operators whose importers look strings up themselves."""


def numbers_or_places(node: Node, index: int) -> SSAValue:
    """An operand: its numbers, or the places of its strings."""
    held = node.held(index)
    return node.graph.emitted(held.places) if isinstance(held, Texts) else node[index]


@dataclass(frozen=True)
class Entries:
    """A list of an attribute: numbers, or strings as their places in the table.

    Attributes:
        names: the entries in words.
    """

    array: Array
    is_text: bool
    names: tuple[str, ...]

    def at(self, node: Node, index: SSAValue) -> Held:
        """The entries at some places of the list."""
        found = node.add(nn.GatherOp(node.emitted(self.array), index, 0))
        return Texts(found, is_known=True) if self.is_text else found

    def with_last(self, value: object, node: Node) -> Entries:
        """The list with one more entry."""
        if self.is_text:
            return text_entries(node, [*self.names, str(value)])
        return number_entries(np.append(self.array, np.array(value).astype(self.array.dtype)))


def number_entries(array: Array) -> Entries:
    """A list of numbers."""
    return Entries(array, False, tuple(map(str, array.tolist())))


def text_entries(node: Node, texts: list[str]) -> Entries:
    """A list of strings."""
    return Entries(node.graph.text_places(texts), True, tuple(texts))


def place_in(node: Node, value: SSAValue, keys: Array) -> SSAValue:
    """The place of the first key that equals each element; the number of keys if none does.

    Args:
        keys: NaN equals NaN.
    """
    shape = nn.shape_of(value)
    column = node.reshape(value, (*shape, 1))
    found = node.add(nn.EqualOp(column, node.emitted(keys)))
    if keys.dtype.kind == "f" and np.isnan(keys).any():
        is_missing = node.add(nn.IsNaNOp(column))
        also = node.add(nn.LogicalAndOp(is_missing, node.emitted(np.isnan(keys))))
        found = node.add(nn.LogicalOrOp(found, also))
    places = node.emitted(np.arange(len(keys), dtype=np.int32))
    place = node.add(nn.SelectOp(found, places, node.constant(len(keys), places)))
    return node.add(nn.ReduceOp(place, "min", [len(shape)]))


TAKE_TEXTS = frozenset(
    (
        *(*MOVERS, "Concat", "Constant", *READERS),
        *("LinearClassifier", "SVMClassifier", "TreeEnsembleClassifier"),
    )
)
"""The operators that take or make strings."""
