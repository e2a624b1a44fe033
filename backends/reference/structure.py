"""The value of a structured operation in float64, and how far a correct machine may be from it.

Integers and booleans are exact. The bound is that of one operation on the operands given, whatever
the order of its sums: u is the unit roundoff of the dtype that is computed in (float32, or float64
for such operands), of the accumulator, or of the result.

- a function: u times its condition (`ScalarFunction.condition`);
- a sum of k: ((1+u)^k - 1) times the sum of absolute values: for products about (k+1) u |A||B|;
- a product of k: the same, of the absolute product;
- a maximum or minimum: the largest error of what is compared;
- a scan: as the sum or product of the elements up to each place; a maximum, a minimum or a sort has
  no error;
- rounding to the result's dtype: u |r|, none where an exact function gives what the dtype holds;
- a stage: its deviation at the values and ends of the intervals v - e .. v + e that its operands
  are in (see `Mathematics.ends_decide`), or by the steepest slope of the function, and u times its
  condition there. An interval around a pole has no bound. Rounding changes no sign: the
  interval ends at 0 if nothing before was negative, so that the square root of a sum of squares has
  a bound.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import islice, product
from math import prod
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from ...dialects.along import Along
from ...dialects.dtypes import dtype_named
from ...dialects.structured import Body, Stage, Structure
from ...ir.geometry.space import AccessMap, Space
from ...ir.number_kinds import is_unsigned, is_whole, whole_limits
from ..codelets.chain import chaining_dtype
from ..codelets.scalar import (
    FLOAT32,
    FLOAT64,
    Doubles,
    ScalarFunction,
    compute_dtype,
    converted,
    float_limits,
    is_floating,
    scalar_function,
)
from ..codelets.whole import sequence
from .combiners import evaluate_combined
from .coordinates import with_coordinates
from .gather import Array, Box, boxes, gathered, whole_box
from .meeting_points import check_indices, meeting_points

BOX_ELEMENTS = 1 << 22
"""Elements of an array that evaluation makes at once: 32 MiB of float64."""

REGION = 1 << 17
"""Elements of a region that is judged at a time, so that its arrays stay in a cache."""

PIECE = 1 << 15
"""Elements whose bounds are computed at a time, so that intermediate arrays stay in a cache."""

_MERGE: dict[str, np.ufunc] = {
    "sum": np.add,
    "max": np.maximum,
    "min": np.minimum,
    "prod": np.multiply,
    "pick": np.bitwise_or,
}
"""The ufunc of each combiner that has one. That of pick works on bits."""


def evaluate_structure(
    structure: Structure,
    operands: Sequence[Array],
    result_dtype: np.dtype[Any],
    result_shape: Sequence[int],
    accumulator: np.dtype[Any] | None = None,
    result: int = 0,
) -> tuple[Array, Doubles]:
    """A result and its error bound, both of the result's shape.

    result: which of several. accumulator: the dtype sums and products are kept in; by default that
    of the computing, or of the first operand where the body says that it may be narrow.
    The result is float64, not rounded; int64, uint64 or bool if result_dtype is of that kind.
    Raises ValueError if the operands do not fit the space, or the result is not covered.
    """
    task = _merging_task(structure, operands, result_dtype)
    if task is None:
        return _evaluated_otherwise(structure, operands, result_dtype, result_shape, result)
    if accumulator is None and structure.body.narrow:
        accumulator = operands[0].dtype
    with np.errstate(all="ignore"):
        parts = task.in_sequence(task.evaluate(bounded=True))
        stages = list(task.stages())
    merged = Merged(task.roles, parts, accumulator or task.roles.computing, stages)
    return merged.bounded(result_shape)


def merged_regions(
    structure: Structure, operands: Sequence[Array], result: Array
) -> Iterator[tuple[Array, Merged]] | None:
    """Regions of a result, each with what the operands make there before it is rounded and stages
    follow.

    result: an actual one, in the viewed shape of its map. Returns None where bounds are not found
    from merged values: for combiners of several values, and bits that are seen as another type.
    Raises ValueError as evaluate_structure does.
    """
    task = _merging_task(structure, operands, result.dtype)
    if task is None:
        return None
    accumulator = operands[0].dtype if structure.body.narrow else task.roles.computing
    return _merged(task, accumulator, result)


def _merged(
    task: _Task, accumulator: np.dtype[Any], result: Array
) -> Iterator[tuple[Array, Merged]]:
    """What merged_regions returns."""
    roles = task.roles
    actual = _shaped(result, roles.shape)
    with np.errstate(all="ignore"):
        stages = list(task.stages())
        for region in task.regions():
            place = roles.place(region)[:-1]
            parts = task.in_sequence(task.evaluate(bounded=True, region=region))
            here = [(stage, [_piece(each, place) for each in more]) for stage, more in stages]
            yield actual[(*place, ...)], Merged(roles, parts, accumulator, here)


def _merging_task(
    structure: Structure, operands: Sequence[Array], result_dtype: np.dtype[Any]
) -> _Task | None:
    """The evaluation of a result whose bound is found from merged values; None for any other."""
    if structure.body.member_kinds or structure.body.function == "bitcast":
        return None
    structure, operands = with_coordinates(structure, operands, np.dtype(result_dtype))
    return _task(structure, operands, np.dtype(result_dtype))


def _evaluated_otherwise(
    structure: Structure,
    operands: Sequence[Array],
    result_dtype: np.dtype[Any],
    result_shape: Sequence[int],
    result: int,
) -> tuple[Array, Doubles]:
    """A result and its bound, which are not found from merged values."""
    if structure.body.member_kinds:
        return evaluate_combined(structure, operands, result_dtype, result_shape, result)
    structure, operands = with_coordinates(structure, operands, np.dtype(result_dtype))
    return _seen_bits(_task(structure, operands, np.dtype(result_dtype)), result_shape)


def structure_value(
    structure: Structure,
    operands: Sequence[Array],
    result_dtype: np.dtype[Any],
    result_shape: Sequence[int],
    result: int = 0,
) -> Array:
    """The result of evaluate_structure without its bound, in half the time."""
    if structure.body.member_kinds:
        return evaluate_combined(structure, operands, result_dtype, result_shape, result)[0]
    structure, operands = with_coordinates(structure, operands, np.dtype(result_dtype))
    task = _task(structure, operands, np.dtype(result_dtype))
    if structure.body.function == "bitcast":
        return _seen_bits(task, result_shape)[0]
    with np.errstate(all="ignore"):
        parts = task.in_sequence(task.evaluate(bounded=False))
        value = _typed(parts.value, task.roles.result_dtype)
        values = [value]
        for stage, further in task.stages():
            values.append(_stage_value(stage, stage.arguments(values, further)))
        made = values[-1]
        if task.roles.chain:
            made = _typed(made, task.roles.final_dtype)
    return _shaped(made, result_shape)


def _stage_value(stage: Stage, arguments: Sequence[Array]) -> Doubles:
    """The value of a stage in float64; truth values are 0 and 1."""
    if stage.element:
        (value,) = arguments
        return converted(converted(value, dtype_named(stage.element)), FLOAT64)
    made = scalar_function(stage.function).apply(stage.parameters, *arguments)
    return made.astype(np.float64, copy=False)


def _seen_bits(task: _Task, shape: Sequence[int]) -> tuple[Array, Doubles]:
    """The bits of the only operand as numbers of the result's dtype, and the error bound.

    A NaN has many patterns of bits, each of which is right.
    """
    roles = task.roles
    points = gathered(task.operands[0], roles.space.operands[0], roles.whole)
    read = roles.in_result_order(
        points.reshape(_without(points.shape, roles.reduced)), sorted(roles.kept)
    )
    read = np.ascontiguousarray(np.broadcast_to(read, roles.shape))
    value = _typed(read.view(roles.result_dtype), roles.result_dtype)
    bound = np.zeros(read.shape)
    if is_floating(read.dtype) and not is_floating(roles.result_dtype):
        bound[np.isnan(read)] = np.inf
    return _shaped(value, shape), _shaped(bound, shape)


def _shaped(array: Array, shape: Sequence[int]) -> Array:
    """An array in the result's shape; axes without elements are in no dimension."""
    return np.zeros(shape, array.dtype) if 0 in shape else array.reshape(shape)


@dataclass
class Parts:
    """What boxes add to.

    size: sums of |f|, or products of max(|f|, 1). error: units of u; for products, of |f| + error.
    terms: how many values are merged into each one.
    """

    value: Array
    size: Doubles | None
    error: Doubles | None
    terms: NDArray[np.int64] | int = 1

    def at(self, place: tuple[Any, ...]) -> Parts:
        """The parts in a region of the result."""
        size = None if self.size is None else self.size[place]
        error = None if self.error is None else self.error[place]
        terms = self.terms if isinstance(self.terms, int) else self.terms[place]
        return Parts(self.value[place], size, error, terms)


@dataclass(frozen=True)
class Roles:
    """The part each dimension plays in an evaluation, and the dtypes: all but the arrays.

    dtypes: of the function's operands. result_dtype: that of the value before the chain, which its
    end is rounded to final_dtype from.
    """

    space: Space
    function: ScalarFunction
    parameters: tuple[float, ...]
    combiner: str | None
    dtypes: tuple[np.dtype[Any], ...]
    result_dtype: np.dtype[Any]
    kept: tuple[int, ...]
    reduced: tuple[int, ...]
    chain: tuple[Stage, ...] = ()
    final_dtype: np.dtype[Any] = FLOAT32
    along: Along | None = None
    updates: bool = False

    @property
    def merged_by(self) -> str | None:
        """How values are merged into one, by a combiner or a scan; None if they are not."""
        return self.combiner if self.along is None else self.along.name

    @cached_property
    def exact(self) -> bool:
        """Whether all operands that are numbers are integers or booleans."""
        return not any(map(is_floating, self.dtypes[self.function.values :]))

    @cached_property
    def computing(self) -> np.dtype[Any]:
        """The dtype that the machine computes the function in."""
        dtype = compute_dtype(*self.dtypes[self.function.values :])
        return dtype if is_floating(dtype) else np.dtype(np.float32)

    @cached_property
    def rounds_once(self) -> bool:
        """Whether computing rounds to the result's dtype, so that nothing rounds to it again."""
        is_kept = self.combiner in (None, "max", "min", "pick", "last")
        return is_kept and self.result_dtype == self.computing

    @cached_property
    def bound_factor(self) -> float:
        """What a bound is multiplied by for the reference's own errors, which are of the same kind:
        of 2^-53 where the bound has 2^-24 or more."""
        return 2.0 if self.computing == np.float64 else 1 + 2.0**-20

    @cached_property
    def working(self) -> np.dtype[Any]:
        """The dtype that the reference computes in."""
        if not self.exact:
            return np.dtype(np.float64)
        if self.combiner is None:
            # As the machine computes: a logarithm of integers is cut off at their limits, which
            # are not those of wider ones.
            return compute_dtype(*self.dtypes[self.function.values :])
        unsigned = all(is_unsigned(d) or d.kind == "b" for d in self.dtypes)
        wide = np.dtype(np.uint64) in self.dtypes
        return np.dtype(np.uint64 if unsigned and wide else np.int64)

    @cached_property
    def read_as(self) -> tuple[np.dtype[Any], ...]:
        """What operands are converted to: conditions stay what they are."""
        return tuple(
            dtype if dtype.kind == "b" and i < self.function.values else self.working
            for i, dtype in enumerate(self.dtypes)
        )

    @cached_property
    def viewed(self) -> tuple[tuple[int, ...], ...]:
        """The viewed shapes of all operands."""
        return tuple(access.shape for access in self.space.operands)

    @cached_property
    def is_contraction(self) -> bool:
        """Whether this is a sum of products, which matrix multiplication computes."""
        is_product = self.function.name == "mul" and self.combiner == "sum"
        return is_product and not self.space.relations

    @cached_property
    def terms(self) -> int:
        """How many values are merged into one."""
        return prod(self.space.dims[d].size for d in self.reduced) + self.updates

    @cached_property
    def whole(self) -> Box:
        """The box of all points."""
        return whole_box(self.space.sizes)

    @cached_property
    def points(self) -> int:
        """How many points there are."""
        return self.space.points

    def boxes(self, region: Box) -> Iterable[Box]:
        """Boxes of a region's points that are held at once; none where there are no points."""
        sizes = [end - begin for begin, end in region]
        if prod(sizes) <= BOX_ELEMENTS:
            return (region,) if self.points else ()
        found = boxes(sizes, self._groups(), BOX_ELEMENTS)
        starts = [begin for begin, _ in region]
        return (
            tuple((s + a, s + b) for s, (a, b) in zip(starts, box, strict=True)) for box in found
        )

    @cached_property
    def shape(self) -> tuple[int, ...]:
        """Of what boxes add to: the kept dimensions."""
        return tuple(self.space.dims[d].size for d in self.kept)

    @cached_property
    def start(self) -> Array:
        """What merging begins with, as an array without axes."""
        dtype: np.dtype[Any] = np.dtype(np.bool_) if self.function.boolean else self.working
        first: Any = 0
        if self.combiner in ("max", "min"):
            lowest = self.combiner == "max"
            if dtype.kind == "f":
                first = -np.inf if lowest else np.inf
            elif "b" in (dtype.kind, self.result_dtype.kind):
                first = not lowest
            else:
                # Of what the result holds: merging nothing must give something it can hold.
                held = whole_limits(self.result_dtype if is_whole(self.result_dtype) else dtype)
                first = held.min if lowest else held.max
        elif self.combiner == "prod":
            first = 1
        if dtype.kind == "b" and self.combiner in ("sum", "prod"):
            dtype = np.dtype(np.int64)
        return np.array(first, dtype)

    def empty(self, bounded: bool, region: Box) -> Parts:
        """What boxes of a region add to, before the first one."""
        shape = tuple(region[d][1] - region[d][0] for d in self.kept)
        value = _filled(shape, self.start)
        if not bounded or self.exact:
            return Parts(value, None, None, self.terms)
        start = np.array(1.0 if self.combiner == "prod" else 0.0)
        # Products in a sum have errors in units of their sizes, and none of their own.
        error = np.broadcast_to(start, shape) if self.is_contraction else _filled(shape, start)
        return Parts(value, _filled(shape, start), error, self.terms)

    def _groups(self) -> list[list[int]]:
        """Dimensions whose points are held at once, the cheapest to cut first."""
        order = [*self.kept, *self.reduced]
        if not self.is_contraction:
            return [order]
        used = [access.dims() for access in self.space.operands]
        return [
            [d for d in order if d in used[0]],
            [d for d in order if d in used[1]],
            list(self.kept),
        ]

    def place(self, box: Box, region: Box | None = None) -> tuple[Any, ...]:
        """Where the points of a box are in a region of the result, or in all of it."""
        region = region or self.whole
        starts = {d: region[d][0] for d in self.kept}
        # The ellipsis keeps arrays of rank 0 arrays.
        return (*(slice(box[d][0] - starts[d], box[d][1] - starts[d]) for d in self.kept), ...)

    def in_result_order(self, array: Array, dims: Sequence[int]) -> Array:
        """An array with one axis for each of some kept dimensions, with all of them."""
        if tuple(dims) == self.kept:
            return array
        missing = [d for d in self.kept if d not in dims]
        array = array.reshape(array.shape + (1,) * len(missing))
        order = [*dims, *missing]
        return array.transpose([order.index(d) for d in self.kept])


@dataclass(frozen=True)
class _Task:
    """One evaluation: the operands in their viewed shapes, extras those of the chain.

    indices: the operands of relations. begun: the operand that updates begin with, if there is one.
    """

    roles: Roles
    operands: tuple[Array, ...]
    extras: tuple[Array, ...] = ()
    indices: tuple[Array, ...] = ()
    begun: tuple[Array, ...] = ()

    def stages(self) -> Iterator[tuple[Stage, list[Array]]]:
        """Each stage of the chain with its extras, which broadcast over the kept dimensions."""
        roles = self.roles
        own = len(self.operands) + len(self.indices) + len(self.begun)
        maps = roles.space.operands[own:]
        arrays = iter(zip(self.extras, maps, strict=True))
        for stage in roles.chain:
            taken: list[Array] = []
            for array, access in islice(arrays, stage.extras):
                taken.append(self._once(array.astype(np.float64), access))
            yield stage, taken

    def _once(self, array: Array, access: AccessMap) -> Array:
        """The elements of an operand that no merged dimension moves, over the kept dimensions."""
        roles = self.roles
        points = gathered(array, access, roles.whole)
        flat = points.reshape(_without(points.shape, roles.reduced))
        return roles.in_result_order(flat, sorted(roles.kept))

    def evaluate(self, bounded: bool, region: Box | None = None) -> Parts:
        """What points add to, in a region of the result with all that is merged there, or in all of
        it."""
        roles = self.roles
        region = region or roles.whole
        parts = roles.empty(bounded, region)
        if self.indices:
            self._meet(parts)
            return parts
        add = self._contract if roles.is_contraction else self._reduce
        for box in roles.boxes(region):
            add(box, parts, region)
        return parts

    def regions(self) -> Iterable[Box]:
        """Regions that can be evaluated one by one, whose arrays stay in a cache if possible.

        Nothing is read twice: of a sum of products, only dimensions that both operands have are
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
        """What the body computes along the whole dimension, from the values at its points."""
        roles, along = self.roles, self.roles.along
        if along is None:
            return parts
        (d,) = roles.space.of_kind("whole")
        # A dimension of one element may have no axis.
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
        # Sums begin with values that have no error.
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

    def _contract(self, box: Box, parts: Parts, region: Box) -> None:
        """Add the products of a box as one batched matrix multiplication."""
        roles = self.roles
        sizes = [b - a for a, b in box]
        used = [access.dims() for access in roles.space.operands]
        shared = used[0] & used[1]
        batch = [d for d in roles.kept if d in shared]
        rows = [d for d in roles.kept if d in used[0] and d not in shared]
        columns = [d for d in roles.kept if d in used[1] and d not in shared]
        inner = [d for d in roles.reduced if d in shared]
        nowhere = prod(sizes[d] for d in roles.reduced if d not in used[0] | used[1])

        def matrix(i: int, left: list[int], right: list[int], by: np.ufunc | None = None) -> Array:
            """An operand, or a function of it, as a batch of contiguous matrices."""
            array = gathered(self.operands[i], roles.space.operands[i], box)
            if alone[i]:
                array = array.astype(roles.read_as[i], copy=False)
                array = (array if by is None else by(array)).sum(alone[i], keepdims=True)
            order = [*batch, *left, *right]
            rest = tuple(d for d in range(len(sizes)) if d not in order)
            shape = [prod(sizes[d] for d in dims) for dims in (batch, left, right)]
            array = np.ascontiguousarray(array.transpose([*order, *rest]).reshape(shape))
            return array.astype(roles.read_as[i], copy=False)

        def product(a: Array, b: Array) -> Array:
            flat = _matmul(a, b)
            if nowhere != 1:
                flat *= nowhere
            dims = [*batch, *rows, *columns]
            return roles.in_result_order(flat.reshape([sizes[d] for d in dims]), dims)

        place, whole = roles.place(box, region), box == region
        alone = [
            tuple(d for d in roles.reduced if d in used[i] and d not in shared) for i in range(2)
        ]
        a, b = matrix(0, rows, inner), matrix(1, inner, columns)
        parts.value = _plus(parts.value, place, product(a, b), whole)
        if parts.size is not None:
            a = matrix(0, rows, inner, np.absolute) if alone[0] else np.abs(a)
            b = matrix(1, inner, columns, np.absolute) if alone[1] else np.abs(b)
            parts.size = _plus(parts.size, place, product(a, b), whole)

    def _reduce(self, box: Box, parts: Parts, region: Box) -> None:
        """Merge a box's points into the result; without a combiner, put them there."""
        roles, sizes = self.roles, tuple(b - a for a, b in box)
        reads = tuple(self._read(i, box) for i in range(len(self.operands)))
        is_copy = roles.function.name == "identity" and reads[0].dtype == roles.start.dtype
        raw = reads[0] if is_copy else roles.function.apply(roles.parameters, *reads)
        place = roles.place(box, region)
        values = self._merged(raw, sizes)
        if roles.combiner is None:
            parts.value[place] = values
        else:
            merge = cast(Callable[..., Array], _MERGE[roles.combiner])
            held = parts.value[place]
            if roles.combiner == "pick":
                held, values = _bits(held), _bits(values)
            parts.value[place] = merge(held, values).view(parts.value.dtype)
        if parts.size is None or parts.error is None or roles.function.boolean:
            return
        if roles.function.is_exact and roles.combiner != "prod":
            # There are no errors to merge.
            if roles.combiner == "sum":
                parts.size[place] += self._merged(np.abs(raw), sizes)
            return
        error = roles.function.condition(roles.parameters, *reads, result=raw)
        match roles.combiner:
            case "sum":
                parts.size[place] += self._merged(np.abs(raw), sizes)
                parts.error[place] += self._merged(error, sizes)
            case "prod":
                parts.size[place] *= self._merged(np.maximum(np.abs(raw), 1), sizes)
                u = float_limits(roles.computing).roundoff
                parts.error[place] *= self._merged(np.abs(raw) + u * error, sizes)
            case _:
                worst = self._merged(error, sizes, np.maximum)
                np.maximum(parts.error[place], worst, out=parts.error[place])

    def _meet(self, parts: Parts) -> None:
        """Merge the points at which the relations of the space hold."""
        roles = self.roles
        space, function = roles.space, roles.function
        if self.begun and 0 not in roles.shape:
            self._begin(parts)
        if not roles.points:
            return
        found = meeting_points(space, self.indices)
        reads = tuple(
            found.read(array, access).astype(as_type, copy=False)
            for array, access, as_type in zip(
                self.operands, space.operands, roles.read_as, strict=False
            )
        )
        raw = function.apply(roles.parameters, *reads)
        listed = [d for d in roles.kept if d in found.at]
        complete = [d for d in found.free if d in roles.kept]
        shape = (found.count, *(space.dims[d].size for d in found.free))
        reduced = tuple(1 + i for i, d in enumerate(found.free) if d in roles.reduced)
        turn = [roles.kept.index(d) for d in (*listed, *complete)]
        where = tuple(found.at[d] for d in listed)

        def merge(into: Array, points: Array, by: np.ufunc) -> None:
            # A view: the axes of the kept dimensions, those of the list first.
            into = into.transpose(turn)
            points = np.broadcast_to(points, shape)
            if roles.combiner == "last":
                _replace(into, points, where, reduced)
                return
            if by is np.bitwise_or:
                into, points = _bits(into), _bits(points)
            points = by.reduce(points, axis=reduced)
            if where:
                by.at(into, where, points)
            elif len(points):
                into[...] = by(into, by.reduce(points, axis=0))

        assert roles.combiner is not None
        by = _MERGE.get(roles.combiner, np.maximum)
        merge(parts.value, raw.astype(parts.value.dtype, copy=False), by)
        if parts.size is None or parts.error is None or function.boolean:
            return
        error = function.condition(roles.parameters, *reads, result=raw)
        match roles.combiner:
            case "sum":
                merge(parts.size, np.abs(raw), np.add)
                merge(parts.error, error, np.add)
            case "prod":
                u = float_limits(roles.computing).roundoff
                merge(parts.size, np.maximum(np.abs(raw), 1), np.multiply)
                merge(parts.error, np.abs(raw) + u * error, np.multiply)
            case _:
                merge(parts.error, error, np.maximum)

    def _begin(self, parts: Parts) -> None:
        """Put the elements that are updated where updates are merged into them."""
        roles = self.roles
        access = roles.space.operands[len(self.operands) + len(self.indices)]
        held = self._once(self.begun[0], access)
        parts.value[...] = held
        if parts.size is None or parts.error is None:
            return
        if roles.combiner == "sum":
            parts.size[...] = np.abs(parts.value)
        elif roles.combiner == "prod":
            parts.size[...] = np.maximum(np.abs(parts.value), 1)
            parts.error[...] = np.abs(parts.value)

    def _merged(self, points: Array, sizes: tuple[int, ...], by: np.ufunc | None = None) -> Array:
        """An array over points of a box, merged over the reduced dimensions, in result order."""
        roles = self.roles
        merge = by or (_MERGE[roles.combiner] if roles.combiner else None)
        if merge is None or not roles.reduced:
            axes = tuple(d for d in range(len(sizes)) if d not in roles.kept)
            return roles.in_result_order(
                points.reshape(_without(points.shape, axes)), sorted(roles.kept)
            )
        full = [n if d in roles.reduced else points.shape[d] for d, n in enumerate(sizes)]
        if points.dtype.kind == "b" and merge in (np.add, np.multiply):
            points = points.astype(np.int64)
        dtype = points.dtype
        if merge is np.bitwise_or:
            points = _bits(points)
        merged = cast(Array, merge.reduce(np.broadcast_to(points, full), axis=roles.reduced))
        merged = merged.view(dtype) if merge is np.bitwise_or else merged
        return roles.in_result_order(merged, sorted(roles.kept))


def _replace(
    into: Array, points: Array, where: Sequence[NDArray[np.int64]], reduced: Sequence[int]
) -> None:
    """Replace rows by the last point of each. points: (list..., free dimensions...).

    where: the rows of the listed points; reduced: the axes of points that are merged.
    """
    for axis in reversed(reduced):
        points = points.take(-1, axis)
    if not len(points):
        return
    if not where:
        into[...] = points[-1]
        return
    latest = np.full(into.shape[: len(where)], -1)
    np.maximum.at(latest, tuple(where), np.arange(len(points)))
    touched = latest >= 0
    into[touched] = points[latest[touched]]


def _bits(array: Array) -> Array:
    """An array viewed as unsigned integers of its elements' size."""
    return array.view(f"u{array.itemsize}")


def _plus(into: Array, place: tuple[Any, ...], values: Array, whole: bool) -> Array:
    """An array with values added in a region. whole: whether the region is all of it, and nothing
    has been added yet. Along an axis where values are equal, there may be one of them."""
    if whole and values.size == into.size:
        return np.ascontiguousarray(values, into.dtype).reshape(into.shape)
    into[place] += values
    return into


def _filled(shape: tuple[int, ...], value: Array) -> Array:
    """An array of one value. The host provides the memory of zeros only once somebody writes."""
    return np.full(shape, value) if value.any() else np.zeros(shape, value.dtype)


def _without(shape: tuple[int, ...], axes: tuple[int, ...]) -> list[int]:
    return [n for d, n in enumerate(shape) if d not in axes]


def _matmul(a: Array, b: Array) -> Array:
    """The batched product of two arrays of matrices; of integers exactly, modulo 2^64."""
    if a.dtype.kind == "f" or 0 in a.shape or 0 in b.shape:
        return np.matmul(a, b)
    reach = float(np.abs(a.astype(np.float64)).max()) * float(np.abs(b.astype(np.float64)).max())
    if reach * a.shape[-1] < 2.0**52:
        wide = np.matmul(a.astype(np.float64), b.astype(np.float64))
        return wide.astype(a.dtype)
    return np.matmul(a, b)


def _task(structure: Structure, operands: Sequence[Array], dtype: np.dtype[Any]) -> _Task:
    function = scalar_function(structure.body.function)
    roles = _roles(structure, function, tuple([a.dtype for a in operands]), dtype)
    views: list[Array] = []
    for i, (array, shape) in enumerate(zip(operands, roles.viewed, strict=True)):
        if array.shape != shape and array.size != prod(shape):
            raise ValueError(f"operand {i}: shape {array.shape}; the space needs {shape}")
        views.append(array.reshape(shape))
    check_indices(structure.space, views)
    arity, own = len(roles.dtypes), structure.own_operands
    begun = own - structure.body.begun_with
    groups = (views[:arity], views[own:], views[arity:begun], views[begun:own])
    return _Task(roles, *map(tuple, groups))


@lru_cache(maxsize=4096)
def _roles(
    structure: Structure,
    function: ScalarFunction,
    dtypes: tuple[np.dtype[Any], ...],
    result_dtype: np.dtype[Any],
) -> Roles:
    space, body = structure.space, structure.body
    arity = structure.arity
    if len(dtypes) != len(space.operands) or len(dtypes) != arity:
        raise ValueError(
            f"{body.function}: {len(dtypes)} operands; the space has {len(space.operands)}, "
            f"the function, its relations and its chain take {arity}"
        )
    if len(space.results) != 1:
        raise ValueError(f"a structure with {len(space.results)} results; need 1")
    kept = _result_dims(space, space.results[0])
    reduced = tuple(d for d in range(len(space.dims)) if d not in kept)
    if body.combiner is None and any(space.dims[d].size != 1 for d in reduced):
        names = ", ".join(space.dims[d].name for d in reduced)
        raise ValueError(f"{body.function}: nothing merges dimensions {names}")
    if body.then and body.chained_elements[-1] == "" and not is_floating(result_dtype):
        raise ValueError(f"{body.function}: a chain on elements of {result_dtype}; need floats")
    before = chaining_dtype(*dtypes, result_dtype) if body.then else result_dtype
    own = dtypes[: function.arity]
    return Roles(
        *(space, function, body.parameters, body.combiner, own, before, kept, reduced),
        chain=body.then,
        final_dtype=result_dtype,
        along=body.along,
        updates=body.updates,
    )


def _result_dims(space: Space, result: AccessMap) -> tuple[int, ...]:
    """The dimensions of a result, in the order of its axes; those of one element need no axis."""
    kept: list[int] = []
    for i, axis in enumerate(result.axes):
        whole = axis.offset == 0 and axis.divisor == 1
        if not axis.terms and axis.size <= 1 and whole:
            continue
        if len(axis.terms) != 1 or axis.terms[0][1] != 1 or not whole:
            raise ValueError(f"result axis {i}: need one dimension, from its first element on")
        ((d, _),) = axis.terms
        if space.dims[d].size != axis.size or d in kept:
            raise ValueError(f"result axis {i}: dimension {space.dims[d].name} does not cover it")
        kept.append(d)
    return tuple(kept)


def _typed(value: Array, dtype: np.dtype[Any]) -> Array:
    """A value as the result's kind holds it: floats stay float64, integers wrap."""
    if is_floating(dtype):
        return value.astype(np.float64, copy=False)
    if dtype.kind == "b":
        return converted(value, dtype)
    wide = np.dtype(np.uint64 if dtype == np.uint64 else np.int64)
    return converted(converted(value, dtype), wide)


@dataclass(frozen=True)
class Merging:
    """What the errors of merging many terms in any order are made of.

    u: the unit roundoff of computing. tiny: the error of an underflow there. terms: how many values
    are merged into each result. growth: the relative error of merging them. lost: the error of an
    underflow of the accumulator, and largest its largest number. several: whether there is more
    than one term.
    """

    u: float
    tiny: float
    terms: NDArray[np.int64] | int
    growth: Doubles
    lost: Doubles
    largest: float
    several: Array

    @staticmethod
    def of(roles: Roles, parts: Parts, accumulator: np.dtype[Any]) -> Merging:
        """Those of a result whose sums and products are kept in a dtype."""
        terms, limits = parts.terms, float_limits(accumulator)
        computing = float_limits(roles.computing)
        tiny = 0.0 if roles.function.is_exact else computing.smallest_normal
        several = np.greater(terms, 1)
        growth = np.where(several, np.expm1(terms * np.log1p(limits.roundoff)), 0.0)
        lost = several * limits.smallest_normal
        return Merging(computing.roundoff, tiny, terms, growth, lost, limits.largest, several)


def _merging_error(
    roles: Roles, parts: Parts, accumulator: np.dtype[Any]
) -> tuple[Doubles, NDArray[np.bool_]]:
    """The error before the result is rounded, and where there is none at all."""
    value, size, error = parts.value, parts.size, parts.error
    assert size is not None
    assert error is not None
    each = Merging.of(roles, parts, accumulator)
    k, u, tiny, growth, lost = each.terms, each.u, each.tiny, each.growth, each.lost
    match roles.merged_by:
        case "sum":
            total = u * (size if roles.is_contraction else error) + k * tiny
            total = total + growth * (size + total) + lost
        case "prod":
            total = np.maximum(error - np.abs(value), 0.0) + growth * error
            total = total + k * (tiny + lost) * size
        case _:
            total = u * error + np.where(error > 0, tiny, 0.0)
            return total, total == 0
    overflows = size * (1 + growth) >= each.largest
    exact = np.zeros(value.shape, bool)
    if roles.along is not None:
        # The first elements of a scan are moved, or are the identity.
        exact = np.broadcast_to(~each.several, value.shape)
        total = np.where(exact, 0.0, total)
    return np.where(overflows & each.several, np.inf, total), exact


@dataclass(frozen=True)
class Merged:
    """A result before it is rounded and stages follow.

    accumulator: the dtype that sums and products are kept in. stages: those of the chain, each with
    its further operands in float64, which broadcast to the value.
    """

    roles: Roles
    parts: Parts
    accumulator: np.dtype[Any]
    stages: list[tuple[Stage, list[Array]]]

    def bounded(self, shape: Sequence[int]) -> tuple[Array, Doubles]:
        """The result after the chain and its bound, in a shape."""
        with np.errstate(all="ignore"):
            value, bound = self._bounded()
        return _shaped(value, shape), _shaped(bound, shape)

    def _bounded(self) -> tuple[Array, Doubles]:
        """The result after the chain and its bound, computed piece by piece."""
        if self.parts.value.size <= PIECE:
            return _bounded_piece(self.roles, self.parts, self.accumulator, self.stages)
        shape = self.parts.value.shape
        value: Array | None = None
        bound = np.empty(shape)
        for box in boxes(shape, [range(len(shape))], PIECE):
            place = tuple(slice(*each) for each in box)
            here = [(stage, [_piece(each, place) for each in more]) for stage, more in self.stages]
            found, bound[place] = _bounded_piece(
                self.roles, self.parts.at(place), self.accumulator, here
            )
            if value is None:
                value = np.empty(shape, found.dtype)
            value[place] = found
        assert value is not None
        return value, bound


def _piece(array: Array, place: tuple[slice, ...]) -> Array:
    """A region of an array that broadcasts to the result."""
    where = zip(array.shape, place, strict=True)
    return array[tuple([slice(None) if n == 1 else region for n, region in where])]


def _bounded_piece(
    roles: Roles,
    parts: Parts,
    accumulator: np.dtype[Any],
    stages: Sequence[tuple[Stage, list[Array]]],
) -> tuple[Array, Doubles]:
    value, bound = _finished(roles, parts, accumulator)
    if not stages:
        return value, bound
    return _chained(roles, stages, value, bound, _least(roles, parts))


def _finished(roles: Roles, parts: Parts, accumulator: np.dtype[Any]) -> tuple[Array, Doubles]:
    """The result of its kind and the whole bound."""
    value = _typed(parts.value, roles.result_dtype)
    if parts.size is None or roles.function.boolean:
        return value, _rounding(value, np.zeros(value.shape), roles, np.ones(value.shape, bool))
    error, exact = _merging_error(roles, parts, accumulator)
    if not is_floating(roles.result_dtype):
        # An error before the truncation moves the result by at most one more.
        return value, np.where(exact, 0.0, np.ceil(error))
    return value, _rounding(value, error, roles, exact)


def _least(roles: Roles, parts: Parts) -> Doubles:
    """What no correct machine is below before the chain: 0, or -inf where it may be negative."""
    value, size, error = parts.value, parts.size, parts.error
    nothing_below = np.zeros(value.shape, bool)
    if size is not None and error is not None:
        match roles.merged_by:
            case "sum":
                # Terms are of the sign of the exact ones unless their error is absolute.
                nothing_below = (value >= size) & (roles.function.sensitivity is None)
            case "prod":
                pass
            case _:
                nothing_below = value >= float_limits(roles.computing).roundoff * error
    return np.where(nothing_below, 0.0, -np.inf)


@dataclass(frozen=True, eq=False)
class _Within:
    """A value that a correct machine has within an error, and is never below least.

    is_truth: whether it is a truth value, which is 0 or 1 where it has an error.
    """

    value: Doubles
    error: Doubles
    least: Doubles
    is_truth: bool = False

    @cached_property
    def points(self) -> tuple[Doubles, ...]:
        """The value, and the ends of its interval if it has an error anywhere."""
        rough = self.error > 0
        if not rough.any():
            return (self.value,)
        if self.is_truth:
            return self.value, np.where(rough, 0.0, self.value), np.where(rough, 1.0, self.value)
        low = np.maximum(np.nextafter(self.value - self.error, -np.inf), self.least)
        high = np.nextafter(self.value + self.error, np.inf)
        return self.value, np.where(rough, low, self.value), np.where(rough, high, self.value)


def stage_factors(dtype: np.dtype[Any]) -> tuple[float, float]:
    """What a stage's own error, and its whole error, are multiplied by for those of the reference.

    dtype: what the chain computes in.
    """
    return (4.0, 1.0) if dtype == np.float64 else (1.0, 1 + 2.0**-20)


def is_whole_power(stage: Stage) -> bool:
    """Whether a stage is a power whose ends decide for a base of any sign."""
    return bool(stage.parameters) and all(p >= 0 and p.is_integer() for p in stage.parameters)


def _chained(
    roles: Roles,
    stages: Sequence[tuple[Stage, list[Array]]],
    value: Array,
    error: Doubles,
    least: Doubles,
) -> tuple[Array, Doubles]:
    """A value within an error, and its error, once the stages of a chain are applied and rounded.

    least: what the value of a correct machine is never below.
    """
    dtype = roles.result_dtype
    limits = float_limits(dtype)
    elements = Body("identity", then=tuple(stage for stage, _ in stages)).chained_elements[1:]
    value = value.astype(np.float64, copy=False)
    own, slack = stage_factors(dtype)
    unknown = np.zeros(value.shape, bool)
    known = [_Within(value, error, least, roles.function.boolean)]
    for (stage, further), element in zip(stages, elements, strict=True):
        function = scalar_function(stage.function)
        exact = [_Within(each, np.zeros(()), np.zeros(())) for each in further]
        arguments = stage.arguments(known, exact)
        lost, rough = np.zeros(value.shape, bool), np.zeros(value.shape, bool)
        for at, each in enumerate(arguments):
            if each in exact:
                continue
            # What overflowed on the way may have become a NaN, whatever follows.
            reach = np.abs(each.value) + each.error
            lost |= np.isinf(each.error) | (np.isfinite(each.value) & (reach >= limits.largest))
            if at in function.poles:
                lost |= (each.error > 0) & (np.abs(each.value) <= each.error)
            if at in function.positive and not is_whole_power(stage):
                lost |= (each.error > 0) & (each.value <= each.error)
            unknown |= lost & np.isfinite(each.value)
            rough |= each.error > 0
        results: list[Doubles] = []
        condition, nothing_below = np.zeros(value.shape), np.ones(value.shape, bool)
        for points in product(*(each.points for each in arguments)):
            results.append(_stage_value(stage, points))
            own_condition = function.condition(stage.parameters, *points, result=results[-1])
            nothing_below &= results[-1] >= limits.roundoff * own_condition
            np.maximum(condition, own_condition, out=condition)
        value = results[0]
        deviation = np.zeros(value.shape)
        if function.steepest is not None:
            deviation = deviation + function.steepest * sum(each.error for each in arguments)
            nothing_below &= False
        else:
            for there in results[1:]:
                np.maximum(deviation, np.where(rough, np.abs(there - value), 0.0), out=deviation)
        if stage.element == "i1" or function.meets:
            # Inside an interval that holds it, 0 or an equal number is no end.
            gap = arguments[0].value - (arguments[1].value if function.meets else 0.0)
            reach = sum(each.error for each in arguments)
            deviation = np.maximum(deviation, (reach > 0) & (np.abs(gap) <= reach))
        rounding = limits.roundoff * condition + np.where(condition > 0, limits.smallest_normal, 0)
        error = (deviation + own * rounding) * slack
        error = np.where(lost | np.isnan(error), np.inf, error)
        least = np.where(nothing_below, 0.0, -np.inf)
        known.append(_Within(value, error, least, element == "i1"))
    # An infinity or NaN is expected only if nothing that may have overflowed went into it.
    value = np.where(unknown & ~np.isfinite(value), 0.0, value)
    if roles.final_dtype == dtype:
        return value, error
    if not is_floating(roles.final_dtype):
        return _typed(value, roles.final_dtype), np.ceil(error)
    held = converted(converted(value, roles.final_dtype), np.dtype(np.float64)) == value
    final = float_limits(roles.final_dtype)
    step = final.roundoff * (np.abs(value) + error) + final.smallest_subnormal
    step = np.where((error == 0) & held, 0.0, step)
    return value, (error + step) * (1 + 2.0**-20)


def _rounding(value: Array, error: Doubles, roles: Roles, exact: NDArray[np.bool_]) -> Doubles:
    """An error with that of rounding to the result's dtype added."""
    dtype = roles.result_dtype
    if not is_floating(dtype):
        return error
    limits = float_limits(dtype)
    step = limits.roundoff * (np.abs(value) + error) + limits.smallest_subnormal
    if exact.any():
        held = converted(converted(value, dtype), np.dtype(np.float64)) == value
        step = np.where(exact & held, 0.0, step)
    if roles.rounds_once:
        step = np.where(exact, step, 0.0)
    bound = (error + step) * roles.bound_factor
    return np.where(np.isnan(bound), np.inf, bound)
