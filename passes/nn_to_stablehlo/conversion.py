"""The program in stablehlo while it is made of nn."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray
from xdsl.dialects.builtin import DenseIntOrFPElementsAttr, IntegerAttr, i1, i32, i64
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from ...backends.reference.identities import identity_of
from ...dialects import nn, stablehlo
from ...dialects.along import Along
from ...dialects.dense import dense_of_array
from ...dialects.dtypes import numpy_dtype
from ...ir.provenance import at, locate
from ...ir.support.number_kinds import is_whole
from ...ir.upstream import UNKNOWN_LOC
from ..exporting.functions import merge_of
from ..exporting.loops import Counted, Gathered, Loops
from ..exporting.program import ProgramExport
from ..exporting.reads import Shown
from ..exporting.terms import Term
from .numbers import FUNCTIONS, Numbers, broadcast, constant
from .sorts import comparator


class ToStablehlo(ProgramExport):
    """A program in stablehlo, while it is made of nn."""

    def type_of(self, type_: Attribute) -> Attribute:
        """The types are those of nn."""
        return type_

    def known(self, array: NDArray[Any]) -> SSAValue:
        """A constant with each element, which each function makes once, before everything else."""
        key = array.dtype.name, array.shape, array.tobytes()
        found = self._constants.get(key)
        if found is not None:
            return found
        op = constant(array)
        locate(op, at(self.source, "constant") if self.source is not None else UNKNOWN_LOC)
        if self._last is not None:
            self.top.insert_op_after(op, self._last)
        elif self.top.first_op is not None:
            self.top.insert_op_before(op, self.top.first_op)
        else:
            self.top.add_op(op)
        self._last = op
        self._constants[key] = op.results[0]
        return op.results[0]

    def begin(self, block: Block) -> None:
        """Begin a function, whose constants come first."""
        super().begin(block)
        self._constants: dict[tuple[object, ...], SSAValue] = {}
        self._last: Operation | None = None

    # What moves elements

    def filled(
        self, shape: Sequence[int], fill: float | int | bool, element: Attribute
    ) -> SSAValue:
        """A tensor that repeats a number."""
        return Numbers(shape, self).number(fill, element).value

    def reshape(self, value: SSAValue, shape: Sequence[int]) -> SSAValue:
        """The same elements in another shape."""
        type_ = nn.tensor(shape, nn.element_of(value))
        return self.emit(stablehlo.ReshapeOp.build(operands=[value], result_types=[type_]))

    def transposed(self, value: SSAValue, order: Sequence[int]) -> SSAValue:
        """A tensor with its axes in another order."""
        if list(order) == list(range(len(order))):
            return value
        shape = nn.shape_of(value)
        type_ = nn.tensor([shape[i] for i in order], nn.element_of(value))
        return self.emit(
            stablehlo.TransposeOp.build(
                operands=[value],
                properties={"permutation": nn.integers(order)},
                result_types=[type_],
            )
        )

    def padded(
        self, value: SSAValue, low: Sequence[int], high: Sequence[int], fill: float | int | bool
    ) -> SSAValue:
        """A tensor with elements added at the ends of its axes."""
        return self._pad(value, low, high, [0] * len(low), fill)

    def spread(self, value: SSAValue, axis: int, step: int, fill: float | int | bool) -> SSAValue:
        """A tensor with elements added between any two along an axis."""
        none = [0] * len(nn.shape_of(value))
        inner = [step - 1 if i == axis else 0 for i in range(len(none))]
        return self._pad(value, none, none, inner, fill)

    def _pad(
        self,
        value: SSAValue,
        low: Sequence[int],
        high: Sequence[int],
        inner: Sequence[int],
        fill: float | int | bool,
    ) -> SSAValue:
        element = nn.element_of(value)
        number = self.filled((), fill, element)
        sizes = zip(nn.shape_of(value), low, high, inner, strict=True)
        shape = [lo + n + max(n - 1, 0) * k + hi for n, lo, hi, k in sizes]
        return self.emit(
            stablehlo.PadOp.build(
                operands=[value, number],
                properties={
                    "edge_padding_low": nn.integers(low),
                    "edge_padding_high": nn.integers(high),
                    "interior_padding": nn.integers(inner),
                },
                result_types=[nn.tensor(shape, element)],
            )
        )

    def cut(
        self, value: SSAValue, starts: Sequence[int], steps: Sequence[int], sizes: Sequence[int]
    ) -> SSAValue:
        """Every step-th element from a start on."""
        lists = zip(starts, steps, sizes, strict=True)
        ends = [start + step * (n - 1) + 1 if n else start for start, step, n in lists]
        return self.emit(
            stablehlo.SliceOp.build(
                operands=[value],
                properties={
                    "start_indices": nn.integers(starts),
                    "limit_indices": nn.integers(ends),
                    "strides": nn.integers(steps),
                },
                result_types=[nn.tensor(sizes, nn.element_of(value))],
            )
        )

    def taken(self, value: SSAValue, axis: int, indices: NDArray[np.int64]) -> SSAValue:
        """The elements at these indices along an axis."""
        shape = nn.shape_of(value)
        if list(indices) == list(range(shape[axis] - 1, -1, -1)):
            return self.emit(
                stablehlo.ReverseOp.build(
                    operands=[value],
                    properties={"dimensions": nn.integers([axis])},
                    result_types=[value.type],
                )
            )
        index = self.known(np.asarray(indices, np.int32))
        return self._rows(value, axis, index, axis)

    def _rows(self, value: SSAValue, axis: int, index: SSAValue, first: int) -> SSAValue:
        """The rows of a table along an axis; the axes of the indices are at `first`."""
        shape, counts = nn.shape_of(value), nn.shape_of(index)
        rest = [n for i, n in enumerate(shape) if i != axis]
        made = [*rest[:first], *counts, *rest[first:]]
        offsets = [*range(first), *range(first + len(counts), len(made))]
        axes = stablehlo.GatherAxes(
            offset_dims=tuple(offsets),
            collapsed_slice_dims=(axis,),
            start_index_map=(axis,),
            index_vector_dim=len(counts),
        )
        return self.emit(
            stablehlo.GatherOp.build(
                operands=[value, index],
                properties={
                    "dimension_numbers": stablehlo.GatherAttr(axes),
                    "slice_sizes": nn.integers(
                        [1 if i == axis else n for i, n in enumerate(shape)]
                    ),
                },
                result_types=[nn.tensor(made, nn.element_of(value))],
            )
        )

    def joined(self, parts: Sequence[SSAValue], axis: int, type_: Attribute) -> SSAValue:
        """Tensors next to each other along an axis."""
        return self.emit(
            stablehlo.ConcatenateOp.build(
                operands=[parts], properties={"dimension": nn.integer(axis)}, result_types=[type_]
            )
        )

    # Loops

    def loops(self, loops: Loops) -> SSAValue:
        """The result of loops: functions of whole tensors, and perhaps a merge of some axes."""
        away = [d for d, n in enumerate(loops.sizes) if n != 1 and d not in loops.results]
        away = away if loops.combiner else []
        order = [*loops.results, *away]
        shape = [loops.sizes[d] for d in order]
        to = Numbers(shape, self)
        terms = [
            self._counted(each, order, loops.sizes)
            if isinstance(each, Counted)
            else self._shown(each, order, loops.sizes)
            for each in loops.reads
        ]
        made = to.cast(loops.compute(to, terms), loops.element)
        if loops.combiner is None:
            return made.value
        axes = range(len(loops.results), len(order))
        found = self._reduced(made, axes, loops.combiner) if away else made.value
        if loops.begins is None:
            return found
        one = Numbers(loops.shape, self)
        merged = one.primitive(
            merge_of(loops.combiner, loops.element),
            Term(loops.begins, loops.element),
            Term(found, loops.element),
        )
        return merged.value

    def _reduced(self, term: Term, axes: Sequence[int], combiner: str) -> SSAValue:
        key = self.block, "reduce", term.value, tuple(axes), combiner
        if key in self.emitted:
            return self.emitted[key]
        begin = self.filled((), identity_of(combiner, term.element), term.element)
        shape = [n for i, n in enumerate(nn.shape_of(term.value)) if i not in axes]
        found = self.emitted[key] = self.emit(
            stablehlo.ReduceOp.build(
                operands=[[term.value], [begin]],
                properties={"dimensions": nn.integers(axes)},
                result_types=[[nn.tensor(shape, term.element)]],
                regions=[self._merging(combiner, term.element)],
            )
        )
        return found

    def _merging(self, combiner: str, element: Attribute) -> Region:
        """The region that merges two elements."""
        type_ = nn.tensor((), element)
        body = Block(arg_types=[type_, type_])
        kind: Any = FUNCTIONS[merge_of(combiner, element)]
        made = kind(*body.args)
        body.add_ops([made, stablehlo.ReturnOp.build(operands=[[made.results[0]]])])
        return Region(body)

    def _shown(self, shown: Shown, order: Sequence[int], sizes: Sequence[int]) -> Term:
        """An operand repeated over all loops, which are the axes in this order."""
        value, loops = self._apart(shown, sizes)
        present = [d for d in order if d in loops]
        value = self.transposed(value, [loops.index(d) for d in present])
        shape = [sizes[d] for d in order]
        axes = [order.index(d) for d in present]
        return Term(broadcast(value, axes, shape, self), shown.element, shown.never_zero)

    def _apart(self, shown: Shown, sizes: Sequence[int]) -> tuple[SSAValue, list[int]]:
        """An operand with an axis for each of its loops, and these loops.

        Elements under windows that overlap are repeated.
        """
        value, loops = shown.value, list[int]()
        shape: list[int] = list(shown.shape)
        place = 0
        for terms, offset in zip(shown.axes, shown.offsets, strict=True):
            if len(terms) == 1 and terms[0][1] == 1 and not offset:
                loops.append(terms[0][0])
                place += 1
                continue
            counts = [sizes[d] for d, _ in terms]
            grid = np.indices(counts)
            index = offset + sum(c * grid[i] for i, (_, c) in enumerate(terms))
            value = self.taken(value, place, np.asarray(index).reshape(-1))
            shape[place : place + 1] = counts
            value = self.reshaped(value, shape)
            loops += [d for d, _ in terms]
            place += len(terms)
        return self._distinct(value, loops, sizes)

    def _distinct(
        self, value: SSAValue, loops: list[int], sizes: Sequence[int]
    ) -> tuple[SSAValue, list[int]]:
        """The diagonal of axes that are one loop."""
        for d in dict.fromkeys(loops):
            while loops.count(d) > 1:
                first = loops.index(d)
                second = loops.index(d, first + 1)
                order = [i for i in range(len(loops)) if i != second]
                order.insert(first + 1, second)
                value = self.transposed(value, order)
                loops.pop(second)
                n = sizes[d]
                shape = [sizes[e] for e in loops]
                shape[first] = n * n
                value = self.taken(self.reshaped(value, shape), first, np.arange(n) * (n + 1))
        return value, loops

    def _counted(self, counted: Counted, order: Sequence[int], sizes: Sequence[int]) -> Term:
        """A number that a point has by itself, at all points."""
        shape = [sizes[d] for d in order]
        to = Numbers(shape, self)
        wide = _counting(counted.element)
        found: Term | None = None
        for d, c in counted.terms:
            along = self.emit(stablehlo.IotaOp(nn.tensor((sizes[d],), wide), 0))
            each = Term(along, wide)
            if c != 1:
                one = Numbers((sizes[d],), self)
                each = one.primitive("mul", each, one.number(c, wide))
            each = Term(broadcast(each.value, [order.index(d)], shape, self), wide)
            found = each if found is None else to.primitive("add", found, each)
        if found is None or counted.offset:
            offset = to.number(counted.offset, wide)
            found = offset if found is None else to.primitive("add", found, offset)
        return to.cast(found, counted.element)

    # Operations for what is common

    def gathered(self, rows: Gathered) -> SSAValue | None:
        """The rows of a table, as stablehlo.gather."""
        table, index = rows.table.loops, rows.index.loops
        assert table is not None
        assert index is not None
        others = [d for d in table if d != rows.row]
        if set(others) & set(index) or {*others, *index} != set(rows.results):
            return None
        to = Numbers(rows.index.shape, self)
        front = rows.counted(to, Term(rows.index.value, rows.index.element))
        axis = table.index(rows.row)
        value = self._rows(rows.table.value, axis, front.value, axis)
        made = [*table[:axis], *index, *table[axis + 1 :]]
        return self.transposed(value, [made.index(d) for d in rows.results])

    def product(self, left: Shown, right: Shown, loops: Loops) -> SSAValue | None:
        """The sums of products, as stablehlo.dot_general or stablehlo.convolution."""
        if left.loops is not None and right.loops is not None:
            return self._dot(left, right, loops)
        if left.loops is not None:
            return self._convolved(right, left, loops)
        return self._convolved(left, right, loops) if right.loops is not None else None

    def _as(self, value: SSAValue, old: Attribute, element: Attribute) -> SSAValue:
        return Numbers(nn.shape_of(value), self).cast(Term(value, old), element).value

    def _dot(self, left: Shown, right: Shown, loops: Loops) -> SSAValue | None:
        a, b = left.loops, right.loops
        assert a is not None
        assert b is not None
        if loops.element == i1:
            return None
        common = [d for d in a if d in b and d in loops.results]
        summed = [d for d in a if d in b and d not in loops.results]
        own = [d for d in a if d not in b], [d for d in b if d not in a]
        if not {*own[0], *own[1]} <= set(loops.results):
            return None
        values = [self._as(each.value, each.element, loops.element) for each in (left, right)]
        axes = stablehlo.DotAxes(
            tuple(map(a.index, common)),
            tuple(map(b.index, common)),
            tuple(map(a.index, summed)),
            tuple(map(b.index, summed)),
        )
        made = [*common, *own[0], *own[1]]
        shape = [loops.sizes[d] for d in made]
        value = self.emit(
            stablehlo.DotGeneralOp.build(
                operands=values,
                properties={"dot_dimension_numbers": stablehlo.DotAttr(axes)},
                result_types=[nn.tensor(shape, loops.element)],
            )
        )
        return self.transposed(value, [made.index(d) for d in loops.results])

    def _convolved(self, image: Shown, kernel: Shown, loops: Loops) -> SSAValue | None:
        of_kernel = kernel.loops
        assert of_kernel is not None
        plain = [t[0][0] for t in image.axes if len(t) == 1]
        windows = [t for t in image.axes if len(t) > 1]
        if len({d for t in image.axes for d, _ in t}) != sum(map(len, image.axes)):
            return None
        places: list[tuple[int, int, int, int]] = []
        for terms, offset in zip(image.axes, image.offsets, strict=True):
            if len(terms) == 1:
                continue
            (o, a), (k, b) = sorted(terms, key=lambda each: each[0] in of_kernel)
            moves = o in loops.results and o not in of_kernel
            merges = k in of_kernel and k not in loops.results
            if len(terms) != 2 or offset or a < 1 or b < 1 or not moves or not merges:
                return None
            places.append((o, a, k, b))
        results = loops.results
        batch = [d for d in plain if d in results and d not in of_kernel]
        group = [d for d in plain if d in results and d in of_kernel]
        features = [d for d in plain if d not in results]
        made_by = [d for d in of_kernel if d in results and d not in plain]
        inner = [k for _, _, k, _ in places]
        if not set(features) <= set(of_kernel) or loops.element == i1:
            return None
        if {*of_kernel} != {*group, *features, *made_by, *inner} or len(windows) != len(places):
            return None
        sizes = loops.sizes
        outer = [t[0][0] if len(t) == 1 else -1 - i for i, t in enumerate(image.axes)]
        inside = [i for i, t in enumerate(image.axes) if len(t) > 1]
        order = [*(outer.index(d) for d in (*batch, *group, *features)), *inside]
        left = self.transposed(self._as(image.value, image.element, loops.element), order)
        spans = [image.shape[i] for i in inside]
        counts = [prod(sizes[d] for d in some) for some in (batch, group, features, made_by)]
        n, g, c, m = counts
        left = self.reshaped(left, (n, g * c, *spans))
        order = [of_kernel.index(d) for d in (*group, *made_by, *features, *inner)]
        right = self.transposed(self._as(kernel.value, kernel.element, loops.element), order)
        right = self.reshaped(right, (g * m, c, *(sizes[k] for k in inner)))
        rank = len(places)
        spatial = tuple(range(2, 2 + rank))
        axes = stablehlo.ConvAxes((0, 1, spatial), (1, 0, spatial), (0, 1, spatial))
        shape = (n, g * m, *(sizes[o] for o, _, _, _ in places))
        value = self.emit(
            stablehlo.ConvolutionOp.build(
                operands=[left, right],
                properties={
                    "window_strides": nn.integers([a for _, a, _, _ in places]),
                    "padding": _pairs(rank),
                    "lhs_dilation": nn.integers([1] * rank),
                    "rhs_dilation": nn.integers([b for _, _, _, b in places]),
                    "dimension_numbers": stablehlo.ConvAttr(axes),
                    "feature_group_count": nn.integer(g),
                    "batch_group_count": nn.integer(1),
                },
                result_types=[nn.tensor(shape, loops.element)],
            )
        )
        made = [*batch, *group, *made_by, *(o for o, _, _, _ in places)]
        value = self.reshaped(value, [sizes[d] for d in made])
        return self.transposed(value, [made.index(d) for d in results])

    def windows(self, shown: Shown, loops: Loops) -> SSAValue | None:
        """What is left of windows that are merged, as stablehlo.reduce_window."""
        sizes, results = loops.sizes, loops.results
        assert loops.combiner is not None
        if all(len(t) == 1 for t in shown.axes) or any(shown.offsets):
            return None
        if len({d for t in shown.axes for d, _ in t}) != sum(map(len, shown.axes)):
            return None
        found: list[tuple[int, int, int, int]] = []
        for terms in shown.axes:
            if len(terms) == 1:
                d = terms[0][0]
                found.append((d, 1, 1, 1) if d in results else (-1, 1, sizes[d], 1))
                continue
            if len(terms) != 2:
                return None
            (o, a), (k, b) = sorted(terms, key=lambda each: each[0] not in results)
            if o not in results or k in results or a < 1 or b < 1:
                return None
            found.append((o, a, sizes[k], b))
        to = Numbers(shown.shape, self)
        term = to.cast(loops.compute(to, [Term(shown.value, shown.element)]), loops.element)
        shape = [1 if o < 0 else sizes[o] for o, _, _, _ in found]
        _, strides, window, dilations = zip(*found, strict=True)
        value = self._window(
            term, loops.combiner, shape, window, strides, dilations, _pairs(len(found))
        )
        made = [o for o, _, _, _ in found if o >= 0]
        value = self.reshaped(value, [sizes[d] for d in made])
        return self.transposed(value, [made.index(d) for d in results])

    def running(self, value: SSAValue, element: Attribute, axis: int, along: Along) -> SSAValue:
        """A scan, as windows that end at each element, or begin there."""
        shape = nn.shape_of(value)
        here = np.arange(len(shape)) == axis
        low, high = here & (not along.reverse), here & along.reverse
        ones = [1] * len(shape)
        if along.exclusive:
            fill = identity_of(along.name, element)
            longer = self.padded(value, low.astype(int).tolist(), high.astype(int).tolist(), fill)
            value = self.cut(longer, high.astype(int).tolist(), ones, shape)
        window = np.where(here, max(shape[axis], 1), 1)
        padding = dense_of_array(np.stack([low, high], axis=1) * (window[:, None] - 1))
        return self._window(
            Term(value, element), along.name, shape, window.tolist(), ones, ones, padding
        )

    def ordered(self, value: SSAValue, element: Attribute, axis: int, along: Along) -> SSAValue:
        """A sort, as stablehlo.sort; that of indices reorders the places of elements too."""
        given, types = [value], [value.type]
        if along.name == "sort_indices":
            type_ = nn.tensor(nn.shape_of(value), i32)
            given.append(self.emit(stablehlo.IotaOp(type_, axis)))
            types.append(type_)
        made = self.add(
            stablehlo.SortOp.build(
                operands=[given],
                properties={
                    "dimension": nn.integer(axis),
                    "is_stable": IntegerAttr(1, i1),
                },
                result_types=[types],
                regions=[comparator([nn.element_of(each) for each in given], along)],
            ),
            "sort",
        )
        return made.results[-1]

    def _window(
        self,
        term: Term,
        combiner: str,
        shape: Sequence[int],
        window: Sequence[int],
        strides: Sequence[int],
        dilations: Sequence[int],
        padding: DenseIntOrFPElementsAttr,
    ) -> SSAValue:
        """What a combiner leaves of each window. The shape is that of the result."""
        begin = self.filled((), identity_of(combiner, term.element), term.element)
        return self.emit(
            stablehlo.ReduceWindowOp.build(
                operands=[[term.value], [begin]],
                properties={
                    "window_dimensions": nn.integers(window),
                    "window_strides": nn.integers(strides),
                    "base_dilations": nn.integers([1] * len(shape)),
                    "window_dilations": nn.integers(dilations),
                    "padding": padding,
                },
                result_types=[[nn.tensor(shape, term.element)]],
                regions=[self._merging(combiner, term.element)],
            )
        )


def _counting(element: Attribute) -> Attribute:
    """The type in which a place is counted: its own, in which it wraps as in any wider type."""
    return element if is_whole(numpy_dtype(element)) and element != i1 else i64


def _pairs(rank: int) -> DenseIntOrFPElementsAttr:
    """No padding."""
    return dense_of_array(np.zeros((rank, 2), np.int64))
