"""ONNX operators on sequences and optionals. They are resolved at import."""

from __future__ import annotations

from itertools import accumulate

import numpy as np
from xdsl.ir import SSAValue

from ....dialects import nn
from ..building import Value, dtype_of, shape_of
from .node import Importer, Listed, Maps, Maybe, Node, NotTensor, Results, Texts
from .subgraphs import read_graph


def _listed(node: Node, index: int) -> Listed:
    """The operand at an index, which must be a sequence."""
    value = node.held(index)
    if isinstance(value, Maybe) and isinstance(value.value, Listed):
        value = value.value
    if not isinstance(value, Listed):
        what = str(value) if isinstance(value, Maybe) else "a tensor"
        raise node.bad(f"operand {index} is {what}; need a sequence")
    return value


def _position(node: Node, index: int, size: int, end: bool) -> int:
    """A position in a sequence, which must be known.

    Args:
        end: allow the position after the last element.
    """
    array = node.array(index, "the position")
    if array.size != 1 or array.dtype.kind not in "iu":
        raise node.bad(f"position of {array.dtype.name}{list(array.shape)}; need one integer")
    at, most = int(array.reshape(-1)[0]), size - (not end)
    if not -size <= at <= most:
        raise node.bad(f"position {at} in a sequence of {size}; need {-size}..{most}")
    return at + size if at < 0 else at


def _construct(node: Node) -> Results:
    return Listed(tuple(node.value(i) for i in range(node.operand_count)))


def _empty(node: Node) -> Results:
    del node
    return Listed(())


def _at(node: Node) -> Results:
    """The element at a position. If the position depends on inputs, a lookup in all elements."""
    items = _listed(node, 0).items
    if node.graph.known(node.value(1)) is None:
        kinds = {(shape_of(item), dtype_of(item)) for item in items}
        if len(kinds) != 1:
            raise node.not_constant(
                f"the position {node.proto.input[1]!r} in a sequence of {len(items)} tensors",
                [node.value(1)],
                "need a constant, or tensors of one shape",
            )
        ((shape, _),) = kinds
        rows = [node.reshape(node.graph.emitted(item), (1, *shape)) for item in items]
        table = node.add(nn.ConcatOp(rows, 0))
        index = node.reshape(node[1], (1,))
        return node.reshape(node.add(nn.GatherOp(table, index, 0)), shape)
    return items[_position(node, 1, len(items), end=False)]


def _insert(node: Node) -> Results:
    items = _listed(node, 0).items
    at = _position(node, 2, len(items), end=True) if node.has(2) else len(items)
    return Listed((*items[:at], node.value(1), *items[at:]))


def _erase(node: Node) -> Results:
    items = _listed(node, 0).items
    if not items:
        raise node.bad("the sequence has no element to erase")
    at = _position(node, 1, len(items), end=False) if node.has(1) else len(items) - 1
    return Listed((*items[:at], *items[at + 1 :]))


def _length(node: Node) -> Results:
    return node.known(np.array(len(_listed(node, 0).items), np.int64))


def _split(node: Node) -> Results:
    """Slices along an axis. Without sizes, all have size 1, and the axis may be removed."""
    shape = node.shape(0)
    axis = node.axis(node.integer("axis", 0), len(shape))
    size, keeps = shape[axis], True
    if not node.has(1):
        sizes, keeps = [1] * size, node.flag("keepdims", True)
    elif node.shape(1) == ():
        (each,) = node.array_integers(1, "split")
        if each < 1:
            raise node.bad(f"split {each}; need 1 or more")
        sizes = [min(each, size - start) for start in range(0, size, each)]
    else:
        sizes = node.array_integers(1, "split")
    if sum(sizes) != size or any(n < 0 for n in sizes):
        raise node.bad(f"split {sizes}; axis {axis} has {size} elements")
    rest = tuple(n for i, n in enumerate(shape) if i != axis)
    known = node.graph.exact(node.value(0))
    items: list[Value] = []
    for start, count in zip(accumulate(sizes, initial=0), sizes, strict=False):
        if known is not None:
            part = known.take(range(start, start + count), axis)
            items.append(node.known(part if keeps else part.reshape(rest)))
            continue
        starts = [start if i == axis and count else 0 for i in range(len(shape))]
        extent = [count if i == axis else n for i, n in enumerate(shape)]
        part = node.add(nn.SliceOp(node[0], starts, [1] * len(shape), extent))
        items.append(part if keeps else node.reshape(part, rest))
    return Listed(tuple(items))


def _concat(node: Node) -> Results:
    items = _listed(node, 0).items
    if not items:
        raise node.bad("the sequence has no elements; need one or more")
    rank, is_new = len(shape_of(items[0])), node.flag("new_axis")
    axis = node.axis(node.integer("axis"), rank + is_new)
    arrays = [each for each in map(node.graph.exact, items) if each is not None]
    if len(arrays) == len(items):
        return node.known(np.stack(arrays, axis) if is_new else np.concatenate(arrays, axis))
    values: list[SSAValue] = [node.graph.emitted(item) for item in items]
    if is_new:
        values = [
            node.reshape(v, (*nn.shape_of(v)[:axis], 1, *nn.shape_of(v)[axis:])) for v in values
        ]
    return values[0] if len(values) == 1 else node.add(nn.ConcatOp(values, axis))


def _map(node: Node) -> Results:
    """A graph applied to each element of a sequence; further sequences give it one element each."""
    body = node.inner_graph("body")
    first = _listed(node, 0)
    others = [node.held(i) for i in range(1, node.operand_count)]
    for i, other in enumerate(others):
        if isinstance(other, Listed) and len(other.items) < len(first.items):
            raise node.bad(
                f"operand {i + 1} is a sequence of {len(other.items)}; need {len(first.items)}"
            )
    rows: list[list[Value]] = []
    for at, item in enumerate(first.items):
        given = [each.items[at] if isinstance(each, Listed) else each for each in others]
        row: list[Value] = []
        for value in read_graph(node, body, [item, *given]):
            if isinstance(value, NotTensor):
                raise node.bad(f"graph {body.name!r} returns {value}; need tensors")
            row.append(value)
        rows.append(row)
    return [Listed(tuple(row[i] for row in rows)) for i in range(len(body.output))]


# Optionals


def _optional(node: Node) -> Results:
    if not node.has(0):
        return Maybe(None)
    value = node.held(0)
    if isinstance(value, Maybe | Texts | Maps):
        raise node.bad(f"operand 0 is {value}; need a tensor of numbers or a sequence")
    return Maybe(value)


def _has_element(node: Node) -> Results:
    value = node.held(0) if node.has(0) else Maybe(None)
    return node.known(np.array(not isinstance(value, Maybe) or value.value is not None))


def _get_element(node: Node) -> Results:
    value = node.held(0)
    if not isinstance(value, Maybe):
        return value
    if value.value is None:
        raise node.bad("the optional holds no value")
    return value.value


def _identity(node: Node) -> Results:
    return node.held(0)


LISTS: dict[str, Importer] = {
    "SequenceConstruct": _construct,
    "SequenceEmpty": _empty,
    "SequenceAt": _at,
    "SequenceInsert": _insert,
    "SequenceErase": _erase,
    "SequenceLength": _length,
    "SequenceMap": _map,
    "SplitToSequence": _split,
    "ConcatFromSequence": _concat,
    "Optional": _optional,
    "OptionalHasElement": _has_element,
    "OptionalGetElement": _get_element,
    "Identity": _identity,
}
