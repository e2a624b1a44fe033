"""ONNX's Einsum: a sum of products, as transposes, products of matrices and reductions.

Operands are multiplied from left to right, two at a time. A dimension that neither a later operand
nor the result has is summed as soon as possible.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from math import prod

from xdsl.ir import SSAValue

from ....dialects import nn
from .node import Importer, Node, Results

Labels = tuple[str, ...]
"""A name per dimension: a letter, or for a dimension of an ellipsis its position from the right."""


@dataclass(frozen=True)
class _Term:
    """A value with a distinct name for each of its dimensions."""

    value: SSAValue
    labels: Labels

    @property
    def sizes(self) -> dict[str, int]:
        return dict(zip(self.labels, nn.shape_of(self.value), strict=True))


def _einsum(node: Node) -> Results:
    equation = node.text("equation").replace(" ", "")
    left, arrow, right = equation.partition("->")
    subscripts = left.split(",")
    operands = node.all()
    if len(subscripts) != len(operands):
        raise _bad(node, f"has {len(subscripts)} terms; the node has {len(operands)} operands")
    named = [
        _labels(node, text, len(nn.shape_of(value)))
        for text, value in zip(subscripts, operands, strict=True)
    ]
    result = _result(node, right, named) if arrow else _implied(named)
    _check_sizes(node, named, operands)
    terms = [_diagonal(node, value, labels) for value, labels in zip(operands, named, strict=True)]
    total = _summed(node, terms[0], {*result}.union(*(t.labels for t in terms[1:])))
    for i, term in enumerate(terms[1:], 2):
        later = {*result}.union(*(t.labels for t in terms[i:]))
        total = _product(node, total, term, later)
    total = _summed(node, total, result)
    return _ordered(node, total, result)


def _bad(node: Node, problem: str) -> Exception:
    return node.bad(f"equation {node.text('equation')!r} {problem}")


# Names of dimensions


def _labels(node: Node, text: str, rank: int) -> Labels:
    """The names of an operand's dimensions."""
    before, dots, after = text.partition("...")
    letters = before + after
    if not letters.isascii() or not (letters.isalpha() or not letters):
        raise _bad(node, f"has a term {text!r}; need letters, and at most one ellipsis")
    covered = rank - len(letters)
    if covered < 0 or (covered and not dots):
        raise _bad(node, f"has a term {text!r} for an operand of rank {rank}")
    return (*before, *map(str, range(covered - 1, -1, -1)), *after)


def _covered(named: Sequence[Labels]) -> Labels:
    """The dimensions of all ellipses, aligned by broadcasting."""
    most = max(sum(label.isdigit() for label in labels) for labels in named)
    return tuple(map(str, range(most - 1, -1, -1)))


def _implied(named: Sequence[Labels]) -> Labels:
    """The result's dimensions of an equation without a result: ellipses, then letters that appear
    once.
    """
    letters = [label for labels in named for label in labels if not label.isdigit()]
    return (*_covered(named), *sorted(x for x in letters if letters.count(x) == 1))


def _result(node: Node, text: str, named: Sequence[Labels]) -> Labels:
    covered = _covered(named)
    before, dots, after = text.partition("...")
    known = {label for labels in named for label in labels}
    letters = before + after
    if not {*letters} <= known - {*covered} or len({*letters}) < len(letters):
        raise _bad(node, f"has a result {text!r}; need letters of operands, each once")
    if covered and not dots:
        raise _bad(node, f"has a result {text!r}; need an ellipsis, which operands have")
    return (*before, *covered, *after)


def _check_sizes(node: Node, named: Sequence[Labels], operands: Sequence[SSAValue]) -> None:
    sizes: dict[str, int] = {}
    for labels, value in zip(named, operands, strict=True):
        for label, size in zip(labels, nn.shape_of(value), strict=True):
            if label.isdigit():
                continue
            if sizes.setdefault(label, size) != size:
                raise _bad(node, f"gives {label!r} the sizes {sizes[label]} and {size}")


# Terms


def _diagonal(node: Node, value: SSAValue, labels: Labels) -> _Term:
    """A term with distinct names: dimensions with equal names are replaced by their diagonal."""
    while len({*labels}) < len(labels):
        label = next(x for x in labels if labels.count(x) > 1)
        first, second = [i for i, x in enumerate(labels) if x == label][:2]
        rest = [i for i in range(len(labels)) if i not in (first, second)]
        moved = node.add(nn.TransposeOp(value, [*rest, first, second]))
        shape = nn.shape_of(moved)
        outer, size = list(shape[:-2]), shape[-1]
        flat = node.reshape(moved, [*outer, size * size])
        starts, steps = [0] * (len(outer) + 1), [1] * len(outer) + [size + 1]
        value = node.add(nn.SliceOp(flat, starts, steps, [*outer, size]))
        labels = (*(labels[i] for i in rest), label)
    return _Term(value, labels)


def _summed(node: Node, term: _Term, kept: Collection[str]) -> _Term:
    """A term summed over the dimensions that are not kept."""
    axes = [i for i, label in enumerate(term.labels) if label not in kept]
    if not axes:
        return term
    value = node.add(nn.ReduceOp(node.wide(term.value), "sum", axes))
    value = node.cast(value, nn.element_of(term.value))
    return _Term(value, tuple(label for label in term.labels if label in kept))


def _ordered(node: Node, term: _Term, labels: Labels) -> SSAValue:
    """A term's value with its dimensions in the order of `labels`."""
    order = [term.labels.index(label) for label in labels]
    if order == list(range(len(order))):
        return term.value
    return node.add(nn.TransposeOp(term.value, order))


def _product(node: Node, a: _Term, b: _Term, later: set[str]) -> _Term:
    """The product of two terms, summed over dimensions that neither the result nor a later term
    has.
    """
    a = _summed(node, a, later.union(b.labels))
    b = _summed(node, b, later.union(a.labels))
    shared = [x for x in a.labels if x in b.labels]
    batch = tuple(x for x in shared if x in later)
    inner = tuple(x for x in shared if x not in later)
    rows = tuple(x for x in a.labels if x not in shared)
    columns = tuple(x for x in b.labels if x not in shared)
    left, right = a.sizes, b.sizes
    result = (*batch, *rows, *columns)
    shape = [
        *(max(left[x], right[x]) if 0 not in (left[x], right[x]) else 0 for x in batch),
        *(left[x] for x in rows),
        *(right[x] for x in columns),
    ]
    if inner:
        x = _ordered(node, a, (*batch, *rows, *inner))
        y = _ordered(node, b, (*batch, *inner, *columns))
        height, depth = prod(left[n] for n in rows), prod(left[n] for n in inner)
        width = prod(right[n] for n in columns)
        x = node.reshape(x, [*(left[n] for n in batch), height, depth])
        y = node.reshape(y, [*(right[n] for n in batch), depth, width])
        return _Term(node.reshape(node.add(nn.MatMulOp(x, y)), shape), result)
    x = _ordered(node, a, (*batch, *rows))
    y = _ordered(node, b, (*batch, *columns))
    x = node.reshape(x, [*nn.shape_of(x), *[1] * len(columns)])
    outer = nn.shape_of(y)[: len(batch)]
    y = node.reshape(y, [*outer, *[1] * len(rows), *(right[n] for n in columns)])
    return _Term(node.add(nn.MulOp(x, y)), result)


EINSUMS: dict[str, Importer] = {"Einsum": _einsum}
