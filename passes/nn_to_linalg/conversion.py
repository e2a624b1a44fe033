"""The program in linalg while it is made of nn."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray
from xdsl.dialects import arith, linalg, tensor
from xdsl.dialects.builtin import (
    AffineMapAttr,
    ArrayAttr,
    DenseArrayBase,
    IndexType,
    IntegerAttr,
    TensorType,
    i64,
)
from xdsl.dialects.linalg.attrs import IteratorTypeAttr
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.ir.affine import AffineConstantExpr, AffineDimExpr, AffineExpr, AffineMap

from ...backends.reference.identities import identity_of
from ...dialects.along import Along
from ...dialects.dense import dense_of_array
from ...ir.provenance import at, locate
from ...ir.refusals import Uncovered
from ..exporting import sequences
from ..exporting.functions import merge_of
from ..exporting.loops import Counted, Gathered, Loops
from ..exporting.program import ProgramExport
from ..exporting.reads import Shown, Terms
from ..exporting.terms import Term
from .scalars import Scalars, flat


def shape_of(value: SSAValue) -> tuple[int, ...]:
    """The shape of a tensor of MLIR."""
    return tuple(cast("TensorType[Attribute]", value.type).get_shape())


def element_of(value: SSAValue) -> Attribute:
    """The element type of a tensor of MLIR."""
    return cast("TensorType[Attribute]", value.type).element_type


class ToLinalg(ProgramExport):
    """A program in linalg, while it is made of nn."""

    def type_of(self, type_: Attribute) -> Attribute:
        """The tensor type of MLIR for one of nn."""
        given = cast("TensorType[Attribute]", type_)
        return TensorType(flat(given.element_type), given.get_shape())

    def known(self, array: NDArray[Any]) -> SSAValue:
        """A constant with each element."""
        if array.dtype.kind == "u":
            array = array.view(f"i{array.dtype.itemsize}")
        return self.emit(arith.ConstantOp(dense_of_array(array)))

    # What moves elements

    def empty(self, shape: Sequence[int], element: Attribute) -> SSAValue:
        """A tensor whose elements nothing has set."""
        return self.emit(tensor.EmptyOp((), TensorType(flat(element), shape)))

    def filled(
        self, shape: Sequence[int], fill: float | int | bool, element: Attribute
    ) -> SSAValue:
        """A tensor that repeats a number."""
        empty = self.empty(shape, element)
        number = self._number(fill, element)
        return self.emit(linalg.ops.FillOp((number,), (empty,), (empty.type,)))

    def _number(self, fill: float | int | bool, element: Attribute) -> SSAValue:
        return Scalars(self.block, self._locate).number(fill, element).value

    def _locate(self, op: Operation) -> None:
        assert self.source is not None
        locate(op, at(self.source, op.name.rpartition(".")[2]))

    def reshape(self, value: SSAValue, shape: Sequence[int]) -> SSAValue:
        """The same elements in another shape: axes collapsed, then expanded."""
        old, new = shape_of(value), tuple(shape)
        if 0 in old:
            return self.empty(new, element_of(value))
        if not old:
            # xDSL does not expand a tensor without axes.
            alone = self.emit(tensor.ExtractOp(value, (), element_of(value)))
            type_ = TensorType(element_of(value), new)
            made = tensor.FromElementsOp.build(operands=[[alone]], result_types=[type_])
            return self.emit(made)
        groups = _groups(old, new)
        if groups is None:
            total = (prod(old),)
            return self.reshape(self.reshape(value, total), new)
        middle = tuple(prod(old[i] for i in mine) for mine, _ in groups)
        if middle != old:
            kept = [mine for mine, _ in groups]
            value = self.emit(
                tensor.CollapseShapeOp.build(
                    operands=[value],
                    result_types=[TensorType(element_of(value), middle)],
                    properties={"reassociation": _associated(kept)},
                )
            )
        if middle != new:
            kept = [theirs for _, theirs in groups]
            type_ = TensorType(element_of(value), new)
            value = self.emit(tensor.ExpandShapeOp(value, (), _associated(kept), new, type_))
        return value

    def padded(
        self, value: SSAValue, low: Sequence[int], high: Sequence[int], fill: float | int | bool
    ) -> SSAValue:
        """A tensor with elements added at the ends of its axes."""
        element, rank = element_of(value), len(low)
        number = self._number(fill, element)
        body = Block([tensor.YieldOp(number)], arg_types=[IndexType()] * rank)
        shape = [lo + n + hi for lo, n, hi in zip(low, shape_of(value), high, strict=True)]
        type_ = TensorType(element, shape)
        return self.emit(tensor.PadOp(value, (), (), Region(body), low, high, type_))

    def spread(self, value: SSAValue, axis: int, step: int, fill: float | int | bool) -> SSAValue:
        """A tensor with elements added between any two along an axis."""
        sizes = shape_of(value)
        shape = [(n - 1) * step + 1 if i == axis else n for i, n in enumerate(sizes)]
        into = self.filled(shape, fill, element_of(value))
        steps = [step if i == axis else 1 for i in range(len(sizes))]
        lists = _static([0] * len(sizes), sizes, steps)
        return self.emit(
            tensor.InsertSliceOp.build(
                operands=[value, into, [], [], []], result_types=[into.type], properties=lists
            )
        )

    def cut(
        self, value: SSAValue, starts: Sequence[int], steps: Sequence[int], sizes: Sequence[int]
    ) -> SSAValue:
        """Every step-th element from a start on."""
        return self.emit(
            tensor.ExtractSliceOp.build(
                operands=[value, [], [], []],
                result_types=[TensorType(element_of(value), sizes)],
                properties=_static(starts, sizes, steps),
            )
        )

    def taken(self, value: SSAValue, axis: int, indices: NDArray[np.int64]) -> SSAValue:
        """The elements at these indices along an axis."""
        shape = list(shape_of(value))
        shape[axis] = len(indices)
        index = self.emit(arith.ConstantOp(dense_of_array(np.asarray(indices, np.int64))))
        element = element_of(value)
        shown = Shown(index, (len(indices),), (((axis, 1),),), (0,), i64)

        def body(to: Scalars, given: Sequence[Term]) -> Term:
            places = [
                to.to_index(given[0]).value if d == axis else _index(to, d)
                for d in range(len(shape))
            ]
            op = tensor.ExtractOp(value, places, element)
            return to.emit(op, element)

        return self._generic(tuple(shape), (shown,), body, tuple(range(len(shape))), element)

    def joined(self, parts: Sequence[SSAValue], axis: int, type_: Attribute) -> SSAValue:
        """Tensors next to each other along an axis."""
        made = cast("TensorType[Attribute]", self.type_of(type_))
        return self.emit(tensor.ConcatOp(parts, axis, made))

    # Loops

    def loops(self, loops: Loops) -> SSAValue:
        """The result of loops, as linalg.generic."""
        shown = tuple(each for each in loops.reads if isinstance(each, Shown))

        def body(to: Scalars, given: Sequence[Term]) -> Term:
            rest = iter(given)
            terms = [
                next(rest) if isinstance(each, Shown) else _counted(to, each, order)
                for each in loops.reads
            ]
            return loops.compute(to, terms)

        order = _order(loops.sizes, loops.results)
        return self._generic(
            loops.sizes, shown, body, loops.results, loops.element, loops.combiner, loops.begins
        )

    def gathered(self, rows: Gathered) -> SSAValue:
        """The rows of a table, as linalg.generic with tensor.extract."""
        loops = rows.table.loops
        assert loops is not None
        order = _order(rows.sizes, rows.results)

        def body(to: Scalars, given: Sequence[Term]) -> Term:
            front = rows.counted(to, given[0])
            places = [
                to.to_index(front).value if d == rows.row else _index(to, order[d]) for d in loops
            ]
            op = tensor.ExtractOp(rows.table.value, places, element_of(rows.table.value))
            return to.emit(op, rows.table.element)

        return self._generic(rows.sizes, (rows.index,), body, rows.results, rows.table.element)

    def running(self, value: SSAValue, element: Attribute, axis: int, along: Along) -> SSAValue:
        """A scan, as sums of ever more elements."""
        return sequences.running(self, value, element, axis, along)

    def ordered(self, value: SSAValue, element: Attribute, axis: int, along: Along) -> SSAValue:
        """A sort, by the number of elements that come before each."""
        return sequences.ordered(self, value, element, axis, along)

    def _generic(
        self,
        sizes: tuple[int, ...],
        shown: Sequence[Shown],
        compute: Callable[[Scalars, Sequence[Term]], Term],
        results: tuple[int, ...],
        element: Attribute,
        combiner: str | None = None,
        begins: SSAValue | None = None,
    ) -> SSAValue:
        """linalg.generic over the loops of a result, and over those that merge several points."""
        used = {d for each in shown for terms in each.axes for d, _ in terms}
        order = _order(sizes, results) if combiner else {d: i for i, d in enumerate(results)}
        if combiner is None and not used <= set(results):
            raise Uncovered("loops that are merged without a combiner")
        rank = len(order)
        names = sorted(order, key=order.__getitem__)
        inputs = [each.value for each in shown]
        maps = [_map(rank, each, order) for each in shown]
        known = {d for each in shown for d in each.axis_loops}
        missing = [d for d in names if d not in known and d not in results]
        elements = [each.element for each in shown]
        if missing:
            # Its shape says how many iterations the loops have.
            inputs.append(self.empty([sizes[d] for d in missing], element))
            maps.append(AffineMap(rank, 0, tuple(AffineDimExpr(order[d]) for d in missing)))
            elements.append(element)
        shape = [sizes[d] for d in results]
        out = begins
        if out is None:
            out = self.empty(shape, element)
            if combiner:
                out = self.filled(shape, identity_of(combiner, element), element)
        maps.append(AffineMap(rank, 0, tuple(AffineDimExpr(order[d]) for d in results)))
        kinds = [*(flat(each) for each in elements), flat(element)]
        body = Block(arg_types=kinds)
        to = Scalars(body, self._locate)
        given = [
            Term(v, each.element, each.never_zero)
            for v, each in zip(body.args, shown, strict=False)
        ]
        made = compute(to, given)
        made = to.cast(made, element)
        if combiner:
            name = merge_of(combiner, made.element)
            made = to.primitive(name, Term(body.args[-1], element), made)
        body.add_op(linalg.ops.YieldOp(made.value))
        iterators = [
            IteratorTypeAttr.parallel() if d in results else IteratorTypeAttr.reduction()
            for d in names
        ]
        op = linalg.ops.GenericOp(
            inputs,
            (out,),
            Region(body),
            ArrayAttr(map(AffineMapAttr, maps)),
            ArrayAttr(iterators),
            (out.type,),
        )
        return self.emit(op)


def _order(sizes: Sequence[int], results: Sequence[int]) -> dict[int, int]:
    """The number of each loop: those of the result, then those that merge several points."""
    rest = [d for d, n in enumerate(sizes) if n != 1 and d not in results]
    return {d: i for i, d in enumerate((*results, *rest))}


def _sum(terms: Terms, offset: int, order: dict[int, int]) -> AffineExpr:
    found: AffineExpr | None = None
    for d, c in terms:
        each: AffineExpr = AffineDimExpr(order[d])
        each = each if c == 1 else each * c
        found = each if found is None else found + each
    if found is None:
        return AffineConstantExpr(offset)
    return found + offset if offset else found


def _map(rank: int, shown: Shown, order: dict[int, int]) -> AffineMap:
    axes = zip(shown.axes, shown.offsets, strict=True)
    return AffineMap(rank, 0, tuple(_sum(terms, offset, order) for terms, offset in axes))


def _index(to: Scalars, loop: int) -> SSAValue:
    return to.emit(linalg.ops.IndexOp(loop), IndexType()).value


def _counted(to: Scalars, counted: Counted, order: dict[int, int]) -> Term:
    """A number that a point has by itself."""
    wide = i64
    found = to.number(counted.offset, wide)
    for d, c in counted.terms:
        at_loop = to.from_index(linalg.ops.IndexOp(order[d]), wide)
        found = to.primitive("add", found, to.primitive("mul", at_loop, to.number(c, wide)))
    return to.cast(found, counted.element)


def _static(
    starts: Sequence[int], sizes: Sequence[int], steps: Sequence[int]
) -> dict[str, Attribute]:
    lists = {"static_offsets": starts, "static_sizes": sizes, "static_strides": steps}
    return {name: DenseArrayBase.from_list(i64, list(values)) for name, values in lists.items()}


def _associated(groups: Sequence[Sequence[int]]) -> ArrayAttr[Any]:
    return ArrayAttr(ArrayAttr(IntegerAttr(i, i64) for i in each) for each in groups)


def _groups(old: tuple[int, ...], new: tuple[int, ...]) -> list[tuple[list[int], list[int]]] | None:
    """Axes of two shapes that hold the same elements, in groups; None if no groups are smaller."""
    if not new:
        return []
    groups: list[tuple[list[int], list[int]]] = []
    i = j = 0
    while i < len(old) or j < len(new):
        if i == len(old) or j == len(new):
            # What is left has one element each.
            groups[-1][0].extend(range(i, len(old)))
            groups[-1][1].extend(range(j, len(new)))
            break
        mine, theirs = [i], [j]
        a, b = old[i], new[j]
        i, j = i + 1, j + 1
        while a != b:
            if a < b:
                if i == len(old):
                    return None
                a, i = a * old[i], i + 1
                mine.append(i - 1)
            else:
                if j == len(new):
                    return None
                b, j = b * new[j], j + 1
                theirs.append(j - 1)
        groups.append((mine, theirs))
    return groups
