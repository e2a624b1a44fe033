"""Scalar operations at every point of a space of loops, as operations of nn on whole tensors."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from xdsl.dialects.builtin import i64
from xdsl.ir import Attribute, SSAValue
from xdsl.ir.affine import (
    AffineBinaryOpExpr,
    AffineBinaryOpKind,
    AffineConstantExpr,
    AffineDimExpr,
    AffineExpr,
)

from ...dialects import nn
from ...dialects.nn.elementwise import ELEMENTWISE
from ...ir.geometry.space import Dim
from ...ir.refusals import Uncovered
from ...ir.upstream import VerifyException
from .conversion import ToNn

BY_FUNCTION: Mapping[str, Any] = {op.name.partition(".")[2]: op for op in ELEMENTWISE}
"""The operations on elements, by the scalar function that they apply."""


@dataclass(frozen=True)
class Read:
    """A number at each point: the element of a tensor at these indices.

    Attributes:
        axes: the index along each axis of the tensor, an expression of the loops.
    """

    value: SSAValue
    axes: tuple[nn.Index, ...] = ()

    @property
    def loops(self) -> tuple[Dim, ...] | None:
        """The loop along each axis, if the tensor is read whole, each axis along one loop; None
        otherwise.
        """
        found: list[Dim] = []
        for index, size in zip(self.axes, nn.shape_of(self.value), strict=True):
            plain = index.rule == "none" and index.divisor == 1 and not index.offset
            if not plain or len(index.terms) != 1 or index.terms[0][1] != 1:
                return None
            dim = index.terms[0][0]
            if dim.size != size or dim in found:
                return None
            found.append(dim)
        return tuple(found)


Operand = Read | nn.Index
"""What a scalar operation reads at each point: an element, or an index itself."""


def index_of(expression: AffineExpr, dims: Sequence[Dim]) -> nn.Index:
    """The index of an affine expression of loops. Raises Uncovered for a remainder.

    Raises ValueError for a division that is not the last step.
    """
    match expression:
        case AffineConstantExpr():
            return nn.Index((), expression.value)
        case AffineDimExpr():
            return nn.Index(((dims[expression.position], 1),))
        case AffineBinaryOpExpr():
            left, right = index_of(expression.lhs, dims), index_of(expression.rhs, dims)
            match expression.kind:
                case AffineBinaryOpKind.Add:
                    return left + right
                case AffineBinaryOpKind.Mul:
                    return left * right.offset
                case AffineBinaryOpKind.FloorDiv:
                    return left // right.offset
                case AffineBinaryOpKind.CeilDiv:
                    return (left + (right.offset - 1)) // right.offset
                case AffineBinaryOpKind.Mod:
                    pass
        case _:
            pass
    raise Uncovered(f"index {expression}; need sums and multiples of loops, and one division")


class Scope:
    """Computes scalar operations for all points of loops at once.

    Attributes:
        dims: the loops, all of them parallel.
    """

    def __init__(self, new: ToNn, dims: Sequence[Dim]) -> None:
        self.new = new
        self.dims = tuple(dims)

    def whole(self, value: SSAValue) -> Read:
        """A tensor read along the loops, one for each of its axes; or a number."""
        rank = len(nn.shape_of(value))
        return Read(value, tuple(nn.Index(((dim, 1),)) for dim in self.dims[:rank]))

    def element(self, operand: Operand) -> Attribute:
        """The element type of what is read; an index is an i64."""
        return nn.element_of(operand.value) if isinstance(operand, Read) else i64

    def number(self, value: float | bool | int, element: Attribute) -> Read:
        """A constant."""
        return Read(self.new.number(value, element))

    def like(self, value: float | bool | int, operand: Operand) -> Read:
        """A constant of the element type of an operand."""
        return self.number(value, self.element(operand))

    def read(self, operand: Operand) -> Read:
        """What is read as an element of a tensor: indices are counted into one."""
        if isinstance(operand, Read):
            return operand
        if not operand.terms and not operand.rule != "none":
            return self.number(operand.offset, i64)
        dims = self._used([operand])
        made = nn.compute("identity", [operand], _along(dims), element=i64)
        return Read(self.new.emit(made), tuple(_along(dims)))

    def apply(self, function: str, *operands: Operand, parameters: Sequence[float] = ()) -> Read:
        """A scalar function of what is read at each point."""
        first = next((each for each in operands if isinstance(each, Read)), None)
        given = list(operands)
        if first is None:
            given[0] = self.read(given[0])
        reads = [each for each in given if isinstance(each, Read)]
        if len(reads) == len(given) and (widest := _widest(reads)) is not None:
            op = BY_FUNCTION[function](*(each.value for each in reads), *parameters)
            return Read(self.new.emit(op), widest.axes)
        dims = self._used(given)
        made = nn.compute(
            function, [_at(each) for each in given], _along(dims), parameters=parameters
        )
        return Read(self.new.emit(made), tuple(_along(dims)))

    def built(self, build: Callable[..., SSAValue], operands: Sequence[Operand]) -> Read:
        """What operations of nn make of tensors with an axis for each loop that is read.

        Args:
            build: takes the tensors, what adds an operation, and what returns a constant of the
                element type of a value.
        """
        dims, new = self._used(operands), self.new

        def number(value: float, like: SSAValue) -> SSAValue:
            return new.number(value, nn.element_of(like))

        tensors = [self.arranged(each, dims) for each in operands]
        return Read(build(*tensors, new.emit, number), tuple(_along(dims)))

    def cast(self, operand: Operand, element: Attribute) -> Operand:
        """What is read as another element type."""
        if self.element(operand) == element:
            return operand
        read = self.read(operand)
        return Read(self.new.emit(nn.CastOp(read.value, element)), read.axes)

    def bits(self, operand: Operand, element: Attribute) -> Read:
        """The bits of what is read as another element type of as many bits."""
        read = self.read(operand)
        if self.element(read) == element:
            return read
        return Read(self.new.emit(nn.BitCastOp(read.value, element)), read.axes)

    def arranged(self, operand: Operand, dims: Sequence[Dim]) -> SSAValue:
        """A tensor of what is read, whose axes are these loops."""
        read = self.read(operand)
        shape, loops = tuple(d.size for d in dims), read.loops
        if loops == tuple(dims):
            return read.value
        if not read.axes:
            return self.new.emit(nn.ExpandOp(read.value, shape))
        if loops is not None and set(loops) == set(dims):
            order = [loops.index(dim) for dim in dims]
            return self.new.emit(nn.TransposeOp(read.value, order))
        return self.new.emit(nn.compute("identity", [_at(read)], _along(dims)))

    def merged(
        self,
        function: str,
        operands: Sequence[Operand],
        combiner: str,
        dims: Sequence[Dim],
    ) -> Read:
        """What is left when the points of all loops but some are merged.

        Args:
            dims: the loops that stay, in the order of the result's axes.
        """
        away = [dim for dim in self.dims if dim not in dims]
        reads = [self.read(each) for each in operands]
        if missing := [dim for dim in away if dim not in self._used(reads)]:
            # Every point counts, also where nothing depends on a loop.
            wide = [*self._used(reads[:1]), *missing]
            value = self.arranged(reads[0], wide)
            reads[0] = Read(value, tuple(_along(wide)))
        axes = tuple(_along(dims))
        known = _known(self, function, reads, combiner, tuple(dims))
        if known is not None:
            return Read(known, axes)
        at = [_at(Read(each.value, tuple(_merging(i, away) for i in each.axes))) for each in reads]
        return Read(self.new.emit(nn.compute(function, at, axes, combiner=combiner)), axes)

    def picked(self, table: SSAValue, indices: Sequence[Operand]) -> Read:
        """The element of a tensor at indices that are known at each point.

        Raises ValueError for an index that leaves the tensor for certain.
        """
        shape = nn.shape_of(table)
        rows = [Dim(f"row{k}", n, "reduction") for k, n in enumerate(shape)]
        axes: list[nn.Index] = []
        where: list[tuple[nn.Index, int, nn.At]] = []
        for row, size, given in zip(rows, shape, indices, strict=True):
            if isinstance(given, nn.Index):
                axes.append(given)
                continue
            along = nn.Index(((row, 1),))
            axes.append(along)
            at = _at(given)
            assert isinstance(at, nn.At)
            where.append((along, size, at))
        if not where:
            return Read(table, tuple(axes))
        dims = self._used(indices)
        made = nn.compute(
            "identity", [nn.at(table, *axes)], _along(dims), combiner="pick", where=where
        )
        return Read(self.new.emit(made), tuple(_along(dims)))

    def _used(self, operands: Sequence[Operand]) -> list[Dim]:
        """The loops that operands depend on, in the order of the loops."""
        used: set[Dim] = set()
        for each in operands:
            indices = each.axes if isinstance(each, Read) else (each,)
            used.update(dim for index in indices for dim, _ in index.terms)
        return [dim for dim in self.dims if dim in used]


def _widest(reads: Sequence[Read]) -> Read | None:
    """The read with the most axes, if the others broadcast to it as in NumPy; None otherwise."""
    widest = max(reads, key=lambda each: len(each.axes))
    along = widest.loops
    for each in reads:
        loops = each.loops
        if along is None or loops is None or along[len(along) - len(loops) :] != loops:
            return None
    return widest


def _along(dims: Sequence[Dim]) -> list[nn.Index]:
    return [nn.Index(((dim, 1),)) for dim in dims]


def _at(operand: Operand) -> nn.At | nn.Index:
    return nn.at(operand.value, *operand.axes) if isinstance(operand, Read) else operand


def _merging(index: nn.Index, away: Sequence[Dim]) -> nn.Index:
    """The same index, in which some loops are merged."""
    terms = ((replace(d, kind="reduction") if d in away else d, c) for d, c in index.terms)
    return replace(index, terms=tuple(terms))


# The merges that an operation of nn has a name for


def _known(
    scope: Scope, function: str, reads: Sequence[Read], combiner: str, dims: tuple[Dim, ...]
) -> SSAValue | None:
    """The result of an operation with a name of its own; None if there is none."""
    if function == "identity":
        return _reduced(scope, reads[0], combiner, dims)
    if (function, combiner) == ("mul", "sum"):
        for each in (_multiplied, _convolved):
            found = each(reads, dims)
            if found is not None:
                return scope.new.emit(found)
    return None


def _reduced(scope: Scope, read: Read, combiner: str, dims: tuple[Dim, ...]) -> SSAValue | None:
    loops = read.loops
    if loops is None or tuple(d for d in loops if d in dims) != dims:
        return None
    away = [i for i, dim in enumerate(loops) if dim not in dims]
    return scope.new.emit(nn.ReduceOp(read.value, combiner, away))


def _multiplied(reads: Sequence[Read], dims: tuple[Dim, ...]) -> nn.MatMulOp | None:
    """A matrix product, if the last two axes are rows, columns and terms."""
    lhs, rhs = (each.loops for each in reads)
    if lhs is None or rhs is None or len(dims) < 2 or not len(lhs) == len(rhs) == len(dims):
        return None
    *batch, m, n = dims
    terms = [dim for dim in lhs if dim not in dims]
    if len(terms) != 1 or lhs[:-2] != tuple(batch) or rhs[:-2] != tuple(batch):
        return None
    k, rows, columns = terms[0], lhs[-2:], rhs[-2:]
    if set(rows) != {m, k} or set(columns) != {n, k}:
        return None
    return nn.MatMulOp(
        reads[0].value,
        reads[1].value,
        transpose_lhs=rows == (k, m),
        transpose_rhs=columns == (n, k),
    )


def _convolved(reads: Sequence[Read], dims: tuple[Dim, ...]) -> nn.ConvOp | None:
    """A convolution of an image [N, C, ...] with weights [O, C, ...]."""
    image, weight = reads[0], reads[1].loops
    if weight is None or not len(weight) == len(image.axes) == len(dims) >= 3:
        return None
    (n, o, *out), (of, c, *kernel) = dims, weight
    batch, channels, *places = image.axes
    if of != o or batch != nn.Index(((n, 1),)) or channels != nn.Index(((c, 1),)):
        return None
    steps: list[int] = []
    spread: list[int] = []
    high: list[int] = []
    sizes = nn.shape_of(image.value)
    if sizes[:2] != (n.size, c.size):
        return None
    for index, y, k, size in zip(places, out, kernel, sizes[2:], strict=True):
        found = dict(index.terms)
        if set(found) != {y, k} or min(found.values()) < 1 or index.offset or index.divisor != 1:
            return None
        steps.append(found[y])
        spread.append(found[k])
        high.append(found[y] * (y.size - 1) + found[k] * (k.size - 1) + 1 - size)
    try:
        return nn.ConvOp(image.value, reads[1].value, stride=steps, dilation=spread, pad_high=high)
    except VerifyException:
        return None
