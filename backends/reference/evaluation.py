"""Evaluates a structured operation: its points are merged box by box."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from math import prod
from typing import Any, cast

import numpy as np

from ...dialects.structured import Structure
from ...ir.geometry.space import AccessMap
from ...ir.support.number_kinds import is_floating
from ..codelets.scalar import scalar_function
from ..codelets.whole import sequence
from .cells import evaluate_cells, of_result
from .contraction import add_products
from .coordinates import with_coordinates
from .gather import Array, Box, boxes, gathered
from .meeting_points import check_indices
from .parts import MERGE, Parts, as_bits, errors_to_merge, without
from .related_points import begin_with, merge_related_points
from .roles import Roles, roles_of
from .stages import WithOperands

REGION = 1 << 17
"""Elements of a region that is judged at a time, so that its arrays stay in a cache."""


@dataclass(frozen=True)
class Evaluation:
    """The evaluation of one operation.

    Attributes:
        operands: of the function, in their viewed shapes.
        extras: the operands of the chain.
        indices: the operands of relations.
        begun: the operand that updates begin with, or None.
        number: the index of the result, of a users' codelet with several.
    """

    roles: Roles
    operands: tuple[Array, ...]
    extras: tuple[Array, ...] = ()
    indices: tuple[Array, ...] = ()
    begun: tuple[Array, ...] = ()
    number: int = 0

    @staticmethod
    def of(
        structure: Structure,
        operands: Sequence[Array],
        result_dtype: np.dtype[Any],
        number: int = 0,
    ) -> Evaluation:
        """The evaluation of a structure whose combiner, if it has one, merges one value.

        Raises ValueError if the operands do not fit the space, or the result is not covered.
        """
        structure = of_result(structure, number)
        structure, operands = with_coordinates(structure, operands, result_dtype)
        function = scalar_function(structure.body.function)
        roles = roles_of(structure, function, tuple([a.dtype for a in operands]), result_dtype)
        views: list[Array] = []
        for i, (array, shape) in enumerate(zip(operands, roles.viewed, strict=True)):
            if array.shape != shape and array.size != prod(shape):
                raise ValueError(f"operand {i}: shape {array.shape}; the space needs {shape}")
            views.append(array.reshape(shape))
        check_indices(structure.space, views)
        arity, own = len(roles.dtypes), structure.own_operands
        begun = own - structure.body.begun_with
        groups = (views[:arity], views[own:], views[arity:begun], views[begun:own])
        return Evaluation(roles, *map(tuple, groups), number=number)

    def stages(self) -> Iterator[WithOperands]:
        """Each stage of the chain with its further operands, which broadcast over the kept
        dimensions.
        """
        roles = self.roles
        own = len(self.operands) + len(self.indices) + len(self.begun)
        maps = roles.space.operands[own:]
        arrays = iter(zip(self.extras, maps, strict=True))
        for stage in roles.chain:
            taken: list[Array] = []
            for array, access in islice(arrays, stage.extras):
                taken.append(self.once(array.astype(np.float64), access))
            yield stage, taken

    def once(self, array: Array, access: AccessMap) -> Array:
        """The elements of an operand that does not depend on merged dimensions, over the kept
        dimensions.
        """
        roles = self.roles
        points = gathered(array, access, roles.whole)
        flat = points.reshape(without(points.shape, roles.reduced))
        return roles.in_result_order(flat, sorted(roles.kept))

    def evaluate(self, bounded: bool, region: Box | None = None) -> Parts:
        """Merge all points of a region of the result; by default, of the whole result.

        Args:
            bounded: whether to compute sizes and errors too.
        """
        roles = self.roles
        if roles.is_users:
            return evaluate_cells(roles, self.operands, self.number, bounded=bounded)
        region = region or roles.whole
        parts = Parts.empty(roles, bounded, region)
        if self.indices:
            self._merge_related(parts)
            return parts
        for box in roles.boxes(region):
            if roles.is_contraction:
                add_products(roles, self.operands, box, parts, region)
            else:
                self._reduce(box, parts, region)
        return parts

    def regions(self) -> Iterable[Box]:
        """Regions that can be evaluated one by one, whose arrays stay in a cache if possible.

        Nothing is read twice: for a sum of products, only dimensions that both operands have are
        cut.
        """
        roles = self.roles
        if self.indices or roles.along is not None or not roles.points:
            return (roles.whole,)
        sizes, cut = roles.space.sizes, list(roles.kept)
        if roles.is_contraction:
            first, second = (access.dims() for access in roles.space.operands[:2])
            cut = [d for d in cut if d in first & second]
        rest = [d for d in (*roles.kept, *roles.reduced) if d not in cut]
        if roles.is_contraction:
            rest = [d for d in rest if d in roles.kept]
        return boxes(sizes, [cut], max(1, REGION // prod(sizes[d] for d in rest)))

    def in_sequence(self, parts: Parts) -> Parts:
        """The scan or sort along the whole dimension, from the function's values."""
        roles, along = self.roles, self.roles.along
        if along is None or roles.is_users:
            return parts
        (d,) = roles.space.of_kind("whole")
        # A dimension of one element may be missing from the axes.
        axis = roles.kept.index(d) if d in roles.kept else -1
        shape = parts.value.shape

        def computed(values: Array) -> Array:
            rows = np.moveaxis(values, axis, -1) if axis >= 0 else values[..., None]
            exact = values.dtype if is_floating(values.dtype) else roles.result_dtype
            found = sequence(along, rows, exact)
            return np.moveaxis(found, -1, axis) if axis >= 0 else found.reshape(shape)

        value = computed(parts.value)
        if parts.size is None or along.name not in ("sum", "prod"):
            return Parts(value, parts.size, parts.error)
        size = np.abs(parts.value)
        error = size
        if along.name == "prod":
            size = np.maximum(size, 1.0)
        # The first value of a sum has no error.
        size = computed(size)
        error = np.zeros(shape) if along.name == "sum" else computed(error)
        count = np.arange(1, roles.space.dims[d].size + 1) - along.exclusive
        count = count[::-1] if along.reverse else count
        terms = count.reshape([-1 if i == axis else 1 for i in range(len(shape))])
        return Parts(value, size, error, np.broadcast_to(terms, shape))

    def _read(self, i: int, box: Box) -> Array:
        roles = self.roles
        points = gathered(self.operands[i], roles.space.operands[i], box)
        return points.astype(roles.read_as[i], copy=False)

    def _merge_related(self, parts: Parts) -> None:
        """Merge the points at which the relations hold into the result, which updates begin
        with."""
        roles = self.roles
        if self.begun and 0 not in roles.shape:
            access = roles.space.operands[len(self.operands) + len(self.indices)]
            begin_with(roles, self.once(self.begun[0], access), parts)
        if roles.points:
            merge_related_points(roles, self.operands, self.indices, parts)

    def _reduce(self, box: Box, parts: Parts, region: Box) -> None:
        """Merge the points of a box into the result; without a combiner, write them there."""
        roles, sizes = self.roles, tuple(b - a for a, b in box)
        reads = tuple(self._read(i, box) for i in range(len(self.operands)))
        is_copy = roles.function.name == "identity" and reads[0].dtype == roles.start.dtype
        raw = reads[0] if is_copy else roles.function.apply(roles.parameters, *reads)
        place = roles.place(box, region)
        values = self._merged(raw, sizes)
        if roles.combiner is None:
            parts.value[place] = values
        else:
            merge = cast(Callable[..., Array], MERGE[roles.combiner])
            held = parts.value[place]
            if roles.combiner == "pick":
                held, values = as_bits(held), as_bits(values)
            parts.value[place] = merge(held, values).view(parts.value.dtype)
        for into, points, by in errors_to_merge(roles, parts, reads, raw):
            by(into[place], self._merged(points, sizes, by), out=into[place])

    def _merged(self, points: Array, sizes: tuple[int, ...], by: np.ufunc | None = None) -> Array:
        """An array over the points of a box, merged over the reduced dimensions, in the result's
        order.
        """
        roles = self.roles
        merge = by or (MERGE[roles.combiner] if roles.combiner else None)
        if merge is None or not roles.reduced:
            axes = tuple(d for d in range(len(sizes)) if d not in roles.kept)
            return roles.in_result_order(
                points.reshape(without(points.shape, axes)), sorted(roles.kept)
            )
        full = [n if d in roles.reduced else points.shape[d] for d, n in enumerate(sizes)]
        if points.dtype.kind == "b" and merge in (np.add, np.multiply):
            points = points.astype(np.int64)
        dtype = points.dtype
        if merge is np.bitwise_or:
            points = as_bits(points)
        merged = cast(Array, merge.reduce(np.broadcast_to(points, full), axis=roles.reduced))
        merged = merged.view(dtype) if merge is np.bitwise_or else merged
        return roles.in_result_order(merged, sorted(roles.kept))
